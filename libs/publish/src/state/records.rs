//! What the state remembers of Resource Lists, Resource Dumps, and files that go.

use fixity::Sha256;
use jiff::Timestamp;
use model::ResourceUri;
use serde::{Deserialize, Serialize};

/// A Resource List.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Edition {
    /// Its `at`.
    pub(crate) at: Timestamp,
    /// Its `completed`.
    pub(crate) completed: Timestamp,
    /// Resources.
    pub(crate) resources: u64,
    /// Its parts; one alone is the Resource List itself.
    pub(crate) parts: Vec<Part>,
}

/// A part of a Resource List.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Its path.
    pub(crate) path: String,
    /// Its own `at`: an unchanged part keeps that of an earlier edition.
    pub(crate) at: Timestamp,
    /// The digest of its entries.
    pub(crate) sha256: Sha256,
    /// Resources.
    pub(crate) resources: u64,
}

/// A Resource Dump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dump {
    /// Its `at`.
    pub(crate) at: Timestamp,
    /// Its `completed`.
    pub(crate) completed: Timestamp,
    /// Its packages.
    pub(crate) packages: Vec<Package>,
    /// The paths of its documents, if it is an index of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<String>,
}

/// A package of a Resource Dump.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Package {
    /// Its path.
    pub(crate) path: String,
    /// The path of the copy of its manifest.
    pub(crate) contents: String,
    /// Its own `at`: an unchanged package keeps that of an earlier dump.
    pub(crate) at: Timestamp,
    /// The digest of its entries. None if some could not be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) entries: Option<Sha256>,
    /// The digest of the package.
    pub(crate) sha256: Sha256,
    /// Its length.
    pub(crate) length: u64,
    /// Resources.
    pub(crate) resources: u64,
}

/// A Resource List in the making.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Draft {
    /// Its `at`: every change until then is in it.
    pub(crate) at: Timestamp,
    /// How many of the state's changes are in it.
    #[serde(default)]
    pub(crate) changes: u64,
    /// Whether it is the first one: then bytes are laid down with it, and later with the changes.
    #[serde(default)]
    pub(crate) is_first: bool,
    /// The last resource of the parts so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<ResourceUri>,
    /// Its parts so far.
    #[serde(default)]
    pub(crate) parts: Vec<Part>,
    /// The packages so far of the Resource Dump that is made with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) packages: Option<Vec<Package>>,
}

/// A file that no document names any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Retired {
    pub(crate) path: String,
    pub(crate) since: Timestamp,
}

/// What is known of files of resources that records made anew do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LeftBehind {
    /// There may be some.
    Possible,
    /// They are listed since this time.
    Listed(Timestamp),
}

/// A Resource List or Dump that was replaced. Its readers need the changes since its oldest `at`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Replaced {
    pub(crate) oldest: Timestamp,
    pub(crate) since: Timestamp,
}

impl Dump {
    /// The files that it names.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        let packages = self.packages.iter();
        let packages = packages.flat_map(|package| [package.path.as_str(), package.contents.as_str()]);
        packages.chain(self.parts.iter().map(String::as_str))
    }

    /// The oldest `at` of it and its packages: its readers need the changes since then.
    pub(crate) fn oldest(&self) -> Timestamp {
        self.packages.iter().map(|package| package.at).fold(self.at, Timestamp::min)
    }
}

impl Edition {
    /// The oldest `at` of it and its parts: its readers need the changes since then.
    pub(crate) fn oldest(&self) -> Timestamp {
        self.parts.iter().map(|part| part.at).fold(self.at, Timestamp::min)
    }
}
