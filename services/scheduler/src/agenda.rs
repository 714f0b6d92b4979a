//! When each Source, or each row of a view, is looked at next. Pure.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Duration;

use jiff::Timestamp;

/// The next times of thousands of Sources: one entry each, and no timer.
#[derive(Debug)]
pub(crate) struct Agenda<K> {
    by_time: BTreeSet<(Timestamp, K)>,
    by_key: HashMap<K, Timestamp>,
}

impl<K> Default for Agenda<K> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), by_key: HashMap::new() }
    }
}

impl<K: Clone + Ord + Hash> Agenda<K> {
    /// Sets the next time of a key, instead of any other.
    pub(crate) fn set(&mut self, key: &K, at: Timestamp) {
        self.clear(key);
        self.by_time.insert((at, key.clone()));
        self.by_key.insert(key.clone(), at);
    }

    /// Removes a key.
    pub(crate) fn clear(&mut self, key: &K) {
        if let Some(at) = self.by_key.remove(key) {
            self.by_time.remove(&(at, key.clone()));
        }
    }

    /// Takes the first key whose time has come.
    pub(crate) fn due(&mut self, now: Timestamp) -> Option<K> {
        let (at, key) = self.by_time.first().filter(|(at, _)| *at <= now)?;
        let (at, key) = (*at, key.clone());
        self.by_time.remove(&(at, key.clone()));
        self.by_key.remove(&key);
        Some(key)
    }

    /// Time until the next key is due, if there is any.
    pub(crate) fn wait(&self, now: Timestamp) -> Option<Duration> {
        let (at, _) = self.by_time.first()?;
        Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use model::SourceId;

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
