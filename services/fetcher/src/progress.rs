//! What a job with a deadline must add, so that another may continue.

use model::{Disposition, Evidence, Failure, ProblemReason, ResourceUri};

/// Bytes that a job must add. A body that is slow, or breaks off again and again, fails: else no attempt would be
/// counted, and it would be tried for ever (docs/adr/0105).
pub(crate) const PROGRESS: u64 = 1024 * 1024;

/// The failure of a server that was asked, and sent less than that in the time of a job.
pub(crate) fn too_slow(uri: &ResourceUri, seconds: u64) -> Failure {
    Failure {
        reason: ProblemReason::TooSlow,
        message: format!(
            "{uri} sent less than {PROGRESS} bytes in {seconds} s; it is tried again later, and if it stays so slow, tell the Source's operator"
        ),
        disposition: Disposition::Retry { after: None },
        evidence: Evidence::default(),
    }
}
