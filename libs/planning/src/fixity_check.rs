//! Whether a stored record is consistent, and matches a declaration. Pure.

use fixity::Computed;
use model::{HeldBitstream, Location, Method, bytes};

/// Contradictions within a record: an object is named by its content, and bytes stored as they are have its length.
pub fn contradiction(location: &Location, computed: &Computed) -> Option<String> {
    match location {
        Location::Object { sha256 } if *sha256 != computed.sha256() => Some(format!(
            "its record contradicts itself: it lies in the object of sha-256 {sha256}, and is said to have {}",
            computed.sha256()
        )),
        location => location
            .span()
            .filter(|span| span.method == Method::Stored && span.stored_length != computed.length())
            .map(|span| {
                format!(
                    "its record contradicts itself: {} stored as it is, and it is said to have {}",
                    bytes(span.stored_length),
                    computed.length()
                )
            }),
    }
}

/// Whether a plain declaration matches the stored version, and the record is consistent.
pub fn is_stored_as_declared(
    sha256: fixity::Sha256,
    length: Option<u64>,
    held: Option<&HeldBitstream>,
) -> bool {
    held.is_some_and(|HeldBitstream { location, computed }| {
        computed.sha256() == sha256
            && length.is_none_or(|length| length == computed.length())
            && contradiction(location, computed).is_none()
    })
}
