use std::io;
use std::sync::Arc;

use crate::entry::BadReason;
use crate::position::Position;
use crate::quirk::Quirk;

/// Why a document cannot be read, or not to its end. Items that were returned before stay valid.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReadError {
    /// A web page, most often an error page that was served as 200.
    #[error(
        "{position}: this is an HTML page, not a ResourceSync document; check the URL, or what the server answers to it"
    )]
    Html {
        /// The position.
        position: Position,
    },
    /// No XML at all.
    #[error("{position}: this is not XML but {found}; expected a urlset or a sitemapindex")]
    NotXml {
        /// The position.
        position: Position,
        /// The text that was found instead.
        found: String,
    },
    /// XML in an encoding that sitemaps do not allow.
    #[error("{position}: the document is encoded as {encoding}; sitemaps must be UTF-8")]
    Encoding {
        /// The position.
        position: Position,
        /// The encoding.
        encoding: &'static str,
    },
    /// Not well-formed.
    #[error("{position}: the XML is not well-formed: {message}; nothing after this place can be trusted")]
    Malformed {
        /// The position of the malformed piece.
        position: Position,
        /// What is wrong.
        message: String,
    },
    /// The document ends before its root element does.
    #[error("{position}: the document is cut short; read it again, entries up to here are usable")]
    Truncated {
        /// The position of the end.
        position: Position,
    },
    /// A document type definition, which could define entities.
    #[error("{position}: the document has a DOCTYPE, which is refused as it could define entities")]
    DoctypeRefused {
        /// The position.
        position: Position,
    },
    /// An entity other than XML's own five.
    #[error("{position}: the entity &{name}; is refused; only XML's own and character references are read")]
    EntityRefused {
        /// The position.
        position: Position,
        /// The entity.
        name: String,
    },
    /// A limit of [`Limits`](crate::Limits) was reached.
    #[error("{position}: {limit}. The rest was not read")]
    Limit {
        /// The position.
        position: Position,
        /// The limit.
        limit: LimitKind,
    },
    /// XML, but another kind of document.
    #[error(
        "{position}: the root element is <{name}>; expected a urlset or a sitemapindex of the sitemap namespace"
    )]
    UnknownRoot {
        /// The position of the root element.
        position: Position,
        /// Its name as written, shortened.
        name: String,
    },
    /// The compressed data are damaged.
    #[error("{position}: the gzip data are damaged here: {message}; read the document again")]
    Gzip {
        /// The position that decompression reached.
        position: Position,
        /// The decoder's message.
        message: String,
    },
    /// The byte stream failed.
    #[error("{position}: the document could not be read further: {source}")]
    Io {
        /// The position that reading reached.
        position: Position,
        /// The stream's own error.
        source: Arc<io::Error>,
    },
    /// A quirk, in strict mode.
    #[error("{position}: {} ({quirk}), which strict mode refuses", quirk.meaning())]
    Quirk {
        /// The position of the entry (or header) that has it.
        position: Position,
        /// The quirk.
        quirk: Quirk,
    },
    /// A bad entry, in strict mode.
    #[error("{position}: {reason}; strict mode refuses that")]
    BadEntry {
        /// The position of the entry.
        position: Position,
        /// The reason.
        reason: BadReason,
    },
}

impl ReadError {
    /// The position of the error.
    pub fn position(&self) -> Position {
        match self {
            Self::Html { position }
            | Self::NotXml { position, .. }
            | Self::Encoding { position, .. }
            | Self::Malformed { position, .. }
            | Self::Truncated { position }
            | Self::DoctypeRefused { position }
            | Self::EntityRefused { position, .. }
            | Self::Limit { position, .. }
            | Self::UnknownRoot { position, .. }
            | Self::Gzip { position, .. }
            | Self::Io { position, .. }
            | Self::Quirk { position, .. }
            | Self::BadEntry { position, .. } => *position,
        }
    }
}

/// The limit that ended the reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitKind {
    /// [`Limits::max_field_bytes`](crate::Limits::max_field_bytes), in the document's own `rs:md` or `rs:ln`.
    #[error("a value is longer than max_field_bytes = {0}")]
    FieldBytes(usize),
    /// [`Limits::max_depth`](crate::Limits::max_depth).
    #[error("elements are nested deeper than max_depth = {0}")]
    Depth(usize),
    /// [`Limits::max_links_per_entry`](crate::Limits::max_links_per_entry), of the document itself.
    #[error("the document has more links than max_links_per_entry = {0}")]
    Links(usize),
    /// [`Limits::max_attributes`](crate::Limits::max_attributes), of an element outside the entries.
    #[error("an element has more attributes than max_attributes = {0}")]
    Attributes(usize),
    /// [`Limits::max_entry_bytes`](crate::Limits::max_entry_bytes), of the document's own metadata and links.
    #[error("the document's own metadata and links are longer than max_entry_bytes = {0}")]
    HeaderBytes(u64),
    /// [`Limits::max_event_bytes`](crate::Limits::max_event_bytes).
    #[error("a tag, comment or text is longer than max_event_bytes = {0}")]
    EventBytes(u64),
    /// [`Limits::max_document_bytes`](crate::Limits::max_document_bytes).
    #[error("the document is longer than max_document_bytes = {0}")]
    DocumentBytes(u64),
    /// [`Limits::max_inflation`](crate::Limits::max_inflation).
    #[error("the gzip data inflate to more than max_inflation = {0} times their size")]
    Inflation(u64),
}
