//! Until when changes were told, and when that was: what a list names stays for a time after readers could know better.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The time between two marks, about: no more of them are needed to keep something for days.
const APART: Duration = Duration::from_secs(3_600);

/// A moment, and the time of the last change that had been told by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    at: Timestamp,
    until: Timestamp,
}

/// Marks of a publication, oldest first: about one an hour, and the last one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ToldUntil(Vec<Mark>);

impl ToldUntil {
    /// Whether there are no marks.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Begins anew: what changed up to this time is in no list that readers may have.
    pub(crate) fn begin(&mut self, until: Timestamp) {
        self.0 = vec![Mark { at: Timestamp::UNIX_EPOCH, until }];
    }

    /// Notes that changes up to a time are told now. Marks are dropped that tell no more than one from before `over`.
    pub(crate) fn note(&mut self, now: Timestamp, until: Timestamp, over: Timestamp) {
        if self.0.last().is_some_and(|last| last.until >= until) {
            return;
        }
        let is_close = |before: &Mark| now.checked_sub(APART).is_ok_and(|then| then < before.at);
        if self.0.iter().rev().nth(1).is_some_and(is_close) {
            self.0.pop();
        }
        self.0.push(Mark { at: now, until });
        let first = self.0.iter().rposition(|mark| mark.at <= over).unwrap_or(0);
        self.0.drain(..first);
    }

    /// The time up to which changes had been told at a moment; none if that is not known.
    pub(crate) fn by(&self, moment: Timestamp) -> Option<Timestamp> {
        self.0.iter().rfind(|mark| mark.at <= moment).map(|mark| mark.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn it_knows_what_was_told_by_a_moment_and_never_says_too_much() {
        let mut told = ToldUntil::default();
        assert!(told.is_empty() && told.by(at(9)).is_none());
        told.begin(at(50));
        let over = at(0);
        // Changes come each minute for a day, and are told ten seconds later.
        for minute in 1..=1_440 {
            told.note(at(minute * 60 + 10), at(minute * 60), over);
        }
        assert!(told.0.len() < 30, "{}", told.0.len());
        assert_eq!(told.by(at(69)), Some(at(50)));
        for second in (70..90_000).step_by(97) {
            let until = told.by(at(second)).unwrap();
            assert!(until <= at(second - 10), "by {second}, only {until} was told");
            assert!(until >= at(second.min(86_410) - 2 * 3_700).max(at(50)), "by {second}: {until}");
        }
        assert_eq!(told.by(at(86_410)), Some(at(86_400)), "the last one is exact");
    }

    #[test]
    fn marks_go_when_a_later_one_is_over_too() {
        let mut told = ToldUntil::default();
        told.begin(at(1));
        for day in 1..100 {
            told.note(at(day * 86_400), at(day * 86_400 - 5), at((day - 2) * 86_400));
            assert!(told.0.len() <= 4, "{}", told.0.len());
        }
        assert_eq!(told.by(at(97 * 86_400)), Some(at(97 * 86_400 - 5)));
        // Nothing new is no mark.
        let before = told.clone();
        told.note(at(200 * 86_400), at(99 * 86_400 - 5), at(198 * 86_400));
        assert_eq!(told, before);
    }
}
