//! The parts of a URL that go into the request line, and into a header.

use data_encoding::BASE64;
use http::HeaderValue;
use http::uri::{InvalidUri, Uri};
use percent_encoding::percent_decode_str;
use url::{Position, Url};

/// The URL of the request line: without the fragment, and without user and password, which have a header of
/// their own.
///
/// # Errors
/// When no request can carry it: it is longer than 65,534 bytes, or its host holds invalid characters.
pub(crate) fn uri(url: &Url) -> Result<Uri, InvalidUri> {
    if !has_user(url) {
        return url[..Position::AfterQuery].parse();
    }
    [&url[..Position::BeforeUsername], &url[Position::BeforeHost..Position::AfterQuery]].concat().parse()
}

/// The `Authorization` header for the URL's user and password (RFC 7617); none without either.
pub(crate) fn authorization(url: &Url) -> Option<HeaderValue> {
    if !has_user(url) {
        return None;
    }
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    let mut value = HeaderValue::try_from(format!("Basic {}", BASE64.encode(&pair))).ok()?;
    // Hidden in traces of the HTTP library, and left out of HTTP/2's compression tables.
    value.set_sensitive(true);
    Some(value)
}

fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn fragment_user_and_password_are_no_part_of_what_is_asked_for() {
        for (from, to) in [
            ("http://example.org", "http://example.org/"),
            ("http://example.org/a?b=c#d", "http://example.org/a?b=c"),
            ("https://me:word@example.org:8443/a#d", "https://example.org:8443/a"),
            ("https://me@example.org/?a@b", "https://example.org/?a@b"),
            ("http://:word@[::1]:8080/", "http://[::1]:8080/"),
            ("http://bücher.example/ü?ü", "http://xn--bcher-kva.example/%C3%BC?%C3%BC"),
            ("http://example.org/a|b^[c]{d}?\"e|'", "http://example.org/a|b^[c]%7Bd%7D?%22e|%27"),
        ] {
            assert_eq!(uri(&url(from)).unwrap(), to, "{from}");
        }
    }

    #[test]
    fn what_no_request_can_carry_is_refused() {
        assert!(uri(&url(&format!("http://example.org/{}", "a".repeat(70_000)))).is_err());
        assert!(uri(&url("https://{{host}}/")).is_err());
    }

    #[test]
    fn user_and_password_go_in_a_header_that_is_not_shown() {
        // The first is the example of RFC 7617, 2.
        for (from, pair) in [
            ("http://Aladdin:open%20sesame@h/", "Aladdin:open sesame"),
            ("http://me@h/", "me:"),
            ("http://:word@h/", ":word"),
            ("http://m%C3%BC:%C3%BC@h/", "mü:ü"),
        ] {
            let value = authorization(&url(from)).unwrap();
            assert_eq!(value, format!("Basic {}", BASE64.encode(pair.as_bytes())), "{from}");
            assert!(value.is_sensitive());
        }
        assert_eq!(authorization(&url("http://h/a@b")), None);
    }
}
