//! URLs of versions, TimeGates and TimeMaps.

use axum::http::HeaderMap;
use jiff::Timestamp;
use links::Link;
use links::timemap::LINK_FORMAT;
use model::{ResourceUri, SourceId};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

use crate::api_error::ApiError;
use crate::config::Settings;
use crate::extract;
use crate::inbox_urls;

/// What cannot stand in a header.
const HEADER: &AsciiSet = &CONTROLS.add(b' ').add(b'<').add(b'>').add(b'"');

/// The URLs of one resource, for the client of a request.
#[derive(Debug, Clone)]
pub(super) struct MementoUrls {
    /// The URL of the Source in the API, with a slash at its end.
    base: String,
    /// The URI of the resource, without what cannot stand in a header.
    uri: String,
    /// The URI in a path.
    in_path: String,
    /// The URI in a query.
    in_query: String,
}

impl MementoUrls {
    /// The base URL comes from the configuration, or else from the request's `Host`. Only the client of that request
    /// sees the result. Without either, URLs have no host.
    pub(super) fn of(settings: &Settings, headers: &HeaderMap, source: &SourceId, uri: &ResourceUri) -> Self {
        let base = settings.public_url.clone().or_else(|| inbox_urls::named(headers));
        Self::at(base.as_ref(), source, uri)
    }

    pub(super) fn at(base: Option<&Url>, source: &SourceId, uri: &ResourceUri) -> Self {
        let base = base.map_or("/", Url::as_str).trim_end_matches('/');
        Self {
            base: format!("{base}/v1/sources/{source}/"),
            uri: utf8_percent_encode(uri.as_str(), HEADER).to_string(),
            in_path: encode(uri.as_str()),
            in_query: utf8_percent_encode(uri.as_str(), NON_ALPHANUMERIC).to_string(),
        }
    }

    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    /// The version that was stored at this moment.
    pub(super) fn memento(&self, at: Timestamp) -> String {
        format!("{}resources/content?uri={}&at={at}", self.base, self.in_query)
    }

    pub(super) fn timegate(&self) -> String {
        format!("{}timegate/{}", self.base, self.in_path)
    }

    /// A page of the TimeMap. The first one is 1.
    pub(super) fn timemap(&self, page: usize) -> String {
        match page {
            1 => format!("{}timemap/{}", self.base, self.in_path),
            _ => format!("{}timemap/{page}/{}", self.base, self.in_path),
        }
    }

    pub(super) fn original(&self) -> Link {
        Link::new(&self.uri, "original")
    }

    pub(super) fn timegate_link(&self) -> Link {
        Link::new(self.timegate(), "timegate")
    }

    pub(super) fn timemap_link(&self) -> Link {
        Link::new(self.timemap(1), "timemap").with("type", LINK_FORMAT)
    }
}

/// The URI in a path: as it is, where clients and proxies leave it so. Otherwise it is encoded as a whole, and has no
/// colon by which to tell.
fn encode(uri: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"#<>\"\\^`{|}".contains(&byte);
    if uri.bytes().all(is_plain) && !uri.contains("/.") {
        return uri.to_owned();
    }
    utf8_percent_encode(uri, NON_ALPHANUMERIC).to_string()
}

/// The resource that the rest of a path names.
///
/// # Errors
/// [`ApiError::bad_request`].
pub(super) fn decode(rest: &str) -> Result<ResourceUri, ApiError> {
    if rest.contains(':') {
        return extract::resource_uri(rest);
    }
    let decoded = percent_decode_str(rest).decode_utf8();
    extract::resource_uri(
        &decoded.map_err(|_| ApiError::bad_request("the path is to end with a URI in UTF-8"))?,
    )
}

/// The page that the rest of a path names, and the rest after it.
pub(super) fn split_page(rest: &str) -> (usize, &str) {
    let split = rest.split_once('/').filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
    match split.and_then(|(number, uri)| Some((number.parse().ok()?, uri))) {
        Some(split) => split,
        None => (1, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_in_a_path_is_read_as_it_was_written() {
        for uri in [
            "https://e.org/a",
            "https://e.org/a?b=c&d=%20e//f",
            "https://e.org/%C3%A9,;a",
            "https://e.org/a b#c",
            "https://e.org/\u{e9}?\u{e9}",
            "https://e.org/a/../b",
            "https://e.org/a|b",
        ] {
            let uri: ResourceUri = uri.parse().unwrap();
            assert_eq!(decode(&encode(uri.as_str())).unwrap(), uri);
            let urls =
                MementoUrls::at(Some(&"https://t.org/x/".parse().unwrap()), &"s".parse().unwrap(), &uri);
            for page in [1, 12] {
                let url: Url = urls.timemap(page).parse().unwrap();
                let sent = url.as_str().strip_prefix("https://t.org/x/v1/sources/s/timemap/").unwrap();
                let (read, rest) = split_page(sent);
                assert_eq!((read, decode(rest).unwrap()), (page, uri.clone()));
            }
        }
        for wrong in ["", "a", "%ff", "ftp://e.org/", "12"] {
            assert!(decode(wrong).is_err(), "{wrong}");
        }
    }
}
