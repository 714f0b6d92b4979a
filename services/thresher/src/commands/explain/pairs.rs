//! What a resource is linked with: the targets of its links that are resources themselves, and the resources that link
//! to it. A Source need not write both links of a pair.

use catalog::{CatalogError, CatalogReader};
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{Links, ResourceRecord, ResourceState, ResourceUri, moment};
use report::{LinkEnd, link_ends};
use resourcesync::relation;
use serde::Serialize;

/// The most resources that are searched for links to one. Beyond them, `ls --link` finds the rest.
const SEARCHED: usize = 200_000;
/// The most resources that link to one and are shown.
const SHOWN: usize = 100;
/// Records per batch of the search.
const BATCH: usize = 512;

/// The other end of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct End {
    /// The relation.
    pub(super) rel: String,
    /// The resource.
    pub(super) uri: String,
    /// Its state; none if no list names it.
    pub(super) state: Option<ResourceState>,
    /// Why nothing is stored of it, if it has no state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) not_followed: Option<String>,
    /// Of a version of the resource (`original`): since when the Source had it, as far as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source_from: Option<Timestamp>,
}

/// The resources at the other ends of links.
#[derive(Debug, Default, Serialize)]
pub(super) struct Pairs {
    /// Targets of the resource's own links.
    pub(super) to: Vec<End>,
    /// Resources that link to it.
    pub(super) from: Vec<End>,
    /// Whether not all resources were searched for links to it.
    pub(super) is_cut: bool,
}

impl From<LinkEnd> for End {
    fn from(end: LinkEnd) -> Self {
        let LinkEnd { rel, href, state, not_followed } = end;
        Self { rel, uri: href, state, not_followed, source_from: None }
    }
}

impl Pairs {
    /// Versions of the resource that are resources of their own (RFC 7089): they name it as their `original`. The
    /// oldest first; those without a time are last.
    pub(super) fn versions(&self) -> Vec<&End> {
        let mut versions: Vec<&End> = self.from.iter().filter(|end| end.rel == relation::ORIGINAL).collect();
        versions.sort_by_key(|end| (end.source_from.is_none(), end.source_from, &end.uri));
        versions
    }

    /// What a gateway tells: it does not search for resources that link to this one.
    pub(super) fn of_gateway(ends: Vec<api::LinkEnd>) -> Self {
        let to = ends.into_iter().map(|end| {
            let api::LinkEnd { rel, href, state, not_followed } = end;
            End { rel, uri: href, state: state.map(Into::into), not_followed, source_from: None }
        });
        Self { to: to.collect(), ..Self::default() }
    }

    /// Whether there is nothing to show.
    pub(super) fn is_empty(&self) -> bool {
        self.to.is_empty() && self.from.is_empty() && !self.is_cut
    }
}

/// The pairs of a resource.
pub(super) async fn of(
    catalog: &CatalogReader,
    uri: &ResourceUri,
    record: Option<&ResourceRecord>,
) -> Result<Pairs, CatalogError> {
    let mut pairs = Pairs::default();
    if let Some(record) = record {
        pairs.to = link_ends(catalog, record).await?.into_iter().map(End::from).collect();
    }
    search(catalog, uri, &mut pairs).await?;
    Ok(pairs)
}

/// Searches all records for links to a resource. Only those that mention its URI are decoded.
async fn search(catalog: &CatalogReader, uri: &ResourceUri, pairs: &mut Pairs) -> Result<(), CatalogError> {
    let mut searched = 0;
    let mut scan = catalog.scan_resources_unread(BATCH).await?;
    while let Some(batch) = scan.try_next().await? {
        for unread in batch {
            searched += 1;
            if searched > SEARCHED || pairs.from.len() >= SHOWN {
                pairs.is_cut = true;
                return Ok(());
            }
            if !unread.mentions(uri.as_str()) {
                continue;
            }
            let (from, record) = unread.read()?;
            let links = record.listing.links.as_ref().map(Links::to_vec).unwrap_or_default();
            let here = links.into_iter().filter(|link| link.href == uri.as_str() && from != *uri);
            pairs.from.extend(here.map(|link| {
                End {
                    source_from: moment::source_time(&record.listing, &record.declaration)
                        .filter(|_| link.rel == relation::ORIGINAL),
                    rel: link.rel,
                    uri: from.to_string(),
                    state: Some(state(&record)),
                    not_followed: None,
                }
            }));
        }
    }
    Ok(())
}

fn state(record: &ResourceRecord) -> ResourceState {
    if record.is_present() { ResourceState::Present } else { ResourceState::Deleted }
}
