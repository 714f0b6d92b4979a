//! What is remembered of a Change List between two runs, and of the package of a Change Dump that is made of it.

use fixity::Sha256;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A Change List.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeListRecord {
    /// Its path.
    pub(crate) path: String,
    /// Its `from`.
    pub(crate) from: Timestamp,
    /// Its `until`, once a later list follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Timestamp>,
    /// Whether the document itself has its `until`. It is never written again.
    #[serde(default)]
    pub(crate) closed: bool,
    /// Changes.
    pub(crate) changes: u64,
    /// The tag of the version of the document that was written last, where the place is guarded and it is not closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tag: Option<String>,
    /// Whether a package of the Change Dump is made of it when it is closed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) dumped: bool,
    /// Bytes for that package.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) bytes: u64,
    /// The publisher's own archives of those bytes. They are removed when the package has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) segments: Vec<String>,
    /// The package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) package: Option<ChangePackage>,
}

/// A package of a Change Dump. Its interval is that of its Change List.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangePackage {
    /// Its path.
    pub(crate) path: String,
    /// The path of the copy of its manifest.
    pub(crate) contents: String,
    /// Its digest.
    pub(crate) sha256: Sha256,
    /// Its length.
    pub(crate) length: u64,
}

/// Whether a number need not be written.
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ChangeListRecord {
    /// An open list without changes.
    pub(crate) fn open(path: String, from: Timestamp, dumped: bool) -> Self {
        Self {
            path,
            from,
            until: None,
            closed: false,
            changes: 0,
            tag: None,
            dumped,
            bytes: 0,
            segments: Vec::new(),
            package: None,
        }
    }

    /// Whether its document is as the index says: open, or closed for ever.
    pub(crate) fn is_settled(&self) -> bool {
        self.closed || self.until.is_none()
    }

    /// Whether its package is to be made.
    pub(crate) fn is_to_be_packed(&self) -> bool {
        self.dumped && self.closed && self.package.is_none()
    }

    /// Gives up its part of the Change Dump. Returns the files that are not needed any more.
    pub(crate) fn give_up_package(&mut self) -> Vec<String> {
        self.dumped = false;
        self.bytes = 0;
        let package = self.package.take().into_iter().flat_map(|package| [package.path, package.contents]);
        self.segments.drain(..).chain(package).collect()
    }

    /// All its files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        let package =
            self.package.iter().flat_map(|package| [package.path.as_str(), package.contents.as_str()]);
        let segments = self.segments.iter().map(String::as_str);
        std::iter::once(self.path.as_str()).chain(segments).chain(package)
    }

    /// All its files, when it leaves the index.
    pub(crate) fn into_files(mut self) -> Vec<String> {
        let mut files = self.give_up_package();
        files.push(self.path);
        files
    }
}
