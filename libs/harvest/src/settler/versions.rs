//! Earlier versions of resources, as many as the operator keeps.

use catalog::{Batch, Catalog, CatalogError};
use jiff::Timestamp;
use model::{Location, ResourceRecord, ResourceUri, Version, Versions, moment};

use crate::error::HarvestError;
use crate::run::RunContext;
use crate::settler::Settler;

/// How many versions of each resource to keep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct History {
    /// Versions to keep beside the current one.
    keep: u32,
    /// Whether any version may be kept already; otherwise lookups are skipped.
    is_looked_up: bool,
}

impl History {
    /// The last setting, or the new one from now on.
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

impl Settler {
    /// How many versions of each resource are kept beside the current one.
    pub(crate) fn versions_to_keep(&self) -> u32 {
        self.history.keep
    }

    /// The kept versions of these resources, in order. Skips the lookup if there can be none.
    pub(crate) async fn versions_of(
        &self,
        ctx: &mut RunContext,
        uris: &[ResourceUri],
    ) -> Result<Vec<Option<Versions>>, HarvestError> {
        if !self.history.is_looked_up {
            return Ok(vec![None; uris.len()]);
        }
        Ok(ctx.catalog().await?.versions_many(uris).await?)
    }

    /// Ends the current version of a resource: it becomes a kept version, if any are kept. Returns the locations that
    /// are no longer kept, including the current one if it is not kept.
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
            source_from: moment::source_time(&record.listing, &record.declaration),
            lost: None,
        };
        let gone = versions.end(version, self.history.keep);
        if had_any || self.history.keep > 0 {
            batch.put_versions(uri, &versions);
        }
        gone
    }
}
