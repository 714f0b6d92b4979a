//! When a failed attempt is repeated within a run.

use std::time::Duration;

use model::{Disposition, Failure, ProblemReason};

/// Failed attempts in a run after which no long pause is waited for on account of the same resource. A server may be
/// down, or have a limit a day; but one that asks for another pause each time would keep the run open for ever.
const PAUSES: u32 = 10;

/// When a failed resource is retried within a run. One that still fails becomes a problem, which the next run
/// retries.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Attempts per run.
    pub attempts: u32,
    /// Attempts per run that get other bytes than declared. They tell damage in transit from a change since the list.
    pub mismatches: u32,
    /// Wait before the second attempt; doubled before each further one.
    pub first_wait: Duration,
    /// If a server requests a longer wait than this, the next run continues.
    pub longest_wait: Duration,
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// Retry in this run.
    Again {
        /// Minimum wait.
        wait: Duration,
    },
    /// The origin requests a longer wait than a run allows. This counts as a failed attempt, too.
    Patience {
        /// Requested wait.
        wait: Duration,
    },
    /// No retry in this run.
    Problem,
}

impl RetryDecision {
    /// The wait before the retry, if any.
    pub fn wait(self) -> Option<Duration> {
        match self {
            Self::Again { wait } | Self::Patience { wait } => Some(wait),
            Self::Problem => None,
        }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 4,
            mismatches: 2,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// Decides after `attempts` failed attempts, the last one with `failure`.
    pub fn after(&self, failure: &Failure, attempts: u32) -> RetryDecision {
        let Disposition::Retry { after } = failure.disposition else { return RetryDecision::Problem };
        let asked = after.and_then(|after| Duration::try_from(after).ok()).unwrap_or_default();
        if asked > self.longest_wait && failure.reason != ProblemReason::Challenged {
            let is_last = attempts >= self.attempts.max(PAUSES);
            return if is_last { RetryDecision::Problem } else { RetryDecision::Patience { wait: asked } };
        }
        let most = match failure.reason {
            ProblemReason::DigestMismatch | ProblemReason::LengthMismatch => self.mismatches,
            // The bytes would be the same.
            ProblemReason::ChangedAgain => 1,
            // The origin is skipped from now on.
            ProblemReason::Challenged => 1,
            _ => self.attempts,
        };
        if attempts >= most {
            return RetryDecision::Problem;
        }
        let doubled = self.first_wait.saturating_mul(1 << attempts.saturating_sub(1).min(16));
        RetryDecision::Again { wait: asked.max(doubled).min(self.longest_wait) }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn failed(reason: ProblemReason, disposition: Disposition) -> Failure {
        Failure { reason, message: String::new(), disposition, evidence: Default::default() }
    }

    fn again(millis: u64) -> RetryDecision {
        RetryDecision::Again { wait: Duration::from_millis(millis) }
    }

    #[test]
    fn waits_double_until_the_attempts_are_used_up() {
        let policy = RetryPolicy::default();
        let failure = failed(ProblemReason::HttpServerError, Disposition::Retry { after: None });
        assert_eq!(policy.after(&failure, 1), again(500));
        assert_eq!(policy.after(&failure, 3), again(2_000));
        assert_eq!(policy.after(&failure, 4), RetryDecision::Problem);
    }

    #[test]
    fn a_mismatch_is_tried_once_more_and_what_has_changed_again_or_is_refused_never() {
        let policy = RetryPolicy::default();
        let mismatch = failed(ProblemReason::DigestMismatch, Disposition::Retry { after: None });
        assert_eq!(policy.after(&mismatch, 1), again(500));
        assert_eq!(policy.after(&mismatch, 2), RetryDecision::Problem);
        let changed_again = failed(ProblemReason::ChangedAgain, Disposition::Retry { after: None });
        assert_eq!(policy.after(&changed_again, 1), RetryDecision::Problem);
        assert_eq!(
            policy.after(&failed(ProblemReason::HttpClientError, Disposition::Refuse), 1),
            RetryDecision::Problem
        );
    }

    #[test]
    fn the_servers_word_is_kept_however_long_it_asks_for() {
        let policy = RetryPolicy::default();
        let asks = |seconds| {
            let after = Some(SignedDuration::from_secs(seconds));
            failed(ProblemReason::Throttled, Disposition::Retry { after })
        };
        assert_eq!(policy.after(&asks(30), 1), again(30_000));
        let patience = RetryDecision::Patience { wait: Duration::from_secs(3_600) };
        assert_eq!(policy.after(&asks(3_600), 1), patience);
        assert_eq!(policy.after(&asks(3_600), PAUSES - 1), patience);
        assert_eq!(policy.after(&asks(3_600), PAUSES), RetryDecision::Problem, "it asks each time");
        let patient = RetryPolicy { attempts: 12, ..policy };
        assert_eq!(patient.after(&asks(3_600), 11), patience);
        assert_eq!(patient.after(&asks(3_600), 12), RetryDecision::Problem);
    }
}
