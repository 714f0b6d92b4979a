//! Earlier versions of a resource.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Bitstream, Declaration, Listing, Location};

/// A version that was stored until another one replaced it, or the resource was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Its bytes.
    pub bitstream: Bitstream,
    /// Its declaration.
    #[serde(default)]
    pub declaration: Declaration,
    /// The entry that led to it.
    pub listing: Listing,
    /// The start of its time as the stored version.
    pub from: Timestamp,
    /// The end of that time: the moment itself belongs to the next version.
    pub until: Timestamp,
    /// Since when the Source had it, as far as the Source says. A version that came together with a later one was never
    /// the stored one: its `from` and `until` are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_from: Option<Timestamp>,
    /// When its bytes were found damaged or missing and were discarded. The rest of its record stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Timestamp>,
}

/// The kept versions of one resource, beside the stored one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Versions {
    /// The oldest first.
    pub kept: Vec<Version>,
    /// Since when the stored version is current, if that is later than it was stored: it was deleted in
    /// between, and restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl Version {
    /// Whether it was the stored version, for whatever time.
    pub fn was_stored(&self) -> bool {
        self.from < self.until
    }

    /// The time by which versions that came together are in order: the Source's time, or else ours.
    pub fn time(&self) -> Timestamp {
        self.source_from.unwrap_or(self.from)
    }
}

impl Versions {
    /// Since when the stored version is current.
    pub fn since(&self, present: &Bitstream) -> Timestamp {
        self.since.unwrap_or(present.stored_at).max(present.stored_at)
    }

    /// Adds a version that came together with a later one. Of all such versions, the last `keep` stay; versions that
    /// were stored are not touched. A version that is there already is not added again. Returns whether anything
    /// changed.
    pub fn add_earlier(&mut self, version: Version, keep: u32) -> bool {
        let sha256 = version.bitstream.computed.sha256();
        let is_same = |kept: &Version| {
            kept.bitstream.computed.sha256() == sha256 && kept.source_from == version.source_from
        };
        if keep == 0 || self.kept.iter().any(is_same) {
            return false;
        }
        let before = self.kept.clone();
        self.insert(version);
        let earlier = self.kept.iter().filter(|version| !version.was_stored()).count();
        let mut beyond = earlier.saturating_sub(keep as usize);
        self.kept.retain(|version| {
            let is_dropped = beyond > 0 && !version.was_stored();
            beyond -= usize::from(is_dropped);
            !is_dropped
        });
        self.kept != before
    }

    /// Adds a version in order of time, behind those of the same time. One that was stored comes behind all others that
    /// were, whatever the Source says of its time: a Source may go back to an earlier version.
    fn insert(&mut self, version: Version) {
        let is_later =
            |kept: &&Version| !(version.was_stored() && kept.was_stored()) && kept.time() > version.time();
        let later = self.kept.iter().rev().take_while(is_later).count();
        self.kept.insert(self.kept.len() - later, version);
    }

    /// Adds a version that has ended, and drops the oldest beyond the last `keep`. Returns the locations of
    /// dropped ones.
    pub fn end(&mut self, version: Version, keep: u32) -> Vec<Location> {
        self.since = None;
        self.insert(version);
        let beyond = self.kept.len().saturating_sub(keep as usize);
        let gone: Vec<Location> = self.kept.drain(..beyond).map(|old| old.bitstream.location).collect();
        // A version that came back keeps its location.
        gone.into_iter().filter(|at| self.kept.iter().all(|kept| kept.bitstream.location != *at)).collect()
    }

    /// The kept version that was stored at a moment.
    pub fn at(&self, moment: Timestamp) -> Option<&Version> {
        self.kept.iter().rev().find(|version| version.from <= moment && moment < version.until)
    }
}

#[cfg(test)]
mod tests {
    use fixity::Computed;

    use super::*;
    use crate::{Assurance, SetId, Validators};

