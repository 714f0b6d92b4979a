//! The compact form of records that each resource has.
//!
//! A record begins with a byte that JSON never begins with, [`COMPACT`]. Postcard encodes the rest: the usual fields,
//! each once, digests as bytes and times as numbers. Rare fields are JSON behind them, so that a later optional field
//! is added to that. The order of fields and variants is the format: it never changes, a new form gets another byte.
//!
//! What is equal in neighbouring records, such as the list's URI, comes first and in one piece. The compression of
//! blocks then finds it as one repetition.

mod bitstream;
mod change;
mod declaration;
mod digest;
mod listing;
mod location;
mod pending;
mod resource;
mod time;
mod versions;

#[cfg(test)]
mod tests;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) use change::{PageWriter, read_page};
pub(crate) use pending::{read_pending, write_pending};
pub(crate) use resource::{read_holding, read_resource, write_resource};
pub(crate) use versions::{read_versions, write_versions};

/// The first byte of a record in the compact form.
pub(crate) const COMPACT: u8 = 1;

/// The body of a record in the compact form; none if it is JSON.
fn compact(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(&[COMPACT])
}

/// Reads a record from its compact form, or from JSON, as earlier versions wrote it.
pub(crate) fn read_either<T: DeserializeOwned>(
    value: &[u8],
    read_compact: impl FnOnce(&[u8]) -> Result<T, String>,
) -> Result<T, String> {
    match compact(value) {
        Some(form) => read_compact(form),
        None => serde_json::from_slice(value).map_err(|error| error.to_string()),
    }
}

/// Appends a form to a record.
fn write(to: &mut Vec<u8>, form: &impl Serialize) {
    // Text, numbers and lists of known length, into memory.
    postcard::to_io(form, to).expect("forms of records are encoded");
}

/// Reads a form that fills its bytes.
fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    match read_next(bytes)? {
        (form, []) => Ok(form),
        (_, rest) => Err(format!("{} bytes follow its end", rest.len())),
    }
}

/// Reads a form, and returns the bytes behind it too.
fn read_next<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<(T, &'a [u8]), String> {
    postcard::take_from_bytes(bytes).map_err(|error| format!("its compact form is damaged: {error}"))
}

/// Reads JSON within a form.
fn read_json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// JSON within a form; none for a value that is the default.
fn json_unless_default<T: Serialize + PartialEq + Default>(value: &T) -> Option<String> {
    // Structs of strings, numbers and lists.
    (*value != T::default()).then(|| serde_json::to_string(value).expect("records serialise to JSON"))
}
