//! Versions that were held once, as many as the operator wants kept.

use catalog::{Batch, Catalog, CatalogError};
use jiff::Timestamp;
use model::{Location, ResourceRecord, ResourceUri, Version, Versions};

use crate::error::HarvestError;
use crate::harvest::Harvest;

/// How many versions of each resource are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct History {
    /// Beside the one that is held.
    keep: u32,
    /// Whether any may be kept already: lookups are saved where there are none.
    is_looked_up: bool,
}

impl History {
    /// What was wanted last, or is from now on.
    pub(crate) async fn open(catalog: &Catalog, wanted: Option<u32>) -> Result<Self, CatalogError> {
        let noted = catalog.history().await?;
        let keep = wanted.or(noted).unwrap_or_default();
        if keep != noted.unwrap_or_default() {
            let mut batch = Batch::new();
            batch.put_history(keep);
            catalog.commit(batch).await?;
        }
        Ok(Self { keep, is_looked_up: keep > 0 || noted.is_some() })
    }
}

impl Harvest {
    /// The versions kept of these resources, in their order; nothing is looked up where there can be none.
    pub(crate) async fn versions_of(
        &self,
        uris: &[ResourceUri],
    ) -> Result<Vec<Option<Versions>>, HarvestError> {
        if !self.history.is_looked_up {
            return Ok(vec![None; uris.len()]);
        }
        Ok(self.catalog.versions_many(uris).await?)
    }

    /// What is held of a resource ends now: it is kept as a version, if any are. Gives where those lie that are kept no longer, what was held
    /// among them if it is not kept at all.
    pub(crate) fn end_version(
        &self,
        batch: &mut Batch,
        uri: &ResourceUri,
        record: &ResourceRecord,
        versions: Option<Versions>,
        now: Timestamp,
    ) -> Vec<Location> {
        let Some(bitstream) = &record.bitstream else { return Vec::new() };
        let had_any = versions.is_some();
        let mut versions = versions.unwrap_or_default();
        let version = Version {
            from: versions.since(bitstream),
            until: now,
            bitstream: bitstream.clone(),
            declaration: record.declaration.clone(),
            listing: record.listing.clone(),
            lost: None,
        };
        let gone = versions.end(version, self.history.keep);
        if had_any || self.history.keep > 0 {
            batch.put_versions(uri, &versions);
        }
        gone
    }
}
