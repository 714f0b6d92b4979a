//! What the operator may choose for a run.

use std::num::NonZeroUsize;
use std::time::Duration;

use model::Mode;
use regex::Regex;

/// What the operator may choose for a run.
#[derive(Debug, Clone)]
pub struct HarvestOptions {
    /// The way to go; chosen by what is known where the operator leaves it open.
    pub mode: Option<Mode>,
    /// Refuse what is tolerated by default.
    pub strict: bool,
    /// Which resources to take.
    pub filter: Filter,
    /// Fetch jobs in flight for one origin.
    pub jobs_per_lane: NonZeroUsize,
    /// When to try again.
    pub retries: RetryPolicy,
}

/// Which resources to take, by their URI.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only those that match.
    pub include: Option<Regex>,
    /// Not those that match.
    pub exclude: Option<Regex>,
}

/// When a resource that failed is tried again within a run. What is left then is a problem, which the next run takes up.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Attempts in one run.
    pub attempts: u32,
    /// The wait before the second attempt; doubled before each further one.
    pub first_wait: Duration,
    /// A server that asks for more patience than this is left to the next run.
    pub longest_wait: Duration,
}

impl Default for HarvestOptions {
    fn default() -> Self {
        Self {
            mode: None,
            strict: false,
            filter: Filter::default(),
            jobs_per_lane: NonZeroUsize::new(4).expect("4 is not 0"),
            retries: RetryPolicy::default(),
        }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 4, first_wait: Duration::from_millis(500), longest_wait: Duration::from_secs(60) }
    }
}

impl HarvestOptions {
    /// A text that differs when other entries would be taken: documents read with another must be read again.
    pub(crate) fn fingerprint(&self) -> String {
        let text = |regex: &Option<Regex>| regex.as_ref().map_or(String::new(), |r| r.as_str().to_owned());
        let Filter { include, exclude } = &self.filter;
        format!("include {:?} exclude {:?} strict {}", text(include), text(exclude), self.strict)
    }
}

impl Filter {
    /// Whether a resource is wanted.
    pub fn takes(&self, uri: &str) -> bool {
        self.include.as_ref().is_none_or(|wanted| wanted.is_match(uri))
            && !self.exclude.as_ref().is_some_and(|unwanted| unwanted.is_match(uri))
    }
}

impl RetryPolicy {
    /// The wait after `attempts` failed ones; none when it is enough for this run.
    pub(crate) fn wait_after(&self, attempts: u32, asked: Option<Duration>) -> Option<Duration> {
        if attempts >= self.attempts {
            return None;
        }
        let doubled = self.first_wait.saturating_mul(1 << attempts.saturating_sub(1).min(16));
        let wait = asked.map_or(doubled, |asked| asked.max(doubled));
        (wait <= self.longest_wait).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_until_the_attempts_are_used_up() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.wait_after(1, None), Some(Duration::from_millis(500)));
        assert_eq!(policy.wait_after(3, None), Some(Duration::from_secs(2)));
        assert_eq!(policy.wait_after(4, None), None);
    }

    #[test]
    fn the_servers_word_is_kept_unless_it_asks_for_too_much() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.wait_after(1, Some(Duration::from_secs(30))), Some(Duration::from_secs(30)));
        assert_eq!(policy.wait_after(1, Some(Duration::from_secs(3600))), None);
    }

    #[test]
    fn a_filter_takes_what_is_included_and_not_excluded() {
        let filter =
            Filter { include: Some(Regex::new("/a/").unwrap()), exclude: Some(Regex::new("[.]tmp$").unwrap()) };
        assert!(filter.takes("http://h/a/x"));
        assert!(!filter.takes("http://h/b/x"));
        assert!(!filter.takes("http://h/a/x.tmp"));
        assert!(Filter::default().takes("anything"));
    }
}
