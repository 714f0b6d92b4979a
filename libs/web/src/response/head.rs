//! What the headers of a response tell, within limits.

use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, DATE, ETAG, HeaderName, LAST_MODIFIED};
use jiff::Timestamp;
use model::{Validators, content_coding};

use super::Response;
use crate::ContentRange;

/// HTTP dates have whole seconds; one more for clocks that are read twice.
const CLOCK_STEP: Duration = Duration::from_secs(2);
/// Longest validator that is taken, in bytes.
const LONGEST_VALIDATOR: usize = 1024;
/// Longest Content-Encoding that is kept, in bytes.
const LONGEST_CODING: usize = 255;
/// Longest media type that is taken, in bytes.
const LONGEST_MEDIA_TYPE: usize = 255;

impl Response {
    /// The validators of this version. A `Last-Modified` within the seconds of the response itself is left
    /// out: another version may follow with the same time, and would be mistaken for this one (RFC 9110,
    /// section 8.8.2.2). So is a validator of more than a KiB: it is kept with each resource, and a server that
    /// sends one is only asked for the whole version again.
    pub fn validators(&self) -> Validators {
        let text = |name| {
            let value = self.headers.get(name).filter(|value| value.len() <= LONGEST_VALIDATOR)?;
            String::from_utf8(value.as_bytes().into()).ok()
        };
        let last_modified =
            text(LAST_MODIFIED).filter(|modified| tells_versions_apart(modified, text(DATE).as_deref()));
        Validators { etag: text(ETAG), last_modified }
    }

    /// `Content-Length`: the bytes of this body; for a 206 those of the part, for a 304 those it would have
    /// had.
    pub fn content_length(&self) -> Option<u64> {
        self.header_text(CONTENT_LENGTH)?.parse().ok()
    }

    /// The range of a 206; none if it is not stated.
    pub fn content_range(&self) -> Option<ContentRange> {
        self.header("content-range").and_then(ContentRange::parse)
    }

    /// The media type in lower case, without its parameters. One of more than 255 bytes is none: the names of types
    /// and subtypes have at most 127 (RFC 6838, section 4.2).
    pub fn media_type(&self) -> Option<String> {
        let essence = self.header_text(CONTENT_TYPE)?.split(';').next()?.trim();
        (1..=LONGEST_MEDIA_TYPE).contains(&essence.len()).then(|| essence.to_ascii_lowercase())
    }

    /// The Content-Encoding in lower case, if any. The bytes are returned encoded, as sent. Of one of more than 255
    /// bytes, the rest is left out: no client could decode it.
    pub fn content_encoding(&self) -> Option<String> {
        let mut coding = content_coding(self.header_text(CONTENT_ENCODING)?)?;
        coding.truncate(coding.floor_char_boundary(LONGEST_CODING));
        Some(coding)
    }

    /// The server's time of the response (`Date`), in whole seconds.
    pub fn date(&self) -> Option<Timestamp> {
        let date = httpdate::parse_http_date(self.header_text(DATE)?).ok()?;
        Timestamp::try_from(date).ok()
    }

    /// The first header of that name, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// All headers of that name that are text.
    pub fn header_values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.get_all(name).iter().filter_map(|value| value.to_str().ok())
    }

    fn header_text(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }
}

/// Whether a modification is old enough before the response that a later one has another time.
fn tells_versions_apart(modified: &str, sent: Option<&str>) -> bool {
    let parse = |text: &str| httpdate::parse_http_date(text).ok();
    match (parse(modified), sent.and_then(parse)) {
        (Some(modified), Some(sent)) => sent >= modified + CLOCK_STEP,
        // Without a `Date` the server has no clock to doubt.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modification_of_the_second_of_the_answer_does_not_tell_versions_apart() {
        let sent = Some("Sat, 21 Nov 2026 10:50:05 GMT");
        assert!(!tells_versions_apart("Sat, 21 Nov 2026 10:50:05 GMT", sent));
        assert!(!tells_versions_apart("Sat, 21 Nov 2026 10:50:04 GMT", sent));
        assert!(tells_versions_apart("Sat, 21 Nov 2026 10:50:03 GMT", sent));
        assert!(tells_versions_apart("Sat, 21 Nov 2026 10:50:05 GMT", None));
        assert!(tells_versions_apart("no date", sent));
    }
}
