//! Responses that cannot be used.

use http::Response;
use http::header::{CONTENT_RANGE, CONTENT_TYPE};

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
        _ if request.takes_error_documents && is_error_document(answer) => None,
        _ => Some(WebError::new(ErrorKind::Status(status))),
    }
}

/// Whether an error says more than its status. One that asks for a pause, or for a person, says enough.
fn is_error_document<B>(answer: &Response<B>) -> bool {
    let status = answer.status().as_u16();
    let media_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    matches!(status, 400..=599)
        && !matches!(status, 401 | 403 | 407 | 429 | 503)
        && media_type.is_some_and(|media_type| media_type.to_ascii_lowercase().contains("xml"))
}

/// Whether a part begins at the requested offset and ends no later: a server may send less.
fn is_part(asked: &Range, found: ContentRange) -> bool {
    found.from == asked.from && asked.to.is_none_or(|to| found.to <= to)
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn answer(status: u16, media_type: &str) -> Response<()> {
        Response::builder().status(status).header(CONTENT_TYPE, media_type).body(()).unwrap()
    }

    #[test]
    fn an_error_is_a_response_only_for_those_who_read_error_documents_and_only_as_xml() {
        let plain = GetRequest::new(Url::parse("http://h/").unwrap());
        let reads = GetRequest { takes_error_documents: true, ..plain.clone() };
        assert!(of(&answer(422, "text/xml; charset=utf-8"), &plain).is_some());
        for (status, media_type, is_fault) in [
            (422, "text/xml; charset=utf-8", false),
            (500, "application/XML", false),
            (422, "text/html", true),
            (503, "text/xml", true),
            (429, "text/xml", true),
            (403, "text/xml", true),
        ] {
            assert_eq!(of(&answer(status, media_type), &reads).is_some(), is_fault, "{status} {media_type}");
        }
    }
}
