use serde::Serialize;

use crate::capability::Capability;
use crate::datetime::Datetime;
use crate::link::Link;
use crate::metadata::Metadata;
use crate::position::Position;

const PACKAGE_TYPES: [&str; 6] = [
    "application/zip",
    "application/x-xz",
    "application/gzip",
    "application/x-gzip",
    "application/x-tar",
    "application/x-gtar",
];
const PACKAGE_ENDINGS: [&str; 7] = [".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2"];

/// One `url` or `sitemap`: a resource, a package or a document, with its metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The URI, without surrounding whitespace and resolved against the base where it was relative.
    pub loc: String,
    /// When it was last modified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lastmod: Option<Datetime>,
    /// The sitemap's own `changefreq`, as written.
    #[serde(rename = "changefreq", skip_serializing_if = "Option::is_none")]
    pub change_frequency: Option<String>,
    /// The sitemap's own `priority` for search engines, as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// The `rs:md`; empty when there is none.
    #[serde(flatten)]
    pub metadata: Metadata,
    /// Its `rs:ln`, in order, within the limits of [`Limits`](crate::Limits).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// The position of the element.
    pub position: Position,
}

impl Entry {
    /// An entry with a URI only.
    pub fn new(loc: impl Into<String>) -> Self {
        Self { loc: loc.into(), ..Self::default() }
    }

    /// The first link of a relation.
    pub fn link(&self, rel: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.rel == rel)
    }

    /// The time of a change: `datetime` (1.1), else `lastmod` (1.0), which need not be when it happened; see
    /// [`Interval::of_change`](crate::Interval::of_change). `None` must never be replaced by a guess (RS-7).
    pub fn change_time(&self) -> Option<Datetime> {
        self.metadata.datetime.or(self.lastmod)
    }

    /// Whether it links to a part of a list of this kind, as the entries of an index do, although it is in a
    /// `urlset` ([`Quirk::UrlsetAsIndex`](crate::Quirk::UrlsetAsIndex)).
    pub fn names_part_of(&self, list: &Capability) -> bool {
        let Metadata { capability, change, at, from, .. } = &self.metadata;
        let is_same_kind = capability.as_ref() == Some(list);
        let has_own_span = from.is_some() && *list == Capability::ChangeList
            || at.is_some() && *list == Capability::ResourceList;
        change.is_none() && (is_same_kind || has_own_span) && !self.names_package()
    }

    /// Whether it links to a package of bitstreams, by its media type or the end of its path.
    pub fn names_package(&self) -> bool {
        let by_type = self.metadata.media_type.as_deref().is_some_and(|media_type| {
            PACKAGE_TYPES.iter().any(|package| package.eq_ignore_ascii_case(media_type))
        });
        let path = self.loc.split(['?', '#']).next().unwrap_or_default();
        by_type || PACKAGE_ENDINGS.iter().any(|ending| path.ends_with(ending))
    }
}

/// An item that the reader returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A usable entry.
    Entry(Box<Entry>),
    /// An unusable entry; reading continues behind it.
    Bad(BadEntry),
}

/// An unusable entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BadEntry {
    /// The position of the element.
    pub position: Position,
    /// Its URI, if readable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loc: Option<String>,
    /// The reason.
    pub reason: BadReason,
}

/// Why an entry is unusable. Serialised as its message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReason {
    /// There is no `loc`, or it is empty.
    #[error("the entry has no loc, so nothing says which resource is meant")]
    NoLoc,
    /// There are several `loc`, and they differ.
    #[error("the entry has more than one loc, so it is unclear which resource is meant")]
    SeveralLocs,
    /// An attribute or element is given twice with different values.
    #[error("{field} is given twice with different values")]
    Conflict {
        /// The attribute or element.
        field: &'static str,
    },
    /// A value is longer than the limit.
    #[error("{field} is longer than {limit} bytes")]
    FieldTooLong {
        /// The attribute or element.
        field: &'static str,
        /// [`Limits::max_field_bytes`](crate::Limits::max_field_bytes).
        limit: usize,
    },
    /// The entry is longer than the limit.
    #[error("the entry is longer than {limit} bytes")]
    EntryTooLong {
        /// [`Limits::max_entry_bytes`](crate::Limits::max_entry_bytes).
        limit: u64,
    },
    /// An element has more attributes than the limit.
    #[error("an element has more than {limit} attributes")]
    TooManyAttributes {
        /// [`Limits::max_attributes`](crate::Limits::max_attributes).
        limit: usize,
    },
    /// A value has bytes that are not valid text.
    #[error("{field} holds bytes that are not UTF-8 text")]
    NotText {
        /// The attribute or element.
        field: &'static str,
    },
    /// A `loc` has a character that commands a display, which no URI has.
    #[error("loc holds the control character U+{:04X}, which no URI has", u32::from(*.character))]
    ControlCharacter {
        /// The first of them.
        character: char,
    },
    /// A text element has elements in it.
    #[error("{field} holds other elements where only text belongs")]
    MarkupInField {
        /// The element.
        field: &'static str,
    },
    /// An attribute is not well-formed XML.
    #[error("an attribute is not well-formed: {message}")]
    Attribute {
        /// The parser's message.
        message: String,
    },
    /// The `change` is unreadable, in a document of changes.
    #[error("change \"{value}\" is none of created, updated, deleted")]
    UnreadableChange {
        /// The value, shortened.
        value: String,
    },
    /// The time of the change is unreadable.
    #[error("datetime \"{value}\" is no W3C Datetime")]
    UnreadableTime {
        /// The value, shortened.
        value: String,
    },
}

impl Serialize for BadReason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
