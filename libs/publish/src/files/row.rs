//! What is known of a file.

use std::borrow::Cow;
use std::io;

use fixity::Sha256;
use serde::{Deserialize, Serialize};

use super::stamp::Stamp;

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Its path below the directory.
    pub(super) path: String,
    pub(super) stamp: Stamp,
    /// The digest of its bytes. None of a deleted one, which stays until that is told.
    pub(super) sha256: Option<Sha256>,
    /// The scan that found its last change.
    pub(super) changed: u64,
    /// Whether that change created it.
    pub(super) created: bool,
    /// Whether it is to be read again, though its stamp is the same.
    pub(super) unsure: bool,
}

/// A row as it is written. It has the fields of the stamp as its own: serde would hold all fields of a flattened one in
/// memory first, which takes most of the time of a scan without changes.
#[derive(Serialize, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(borrow)]
    path: Cow<'a, str>,
    length: u64,
    modified: i64,
    inode: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<Sha256>,
    changed: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    created: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unsure: bool,
}

/// How the row of a file begins that has a digest.
#[derive(Serialize)]
pub(super) struct Begin<'a> {
    path: &'a str,
    length: u64,
    modified: i64,
    inode: u64,
}

/// How a row ends that is unsure.
pub(super) const UNSURE_END: &[u8] = br#","unsure":true}"#;

impl<'a> Begin<'a> {
    pub(super) fn of(path: &'a str, stamp: Stamp) -> Self {
        let Stamp { length, modified, inode } = stamp;
        Self { path, length, modified, inode }
    }

    pub(super) fn write(&self, to: &mut Vec<u8>) -> io::Result<()> {
        serde_json::to_writer(&mut *to, self)?;
        // The digest follows, in place of the end.
        to.pop();
        to.extend_from_slice(br#","sha256":""#);
        Ok(())
    }
}

impl<'a> From<&'a Row> for Line<'a> {
    fn from(row: &'a Row) -> Self {
        let Row { path, stamp, sha256, changed, created, unsure } = row;
        let Stamp { length, modified, inode } = *stamp;
        Self {
            path: path.as_str().into(),
            length,
            modified,
            inode,
            sha256: *sha256,
            changed: *changed,
            created: *created,
            unsure: *unsure,
        }
    }
}

impl From<Line<'_>> for Row {
    fn from(line: Line<'_>) -> Self {
        let Line { path, length, modified, inode, sha256, changed, created, unsure } = line;
        let stamp = Stamp { length, modified, inode };
        Self { path: path.into_owned(), stamp, sha256, changed, created, unsure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_a_digest_begin_and_end_as_it_is_said() {
        for path in ["a", "b/\"c\"", "\u{e4}/\\"] {
            let stamp = Stamp { length: 3, modified: -5, inode: u64::MAX };
            let mut begin = Vec::new();
            Begin::of(path, stamp).write(&mut begin).unwrap();
            for (is_there, created, unsure) in
                [(true, false, false), (true, true, false), (true, true, true), (false, false, false)]
            {
                let sha256 = is_there.then(|| Sha256::of(path.as_bytes()));
                let row = Row { path: path.to_owned(), stamp, sha256, changed: 9, created, unsure };
                let line = serde_json::to_vec(&Line::from(&row)).unwrap();
                assert_eq!(line.starts_with(&begin), is_there, "{row:?}");
                assert_eq!(line.ends_with(UNSURE_END), unsure, "{row:?}");
            }
        }
    }
}
