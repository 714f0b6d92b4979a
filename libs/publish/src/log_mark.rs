//! A mark of an entry of the change log, by which another catalog is known.

use fixity::Sha256;
use jiff::Timestamp;
use model::ResourceUri;

/// Hexadecimal digits of a mark.
const DIGITS: usize = 16;

/// The mark of what happened to a resource at a time: a catalog that was made anew has other entries.
pub(crate) fn mark(uri: &ResourceUri, at: Timestamp) -> String {
    let mut digest = Sha256::of(format!("{uri} {at}").as_bytes()).to_string();
    digest.truncate(DIGITS);
    digest
}
