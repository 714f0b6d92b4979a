//! Notes on a Source for the operator, although nothing failed.

use std::fmt;

use model::plural;
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// Something missing or odd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The document concerned.
    pub url: String,
    /// Kind of the note.
    pub kind: HintKind,
}

/// Kinds of missing or odd things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HintKind {
    /// A set without Resource List and Resource Dump.
    NoResourceList,
    /// A set without Change List and Change Dump.
    NoChangeList,
    /// A Source Description or Capability List without usable entries.
    NoEntries,
    /// Entries of a Capability List without a capability.
    EntriesWithoutCapability(u64),
    /// Unusable entries.
    BadEntries(u64),
    /// A document without a capability, whose kind follows from its entries.
    NoCapability {
        /// Assumed kind.
        taken_as: &'static str,
    },
    /// A sitemap that is not a ResourceSync document.
    PlainSitemap,
    /// A list or dump without `at`.
    NoAt,
    /// A change document without `from`.
    NoFrom,
    /// The document belongs to another one that offers more and was not read.
    Up(String),
    /// The document is part of an index that was not read.
    Index(String),
    /// The server links the document to a Capability List that was not read.
    LinkHeader(String),
    /// A document is listed that was already read.
    Again(String),
    /// A Capability List links to the Source Description, which does not list it.
    NotListedAbove(String),
    /// A closed change document leads to a Capability List that does not name it.
    NotNamedAbove(String),
    /// A closed change document leads to no document of later changes.
    ClosedWithoutNext,
    /// A closed change document leads to another host, from where no further link is followed.
    OtherHost(String),
    /// A link or `robots.txt` leads to an unexpected kind of document.
    OtherKind {
        /// Expected kind.
        expected: &'static str,
        /// Actual kind.
        found: String,
    },
    /// A capability that is unknown or not harvested, and is skipped.
    LeftAlone {
        /// Its name in the document.
        capability: String,
        /// Its URL.
        uri: String,
    },
}

impl HintKind {
    /// The stable name in `--json` output.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NoResourceList => "no-resource-list",
            Self::NoChangeList => "no-change-list",
            Self::NoEntries => "no-entries",
            Self::EntriesWithoutCapability(_) => "entries-without-capability",
            Self::BadEntries(_) => "bad-entries",
            Self::NoCapability { .. } => "no-capability",
            Self::PlainSitemap => "plain-sitemap",
            Self::NoAt => "no-at",
            Self::NoFrom => "no-from",
            Self::Up(_) => "up",
            Self::Index(_) => "index",
            Self::LinkHeader(_) => "link-header",
            Self::Again(_) => "again",
            Self::NotListedAbove(_) => "not-listed-above",
            Self::NotNamedAbove(_) => "not-named-above",
            Self::ClosedWithoutNext => "closed-without-next",
            Self::OtherHost(_) => "other-host",
            Self::OtherKind { .. } => "other-kind",
            Self::LeftAlone { .. } => "left-alone",
        }
    }
}

impl fmt::Display for HintKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResourceList => {
                f.write_str("no Resource List or Dump: resources that do not change are not found")
            }
            Self::NoChangeList => f.write_str("no Change List or Dump: every run has to read all of it"),
            Self::NoEntries => f.write_str("it has no entry that can be used"),
            Self::EntriesWithoutCapability(n) => {
                let say = plural(*n, "does not say what it leads", "do not say what they lead");
                write!(f, "{n} of its entries {say} to, and {} left out", plural(*n, "is", "are"))
            }
            Self::BadEntries(n) => {
                write!(f, "{n} of its entries cannot be used, and {} left out", plural(*n, "is", "are"))
            }
            Self::NoCapability { taken_as } => {
                write!(f, "it does not say what it is; by its entries it is taken for a {taken_as}")
            }
            Self::PlainSitemap => {
                f.write_str("a sitemap without capability: it is taken for a Resource List")
            }
            Self::NoAt => f.write_str("no `at`: nothing says which changes it already has in it"),
            Self::NoFrom => f.write_str("no `from`: nothing says which changes it tells"),
            Self::Up(url) => {
                write!(f, "it belongs to {url}, which may offer more: give that URL to have it all")
            }
            Self::Index(url) => write!(f, "it is a part of {url}: give that URL to have all parts"),
            Self::LinkHeader(url) => write!(f, "its server names the Capability List {url}"),
            Self::Again(url) => write!(f, "it names {url}, which was read already"),
            Self::NotListedAbove(url) => write!(f, "{url} is above it, but does not name it"),
            Self::NotNamedAbove(url) => {
                write!(
                    f,
                    "it leads up to {url}, which does not name it: this one and what is named there are read"
                )
            }
            Self::ClosedWithoutNext => f.write_str(
                "it is closed, and links to no later changes: give the Capability List to have those too",
            ),
            Self::OtherHost(url) => {
                write!(f, "it leads to {url} on another host, from where no further link is followed")
            }
            Self::LeftAlone { capability, uri } => {
                write!(f, "it offers {capability} at {uri}, which is not harvested")
            }
            Self::OtherKind { expected, found } => write!(f, "a {expected} should be here; this is {found}"),
        }
    }
}

impl Serialize for Hint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut hint = serializer.serialize_struct("Hint", 3)?;
        hint.serialize_field("url", &self.url)?;
        hint.serialize_field("hint", self.kind.as_str())?;
        hint.serialize_field("text", &self.kind.to_string())?;
        hint.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_knows_what_to_make_of_every_hint() {
        let url = || "https://example.org/".to_owned();
        let kinds = [
            HintKind::NoResourceList,
            HintKind::NoChangeList,
            HintKind::NoEntries,
            HintKind::EntriesWithoutCapability(1),
            HintKind::BadEntries(1),
            HintKind::NoCapability { taken_as: "Capability List" },
            HintKind::PlainSitemap,
            HintKind::NoAt,
            HintKind::NoFrom,
            HintKind::Up(url()),
            HintKind::Index(url()),
            HintKind::LinkHeader(url()),
            HintKind::Again(url()),
            HintKind::NotListedAbove(url()),
            HintKind::NotNamedAbove(url()),
            HintKind::ClosedWithoutNext,
            HintKind::OtherHost(url()),
            HintKind::LeftAlone { capability: "archives".to_owned(), uri: url() },
            HintKind::OtherKind { expected: "Source Description", found: "urlset".to_owned() },
        ];
        for kind in kinds {
            assert!(report::remarked(kind.as_str()).is_some(), "{} is new to the report", kind.as_str());
        }
    }
}
