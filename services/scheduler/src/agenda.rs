//! When each Source is looked at next. Pure.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use model::SourceId;

/// The next times of thousands of Sources: one entry each, and no timer.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    by_time: BTreeSet<(Timestamp, SourceId)>,
    by_source: HashMap<SourceId, Timestamp>,
}

impl Agenda {
    /// Sets the next time of a Source, instead of any other.
    pub(crate) fn set(&mut self, source: &SourceId, at: Timestamp) {
        self.clear(source);
        self.by_time.insert((at, source.clone()));
        self.by_source.insert(source.clone(), at);
    }

    /// Removes a Source.
    pub(crate) fn clear(&mut self, source: &SourceId) {
        if let Some(at) = self.by_source.remove(source) {
            self.by_time.remove(&(at, source.clone()));
        }
    }

    /// Takes the first Source whose time has come.
    pub(crate) fn due(&mut self, now: Timestamp) -> Option<SourceId> {
        let (at, source) = self.by_time.first().filter(|(at, _)| *at <= now)?;
        let (at, source) = (*at, source.clone());
        self.by_time.remove(&(at, source.clone()));
        self.by_source.remove(&source);
        Some(source)
    }

    /// Time until the next Source is due, if there is any.
    pub(crate) fn wait(&self, now: Timestamp) -> Option<Duration> {
        let (at, _) = self.by_time.first()?;
        Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_has_one_time_and_they_come_in_order() {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let [one, two]: [SourceId; 2] = ["one", "two"].map(|name| name.parse().unwrap());
        let mut agenda = Agenda::default();
        assert_eq!(agenda.wait(at(0)), None);
        agenda.set(&one, at(9));
        agenda.set(&two, at(5));
        agenda.set(&one, at(3));
        assert_eq!(agenda.wait(at(0)), Some(Duration::from_secs(3)));
        assert_eq!(agenda.wait(at(7)), Some(Duration::ZERO));
        assert_eq!(
            [agenda.due(at(2)), agenda.due(at(9)), agenda.due(at(9))],
            [None, Some(one.clone()), Some(two.clone())]
        );
        agenda.set(&two, at(20));
        agenda.clear(&two);
        assert_eq!(agenda.due(at(99)), None);
    }
}
