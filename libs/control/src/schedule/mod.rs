//! Schedules of runs.

mod pace;

use std::time::Duration;

use cronexpr::{Crontab, FallbackTimezoneOption, ParseOptions};
use jiff::{SignedDuration, Timestamp};
use model::SourceId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use pace::{PaceError, PollInterval};

/// The shortest interval between runs. For anything faster, follow the Source continuously.
const SHORTEST_SECONDS: u64 = 10;
/// A year.
const LONGEST_SECONDS: u64 = 366 * 24 * 3600;

/// The schedule of a Source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// The times.
    pub times: Times,
    /// The largest offset in seconds. Each Source starts later than the times by a fixed offset of its own, between 0
    /// and this. So a thousand Sources with the same schedule do not all start in the same second. The default is the
    /// whole interval of [`Times::EverySeconds`], and 0 for [`Times::Cron`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_seconds: Option<u64>,
}

/// The times of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Times {
    /// The multiples of an interval, counted from 1970.
    EverySeconds(u64),
    /// A cron expression of five fields (minute, hour, day of month, month, day of week), in UTC.
    Cron(String),
}

/// Why a schedule is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The interval is too short or too long.
    #[error("every {0} seconds is out of range; an interval is {SHORTEST_SECONDS} seconds to a year")]
    Interval(u64),
    /// Not a cron expression.
    #[error("the cron expression {expression:?} cannot be read: {why}")]
    Cron {
        /// The given text.
        expression: String,
        /// What is wrong with it.
        why: String,
    },
    /// An expression for a day that no calendar has.
    #[error("the cron expression {0:?} never comes true")]
    Never(String),
    /// The offset is too large.
    #[error("a jitter of {jitter} seconds is too long; here it is at most {most}")]
    Jitter {
        /// The given offset.
        jitter: u64,
        /// The largest offset, in seconds.
        most: u64,
    },
}

impl Schedule {
    /// Every so many seconds.
    pub fn every(seconds: u64) -> Self {
        Self { times: Times::EverySeconds(seconds), jitter_seconds: None }
    }

    /// By a cron expression.
    pub fn cron(expression: impl Into<String>) -> Self {
        Self { times: Times::Cron(expression.into()), jitter_seconds: None }
    }

    /// Sets the jitter.
    #[must_use]
    pub fn jitter(mut self, seconds: u64) -> Self {
        self.jitter_seconds = Some(seconds);
        self
    }

    /// Checks the schedule.
    ///
    /// # Errors
    /// [`ScheduleError`] says what is wrong.
    pub fn check(&self) -> Result<(), ScheduleError> {
        if let Times::Cron(expression) = &self.times {
            next_of_cron(expression, Timestamp::UNIX_EPOCH)?;
        }
        self.check_seconds()
    }

    /// Checks all but the cron expression, which is costly.
    fn check_seconds(&self) -> Result<(), ScheduleError> {
        let most = match &self.times {
            Times::EverySeconds(seconds) => {
                if !(SHORTEST_SECONDS..=LONGEST_SECONDS).contains(seconds) {
                    return Err(ScheduleError::Interval(*seconds));
                }
                *seconds
            }
            Times::Cron(_) => 24 * 3600,
        };
        match self.jitter_seconds {
            Some(jitter) if jitter > most => Err(ScheduleError::Jitter { jitter, most }),
            _ => Ok(()),
        }
    }

    /// The first time after `after` at which the Source is due. Missed times do not add up. With the start of the last
    /// run as `after`, the result is one time in the past, so the Source runs once.
    ///
    /// # Errors
    /// [`ScheduleError`], as [`check`](Self::check) does.
    pub fn next_after(&self, source: &SourceId, after: Timestamp) -> Result<Timestamp, ScheduleError> {
        // The next time of a cron expression is its check.
        self.check_seconds()?;
        let offset = SignedDuration::from_secs(self.offset(source));
        let before = after.saturating_sub(offset).unwrap_or(Timestamp::MIN);
        let next = match &self.times {
            Times::EverySeconds(seconds) => {
                // Checked: at most a year.
                let seconds = i64::try_from(*seconds).unwrap_or(i64::MAX);
                // A time within a second is after the second's beginning.
                let turn = before.as_nanosecond().div_euclid(1_000_000_000).div_euclid(seconds.into()) + 1;
                let second = i64::try_from(turn).unwrap_or(i64::MAX).saturating_mul(seconds);
                Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
            }
            Times::Cron(expression) => next_of_cron(expression, before)?,
        };
        Ok(next.saturating_add(offset).unwrap_or(Timestamp::MAX))
    }

    /// The offset of a Source in seconds. It is always the same for one Source.
    fn offset(&self, source: &SourceId) -> i64 {
        let span = match (self.jitter_seconds, &self.times) {
            (Some(jitter), Times::EverySeconds(seconds)) => jitter.min(seconds.saturating_sub(1)),
            (Some(jitter), Times::Cron(_)) => jitter,
            (None, Times::EverySeconds(seconds)) => seconds.saturating_sub(1),
            (None, Times::Cron(_)) => 0,
        };
        let digest = Sha256::digest(source.as_str().as_bytes());
        let random = u64::from_be_bytes(digest[..8].try_into().expect("a SHA-256 has 32 bytes"));
        // At most a year: both fit.
        i64::try_from(random % (span + 1)).unwrap_or(0)
    }
}

fn next_of_cron(expression: &str, after: Timestamp) -> Result<Timestamp, ScheduleError> {
    let next = parse(expression)?.find_next(after);
    next.map(|next| next.timestamp()).map_err(|_| ScheduleError::Never(expression.to_owned()))
}

fn parse(expression: &str) -> Result<Crontab, ScheduleError> {
    let refuse = |why: String| ScheduleError::Cron { expression: expression.to_owned(), why };
    let fields = expression.split_whitespace().count();
    if fields != 5 {
        return Err(refuse(format!(
            "it has {fields} fields, and not five: minute, hour, day of month, month, day of week (in UTC)"
        )));
    }
    let mut options = ParseOptions::default();
    options.fallback_timezone_option = FallbackTimezoneOption::UTC;
    cronexpr::parse_crontab_with(expression, options).map_err(|error| refuse(error.to_string()))
}

/// Whole seconds as a duration.
pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests;
