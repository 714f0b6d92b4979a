//! Answers that are of no use.

use http::header::CONTENT_RANGE;

use crate::{ErrorKind, GetRequest, WebError, range};

/// Why an answer that is no redirect is of no use; none if it is.
pub(crate) fn of(answer: &reqwest::Response, request: &GetRequest) -> Option<WebError> {
    let status = answer.status().as_u16();
    match status {
        304 if request.validators.is_empty() => Some(WebError::new(ErrorKind::Unasked(status))),
        // Its bytes would be taken for the whole, or be put in the wrong place.
        206 => {
            let header = answer.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
            let asked = request.range.as_ref().map(|range| range.from);
            if asked.is_some() && header.and_then(range::first_byte) == asked {
                return None;
            }
            let detail = match (asked, header) {
                (None, _) => "the whole was asked for".to_owned(),
                (Some(from), header) => {
                    format!(
                        "asked from byte {from}, Content-Range: {}",
                        header.unwrap_or("none").escape_debug()
                    )
                }
            };
            Some(WebError::new(ErrorKind::Unasked(status)).detail(detail))
        }
        200..=299 | 304 => None,
        _ => Some(WebError::new(ErrorKind::Status(status))),
    }
}
