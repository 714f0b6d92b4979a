//! The URI of a resource, as its Source writes it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;
use url::Url;

use crate::origin::{Origin, OriginError};
use crate::text;
use crate::usual_uri::is_usual;

/// Why a URI cannot name a resource to harvest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// Not an absolute URI.
    #[error("{0:?} is not an absolute URI")]
    NotAbsolute(String),
    /// An unsupported scheme.
    #[error("{uri:?} has the scheme {scheme:?}; only http and https are harvested")]
    Scheme {
        /// The URI.
        uri: String,
        /// Its scheme.
        scheme: String,
    },
    /// Longer than any server accepts.
    #[error("a URI of {0} bytes; at most {limit} are accepted", limit = ResourceUri::LONGEST)]
    TooLong(usize),
}

/// The URI of a resource: absolute, `http` or `https`, and stored exactly as the Source writes it, since that
/// text is the resource's identity in every later document. A clone shares the text, because a URI is copied
/// many times.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ResourceUri(Arc<str>);

text::serialize!(ResourceUri);

impl ResourceUri {
    /// The longest URI accepted, in bytes.
    pub const LONGEST: usize = 8 * 1024;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The origin of its origin.
    ///
    /// # Errors
    /// When it has no host.
    pub fn origin(&self) -> Result<Origin, OriginError> {
        Origin::of_usual(&self.0).map_or_else(|| Origin::of(&self.to_url()), Ok)
    }

    /// The URI as a URL to be requested (normalised as browsers do).
    pub fn to_url(&self) -> Url {
        // The constructor parsed the same text.
        Url::parse(&self.0).expect("a ResourceUri holds only what Url::parse accepted")
    }
}

impl FromStr for ResourceUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        if text.len() > Self::LONGEST {
            return Err(UriError::TooLong(text.len()));
        }
        if is_usual(text) {
            return Ok(Self(text.into()));
        }
        let Ok(url) = Url::parse(text) else { return Err(UriError::NotAbsolute(text.to_owned())) };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UriError::Scheme { scheme: url.scheme().to_owned(), uri: text.to_owned() });
        }
        Ok(Self(text.into()))
    }
}

impl TryFrom<String> for ResourceUri {
    type Error = UriError;

    fn try_from(text: String) -> Result<Self, UriError> {
        text.parse()
    }
}

impl From<ResourceUri> for String {
    fn from(uri: ResourceUri) -> Self {
        uri.0.as_ref().to_owned()
    }
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_usual_is_never_refused_by_the_parser(
            scheme in "https?",
            host in "[-a-z0-9.x]{0,12}|([0-9]{1,3}\\.){3}[0-9]{1,3}|0x[0-9a-f]{0,8}|[a-z]{1,5}(\\.[-a-z0-9]{0,6}){0,3}|\\PC{0,6}",
            port in "|:|:[0-9]{1,6}|:[a-z+-]{1,3}",
            rest in "|[/?#\\\\@]\\PC{0,12}|[/?#].{0,12}",
        ) {
            let text = format!("{scheme}://{host}{port}{rest}");
            if is_usual(&text) {
                let url = Url::parse(&text);
                prop_assert!(url.as_ref().is_ok_and(|url| url.scheme() == scheme), "{text:?}");
                prop_assert_eq!(Origin::of_usual(&text), url.ok().and_then(|url| Origin::of(&url).ok()));
            }
        }
    }

    #[test]
    fn the_origin_of_a_uri_has_its_port_whether_it_is_written_or_not() {
        for (uri, origin) in [
            ("http://a.example/x", "http://a.example:80"),
            ("https://a.example?x:7", "https://a.example:443"),
            ("http://127.0.0.1:033/x", "http://127.0.0.1:33"),
            ("HTTP://A.example/x", "http://a.example:80"),
        ] {
            assert_eq!(uri.parse::<ResourceUri>().unwrap().origin().unwrap().as_str(), origin, "{uri}");
        }
    }

    #[test]
    fn usual_uris_are_known_as_such() {
        for usual in ["http://a.example/x?y#z", "https://a-1.example:8080", "http://127.0.0.1:33/é"] {
            assert!(is_usual(usual), "{usual}");
        }
        for other in
            ["http://", "http://a@b/", "http://1.2.3.400/", "http://a:99999/", "http://A/", "http://xn--a/"]
        {
            assert!(!is_usual(other), "{other}");
        }
    }

    #[test]
    fn the_text_is_kept_as_the_source_writes_it() {
        let uri: ResourceUri = "http://EXAMPLE.com/a%2fb/../é?q#f".parse().unwrap();
        assert_eq!(uri.as_str(), "http://EXAMPLE.com/a%2fb/../é?q#f");
    }

    #[test]
    fn relative_and_foreign_uris_are_told_apart() {
        assert!(matches!("/a".parse::<ResourceUri>(), Err(UriError::NotAbsolute(_))));
        assert!(matches!("ftp://h/a".parse::<ResourceUri>(), Err(UriError::Scheme { .. })));
        assert!(matches!("http:///".parse::<ResourceUri>(), Err(UriError::NotAbsolute(_))));
        let long = format!("http://h/{}", "a".repeat(9000));
        assert!(matches!(long.parse::<ResourceUri>(), Err(UriError::TooLong(_))));
    }
}
