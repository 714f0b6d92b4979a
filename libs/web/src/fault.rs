//! Responses that cannot be used.

use http::Response;
use http::header::CONTENT_RANGE;

use crate::{ContentRange, ErrorKind, GetRequest, Range, WebError};

/// Why a response that is no redirect cannot be used; none if it can.
pub(crate) fn of<B>(answer: &Response<B>, request: &GetRequest) -> Option<WebError> {
    let status = answer.status().as_u16();
    match status {
        304 if request.validators.is_empty() => Some(WebError::new(ErrorKind::Unasked(status))),
        // Its bytes would be mistaken for the whole, or be put in the wrong place.
        206 => {
            let header = answer.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
            let found = header.and_then(ContentRange::parse);
            let detail = match &request.range {
                None => "the whole was asked for".to_owned(),
                Some(asked) if found.is_some_and(|found| is_part(asked, found)) => return None,
                Some(Range { from, to, .. }) => {
                    let to = to.map_or_else(String::new, |to| format!(" to {}", to.saturating_sub(1)));
                    let header = header.unwrap_or("none").escape_debug();
                    format!("asked from byte {from}{to}, Content-Range: {header}")
                }
            };
            Some(WebError::new(ErrorKind::Unasked(status)).detail(detail))
        }
        200..=299 | 304 => None,
        _ => Some(WebError::new(ErrorKind::Status(status))),
    }
}

/// Whether a part begins at the requested offset and ends no later: a server may send less.
fn is_part(asked: &Range, found: ContentRange) -> bool {
    found.from == asked.from && asked.to.is_none_or(|to| found.to <= to)
}
