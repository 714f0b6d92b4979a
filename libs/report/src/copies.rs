//! Copies of one origin that several Sources of a store brought (ResourceSync 1.1, section 14.8).

use std::collections::HashMap;

use catalog::{CatalogError, LazyResource, Lookups};
use fixity::Sha256;
use futures::TryStreamExt;
use model::{Links, ResourceRecord};
use resourcesync::relation;
use serde::Serialize;

use crate::shown;

/// The most resources with a first Source that are compared: their digests are in memory.
const COMPARED: usize = 200_000;
/// The most resources of another Source that are read.
const READ: usize = 2_000_000;
/// Records that are read together.
const BATCH: usize = 512;

/// Resources that another Source of the store brought too, from the same first Source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Copies {
    /// The entry URL of the other Source.
    pub source: String,
    /// Resources with the same bytes: one origin, two copies.
    pub same: u64,
    /// Resources with other bytes: one of them is older, or was edited.
    pub different: u64,
}

/// Where resources of a Source were first published, and their SHA-256.
#[derive(Debug)]
pub struct Origins(HashMap<Sha256, Sha256>);

/// Where a resource was first published: the target of its first `via`, if it has one.
pub fn first_source(record: &ResourceRecord) -> Option<String> {
    let links = record.listing.links.as_ref().map(Links::to_vec)?;
    links.into_iter().find(|link| link.rel == relation::VIA).map(|link| link.href)
}

impl Origins {
    /// Reads those of a Source: of the first 200,000 stored resources with a `via`.
    ///
    /// # Errors
    /// When the store fails or a record cannot be read.
    pub async fn of(catalog: &Lookups) -> Result<Self, CatalogError> {
        let mut origins = HashMap::new();
        let mut scan = catalog.scan_resources_unread(BATCH).await?;
        while origins.len() < COMPARED
            && let Some(batch) = scan.try_next().await?
        {
            for resource in batch.iter().filter(|resource| resource.mentions(relation::VIA)) {
                let (_, record) = resource.read()?;
                let origin = first_source(&record).map(|origin| Sha256::of(origin.as_bytes()));
                origins.extend(origin.zip(content(&record)));
            }
        }
        Ok(Self(origins))
    }

    /// Whether no resource has a first Source.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of them that another Source brought too; none if it brought none.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub async fn in_source(&self, url: &str, catalog: &Lookups) -> Result<Option<Copies>, CatalogError> {
        let mut copies = Copies { source: shown::uri(url), same: 0, different: 0 };
        let mut read = 0;
        let mut scan = catalog.scan_resources_unread(BATCH).await?;
        while read < READ
            && let Some(batch) = scan.try_next().await?
        {
            read += batch.len();
            for resource in &batch {
                match self.compare(resource)? {
                    Some(true) => copies.same += 1,
                    Some(false) => copies.different += 1,
                    None => {}
                }
            }
        }
        Ok(Some(copies).filter(|copies| copies.same + copies.different > 0))
    }

    /// Whether a resource has the bytes of ours with the same origin; none if we have none.
    fn compare(&self, resource: &LazyResource) -> Result<Option<bool>, CatalogError> {
        let ours = |origin: &[u8]| self.0.get(&Sha256::of(origin));
        // Without a first Source it may be the origin itself.
        let by_uri = ours(resource.uri_bytes());
        if by_uri.is_none() && !resource.mentions(relation::VIA) {
            return Ok(None);
        }
        let (_, record) = resource.read()?;
        let ours = first_source(&record).map_or(by_uri, |origin| ours(origin.as_bytes()));
        Ok(ours.zip(content(&record)).map(|(ours, theirs)| *ours == theirs))
    }
}

/// The SHA-256 of what is stored.
fn content(record: &ResourceRecord) -> Option<Sha256> {
    record.bitstream.as_ref().map(|bitstream| bitstream.computed.sha256())
}
