//! Keeps the names that packages of Resource Dumps list, in the catalog (docs/adr/0099).

use catalog::Batch;
use futures::TryStreamExt;
use model::{PackageNames, PackageRecord, PackageState, ResourceUri, SliceSet};
use resourcesync::Quirk;

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::RunContext;

/// Slices of a package that are being settled.
#[derive(Debug, Default)]
pub(super) struct Slices {
    pub(super) numbers: SliceSet,
    pub(super) first: Option<u32>,
    /// Whether any of their entries cannot be read.
    pub(super) has_bad_entries: bool,
}

impl Slices {
    pub(super) fn add(&mut self, number: u32) {
        self.numbers.insert(number);
        self.first = Some(self.first.map_or(number, |first| first.min(number)));
    }
}

/// Keeps what slices of a package list, with their outcomes.
pub(super) fn keep(
    planner: &mut Planner,
    batch: &mut Batch,
    uri: &str,
    record: &PackageRecord,
    slices: Slices,
    mut names: Vec<ResourceUri>,
) {
    let Slices { numbers, first: Some(first), has_bad_entries } = slices else { return };
    let doubtful = has_bad_entries || casts_doubt(record);
    if doubtful {
        planner.reconciler.ignore_absences(&record.set);
    }
    names.sort_unstable();
    names.dedup();
    batch.put_package_names(uri, first, &PackageNames { seq: record.seq, slices: numbers, names, doubtful });
}

/// Whether the manifest of an opened package has a quirk that makes conclusions doubtful.
fn casts_doubt(record: &PackageRecord) -> bool {
    let PackageState::Opened { contents, .. } = &record.state else { return false };
    let is_found = |quirk: &Quirk| contents.manifest.quirks.contains_key(quirk.as_str());
    Quirk::ALL.iter().any(|quirk| quirk.casts_doubt() && is_found(quirk))
}

/// Forgets the names of a package whose record is removed.
pub(super) async fn forget(ctx: &mut RunContext, batch: &mut Batch, uri: &str) -> Result<(), HarvestError> {
    let mut all = ctx.catalog().await?.names_of_package(uri).await?;
    while let Some(((_, first), _)) = all.try_next().await? {
        batch.delete_package_names(uri, first);
    }
    Ok(())
}
