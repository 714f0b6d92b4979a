use resourcesync::Position;

use crate::quirk::Quirk;

/// Why an answer cannot be read, or not to its end. Items that were returned before stay valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// No bytes at all.
    #[error("the answer is empty; the server may have failed, or refuses harvesters")]
    Empty,
    /// A web page: an error page, or that of a bot wall.
    #[error(
        "{position}: this is an HTML page, not an OAI-PMH answer; check the base URL, or what the server answers"
    )]
    Html {
        /// The position.
        position: Position,
    },
    /// No XML at all.
    #[error("{position}: this is not XML but {found}; expected an OAI-PMH answer")]
    NotXml {
        /// The position.
        position: Position,
        /// The kind of text that was found instead.
        found: &'static str,
    },
    /// XML in UTF-16.
    #[error("{position}: the answer is encoded as {encoding}; OAI-PMH answers must be UTF-8")]
    Encoding {
        /// The position.
        position: Position,
        /// The encoding.
        encoding: &'static str,
    },
    /// XML, but another kind of document.
    #[error("{position}: the root element is <{name}>; expected OAI-PMH of the namespace of OAI-PMH 2.0")]
    UnknownRoot {
        /// The position of the root element.
        position: Position,
        /// Its name as written, shortened.
        name: String,
    },
    /// Not well-formed outside of its records.
    #[error("{position}: the XML is not well-formed: {message}; nothing after this place can be trusted")]
    Malformed {
        /// The position.
        position: Position,
        /// What is wrong.
        message: String,
    },
    /// The answer ends before its root element does. Whole records before the end were returned.
    #[error("{position}: the answer is cut short; ask again, records up to here are usable")]
    Truncated {
        /// The position of the end.
        position: Position,
    },
    /// A document type definition, which could define entities.
    #[error("{position}: the answer has a DOCTYPE, which is refused as it could define entities")]
    DoctypeRefused {
        /// The position.
        position: Position,
    },
    /// A limit of [`Limits`](crate::Limits).
    #[error("{position}: {limit}. The rest was not read")]
    Limit {
        /// The position.
        position: Position,
        /// The limit.
        limit: LimitKind,
    },
    /// The compressed data are damaged: ask for `identity`.
    #[error("{position}: the gzip data are damaged here: {message}; ask for the answer without compression")]
    Gzip {
        /// The position that decompression reached.
        position: Position,
        /// The decoder's message.
        message: String,
    },
    /// A quirk, in strict mode.
    #[error("{position}{}: {} ({quirk}), which strict mode refuses", in_record(record.as_deref()), quirk.meaning())]
    Quirk {
        /// The position of the element that has it.
        position: Position,
        /// The quirk.
        quirk: Quirk,
        /// The identifier of the record that has it.
        record: Option<String>,
    },
    /// A bad record, in strict mode.
    #[error("{position}{}: {reason}; strict mode refuses that", in_record(record.as_deref()))]
    BadRecord {
        /// The position of the record.
        position: Position,
        /// Its identifier, if that could be read.
        record: Option<String>,
        /// The reason.
        reason: BadReason,
    },
}

fn in_record(identifier: Option<&str>) -> String {
    identifier.map_or(String::new(), |identifier| format!(", in record {identifier}"))
}

/// The limit that ended the reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitKind {
    /// [`Limits::max_token_bytes`](crate::Limits::max_token_bytes).
    #[error("the resumption token is longer than max_token_bytes = {0}")]
    TokenBytes(usize),
    /// [`Limits::max_items`](crate::Limits::max_items).
    #[error("the answer has more items than max_items = {0}")]
    Items(u64),
    /// [`Limits::max_page_bytes`](crate::Limits::max_page_bytes).
    #[error("the answer is longer than max_page_bytes = {0}")]
    PageBytes(u64),
    /// [`Limits::max_inflation`](crate::Limits::max_inflation).
    #[error("the gzip data inflate to more than max_inflation = {0} times their size")]
    Inflation(u64),
    /// [`Limits::max_record_bytes`](crate::Limits::max_record_bytes), of a tag, comment or value outside of
    /// the records.
    #[error("an element outside of the records is longer than max_record_bytes = {0}")]
    ElementBytes(usize),
    /// More `error` elements than an answer can mean.
    #[error("the answer has more than {0} error elements")]
    Errors(usize),
}

/// Why one record, header, set or format cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReason {
    /// It is not well-formed: `broken-record`.
    #[error("{at}: the XML is not well-formed: {message}")]
    Malformed {
        /// Where.
        at: Position,
        /// What is wrong.
        message: String,
    },
    /// Another record begins before it ends: `broken-record`.
    #[error("it is cut: the next record begins before it ends")]
    Cut,
    /// It has bytes that are not UTF-8: `invalid-utf8`.
    #[error("{at}: bytes are not UTF-8; if you know their encoding, name it with --encoding")]
    NotUtf8 {
        /// Where.
        at: Position,
    },
    /// A character that XML forbids, in the header: `illegal-character`.
    #[error("{at}: {field} has a character that XML forbids")]
    IllegalCharacter {
        /// Where.
        at: Position,
        /// The element.
        field: &'static str,
    },
    /// An entity other than XML's own five.
    #[error("{at}: the entity &{name}; is refused; only XML's own and character references are read")]
    Entity {
        /// Where.
        at: Position,
        /// The entity.
        name: String,
    },
    /// A document type definition within the record.
    #[error("{at}: it has a DOCTYPE, which is refused")]
    Doctype {
        /// Where.
        at: Position,
    },
    /// A prefix without a declaration: `undeclared-prefix`.
    #[error("{at}: the prefix {prefix} is not declared")]
    UndeclaredPrefix {
        /// Where.
        at: Position,
        /// The prefix.
        prefix: String,
    },
    /// A required element is missing or empty.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// Two different values where one is allowed.
    #[error("it has two different values of {0}")]
    Conflict(&'static str),
    /// A live record with an empty `metadata`, or without one: `empty-metadata`. It proves no deletion.
    #[error("it is not deleted, yet its metadata are empty")]
    EmptyMetadata,
    /// `metadata` has text or more than one element.
    #[error("its metadata are not one element")]
    NotOneElement,
    /// Longer than [`Limits::max_record_bytes`](crate::Limits::max_record_bytes).
    #[error("it is longer than max_record_bytes = {0}")]
    RecordBytes(usize),
    /// A text longer than [`Limits::max_text_bytes`](crate::Limits::max_text_bytes).
    #[error("a text is longer than max_text_bytes = {0}")]
    TextBytes(usize),
    /// A value longer than [`Limits::max_field_bytes`](crate::Limits::max_field_bytes).
    #[error("{field} is longer than max_field_bytes = {limit}")]
    FieldBytes {
        /// The element.
        field: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Deeper than [`Limits::max_depth`](crate::Limits::max_depth).
    #[error("its elements are nested deeper than max_depth = {0}")]
    Depth(usize),
    /// More attributes than [`Limits::max_attributes`](crate::Limits::max_attributes).
    #[error("an element has more attributes than max_attributes = {0}")]
    Attributes(usize),
    /// More namespace declarations in force, or moved to the root of the metadata, than are borne.
    #[error("it has more than {0} namespace declarations")]
    Declarations(usize),
    /// More sets than [`Limits::max_sets_per_record`](crate::Limits::max_sets_per_record).
    #[error("it is in more sets than max_sets_per_record = {0}")]
    Sets(usize),
    /// More `about`s than [`Limits::max_abouts`](crate::Limits::max_abouts).
    #[error("it has more about elements than max_abouts = {0}")]
    Abouts(usize),
}
