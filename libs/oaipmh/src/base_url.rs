use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use url::Url;

/// All but the unreserved characters of RFC 3986, so that each value has one spelling.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The base URL of a repository, as the operator gave it: requests are this and a query.
///
/// Its own query stays in front of the protocol's arguments, its fragment is dropped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BaseUrl(Url);

/// The URL cannot be a base URL: it is neither `http` nor `https`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no base URL of OAI-PMH: give an http or https URL")]
pub struct BadBaseUrl(String);

impl BaseUrl {
    /// A base URL from a URL without the protocol's arguments; see [`Pasted`](crate::Pasted) for others.
    ///
    /// # Errors
    /// When it is not `http` or `https`.
    pub fn new(mut url: Url) -> Result<Self, BadBaseUrl> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadBaseUrl(url.into()));
        }
        url.set_fragment(None);
        if url.query().is_some_and(str::is_empty) {
            url.set_query(None);
        }
        Ok(Self(url))
    }

    /// The URL.
    pub fn as_url(&self) -> &Url {
        &self.0
    }

    /// The URL as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The URI of a record as a resource: its GetRecord request, arguments in the order `verb`, `identifier`,
    /// `metadataPrefix`, all but unreserved characters encoded.
    pub fn record_uri(&self, identifier: &str, prefix: &str) -> String {
        self.with_arguments([("verb", "GetRecord"), ("identifier", identifier), ("metadataPrefix", prefix)])
    }

    /// Identifier and prefix of the record with this URI, as [`record_uri`](Self::record_uri) makes it.
    pub fn record_of(&self, uri: &str) -> Option<(String, String)> {
        let rest = self.arguments_of(uri)?.strip_prefix("verb=GetRecord&identifier=")?;
        let (identifier, prefix) = rest.split_once("&metadataPrefix=")?;
        let (identifier, prefix) = (decoded(identifier)?, decoded(prefix)?);
        (self.record_uri(&identifier, &prefix) == uri).then_some((identifier, prefix))
    }

    /// The `setSpec` in the URL of a list of this repository.
    pub fn set_of(&self, list: &str) -> Option<String> {
        let arguments = self.arguments_of(list)?.strip_prefix("verb=ListRecords&")?;
        arguments.split('&').find_map(|argument| decoded(argument.strip_prefix("set=")?))
    }

    /// The arguments of a request to this repository.
    fn arguments_of<'u>(&self, url: &'u str) -> Option<&'u str> {
        let separator = if self.0.query().is_some() { '&' } else { '?' };
        url.strip_prefix(self.0.as_str())?.strip_prefix(separator)
    }

    /// This URL with arguments behind its own query, percent-encoded.
    pub(crate) fn with_arguments<'a>(
        &self,
        arguments: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> String {
        let mut text = self.0.as_str().to_owned();
        let mut separator = if self.0.query().is_some() { '&' } else { '?' };
        for (name, value) in arguments {
            text.push(separator);
            text.push_str(name);
            text.push('=');
            text.extend(utf8_percent_encode(value, RESERVED));
            separator = '&';
        }
        text
    }
}

fn decoded(value: &str) -> Option<String> {
    percent_decode_str(value).decode_utf8().ok().map(|value| value.into_owned())
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}
