use url::Url;

use super::notes::Notes;
use crate::quirk::Quirk;

/// A URI reference as an absolute URI, if a base is known. Quirks in it are counted, never repaired.
pub(super) fn absolute(text: String, base: Option<&Url>, notes: &mut Notes) -> String {
    // Without an early exit, so that the compiler can vectorize the loop.
    if text.bytes().fold(false, |odd, byte| odd | (byte <= b' ') | (byte >= 0x7f)) {
        if !text.is_ascii() {
            notes.add(Quirk::NonAsciiUri);
        }
        if text.bytes().any(|byte| byte <= b' ') {
            notes.add(Quirk::SpaceInUri);
        }
    }
    if has_scheme(&text) {
        return text;
    }
    notes.add(Quirk::RelativeUri);
    base.and_then(|base| base.join(&text).ok()).map_or(text, Into::into)
}

fn has_scheme(text: &str) -> bool {
    if text.starts_with("http://") || text.starts_with("https://") {
        return true;
    }
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    })
}
