//! Origins: one per origin, since request limits apply to an origin.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::Deserialize;
use url::Url;

use crate::text;
use crate::usual_uri::is_usual;

/// Why a URL or text has no origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no origin of the form scheme://host:port")]
pub struct OriginError(String);

/// An origin: scheme, host and port. All requests to one origin share its budget.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Origin(String);

text::serialize!(Origin);

impl Origin {
    /// The origin of a URL.
    ///
    /// # Errors
    /// When the URL has no host, so that no server can be reached.
    pub fn of(url: &Url) -> Result<Self, OriginError> {
        match (url.host_str(), url.port_or_known_default()) {
            (Some(host), Some(port)) => Ok(Self::at(url.scheme(), host, port)),
            _ => Err(OriginError(url.to_string())),
        }
    }

    /// The origin of a URI of the usual kind, which every parser reads in the same way; none for any other.
    pub(crate) fn of_usual(uri: &str) -> Option<Self> {
        let (scheme, rest) = uri.split_once("://").filter(|_| is_usual(uri))?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, port.parse().ok()?),
            None if scheme == "https" => (authority, 443_u16),
            None => (authority, 80),
        };
        Some(Self::at(scheme, host, port))
    }

    /// Called for each plan and each request, so it allocates only once.
    fn at(scheme: &str, host: &str, port: u16) -> Self {
        let mut origin = String::with_capacity(scheme.len() + host.len() + "://:65535".len());
        write!(origin, "{scheme}://{host}:{port}").expect("a text takes what is written");
        Self(origin)
    }

    /// The origin, `scheme://host:port`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host, as in a parsed URL.
    pub fn host(&self) -> &str {
        let authority = self.0.split_once("://").map_or(self.0.as_str(), |(_, authority)| authority);
        authority.rsplit_once(':').map_or(authority, |(host, _port)| host)
    }

    /// The origin as one token of a message subject: `.` becomes `_`, and every byte that is not
    /// `a-z`, `0-9`, `-` becomes `=` and two hex digits, so that no two origins share a token.
    pub fn token(&self) -> String {
        let mut token = String::with_capacity(self.0.len() + 8);
        for byte in self.0.bytes() {
            match byte {
                b'a'..=b'z' | b'0'..=b'9' | b'-' => token.push(char::from(byte)),
                b'.' => token.push('_'),
                other => token.push_str(&format!("={other:02x}")),
            }
        }
        token
    }

    /// The origin of a [`token`](Self::token); none for any other text.
    pub fn from_token(token: &str) -> Option<Self> {
        let mut text = Vec::with_capacity(token.len());
        let mut bytes = token.bytes();
        while let Some(byte) = bytes.next() {
            text.push(match byte {
                b'_' => b'.',
                b'=' => {
                    let digits = [bytes.next()?, bytes.next()?];
                    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
                }
                other => other,
            });
        }
        let origin: Self = String::from_utf8(text).ok()?.parse().ok()?;
        (origin.token() == token).then_some(origin)
    }
}

impl TryFrom<String> for Origin {
    type Error = OriginError;

    fn try_from(text: String) -> Result<Self, OriginError> {
        if is_written_out(&text) {
            return Ok(Self(text));
        }
        let Ok(url) = Url::parse(&text) else { return Err(OriginError(text)) };
        Self::of(&url).map_err(|_| OriginError(text))
    }
}

/// Whether a text is a normalized origin with its port, which every parser reads in the same way. Each record
/// has one.
fn is_written_out(text: &str) -> bool {
    let Some((_, authority)) = text.split_once("://") else { return false };
    let Some((_, port)) = authority.split_once(':') else { return false };
    !port.starts_with('0') && port.bytes().all(|byte| byte.is_ascii_digit()) && is_usual(text)
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        text.to_owned().try_into()
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.0
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn default_port_and_case_do_not_make_another_origin() {
        let one: Origin = "HTTP://Example.org/a".parse().unwrap();
        let two: Origin = "http://example.org:80/b?c".parse().unwrap();
        assert_eq!(one, two);
        assert_eq!(one.as_str(), "http://example.org:80");
    }

    #[test]
    fn the_host_of_a_origin_is_the_urls() {
        for url in
            ["http://example.org/a", "https://example.org.:8443/", "http://127.0.0.1:1/", "http://[::1]/"]
        {
            let url: Url = url.parse().unwrap();
            assert_eq!(Some(Origin::of(&url).unwrap().host()), url.host_str(), "{url}");
        }
    }

    #[test]
    fn a_host_less_url_has_no_origin() {
        assert!("mailto:a@b".parse::<Origin>().is_err());
        assert!("data:,x".parse::<Origin>().is_err());
    }

    #[test]
    fn what_is_no_token_has_no_origin() {
        let token = "http://[2001:db8::1]:8080".parse::<Origin>().unwrap().token();
        assert!(Origin::from_token(&token).is_some());
        for token in ["", "=", "=3", "=zz", "http", "http=3A=2f=2fa=3a80", "http=3a=2f=2fa", "=ff=fe"] {
            assert_eq!(Origin::from_token(token), None, "{token}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_out_is_what_the_parser_makes_of_it(
            scheme in "https?|HTTP|ftp",
            host in "[-a-z0-9.x]{0,12}|([0-9]{1,3}\\.){3}[0-9]{1,3}|[a-zA-Z]{1,5}(\\.[a-z]{0,6}){0,3}|\\PC{0,6}",
            port in ":[0-9]{1,6}|:0[0-9]{1,3}|:[0-9]{1,4}/|",
        ) {
            let text = format!("{scheme}://{host}{port}");
            if is_written_out(&text) {
                let origin = Origin::of(&Url::parse(&text).unwrap()).unwrap();
                prop_assert_eq!(origin.as_str(), text);
            }
        }

        #[test]
        fn a_origin_is_written_out(host in "[a-z][a-z0-9]{0,9}(\\.[a-z]{2,5}){0,2}", port in 1u16..) {
            let origin: Origin = format!("http://{host}:{port}/a").parse().unwrap();
            prop_assert!(is_written_out(origin.as_str()));
        }

        #[test]
        fn tokens_are_safe_and_differ_when_origins_differ(
            a in "[a-z0-9_.-]{1,12}", b in "[a-z0-9_.-]{1,12}", port in 1u16..
        ) {
            let (a, b) = (format!("http://{a}:{port}"), format!("http://{b}:{port}"));
            if let (Ok(a), Ok(b)) = (a.parse::<Origin>(), b.parse::<Origin>()) {
                prop_assert!(a.token().bytes().all(|c| c.is_ascii_alphanumeric() || b"-_=".contains(&c)));
                prop_assert_eq!(a == b, a.token() == b.token());
                prop_assert_eq!(Origin::from_token(&a.token()), Some(a));
            }
        }
    }
}