    fn second(number: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + number).unwrap()
    }

    fn version(content: &str, from: i64, until: i64) -> Version {
        let computed = Computed::of(content.as_bytes());
        let bitstream = Bitstream {
            location: Location::Object { sha256: computed.sha256() },
            computed,
            assurance: Assurance::Digest,
            media_type: None,
            encoding: None,
            validators: Validators::default(),
            final_url: None,
            stored_at: second(from),
        };
        let listing = Listing {
            document: "http://e.org/list".into(),
            set: SetId::new("set"),
            change: None,
            change_time: None,
            as_of: None,
            latest: None,
            links: None,
            linked: None,
        };
        let from = second(from);
        let until = second(until);
        Version {
            bitstream,
            declaration: Declaration::default(),
            listing,
            from,
            until,
            source_from: None,
            lost: None,
        }
    }

    #[test]
    fn the_last_ones_are_kept_and_those_before_let_go_of() {
        let mut versions = Versions::default();
        assert!(versions.end(version("a", 0, 10), 2).is_empty());
        assert!(versions.end(version("b", 10, 20), 2).is_empty());
        let gone = versions.end(version("c", 20, 30), 2);
        assert_eq!(gone, [version("a", 0, 10).bitstream.location]);
        // Fewer versions are to be kept from now on.
        assert_eq!(versions.end(version("d", 30, 40), 1).len(), 2);
        assert_eq!(versions.kept.len(), 1);
        assert_eq!(versions.end(version("e", 40, 50), 0).len(), 2);
    }

    #[test]
    fn versions_that_came_together_are_in_order_of_the_sources_time_and_kept_once() {
        let told =
            |content: &str, at: i64| Version { source_from: Some(second(at)), ..version(content, 100, 100) };
        let mut versions = Versions::default();
        versions.end(version("a", 0, 10), 2);
        for (content, at) in [("d", 40), ("b", 20), ("c", 30), ("d", 40)] {
            versions.add_earlier(told(content, at), 2);
        }
        let times = |versions: &Versions| -> Vec<i64> {
            versions.kept.iter().map(|kept| kept.time().as_second() - 1_700_000_000).collect()
        };
        // Those that were stored have their own count until one ends.
        assert_eq!(times(&versions), [0, 30, 40]);
        assert!(!versions.add_earlier(told("c", 30), 2) && !versions.add_earlier(told("x", 1), 2));
        // They were never the stored version.
        assert_eq!(versions.at(second(100)), None);
        let ended = Version { source_from: Some(second(15)), ..version("a2", 10, 100) };
        let gone = versions.end(ended, 2);
        assert_eq!((times(&versions), gone.len()), (vec![30, 40], 2));
        assert!(!Versions::default().add_earlier(told("b", 20), 0));
    }

    #[test]
    fn a_version_that_the_source_went_back_to_is_the_last_one() {
        let mut versions = Versions::default();
        versions.end(Version { source_from: Some(second(5)), ..version("a", 10, 20) }, 1);
        versions.end(Version { source_from: Some(second(-900)), ..version("old", 20, 30) }, 1);
        assert_eq!(versions.kept.iter().map(|kept| kept.from).collect::<Vec<_>>(), [second(20)]);
    }

    #[test]
    fn what_a_kept_version_shares_is_not_let_go_of() {
        let mut versions = Versions::default();
        versions.end(version("a", 0, 10), 2);
        versions.end(version("b", 10, 20), 2);
        assert!(versions.end(version("a", 20, 30), 2).is_empty());
    }

    #[test]
    fn a_moment_belongs_to_the_version_that_began_with_it() {
        let mut versions = Versions::default();
        versions.end(version("a", 0, 10), 9);
        versions.end(version("b", 20, 30), 9);
        let at = |number| versions.at(second(number)).map(|version| version.from);
        assert_eq!([at(-1), at(0), at(9)], [None, Some(second(0)), Some(second(0))]);
        assert_eq!([at(10), at(19), at(20), at(30)], [None, None, Some(second(20)), None]);
    }
}
