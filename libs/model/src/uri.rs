//! The URI of a resource, as its Source writes it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::Url;

/// Why a URI cannot name a resource we harvest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// Not an absolute URI.
    #[error("{0:?} is not an absolute URI")]
    NotAbsolute(String),
    /// A scheme we do not fetch.
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

/// The URI of a resource: absolute, `http` or `https`, and kept exactly as the Source writes it,
/// since that text is the resource's identity in every later document.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ResourceUri(String);

impl ResourceUri {
    /// The longest URI accepted, in bytes.
    pub const LONGEST: usize = 8 * 1024;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The URI as a URL to be requested (normalised as browsers do).
    pub fn to_url(&self) -> Url {
        // The constructor parsed the same text.
        Url::parse(&self.0).expect("a ResourceUri holds only what Url::parse accepted")
    }
}

impl TryFrom<String> for ResourceUri {
    type Error = UriError;

    fn try_from(text: String) -> Result<Self, UriError> {
        if text.len() > Self::LONGEST {
            return Err(UriError::TooLong(text.len()));
        }
        let Ok(url) = Url::parse(&text) else { return Err(UriError::NotAbsolute(text)) };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UriError::Scheme { scheme: url.scheme().to_owned(), uri: text });
        }
        Ok(Self(text))
    }
}

impl FromStr for ResourceUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        text.to_owned().try_into()
    }
}

impl From<ResourceUri> for String {
    fn from(uri: ResourceUri) -> Self {
        uri.0
    }
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
