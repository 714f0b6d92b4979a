//! Options that the operator may set for a run.

use std::num::NonZeroUsize;
use std::time::Duration;

use model::{Absent, Disposition, Failure, HomeSite, Mode, Prefer, ProblemReason, Terms};
use regex::Regex;

use crate::limits::RunLimits;
use crate::missed::Channels;

/// Options that the operator may set for a run.
#[derive(Debug, Clone)]
pub struct HarvestOptions {
    /// The mode; chosen by the state of the sets if the operator sets none.
    pub mode: Option<Mode>,
    /// Whether to read lists or dumps, if a Source offers both.
    pub prefer: Option<Prefer>,
    /// Whether an audit queues the differences for repair.
    pub repair: bool,
    /// Reject deviations that are tolerated by default.
    pub strict: bool,
    /// Which resources to harvest.
    pub filter: Filter,
    /// Fetch jobs in flight for one origin.
    pub jobs_per_lane: NonZeroUsize,
    /// Bounds on the part of a run that is in memory and at the bus.
    pub window: WindowLimits,
    /// When to retry.
    pub retries: RetryPolicy,
    /// Run discovery even if cached discovery has not expired.
    pub rediscover: bool,
    /// Age at which cached discovery expires.
    pub rediscover_after: Duration,
    /// Request limits and identity towards the Source.
    pub terms: Terms,
    /// What to do with absent resources: those that a list no longer contains.
    pub absent: Absent,
    /// Maximum deletions of absent resources in one run, in percent of a set's stored resources.
    pub max_deletes_percent: u8,
    /// Number of earlier versions to keep of each resource; unchanged if the operator sets none.
    pub keep_versions: Option<u32>,
    /// Plan from Change Notifications, and read the Source's documents only if those are not enough.
    pub notified: bool,
    /// The channels by which hubs should report changes.
    pub channels: Channels,
    /// Limits on how much the run reads of the Source's documents.
    pub limits: RunLimits,
}

/// Pending records that a run reads ahead of its jobs, over all origins.
pub(crate) const READ_AHEAD: usize = 4_096;
/// Maximum number of origin queues of a run.
pub(crate) const ORIGINS_AT_A_TIME: usize = 1_000;

/// Bounds on the part of a run that is in memory and at the bus, whatever its documents list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimits {
    /// Resources that are ready to be sent.
    pub resources: NonZeroUsize,
    /// Origins with a queue. The pending records of other origins wait in the catalog.
    pub origins: NonZeroUsize,
}

impl Default for WindowLimits {
    fn default() -> Self {
        let positive = |number| NonZeroUsize::new(number).expect("a number that is not 0");
        Self { resources: positive(READ_AHEAD), origins: positive(ORIGINS_AT_A_TIME) }
    }
}

/// Which resources to harvest, by URI.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only matching URIs.
    pub include: Option<Regex>,
    /// No matching URIs.
    pub exclude: Option<Regex>,
    /// Only URIs of this site, the site of the entry URL.
    pub only_of: Option<HomeSite>,
}

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

