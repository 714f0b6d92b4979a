//! Checks that a command really did the work that its time is reported for.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::Path;

use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use simulated_source::Expected;

use crate::folder::files_below;
use crate::place::Place;
use crate::thresher::{Outcome, Thresher};

/// A condition, and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// The condition.
    pub(crate) what: String,
    /// Whether it holds.
    pub(crate) holds: bool,
    /// The value found.
    pub(crate) found: String,
}

impl Check {
    /// Two numbers are equal.
    pub(crate) fn equal(what: &str, expected: u64, found: u64) -> Self {
        Self { what: format!("{what}: {expected}"), holds: expected == found, found: found.to_string() }
    }

    /// A condition holds.
    pub(crate) fn holds(what: &str, holds: bool) -> Self {
        Self { what: what.to_owned(), holds, found: holds.to_string() }
    }

    /// A number does not exceed another.
    pub(crate) fn at_most(what: &str, limit: u64, found: u64) -> Self {
        Self { what: format!("{what}: at most {limit}"), holds: found <= limit, found: found.to_string() }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}, found {})",
            self.what,
            if self.holds { "holds" } else { "DOES NOT HOLD" },
            self.found
        )
    }
}

/// The most resident memory of a Thresher process, in bytes: the promise is that it is flat.
const MOST_RESIDENT_BYTES: u64 = 300_000_000;

/// A process never had more resident memory than promised.
pub(crate) fn resident(peak_rss_bytes: u64) -> Check {
    Check::at_most("peak resident bytes", MOST_RESIDENT_BYTES, peak_rss_bytes)
}

/// A `thresher sync` ended in sync, with this many resources stored.
pub(crate) fn synced(outcome: &Outcome, stored: u64) -> Vec<Check> {
    vec![
        Check::holds("in sync", outcome.in_sync),
        Check::equal("stored, as sync says", stored, outcome.stored),
    ]
}

/// Every resource is a file below `root` at its path, with the right bytes; there are no other files.
pub(crate) fn files(root: &Path, base: &str, expected: &[Expected]) -> anyhow::Result<Vec<Check>> {
    let right = expected.iter().filter(|resource| {
        let path = resource.uri.strip_prefix(base).unwrap_or(&resource.uri).trim_start_matches('/');
        fs::read(root.join(path)).is_ok_and(|body| sha256(&body) == resource.sha256)
    });
    let right = right.count() as u64;
    let present = files_below(root).collect::<Result<Vec<_>, _>>().map_or(0, |files| files.len() as u64);
    let all = expected.len() as u64;
    Ok(vec![
        Check::equal("files with the right sha-256", all, right),
        Check::equal("files in all", all, present),
    ])
}

/// The view in `into` has every resource as a file, with the right bytes, and no other file.
pub(crate) fn view(into: &Path, base: &str, expected: &[Expected]) -> anyhow::Result<Vec<Check>> {
    let host = base.trim_start_matches("http://").replace(':', "+");
    files(&into.join(host), base, expected)
}

/// The harvest reports every resource with the right digest, and returns the bytes of a `sample` of them.
pub(crate) fn harvest(
    thresher: &Thresher,
    place: &Place,
    expected: &[Expected],
    sample: usize,
) -> anyhow::Result<Vec<Check>> {
    let truth: HashMap<&str, &Expected> = expected.iter().map(|each| (each.uri.as_str(), each)).collect();
    let mut right = 0;
    let mut lines = 0;
    thresher.held(place, |held| {
        lines += 1;
        let is_right = truth.get(held.uri.as_str()).is_some_and(|truth| {
            held.state == "present"
                && held.length == Some(truth.length)
                && held.sha256.as_ref() == Some(&truth.sha256)
        });
        right += u64::from(is_right);
    })?;
    let sample: Vec<&Expected> = expected.iter().step_by((expected.len() / sample).max(1)).collect();
    let mut given = 0;
    for resource in &sample {
        given += u64::from(sha256(&thresher.cat(&resource.uri, place)?) == resource.sha256);
    }
    let all = expected.len() as u64;
    Ok(vec![
        Check::equal("held with the right sha-256 by thresher ls", all, right),
        Check::equal("lines of thresher ls", all, lines),
        Check::equal("of a sample given with the right sha-256 by thresher cat", sample.len() as u64, given),
    ])
}

/// A digest in lower-case hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn expected(path: &str, body: &str) -> Expected {
        Expected {
            uri: format!("http://h/{path}"),
            length: body.len() as u64,
            sha256: sha256(body.as_bytes()),
        }
    }

    fn checked(written: &[(&str, &str)]) -> Vec<bool> {
        let folder = TempDir::new().unwrap();
        for (name, body) in written {
            fs::write(folder.path().join(name), body).unwrap();
        }
        let expected = [expected("a", "1"), expected("b", "2")];
        files(folder.path(), "http://h", &expected).unwrap().iter().map(|check| check.holds).collect()
    }

    #[test]
    fn right_files_pass() {
        assert_eq!(checked(&[("a", "1"), ("b", "2")]), [true, true]);
    }

    #[test]
    fn wrong_bytes_fail_though_the_count_is_right() {
        assert_eq!(checked(&[("a", "1"), ("b", "1")]), [false, true]);
    }

    #[test]
    fn one_file_too_many_fails() {
        assert_eq!(checked(&[("a", "1"), ("b", "2"), ("b.part", "")]), [true, false]);
    }

    #[test]
    fn nothing_at_all_fails_both() {
        assert_eq!(checked(&[]), [false, false]);
    }
}
