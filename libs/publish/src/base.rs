//! The URL below which everything is published.

use std::fmt;

use model::SourceId;
use url::Url;

use crate::PublishError;

/// The longest base: URLs below it must stay shorter than the 2,000 bytes that all readers accept.
const LONGEST: usize = 500;

/// The URL below which everything is published; it ends with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base(String);

impl Base {
    /// Takes the URL that an operator gives; a slash at its end is added.
    ///
    /// # Errors
    /// [`PublishError::Refused`] for anything but a plain http or https URL.
    pub fn new(mut url: Url) -> Result<Self, PublishError> {
        let refuse = |why: &str| {
            Err(PublishError::Refused(format!(
                "{url} cannot be the base: {why}; pass the URL at which the publication is served"
            )))
        };
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return refuse("it is no http or https URL");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse("it has a query or a fragment");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(PublishError::Refused("the base cannot have a user or a password".to_owned()));
        }
        if url.as_str().len() > LONGEST {
            return refuse("it is longer than 500 bytes");
        }
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        Ok(Self(url.into()))
    }

    /// The base of a set: a folder below it, named by the Source's ID.
    ///
    /// # Errors
    /// [`PublishError::Refused`] if it is too long.
    pub fn of_set(&self, source: &SourceId) -> Result<Self, PublishError> {
        let url = self.url(&format!("{source}/")).parse();
        Self::new(url.map_err(|error| PublishError::Refused(format!("the base of {source}: {error}")))?)
    }

    /// The URL of a path below it.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its path at the server: `/` where all of a host is the publication.
    pub fn path(&self) -> &str {
        let host = self.0.find("://").map_or(0, |at| at + 3);
        self.0[host..].find('/').map_or("/", |at| &self.0[host + at..])
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(text: &str) -> Result<Base, PublishError> {
        Base::new(text.parse().unwrap())
    }

    #[test]
    fn base_ends_with_a_slash_and_knows_its_path() {
        let host = base("https://example.org").unwrap();
        assert_eq!((host.as_str(), host.path()), ("https://example.org/", "/"));
        let below = base("http://example.org:8080/mirror/one").unwrap();
        assert_eq!(below.path(), "/mirror/one/");
        assert_eq!(below.url("changelist.xml"), "http://example.org:8080/mirror/one/changelist.xml");
    }

    #[test]
    fn other_urls_are_refused_with_what_to_pass() {
        for bad in ["ftp://e.org/", "file:///tmp", "http://e.org/?a", "http://e.org/#a", "http://u:p@e.org/"]
        {
            let error = base(bad).unwrap_err();
            assert!(matches!(error, PublishError::Refused(_)), "{bad}: {error}");
            assert!(!error.to_string().contains("u:p"), "{error}");
        }
    }
}
