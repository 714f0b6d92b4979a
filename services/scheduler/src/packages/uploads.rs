//! What the store has of packages that have not come whole.

use model::{Disposition, Failure, PackageRecord, PackageState, ProblemReason, Seq};

use crate::harvest::Harvest;

impl Harvest {
    /// Forgets what came of a package for the plan `seq`: it is settled, or nobody wants it any more. Should that fail, a few bytes are left
    /// that do no harm.
    pub(super) async fn forget_upload(&self, uri: &str, seq: Seq) {
        if let Err(error) = self.store.forget_upload(&self.source, seq).await {
            tracing::warn!(package.uri = uri, %error, "cannot remove the note of an upload that is settled");
        }
    }
}

/// Whether what came of a package that could not be received is of use to the next run.
pub(super) fn is_worth_keeping(record: &PackageRecord, failure: &Failure) -> bool {
    let may_come = matches!(failure.disposition, Disposition::Retry { .. });
    record.state == PackageState::Wanted && may_come && !is_about_bytes(failure.reason)
}

/// Whether a failure says that the bytes received are not the right ones.
pub(super) fn is_about_bytes(reason: ProblemReason) -> bool {
    use ProblemReason::{DigestMismatch, LengthMismatch, Truncated};
    matches!(reason, DigestMismatch | LengthMismatch | Truncated)
}
