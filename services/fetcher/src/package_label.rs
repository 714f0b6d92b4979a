//! The label of a package's result in metrics.

use model::{PackageResult, ProblemReason};

/// The label of a package's result.
pub(crate) fn label(result: &PackageResult) -> &'static str {
    match result {
        PackageResult::Stored(_) => "stored",
        PackageResult::NotModified => "not-modified",
        PackageResult::Deferred { .. } => "deferred",
        PackageResult::Failed(failure) => failure.reason.as_str(),
        // Not a result of a fetcher.
        PackageResult::Opened(_) | PackageResult::Slice { .. } | PackageResult::Interrupted { .. } => {
            ProblemReason::WrongKind.as_str()
        }
    }
}