impl Default for HarvestOptions {
    fn default() -> Self {
        Self {
            mode: None,
            prefer: None,
            repair: false,
            strict: false,
            filter: Filter::default(),
            jobs_per_lane: NonZeroUsize::new(4).expect("4 is not 0"),
            window: WindowLimits::default(),
            retries: RetryPolicy::default(),
            rediscover: false,
            rediscover_after: Duration::from_secs(3_600),
            terms: Terms::default(),
            absent: Absent::default(),
            max_deletes_percent: 10,
            keep_versions: None,
            notified: false,
            channels: Channels::default(),
            limits: RunLimits::default(),
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

impl HarvestOptions {
    /// A text that changes when other entries would be selected. Documents that were read with another text must be
    /// read again.
    pub(crate) fn fingerprint(&self) -> String {
        let text = |regex: &Option<Regex>| regex.as_ref().map_or(String::new(), |r| r.as_str().to_owned());
        let Filter { include, exclude, only_of } = &self.filter;
        // If all sites are wanted, nothing is added, so that the text is the same as before this option existed.
        let origins = if only_of.is_some() { " origins same" } else { "" };
        format!("include {:?} exclude {:?} strict {}{origins}", text(include), text(exclude), self.strict)
    }
}

impl Filter {
    /// Whether every resource is wanted.
    pub(crate) fn takes_all(&self) -> bool {
        self.include.is_none() && self.exclude.is_none() && self.only_of.is_none()
    }

    /// Whether a resource is wanted.
    pub fn takes(&self, uri: &str) -> bool {
        self.matches(uri) && !self.leaves_out_as_foreign(uri)
    }

    /// Whether a resource is excluded only because it belongs to another site.
    pub(crate) fn leaves_out_as_foreign(&self, uri: &str) -> bool {
        self.only_of.as_ref().is_some_and(|home| home.is_foreign(uri)) && self.matches(uri)
    }

    fn matches(&self, uri: &str) -> bool {
        self.include.as_ref().is_none_or(|wanted| wanted.is_match(uri))
            && !self.exclude.as_ref().is_some_and(|unwanted| unwanted.is_match(uri))
    }
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Retry in this run.
    Again {
        /// Minimum wait.
        wait: Duration,
    },
    /// The origin requests a longer wait than a run allows.
    Patience {
        /// Requested wait.
        wait: Duration,
    },
    /// No retry in this run.
    Problem,
}

impl Next {
    /// The wait before the retry, if any.
    pub(crate) fn wait(self) -> Option<Duration> {
        match self {
            Self::Again { wait } | Self::Patience { wait } => Some(wait),
            Self::Problem => None,
        }
    }
}

impl RetryPolicy {
    /// Decides after `attempts` failed attempts, the last one with `failure`.
    pub(crate) fn after(&self, failure: &Failure, attempts: u32) -> Next {
        let Disposition::Retry { after } = failure.disposition else { return Next::Problem };
        let asked = after.and_then(|after| Duration::try_from(after).ok()).unwrap_or_default();
        if asked > self.longest_wait && failure.reason != ProblemReason::Challenged {
            return Next::Patience { wait: asked };
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
            return Next::Problem;
        }
        let doubled = self.first_wait.saturating_mul(1 << attempts.saturating_sub(1).min(16));
        Next::Again { wait: asked.max(doubled).min(self.longest_wait) }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn failed(reason: ProblemReason, disposition: Disposition) -> Failure {
        Failure { reason, message: String::new(), disposition, evidence: Default::default() }
    }

    fn again(millis: u64) -> Next {
        Next::Again { wait: Duration::from_millis(millis) }
    }

    #[test]
    fn waits_double_until_the_attempts_are_used_up() {
        let policy = RetryPolicy::default();
        let failure = failed(ProblemReason::HttpServerError, Disposition::Retry { after: None });
        assert_eq!(policy.after(&failure, 1), again(500));
        assert_eq!(policy.after(&failure, 3), again(2_000));
        assert_eq!(policy.after(&failure, 4), Next::Problem);
    }

    #[test]
    fn a_mismatch_is_tried_once_more_and_what_has_changed_again_or_is_refused_never() {
        let policy = RetryPolicy::default();
        let mismatch = failed(ProblemReason::DigestMismatch, Disposition::Retry { after: None });
        assert_eq!(policy.after(&mismatch, 1), again(500));
        assert_eq!(policy.after(&mismatch, 2), Next::Problem);
        let changed_again = failed(ProblemReason::ChangedAgain, Disposition::Retry { after: None });
        assert_eq!(policy.after(&changed_again, 1), Next::Problem);
        assert_eq!(
            policy.after(&failed(ProblemReason::HttpClientError, Disposition::Refuse), 1),
            Next::Problem
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
        assert_eq!(policy.after(&asks(3_600), 1), Next::Patience { wait: Duration::from_secs(3_600) });
    }

    #[test]
    fn a_filter_takes_what_is_included_and_not_excluded() {
        let filter = Filter {
            include: Some(Regex::new("/a/").unwrap()),
            exclude: Some(Regex::new("[.]tmp$").unwrap()),
            ..Filter::default()
        };
        assert!(filter.takes("http://h/a/x"));
        assert!(!filter.takes("http://h/b/x"));
        assert!(!filter.takes("http://h/a/x.tmp"));
        assert!(Filter::default().takes("anything"));
    }

    #[test]
    fn a_filter_leaves_out_other_sites_where_only_one_is_wanted() {
        let home = HomeSite::of_text("https://www.example.org/list.xml");
        let only_of = |home| Filter {
            only_of: home,
            exclude: Some(Regex::new("[.]tmp$").unwrap()),
            ..Filter::default()
        };
        let (same, any) = (only_of(Some(home)), only_of(None));
        assert!(same.takes("https://files.example.org/a") && !same.takes_all());
        assert!(!same.takes("https://example.com/a") && same.leaves_out_as_foreign("https://example.com/a"));
        assert!(!same.leaves_out_as_foreign("https://example.com/a.tmp"), "it is not wanted anyhow");
        assert!(any.takes("https://example.com/a") && !any.leaves_out_as_foreign("https://example.com/a"));
        let fingerprint = |filter| HarvestOptions { filter, ..HarvestOptions::default() }.fingerprint();
        assert_ne!(fingerprint(same), fingerprint(any));
    }
}
