//! What the operator may choose for a run.

use std::num::NonZeroUsize;
use std::time::Duration;

use model::{Disposition, Failure, HomeSite, Mode, ProblemReason, Terms};
use regex::Regex;

use crate::limits::RunLimits;
use crate::missed::Channels;

/// What the operator may choose for a run.
#[derive(Debug, Clone)]
pub struct HarvestOptions {
    /// The way to go; chosen by what is known where the operator leaves it open.
    pub mode: Option<Mode>,
    /// Whether lists or dumps are read, where a Source offers both.
    pub prefer: Option<Prefer>,
    /// Whether an audit queues what differs, to put it right.
    pub repair: bool,
    /// Refuse what is tolerated by default.
    pub strict: bool,
    /// Which resources to take.
    pub filter: Filter,
    /// Fetch jobs in flight for one origin.
    pub jobs_per_lane: NonZeroUsize,
    /// How much of a run is in memory and at the bus at a time.
    pub window: WindowLimits,
    /// When to try again.
    pub retries: RetryPolicy,
    /// Ask the Source anew what it offers, however short a time ago it was asked.
    pub rediscover: bool,
    /// For how long it is gone by what the Source offered when it was last asked.
    pub rediscover_after: Duration,
    /// How the Source is asked for its resources.
    pub terms: Terms,
    /// What becomes of resources that a list does not name any more.
    pub absent: AbsentPolicy,
    /// The most resources deleted for their absence in one run, in percent of what is held of a set.
    pub max_deletes_percent: u8,
    /// How many versions of each resource are kept beside the one that is held; as before where the operator does not say.
    pub history: Option<u32>,
    /// Go by what hubs have delivered, and read the Source's documents only where that does not do.
    pub notified: bool,
    /// The channels that hubs should tell of changes by.
    pub channels: Channels,
    /// How much the run reads of the Source's documents at most.
    pub limits: RunLimits,
}

/// Pending records that a run reads ahead of its jobs, over all origins.
pub(crate) const READ_AHEAD: usize = 4_096;
/// Origins that have a queue of jobs at a time.
pub(crate) const ORIGINS_AT_A_TIME: usize = 1_000;

/// How much of a run is in memory and at the bus at a time, however much its documents name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimits {
    /// Resources that are ready to go out.
    pub resources: NonZeroUsize,
    /// Origins that have a queue of jobs. The others wait for their turn in the catalog.
    pub origins: NonZeroUsize,
}

impl Default for WindowLimits {
    fn default() -> Self {
        let positive = |number| NonZeroUsize::new(number).expect("a number that is not 0");
        Self { resources: positive(READ_AHEAD), origins: positive(ORIGINS_AT_A_TIME) }
    }
}

/// What is read where a Source offers both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefer {
    /// Resource Lists and Change Lists, with a request for each resource.
    List,
    /// Resource Dumps and Change Dumps, with a request for each package.
    Dump,
}

/// What becomes of resources that a Resource List does not name any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AbsentPolicy {
    /// They are deleted when a second list, of a later moment, does not name them either.
    #[default]
    Confirm,
    /// They are deleted at the first sighting.
    Delete,
    /// They are kept.
    Keep,
}

/// Which resources to take, by their URI.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only those that match.
    pub include: Option<Regex>,
    /// Not those that match.
    pub exclude: Option<Regex>,
    /// Only those of this site, the one that the Source is entered at.
    pub only_of: Option<HomeSite>,
}

/// When a resource that failed is tried again within a run. What is left then is a problem, which the next run takes up.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Attempts in one run.
    pub attempts: u32,
    /// Attempts in one run that get other bytes than declared: one damaged on its way is told from one that has changed
    /// since it was listed.
    pub mismatches: u32,
    /// The wait before the second attempt; doubled before each further one.
    pub first_wait: Duration,
    /// A server that asks for more patience than this is left to the next run.
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
            absent: AbsentPolicy::default(),
            max_deletes_percent: 10,
            history: None,
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
    /// A text that differs when other entries would be taken: documents read with another must be read again.
    pub(crate) fn fingerprint(&self) -> String {
        let text = |regex: &Option<Regex>| regex.as_ref().map_or(String::new(), |r| r.as_str().to_owned());
        let Filter { include, exclude, only_of } = &self.filter;
        // Nothing is added where all sites are wanted, as before there was a choice.
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

    /// Whether a resource would be wanted, were it not of another site.
    pub(crate) fn leaves_out_as_foreign(&self, uri: &str) -> bool {
        self.only_of.as_ref().is_some_and(|home| home.is_foreign(uri)) && self.matches(uri)
    }

    fn matches(&self, uri: &str) -> bool {
        self.include.as_ref().is_none_or(|wanted| wanted.is_match(uri))
            && !self.exclude.as_ref().is_some_and(|unwanted| unwanted.is_match(uri))
    }
}

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another attempt in this run.
    Again {
        /// Not before this time has passed.
        wait: Duration,
    },
    /// The origin asks for more patience than a run has.
    Patience {
        /// How much.
        wait: Duration,
    },
    /// No other attempt in this run.
    Problem,
}

impl Next {
    /// The wait before it, if there is one.
    pub(crate) fn wait(self) -> Option<Duration> {
        match self {
            Self::Again { wait } | Self::Patience { wait } => Some(wait),
            Self::Problem => None,
        }
    }
}

impl RetryPolicy {
    /// What follows when `attempts` have failed, the last one so.
    pub(crate) fn after(&self, failure: &Failure, attempts: u32) -> Next {
        let Disposition::Retry { after } = failure.disposition else { return Next::Problem };
        let asked = after.and_then(|after| Duration::try_from(after).ok()).unwrap_or_default();
        if asked > self.longest_wait && failure.reason != ProblemReason::Challenged {
            return Next::Patience { wait: asked };
        }
        let most = match failure.reason {
            ProblemReason::DigestMismatch | ProblemReason::LengthMismatch => self.mismatches,
            // It would be the same bytes.
            ProblemReason::ChangedAgain => 1,
            // The origin is left alone from now on.
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
