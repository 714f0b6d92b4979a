//! What a resource is linked with: the targets of its links that are resources themselves, and the resources that link
//! to it. A Source need not write both links of a pair.

use catalog::{CatalogError, CatalogReader};
use futures::TryStreamExt;
use model::{Links, ResourceRecord, ResourceState, ResourceUri};
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

impl Pairs {
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
    let links = record.and_then(|record| record.listing.links.as_ref()).map(Links::to_vec);
    for link in links.unwrap_or_default() {
        let target: Result<ResourceUri, _> = link.href.parse();
        let state = match &target {
            Ok(target) => catalog.resource(target).await?.map(|found| state(&found)),
            // A target of another scheme is never a resource.
            Err(_) => None,
        };
        pairs.to.push(End { rel: link.rel, uri: link.href, state });
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
            pairs.from.extend(here.map(|link| End {
                rel: link.rel,
                uri: from.to_string(),
                state: Some(state(&record)),
            }));
        }
    }
    Ok(())
}

fn state(record: &ResourceRecord) -> ResourceState {
    if record.is_present() { ResourceState::Present } else { ResourceState::Deleted }
}
