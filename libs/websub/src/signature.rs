//! The signature of a delivery: proof that its sender knows the secret of the subscription (WebSub, 7.1 and
//! 8).

use std::fmt;
use std::str::FromStr;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use secrets::Secret;

/// The method of a signature. All of them are accepted; as an HMAC, sha1 is not broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// HMAC with SHA-1.
    Sha1,
    /// HMAC with SHA-256.
    Sha256,
    /// HMAC with SHA-384.
    Sha384,
    /// HMAC with SHA-512.
    Sha512,
}

/// A signature, `method=hex`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    method: Method,
    digest: Vec<u8>,
}

/// Why a text cannot be parsed as a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// It has no method, or its digest is malformed.
    #[error("it is not of the form method=hex")]
    Malformed,
    /// The method is unknown to the specification.
    #[error("its method is none of sha1, sha256, sha384 and sha512")]
    UnknownMethod,
}

/// The result of checking a delivery's signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authenticity {
    /// The sender knows the secret.
    Right(Method),
    /// There is no signature.
    Missing,
    /// The signature header cannot be parsed.
    Unreadable(SignatureError),
    /// It belongs to other bytes, or to another secret.
    Wrong,
}

/// Checks the `X-Hub-Signature` headers of a delivery: some hubs send one for each method, and one valid
/// signature is enough. The body is not parsed.
pub fn judge<'a>(secret: &Secret, headers: impl IntoIterator<Item = &'a [u8]>, body: &[u8]) -> Authenticity {
    let mut verdict = Authenticity::Missing;
    // A hub signs with at most this many methods; each check hashes the whole body.
    for header in headers.into_iter().take(Method::ALL.len()) {
        let read = std::str::from_utf8(header).map_err(|_| SignatureError::Malformed);
        match read.and_then(Signature::from_str) {
            Ok(signature) if signature.is_of(secret, body) => {
                return Authenticity::Right(signature.method);
            }
            Ok(_) => verdict = Authenticity::Wrong,
            Err(error) if verdict == Authenticity::Missing => verdict = Authenticity::Unreadable(error),
            Err(_) => {}
        }
    }
    verdict
}

impl Method {
    /// All of them, the weakest first.
    pub const ALL: [Self; 4] = [Self::Sha1, Self::Sha256, Self::Sha384, Self::Sha512];

    /// Its name in a signature.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    /// Bytes of its digests.
    fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

/// One expression for four types without a common trait that is short to name.
macro_rules! with_mac {
    ($method:expr, $secret:expr, $body:expr, |$mac:ident| $then:expr) => {
        match $method {
            Method::Sha1 => with_mac!(@ Sha1, $secret, $body, |$mac| $then),
            Method::Sha256 => with_mac!(@ Sha256, $secret, $body, |$mac| $then),
            Method::Sha384 => with_mac!(@ Sha384, $secret, $body, |$mac| $then),
            Method::Sha512 => with_mac!(@ Sha512, $secret, $body, |$mac| $then),
        }
    };
    (@ $hash:ty, $secret:expr, $body:expr, |$mac:ident| $then:expr) => {{
        let $mac = Hmac::<$hash>::new_from_slice($secret.expose().as_bytes())
            .expect("HMAC takes keys of any length")
            .chain_update($body);
        $then
    }};
}

impl Signature {
    /// Signs a body, as a hub does.
    pub fn new(method: Method, secret: &Secret, body: &[u8]) -> Self {
        let digest = with_mac!(method, secret, body, |mac| mac.finalize().into_bytes().to_vec());
        Self { method, digest }
    }

    /// Whether it is the signature of these bytes, in constant time.
    pub fn is_of(&self, secret: &Secret, body: &[u8]) -> bool {
        with_mac!(self.method, secret, body, |mac| mac.verify_slice(&self.digest).is_ok())
    }

