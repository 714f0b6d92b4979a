//! The responses of a Source that works. Pure.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::content::body;
use super::documents::{Described, listed_at};
use super::request::Request;

/// A response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The status.
    pub(super) status: u16,
    /// What it is of.
    pub(super) what: What,
    /// The head, with its empty line.
    pub(super) head: String,
    /// The body.
    pub(super) body: Vec<u8>,
}

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A Resource List or a Change List: the documents that an idle run polls.
    List,
    /// Another document.
    Document,
    /// A resource.
    Resource,
    /// A path at which there is nothing, such as `/robots.txt`.
    Nothing,
}

/// A representation, with its validators.
struct Found {
    what: What,
    media_type: &'static str,
    etag: String,
    modified: Timestamp,
    body: Vec<u8>,
}

/// The response of a Source to a request.
pub(super) fn answer(source: &Described<'_>, request: &Request) -> Answer {
    let Some(Found { what, media_type, etag, modified, body }) = found(source, &request.path) else {
        return failure(404, "");
    };
    let modified = http_date(modified);
    let validators = format!("ETag: {etag}\r\nLast-Modified: {modified}\r\n");
    if is_unchanged(request, &etag, &modified) {
        let head = format!("HTTP/1.1 304 Not Modified\r\n{validators}\r\n");
        return Answer { status: 304, what, head, body: Vec::new() };
    }
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n{validators}\r\n"
    );
    let body = if request.is_head { Vec::new() } else { body };
    Answer { status: 200, what, head, body }
}

/// A response without a body, with more lines of the head.
pub(super) fn failure(status: u16, more: &str) -> Answer {
    let reason = match status {
        404 => "Not Found",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    };
    let head = format!("HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\n{more}\r\n");
    Answer { status, what: What::Nothing, head, body: Vec::new() }
}

fn found(source: &Described<'_>, path: &str) -> Option<Found> {
    let xml = |what, name: &str, modified, text: String| {
        let body = text.into_bytes();
        Some(Found { what, media_type: "application/xml", etag: format!("\"{name}\""), modified, body })
    };
    let changes = source.changes.len();
    match path {
        "/.well-known/resourcesync" => xml(What::Document, "description", listed_at(), source.description()),
        "/capabilitylist.xml" => xml(What::Document, "capabilities", listed_at(), source.capability_list()),
        "/resourcelist.xml" => xml(What::List, "resources", listed_at(), source.resource_list()),
        "/changelist.xml" => {
            let modified = source.changes.last().copied().unwrap_or_else(listed_at);
            xml(What::List, &format!("changes-{changes}"), modified, source.change_list())
        }
        _ => {
            let number = path.strip_prefix("/resource-")?.strip_suffix(".txt")?;
            let number: u32 = number.parse().ok().filter(|number| *number < source.resources)?;
            let (version, modified) = source.version(number);
            Some(Found {
                what: What::Resource,
                media_type: "text/plain",
                etag: format!("\"{number}-{version}\""),
                modified,
                body: body(source.number, number, version),
            })
        }
    }
}

/// RFC 9110, 13.2.2: entity tags come before dates.
fn is_unchanged(request: &Request, etag: &str, modified: &str) -> bool {
    match (&request.if_none_match, &request.if_modified_since) {
        (Some(tags), _) => {
            let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
            tags.split(',').map(bare).any(|tag| tag == etag || tag == "*")
        }
        // Clients send the date that they got, so that the text is enough.
        (None, Some(since)) => since == modified,
        (None, None) => false,
    }
}

fn http_date(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Described<'static> =
        Described { number: 3, base: "http://127.1.0.4:80", resources: 2, changes: &[] };

    fn asked(path: &str, if_none_match: Option<&str>, if_modified_since: Option<&str>) -> Answer {
        let own = |text: &str| text.to_owned();
        let request = Request {
            path: path.to_owned(),
            is_head: false,
            if_none_match: if_none_match.map(own),
            if_modified_since: if_modified_since.map(own),
        };
        answer(&SOURCE, &request)
    }

    #[test]
    fn documents_and_resources_are_found_and_nothing_else() {
        for (path, what) in [
            ("/.well-known/resourcesync", What::Document),
            ("/capabilitylist.xml", What::Document),
            ("/resourcelist.xml", What::List),
            ("/changelist.xml", What::List),
            ("/resource-1.txt", What::Resource),
        ] {
            let found = asked(path, None, None);
            assert_eq!((found.status, found.what), (200, what), "{path}");
            assert!(found.head.contains(&format!("Content-Length: {}\r\n", found.body.len())));
        }
        for path in ["/robots.txt", "/resource-2.txt", "/resource-x.txt", "/"] {
            assert_eq!(asked(path, None, None).status, 404, "{path}");
        }
    }

    #[test]
    fn a_request_with_the_validators_of_an_earlier_response_is_not_modified() {
        let first = asked("/changelist.xml", None, None).head;
        let value = |name: &str| first.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        assert_eq!(value("Last-Modified: "), "Thu, 01 Jan 2026 00:00:00 GMT");
        let again = asked("/changelist.xml", Some(value("ETag: ")), None);
        assert_eq!((again.status, again.body.len(), again.what), (304, 0, What::List));
        assert_eq!(asked("/changelist.xml", None, Some(value("Last-Modified: "))).status, 304);
        assert_eq!(asked("/changelist.xml", Some("\"changes-1\""), None).status, 200);
    }
}
