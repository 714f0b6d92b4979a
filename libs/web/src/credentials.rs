//! Credentials, each bound to the one origin that it was given for.

use std::fmt;

use data_encoding::BASE64;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use model::Origin;
use secrets::Secret;

/// Headers that define the request or manage the connection. If a credential set one of them, responses would
/// be misread.
const RESERVED: [&str; 18] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// A header for one origin only. It is not sent to the same host under another scheme or port. After a
/// redirect it is sent only if that leads back to the origin.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    origin: Origin,
    name: HeaderName,
    value: HeaderValue,
}

/// Why a credential is invalid. The text never shows the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The secret is empty, or holds characters that no header can carry.
    #[error(
        "the secret for {origin} is empty or holds a line break, a control character or a space at an end, which no \
         header can carry; check how it was read, for example for a line break at the end of its file"
    )]
    Secret {
        /// The origin it was for.
        origin: Origin,
    },
    /// A user name with a colon, which ends the name (RFC 7617, 2).
    #[error(
        "the user name {user:?} for {origin} holds a colon or a control character; basic access allows neither"
    )]
    User {
        /// The origin it was for.
        origin: Origin,
        /// The name.
        user: String,
    },
    /// Not a header name that may be set.
    #[error("{name:?} is not a header that a credential for {origin} can be; {why}")]
    Header {
        /// The origin it was for.
        origin: Origin,
        /// The name.
        name: String,
        /// The reason.
        why: &'static str,
    },
}

/// All credentials of a client.
#[derive(Debug, Default)]
pub(crate) struct Credentials(Vec<Credential>);

impl Credential {
    /// `Authorization: Bearer <token>` (RFC 6750) for `origin`.
    ///
    /// # Errors
    /// [`CredentialError::Secret`] when no header can carry the token.
    pub fn bearer(origin: Origin, token: &Secret) -> Result<Self, CredentialError> {
        let value = carried(&origin, token.expose())
            .and_then(|()| value(&origin, &format!("Bearer {}", token.expose())))?;
        Ok(Self { origin, name: AUTHORIZATION, value })
    }

    /// `Authorization: Basic …` (RFC 7617, in UTF-8) for `origin`. The password may be empty.
    ///
    /// # Errors
    /// [`CredentialError::User`] when the name holds a colon or a control character;
    /// [`CredentialError::Secret`] when the password holds a control character.
    pub fn basic(origin: Origin, user: &str, password: &Secret) -> Result<Self, CredentialError> {
        if user.contains(|c: char| c == ':' || c.is_control()) {
            return Err(CredentialError::User { origin, user: user.to_owned() });
        }
        if password.expose().contains(char::is_control) {
            return Err(CredentialError::Secret { origin });
        }
        let pair = BASE64.encode(format!("{user}:{}", password.expose()).as_bytes());
        let value = value(&origin, &format!("Basic {pair}"))?;
        Ok(Self { origin, name: AUTHORIZATION, value })
    }

    /// A header of any other name, such as `X-Api-Key`, for `origin`.
    ///
    /// # Errors
    /// [`CredentialError::Header`] when the name is invalid, or one that the client itself sets;
    /// [`CredentialError::Secret`] when no header can carry the value.
    pub fn header(origin: Origin, name: &str, secret: &Secret) -> Result<Self, CredentialError> {
        let refuse = |why| CredentialError::Header { origin: origin.clone(), name: name.to_owned(), why };
        let parsed: HeaderName =
            name.parse().map_err(|_| refuse("a header's name is letters, digits and dashes"))?;
        if RESERVED.contains(&parsed.as_str()) {
            return Err(refuse("the client sets that one itself"));
        }
        carried(&origin, secret.expose())?;
        let value = value(&origin, secret.expose())?;
        Ok(Self { origin, name: parsed, value })
    }

    /// The one origin it is sent to.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("origin", &self.origin.as_str())
            .field("header", &self.name.as_str())
            .field("value", &"***")
            .finish()
    }
}

impl Credentials {
    /// Checks all of them; fails on two for the same header and origin.
    pub(crate) fn new(all: Vec<Credential>) -> Result<Self, String> {
        for (index, one) in all.iter().enumerate() {
            if all[..index].iter().any(|other| (&other.origin, &other.name) == (&one.origin, &one.name)) {
                return Err(format!(
                    "two credentials for {} set the header {}; leave one out",
                    one.origin, one.name
                ));
            }
        }
        Ok(Self(all))
    }

