//! Why a queued run waits, and until when.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The first pause before a Source that does not answer is asked again.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause. A Source is never given up: it is asked once a day.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 3_600);

/// Why a queued run is not worked on, and when it is due again. It takes no memory and no lease meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunWait {
    /// The kind of reason.
    pub reason: WaitReason,
    /// What happened, where, and what to do.
    pub why: String,
    /// Since when it has waited for this reason, across all tries. For `unreachable`: since when the Source has not
    /// answered.
    pub since: Timestamp,
    /// When it is tried again.
    pub until: Timestamp,
    /// Tries in a row that ended with this reason.
    pub tries: u32,
}

/// The kind of reason for which a run waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitReason {
    /// The Source does not answer.
    Unreachable,
    /// The Source asked for a pause (`Retry-After`).
    RetryAfter,
    /// The run has used its time at a place, and other runs have their turn.
    Turn,
}

impl RunWait {
    /// The wait for a Source that does not answer. The pauses double with each try, up to a day.
    pub fn unreachable(before: Option<&Self>, why: String, now: Timestamp) -> Self {
        Self::next(WaitReason::Unreachable, before, why, now, |tries| {
            FIRST_PAUSE.saturating_mul(1 << (tries - 1).min(16)).min(LONGEST_PAUSE)
        })
    }

    /// The wait for a Source that asked for a pause. It is kept, but at most a day at a time.
    pub fn retry_after(before: Option<&Self>, why: String, asked: Timestamp, now: Timestamp) -> Self {
        let asked = Duration::try_from(asked.duration_since(now)).unwrap_or_default();
        let pause = asked.clamp(Duration::from_secs(1), LONGEST_PAUSE);
        Self::next(WaitReason::RetryAfter, before, why, now, |_| pause)
    }

    /// The wait of a run that leaves its place to others. It is due at once, behind those that wait already.
    pub fn turn(before: Option<&Self>, now: Timestamp) -> Self {
        let why = "other runs have their turn; it goes on where it stopped".to_owned();
        Self::next(WaitReason::Turn, before, why, now, |_| Duration::ZERO)
    }

    fn next(
        reason: WaitReason,
        before: Option<&Self>,
        why: String,
        now: Timestamp,
        pause: impl FnOnce(u32) -> Duration,
    ) -> Self {
        let before = before.filter(|before| before.reason == reason);
        let tries = before.map_or(0, |before| before.tries).saturating_add(1);
        let pause = SignedDuration::try_from(pause(tries)).unwrap_or(SignedDuration::MAX);
        Self {
            reason,
            why,
            since: before.map_or(now, |before| before.since),
            until: now.saturating_add(pause).unwrap_or(Timestamp::MAX),
            tries,
        }
    }
}

impl WaitReason {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::Unreachable, Self::RetryAfter, Self::Turn];

    /// Its name, as it is shown and stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::RetryAfter => "retry-after",
            Self::Turn => "turn",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn seconds(wait: &RunWait, now: Timestamp) -> i64 {
        wait.until.duration_since(now).as_secs()
    }

    #[test]
    fn a_silent_source_is_asked_ever_less_often_but_once_a_day_for_ever() {
        let mut wait = RunWait::unreachable(None, "no answer".to_owned(), at(0));
        let mut pauses = vec![seconds(&wait, at(0))];
        for n in 1..40 {
            wait = RunWait::unreachable(Some(&wait), "no answer".to_owned(), at(n));
            pauses.push(seconds(&wait, at(n)));
        }
        assert_eq!(pauses[..4], [10, 20, 40, 80]);
        assert_eq!(pauses[12..15], [40_960, 81_920, 86_400]);
        assert_eq!((pauses[39], wait.tries, wait.since), (86_400, 40, at(0)));
    }

    #[test]
    fn a_pause_that_a_source_asks_for_is_kept_within_bounds() {
        let asked = |until| RunWait::retry_after(None, "503".to_owned(), until, at(100)).until;
        assert_eq!([asked(at(0)), asked(at(160))], [at(101), at(160)]);
        assert_eq!(asked(Timestamp::MAX), at(100 + 86_400));
    }

    #[test]
    fn another_reason_begins_anew() {
        let silent = RunWait::unreachable(None, "no answer".to_owned(), at(0));
        let turn = RunWait::turn(Some(&silent), at(9));
        assert_eq!((turn.tries, turn.since, turn.until), (1, at(9), at(9)));
        assert_eq!(RunWait::turn(Some(&turn), at(20)).tries, 2);
    }
}
