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

impl Versions {
    /// Since when the stored version is current.
    pub fn since(&self, present: &Bitstream) -> Timestamp {
        self.since.unwrap_or(present.stored_at).max(present.stored_at)
    }

    /// Adds a version that has ended, and drops the oldest beyond the last `keep`. Returns the locations of
    /// dropped ones.
    pub fn end(&mut self, version: Version, keep: u32) -> Vec<Location> {
        self.since = None;
        self.kept.push(version);
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
        };
        let from = second(from);
        let until = second(until);
        Version { bitstream, declaration: Declaration::default(), listing, from, until, lost: None }
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