    /// Its method.
    pub fn method(&self) -> Method {
        self.method
    }
}

impl FromStr for Signature {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Self, SignatureError> {
        let (name, hex) = text.trim().split_once('=').ok_or(SignatureError::Malformed)?;
        let method = Method::ALL.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(name.trim()));
        let method = method.ok_or(SignatureError::UnknownMethod)?;
        let digest = HEXLOWER_PERMISSIVE.decode(hex.trim().as_bytes()).ok();
        let digest = digest.filter(|digest| digest.len() == method.length());
        Ok(Self { method, digest: digest.ok_or(SignatureError::Malformed)? })
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.method.as_str(), HEXLOWER.encode(&self.digest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secret() -> Secret {
        // RFC 2202 and RFC 4231, test case 2.
        Secret::new("Jefe")
    }

    const BODY: &[u8] = b"what do ya want for nothing?";

    #[test]
    fn each_method_gives_the_digest_of_its_rfc() {
        for (method, hex) in [
            (Method::Sha1, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
            (Method::Sha256, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
            (
                Method::Sha384,
                "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
            ),
            (
                Method::Sha512,
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
            ),
        ] {
            let written = format!("{}={hex}", method.as_str());
            assert_eq!(Signature::new(method, &secret(), BODY).to_string(), written);
            let read: Signature = written.to_ascii_uppercase().parse().unwrap();
            assert!(read.is_of(&secret(), BODY) && read.method() == method);
        }
    }

    #[test]
    fn a_signature_of_other_bytes_or_of_another_secret_is_wrong() {
        for method in Method::ALL {
            let signature = Signature::new(method, &secret(), BODY);
            assert!(!signature.is_of(&secret(), b"what do ya want for nothing"));
            assert!(!signature.is_of(&Secret::new("jefe"), BODY));
        }
    }

    #[test]
    fn what_is_no_signature_is_told_from_one_that_is_wrong() {
        let judged = |headers: &[&str]| judge(&secret(), headers.iter().map(|h| h.as_bytes()), BODY);
        let right = Signature::new(Method::Sha256, &secret(), BODY).to_string();
        let wrong = Signature::new(Method::Sha256, &secret(), b"x").to_string();
        let unreadable = Authenticity::Unreadable;
        assert_eq!(judged(&[]), Authenticity::Missing);
        assert_eq!(judged(&[&wrong]), Authenticity::Wrong);
        assert_eq!(judged(&["sha256"]), unreadable(SignatureError::Malformed));
        assert_eq!(
            judged(&["md5=d41d8cd98f00b204e9800998ecf8427e"]),
            unreadable(SignatureError::UnknownMethod)
        );
        assert_eq!(judged(&[&right[..right.len() - 2]]), unreadable(SignatureError::Malformed));
        assert_eq!(judged(&["sha256="]), unreadable(SignatureError::Malformed));
        assert_eq!(judged(&["md5=00", &wrong]), Authenticity::Wrong);
        assert_eq!(judged(&["md5=00", &wrong, &right]), Authenticity::Right(Method::Sha256));
        let many = [wrong.as_str(); Method::ALL.len()];
        assert_eq!(judged(&[&many[1..], &[&right]].concat()), Authenticity::Right(Method::Sha256));
        assert_eq!(judged(&[&many[..], &[&right]].concat()), Authenticity::Wrong, "it is not looked at");
        assert_eq!(judge(&secret(), [b"\xff=".as_slice()], BODY), unreadable(SignatureError::Malformed));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_text_is_read_without_panic(text in "(sha1|sha256|sha384|sha512|md5)?=?[0-9a-f]{0,130}|.{0,40}") {
            if let Ok(signature) = text.parse::<Signature>() {
                prop_assert_eq!(signature.to_string().parse::<Signature>().unwrap(), signature);
            }
        }

        #[test]
        fn one_bit_that_differs_makes_it_wrong(
            body in prop::collection::vec(any::<u8>(), 1..200), at in any::<prop::sample::Index>(), bit in 0_u8..8,
        ) {
            for method in Method::ALL {
                let signature = Signature::new(method, &secret(), &body);
                prop_assert!(signature.is_of(&secret(), &body));
                let mut other = body.clone();
                other[at.index(body.len())] ^= 1_u8 << bit;
                prop_assert!(!signature.is_of(&secret(), &other));
            }
        }
    }
}
