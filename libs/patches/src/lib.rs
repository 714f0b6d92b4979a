#![doc = include_str!("../README.md")]

mod document;
mod operation;
mod place;
mod pointer;
mod scan;
mod style;

use std::cell::Cell;

use document::Document;
use operation::operations;
pub use place::MemberOrder;

/// The media types of JSON Patch: the registered one, and the one in the specification's example 27.
const JSON_PATCH: [&str; 2] = ["application/json-patch+json", "application/json-patch"];

/// The largest version that patches are applied to, or make, in bytes.
pub const LARGEST: u64 = 64 * 1024 * 1024;
/// The most operations of a patch.
const MOST_OPERATIONS: usize = 10_000;
/// The most memory of operations and of values that a `test` compares, beside texts, in bytes.
pub const PARSED: u64 = (document::TESTED + MOST_OPERATIONS * operation::SIZE) as u64;

/// Bounds of applying a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the document, before, between and after the operations.
    pub bytes: usize,
    /// Operations of a patch.
    pub operations: usize,
    /// Bytes that are read and moved for all operations together. This bounds the time.
    pub work: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: LARGEST as usize, operations: MOST_OPERATIONS, work: 4 * 1024 * 1024 * 1024 }
    }
}

/// Why a patch gave no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It is no patch, or an operation does not fit the document.
    #[error("the patch cannot be applied to this version")]
    NotApplicable,
    /// A limit was met.
    #[error("the patch, or what it makes, is too large")]
    TooLarge,
    /// Each result that it can give is another one than expected.
    #[error("the patch makes other bytes than expected")]
    OtherResult,
}

/// Whether patches of this media type can be applied.
pub fn is_known(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    JSON_PATCH.iter().any(|known| essence.eq_ignore_ascii_case(known))
}

/// Applies a JSON Patch to the text of a document. All of its operations are applied, or none. `is_expected` judges
/// each result; the first one that it accepts is returned.
///
/// # Errors
/// When the patch cannot be applied, a limit is met, or no result is the expected one.
pub fn apply(
    before: &[u8],
    patch: &[u8],
    limits: &Limits,
    is_expected: impl Fn(&[u8]) -> bool,
) -> Result<Vec<u8>, PatchError> {
    if before.len() > limits.bytes {
        return Err(PatchError::TooLarge);
    }
    let operations = operations(patch, limits.operations)?;
    // Of all orders together.
    let work = Cell::new(limits.work);
    for order in [MemberOrder::Appended, MemberOrder::Sorted] {
        let mut document = Document::new(before, order, limits, &work);
        for operation in &operations {
            document.apply(operation)?;
        }
        let is_only = !document.depends_on_order();
        let after = document.into_text();
        if is_expected(&after) {
            return Ok(after);
        }
        if is_only {
            break;
        }
    }
    Err(PatchError::OtherResult)
}

#[cfg(test)]
mod tests;
