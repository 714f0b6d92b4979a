//! The parts of a document.

use resourcesync::{Header, Item, Summary};

use crate::error::DocumentError;

/// A part of a document, in document order.
#[derive(Debug)]
pub enum Part {
    /// The root and its metadata; always first.
    Header(Header),
    /// Entries.
    Items(Vec<Item>),
    /// The end: the document was read whole.
    End(Summary),
    /// Reading stopped early; the parts before stay valid.
    Broken(DocumentError, Summary),
}
