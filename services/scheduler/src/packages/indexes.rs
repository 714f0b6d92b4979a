//! Indexes beside packages: garbage as soon as no record names them.

use model::{PackageId, PackageOutcome, PackageRecord, PackageResult, PackageState};

use crate::harvest::Harvest;

/// The indexes that an outcome is about: the one that the record named before, and the one that the outcome tells of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Indexes([Option<PackageId>; 2]);

impl Indexes {
    /// Those of an outcome that is about to be settled.
    pub(super) fn of(outcome: &PackageOutcome, before: Option<&PackageRecord>) -> Self {
        let told = match &outcome.result {
            PackageResult::Opened(contents) => contents.index,
            _ => None,
        };
        Self([before.and_then(index), told])
    }

    /// That of a package which nobody goes on with.
    pub(super) fn of_record(before: &PackageRecord) -> Self {
        Self([index(before), None])
    }

    /// Those that the record does not name now.
    fn garbage(self, now: Option<&PackageRecord>) -> impl Iterator<Item = PackageId> {
        let kept = now.and_then(index);
        self.0.into_iter().flatten().filter(move |index| Some(*index) != kept)
    }
}

/// The index that a package's slices are read by.
fn index(record: &PackageRecord) -> Option<PackageId> {
    match &record.state {
        PackageState::Opened { contents, .. } => contents.index,
        _ => None,
    }
}

impl Harvest {
    /// Removes the indexes that nobody needs any more, now that the record says so. Should that fail, bytes are left that do no harm; a job
    /// that still looks for one says something of a package that is settled.
    pub(super) async fn remove_indexes(&self, uri: &str, indexes: Indexes, now: Option<&PackageRecord>) {
        let garbage: Vec<PackageId> = indexes.garbage(now).collect();
        for index in garbage {
            if let Err(error) = self.store.remove_beside_packages(&self.source, index).await {
                tracing::warn!(package.uri = uri, %error, "cannot remove the index of a package that is settled");
            }
        }
    }
}
