//! Partial uploads of packages in the store.

use model::{Disposition, Failure, PackageRecord, PackageState, ProblemReason, Seq};

use crate::run::RunContext;

/// Removes the upload of a package for the plan `seq`: the package is settled, or no longer wanted. If that
/// fails, a few harmless bytes are left.
pub(crate) async fn forget_upload(ctx: &mut RunContext, uri: &str, seq: Seq) {
    if let Err(error) = ctx.store.forget_upload(&ctx.source, seq).await {
        tracing::warn!(package.uri = uri, %error, "cannot remove the note of an upload that is settled");
    }
}

/// Whether the partial upload of a failed package is of use to the next run.
pub(crate) fn is_worth_keeping(record: &PackageRecord, failure: &Failure) -> bool {
    let may_come = matches!(failure.disposition, Disposition::Retry { .. });
    record.state == PackageState::Wanted && may_come && !is_about_bytes(failure.reason)
}

/// Whether a failure means that the received bytes are wrong.
pub(crate) fn is_about_bytes(reason: ProblemReason) -> bool {
    use ProblemReason::{DigestMismatch, LengthMismatch, Truncated};
    matches!(reason, DigestMismatch | LengthMismatch | Truncated)
}