    /// Adds an origin's credentials to the headers of a request to it. Returns whether there are any.
    pub(crate) fn add_to(&self, headers: &mut HeaderMap, origin: &Origin) -> bool {
        let mut has_any = false;
        for credential in self.0.iter().filter(|credential| credential.origin == *origin) {
            headers.insert(credential.name.clone(), credential.value.clone());
            has_any = true;
        }
        has_any
    }
}

/// Whether a header can carry the text: it would lose white space at its ends.
fn carried(origin: &Origin, text: &str) -> Result<(), CredentialError> {
    if text.is_empty() || text.trim() != text {
        Err(CredentialError::Secret { origin: origin.clone() })
    } else {
        Ok(())
    }
}

fn value(origin: &Origin, text: &str) -> Result<HeaderValue, CredentialError> {
    let mut value = HeaderValue::from_bytes(text.as_bytes())
        .map_err(|_| CredentialError::Secret { origin: origin.clone() })?;
    // Hidden in traces of the HTTP library, and left out of HTTP/2's compression tables.
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin() -> Origin {
        "https://example.org".parse().unwrap()
    }

    fn headers(credential: Credential, to: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        Credentials::new(vec![credential]).unwrap().add_to(&mut headers, &to.parse().unwrap());
        headers
    }

    #[test]
    fn each_kind_makes_its_header() {
        let secret = Secret::new("open sesame");
        let bearer = Credential::bearer(origin(), &Secret::new("abc")).unwrap();
        assert_eq!(headers(bearer, "https://example.org:443/a")["authorization"], "Bearer abc");
        let basic = Credential::basic(origin(), "Aladdin", &secret).unwrap();
        // The example of RFC 7617, 2.
        assert_eq!(
            headers(basic, "https://example.org")["authorization"],
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        );
        let named = Credential::header(origin(), "X-Api-Key", &secret).unwrap();
        assert_eq!(headers(named, "https://example.org")["x-api-key"], "open sesame");
    }

    #[test]
    fn another_scheme_port_or_host_gets_nothing() {
        for other in [
            "http://example.org",
            "http://example.org:443",
            "https://example.org:8443",
            "https://www.example.org",
            "https://example.org.",
            "https://org",
        ] {
            let credential = Credential::bearer(origin(), &Secret::new("abc")).unwrap();
            assert!(headers(credential, other).is_empty(), "{other}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let secret = Secret::new("sesame");
        let all = [
            Credential::bearer(origin(), &secret).unwrap(),
            Credential::basic(origin(), "me", &secret).unwrap(),
            Credential::header(origin(), "x-key", &secret).unwrap(),
        ];
        let encoded = BASE64.encode(b"me:sesame");
        let config = crate::WebConfig { credentials: all.to_vec(), ..Default::default() };
        let shown =
            format!("{secret:?} {all:?} {config:?} {:?}", headers(all[0].clone(), "https://example.org"));
        assert!(!shown.contains("sesame") && !shown.contains(&encoded), "{shown}");
    }

    #[test]
    fn secrets_that_no_header_can_carry_are_refused_without_being_shown() {
        for secret in ["", "sesame\n", "ses\r\name", " sesame"] {
            let secret = Secret::new(secret);
            for refused in
                [Credential::bearer(origin(), &secret), Credential::header(origin(), "x-key", &secret)]
            {
                let error = refused.unwrap_err();
                assert_eq!(error, CredentialError::Secret { origin: origin() });
                assert!(!error.to_string().contains("ses"), "{error}");
            }
        }
        assert!(Credential::basic(origin(), "me", &Secret::new("a\nb")).is_err());
        assert!(Credential::basic(origin(), "me", &Secret::new("")).is_ok());
    }

    #[test]
    fn names_that_would_mean_something_else_are_refused() {
        let secret = Secret::new("sesame");
        for name in ["", "a b", "Host", "RANGE", "accept-encoding", "Transfer-Encoding"] {
            let error = Credential::header(origin(), name, &secret).unwrap_err();
            assert!(matches!(error, CredentialError::Header { .. }), "{error}");
        }
        let error = Credential::basic(origin(), "a:b", &secret).unwrap_err();
        assert!(matches!(error, CredentialError::User { .. }), "{error}");
    }

    #[test]
    fn two_credentials_for_one_header_of_one_origin_are_refused() {
        let bearer = Credential::bearer(origin(), &Secret::new("sesame")).unwrap();
        let basic = Credential::basic(origin(), "me", &Secret::new("sesame")).unwrap();
        let key = Credential::header(origin(), "x-key", &Secret::new("sesame")).unwrap();
        assert!(Credentials::new(vec![bearer.clone(), key]).is_ok());
        let why = Credentials::new(vec![bearer, basic]).unwrap_err();
        assert!(why.contains("https://example.org:443") && !why.contains("sesame"), "{why}");
    }
}
