//! Indexes stored beside packages: garbage as soon as no record refers to them.

use model::{PackageId, PackageOutcome, PackageRecord, PackageResult, PackageState};

use crate::run::RunContext;

/// The indexes of an outcome: the one that the record referred to before, and the one in the outcome.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Indexes([Option<PackageId>; 2]);

impl Indexes {
    /// Those of an outcome that is about to be settled.
    pub(crate) fn of(outcome: &PackageOutcome, before: Option<&PackageRecord>) -> Self {
        let reported = match &outcome.result {
            PackageResult::Opened(contents) => contents.index,
            _ => None,
        };
        Self([before.and_then(index), reported])
    }

    /// The index of a package that is given up.
    pub(crate) fn of_record(before: &PackageRecord) -> Self {
        Self([index(before), None])
    }

    /// Those that the record no longer refers to.
    fn garbage(self, now: Option<&PackageRecord>) -> impl Iterator<Item = PackageId> {
        let kept = now.and_then(index);
        self.0.into_iter().flatten().filter(move |index| Some(*index) != kept)
    }
}

/// The index from which a package's slices are read.
fn index(record: &PackageRecord) -> Option<PackageId> {
    match &record.state {
        PackageState::Opened { contents, .. } => contents.index,
        _ => None,
    }
}

/// Removes unused indexes, once the record no longer refers to them. If that fails, harmless bytes are left. A
/// job that still reads such an index belongs to a settled package.
pub(crate) async fn remove_indexes(
    ctx: &mut RunContext,
    uri: &str,
    indexes: Indexes,
    now: Option<&PackageRecord>,
) {
    let garbage: Vec<PackageId> = indexes.garbage(now).collect();
    for index in garbage {
        if let Err(error) = ctx.store.remove_beside_packages(&ctx.source, index).await {
            tracing::warn!(package.uri = uri, %error, "cannot remove the index of a package that is settled");
        }
    }
}
