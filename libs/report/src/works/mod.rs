//! Works: what links say belongs together, such as a landing page with its metadata and files.
//!
//! A work has a head and members. The head links to its members (`item`, `describedby`, `alternate`), or they link to
//! it (`describes`, `canonical`, `collection`); a Source need not write both. A landing page whose typed links are
//! harvested is the head of a work, too, though it is no resource. A member may have members of its own,
//! such as a file with metadata of its own. It is then a work too, and says of which one it is a part. A resource that
//! nothing links to or from is a work of its own.
//!
//! Links lead to any URI, so the whole catalog is read first, and what its links claim is sorted on the disk. The
//! memory stays the same, however many there are.

mod grouping;

use catalog::{CatalogError, Lookups};
use futures::TryStreamExt;
use futures::stream::{self, Stream, StreamExt};
use model::{ResourceState, ResourceUri};
use serde::{Deserialize, Serialize};

use self::grouping::{Grouping, Heads};
use crate::claims::{ClaimSorter, SpoolError, claims_of};

/// Records per batch.
const BATCH: usize = 512;
/// The most members of a work, and works that one is a part of, that are named. The rest is counted.
pub const MOST_MEMBERS: usize = 1_000;

/// A work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Its head: the resource that the others belong to.
    pub uri: String,
    /// The landing page, if one of them is known to be it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing_page: Option<String>,
    /// Metadata of the head.
    pub metadata: Vec<Member>,
    /// Files: parts of the head, and other formats of it.
    pub files: Vec<Member>,
    /// Collections that the head is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<String>,
    /// Licenses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub licenses: Vec<String>,
    /// Persistent identifiers to cite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cite_as: Vec<String>,
    /// Authors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// Works that it is a part of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub part_of: Vec<Part>,
    /// Members that are not named: there are too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// Whether everything that it links to as its members is stored.
    pub complete: bool,
    /// Why it belongs to no work although it says that it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orphan: Option<Orphan>,
}

/// A resource of a work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The resource.
    pub uri: String,
    /// The relation that makes it one: of the head's link to it, or of its link to the head.
    pub rel: String,
    /// Its state; none if nothing is known of it.
    pub state: Option<ResourceState>,
    /// Its media type: that of the stored bytes, or what the link declares.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Its profile, such as the kind of metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Whether no list names it: the link led to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub linked: bool,
}

/// A work that a resource is a part of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The head of that work.
    pub uri: String,
    /// The relation.
    pub rel: String,
}

/// The link of a resource whose other end is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orphan {
    /// The relation.
    pub rel: String,
    /// The other end.
    pub uri: String,
}

/// Why works cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum WorksError {
    /// The catalog cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// There is no room for temporary files.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// There are more resources and landing pages than the caller allows.
    #[error("it has more than {0} resources and landing pages")]
    TooMany(u64),
}

/// The works of a Source, in the byte order of their heads' URIs.
///
/// Only those whose head begins with `prefix` and comes after `after`. With `most`, at most that many resources and
/// landing pages are read.
///
/// # Errors
/// [`WorksError`]; the stream itself fails where a record cannot be read.
pub async fn scan<'a>(
    catalog: &'a Lookups,
    prefix: &str,
    after: Option<&ResourceUri>,
    most: Option<u64>,
) -> Result<impl Stream<Item = Result<Work, WorksError>> + Send + 'a, WorksError> {
    let mut sorter = ClaimSorter::new();
    let mut read = 0;
    let mut resources = catalog.scan_resources_unread(BATCH).await?;
    while let Some(batch) = resources.next().await {
        let batch = batch?;
        read += batch.len() as u64;
        if let Some(most) = most.filter(|most| read > *most) {
            return Err(WorksError::TooMany(most));
        }
        for resource in batch {
            let holding = resource.holding()?;
            if holding.bitstream.is_some()
                && let Some(links) = &holding.listing.links
            {
                claims_of(resource.uri()?, &links.to_vec()).try_for_each(|claim| sorter.add(claim))?;
            }
        }
    }
    let mut pages = catalog.scan_pages("", None).await?;
    while let Some((uri, page)) = pages.try_next().await? {
        read += 1;
        if let Some(most) = most.filter(|most| read > *most) {
            return Err(WorksError::TooMany(most));
        }
        if let Some(links) = &page.links {
            claims_of(uri.as_str(), &links.to_vec()).try_for_each(|claim| sorter.add(claim))?;
        }
    }
    let resources = catalog.scan_resources(Some(prefix), after).await?;
    let pages = catalog.scan_pages(prefix, after).await?;
    let grouping = Grouping::new(catalog, Heads::new(resources, pages), sorter.sorted()?);
    let works = stream::try_unfold(grouping, |mut grouping| async move {
        let work = grouping.next().await?;
        Ok(work.map(|work| (work, grouping)))
    });
    Ok(works.boxed())
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use catalog::{Batch, Catalog, CatalogConfig};
    use model::{PageRecord, SetId};

    use super::*;

    #[tokio::test]
    async fn landing_pages_count_as_what_is_read() {
        let store = Arc::new(object_store::memory::InMemory::new());
        let catalog = Catalog::open(store, "catalogs/one", CatalogConfig::default()).await.unwrap();
        let run = "01KA9ZZZZZ0000000000000000".parse().unwrap();
        let mut batch = Batch::new();
        for uri in ["http://h/1", "http://h/2"] {
            let page = PageRecord::new(SetId::new("http://h/list"), "http://h/list", run);
            batch.put_page(&uri.parse().unwrap(), &page);
        }
        catalog.commit(batch).await.unwrap();
        assert!(matches!(scan(&catalog, "", None, Some(1)).await.err(), Some(WorksError::TooMany(1))));
        assert!(scan(&catalog, "", None, Some(2)).await.is_ok());
        catalog.close().await.unwrap();
    }
}
