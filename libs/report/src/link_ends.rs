//! What the links of a resource lead to, and why nothing is stored of some of it.

mod not_followed;

use catalog::{CatalogError, Lookups};
use model::{ResourceRecord, ResourceState, ResourceUri, Subject};

/// The other end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkEnd {
    /// The relation.
    pub rel: String,
    /// The target, as the Source writes it.
    pub href: String,
    /// Its state; none if it is no resource of the Source.
    pub state: Option<ResourceState>,
    /// Why nothing is stored of it, if it has no state.
    pub not_followed: Option<String>,
}

/// The ends of the links of a resource, in their order. It takes a few lookups for each link.
///
/// # Errors
/// When the catalog cannot be read.
pub async fn link_ends(catalog: &Lookups, record: &ResourceRecord) -> Result<Vec<LinkEnd>, CatalogError> {
    let Some(links) = &record.listing.links else { return Ok(Vec::new()) };
    let run = catalog.last_run().await?;
    let options = run.as_ref().map(|run| run.options.as_str());
    let mut ends = Vec::new();
    for link in links.to_vec() {
        let target: Result<ResourceUri, _> = link.href.parse();
        let state = match &target {
            Ok(target) => state_of(catalog, target).await?,
            // A target of another scheme is never a resource.
            Err(_) => None,
        };
        let why = || not_followed::why(&link, &record.declaration, options);
        let not_followed = if state.is_none() { Some(why()) } else { None };
        ends.push(LinkEnd { rel: link.rel, href: link.href, state, not_followed });
    }
    Ok(ends)
}

/// The state of a resource; none of one that is not known.
async fn state_of(catalog: &Lookups, uri: &ResourceUri) -> Result<Option<ResourceState>, CatalogError> {
    let record = catalog.resource(uri).await?;
    let pending = catalog.pending(uri).await?;
    let problem = catalog.problem(&Subject::Resource(uri.to_string())).await?;
    let is_known = record.is_some() || pending.is_some() || problem.is_some();
    Ok(is_known.then(|| ResourceState::of(record.as_ref(), pending.as_ref(), problem.as_ref())))
}
