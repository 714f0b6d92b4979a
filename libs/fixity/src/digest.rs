//! Digest values whose length matches their algorithm.

use std::fmt;
use std::str::FromStr;

use data_encoding::{Encoding, HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::Digest as _;

use crate::{Algorithm, UnknownAlgorithm};

/// Why something is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// Not of the form `algorithm:hex`.
    #[error("{0:?} is not of the form algorithm:hex")]
    Form(String),
    /// An unknown algorithm.
    #[error(transparent)]
    Algorithm(#[from] UnknownAlgorithm),
    /// Characters that are not hexadecimal digits.
    #[error("{0:?} is not hexadecimal")]
    NotHex(String),
    /// Too many or too few bytes for the algorithm.
    #[error("a {algorithm} digest has {expected} bytes, not {actual}")]
    Length {
        /// The algorithm.
        algorithm: Algorithm,
        /// The length of its digests, in bytes.
        expected: usize,
        /// The length found, in bytes.
        actual: usize,
    },
}

/// The value of one algorithm over a bitstream; shown and stored as `sha-256:<lower-case hex>`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest {
    algorithm: Algorithm,
    /// The value, padded with zeros to the longest length, so that it needs no allocation.
    bytes: [u8; MOST_BYTES],
}

/// The length of SHA-512.
const MOST_BYTES: usize = 64;

/// A SHA-256 value: the digest of every bitstream, and the name of its object; displayed and stored as 64
/// lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sha256([u8; 32]);

impl Digest {
    /// The digest `bytes` of `algorithm`.
    ///
    /// # Errors
    /// [`DigestError::Length`] when the algorithm's digests have another length.
    pub fn new(algorithm: Algorithm, bytes: impl AsRef<[u8]>) -> Result<Self, DigestError> {
        let bytes = bytes.as_ref();
        let expected = algorithm.digest_len();
        let actual = bytes.len();
        if expected != actual {
            return Err(DigestError::Length { algorithm, expected, actual });
        }
        Ok(Self::filled(algorithm, |value| value.copy_from_slice(bytes)))
    }

    /// The digest that `fill` writes into a buffer of the algorithm's length.
    fn filled(algorithm: Algorithm, fill: impl FnOnce(&mut [u8])) -> Self {
        let mut bytes = [0; MOST_BYTES];
        fill(&mut bytes[..algorithm.digest_len()]);
        Self { algorithm, bytes }
    }

    /// Decodes `value` in an encoding; `None` when it is not in that encoding, or has another length.
    pub(crate) fn decode(algorithm: Algorithm, encoding: &Encoding, value: &[u8]) -> Option<Self> {
        let mut read = None;
        let digest = Self::filled(algorithm, |bytes| {
            if encoding.decode_len(value.len()) == Ok(bytes.len()) {
                read = encoding.decode_mut(value, bytes).ok();
            }
        });
        // Blanks that an encoding ignores would leave the value shorter.
        (read == Some(algorithm.digest_len())).then_some(digest)
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The value.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.algorithm.digest_len()]
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text(&mut [0; LONGEST_TEXT]))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    /// Parses the output of [`Display`](fmt::Display). [`parse_hashes`](crate::parse_hashes) parses what
    /// Sources write.
    fn from_str(text: &str) -> Result<Self, DigestError> {
        let (name, hex) = text.split_once(':').ok_or_else(|| DigestError::Form(text.to_owned()))?;
        let algorithm = name.parse()?;
        match Self::decode(algorithm, &HEXLOWER_PERMISSIVE, hex.as_bytes()) {
            Some(digest) => Ok(digest),
            None => Self::new(algorithm, decode_hex(hex)?),
        }
    }
}

impl Sha256 {
    /// The digest of `data`.
    pub fn of(data: &[u8]) -> Self {
        Self(sha2::Sha256::digest(data).into())
    }

    /// The digest whose value is `bytes`.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The value.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text(&mut [0; LONGEST_TEXT]))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Sha256 {
    type Err = DigestError;

    fn from_str(hex: &str) -> Result<Self, DigestError> {
        let bytes = decode_hex(hex)?;
        let actual = bytes.len();
        let error = |_| DigestError::Length { algorithm: Algorithm::Sha256, expected: 32, actual };
        bytes.try_into().map(Self).map_err(error)
    }
}

impl From<Sha256> for Digest {
    fn from(sha256: Sha256) -> Self {
        Self::filled(Algorithm::Sha256, |bytes| bytes.copy_from_slice(&sha256.0))
    }
}

/// The longest text of a digest: an algorithm's name and the hexadecimal digits of 64 bytes.
const LONGEST_TEXT: usize = 160;

impl Digest {
    /// Writes the output of [`Display`](fmt::Display) in one piece: each record has several of them.
    fn text<'a>(&self, room: &'a mut [u8; LONGEST_TEXT]) -> &'a str {
        let name = self.algorithm.as_str().as_bytes();
        let from = name.len() + 1;
        let end = name.len() + 1 + 2 * self.bytes().len();
        room[..name.len()].copy_from_slice(name);
        room[name.len()] = b':';
        HEXLOWER.encode_mut(self.bytes(), &mut room[from..end]);
        std::str::from_utf8(&room[..end]).unwrap_or_default()
    }
}

impl Sha256 {
    fn text<'a>(&self, room: &'a mut [u8; LONGEST_TEXT]) -> &'a str {
        HEXLOWER.encode_mut(&self.0, &mut room[..64]);
        std::str::from_utf8(&room[..64]).unwrap_or_default()
    }
}

macro_rules! serde_as_text {
    ($name:ident) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.text(&mut [0; LONGEST_TEXT]))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}

serde_as_text!(Digest);
serde_as_text!(Sha256);

fn decode_hex(hex: &str) -> Result<Vec<u8>, DigestError> {
    HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).map_err(|_| DigestError::NotHex(hex.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn sha256_is_shown_stored_and_read_as_hex() {
        let abc = Sha256::of(b"abc");
        assert_eq!(abc.to_string(), ABC);
        assert_eq!(ABC.parse(), Ok(abc));
        assert_eq!(serde_json::to_value(abc).unwrap(), ABC);
        assert_eq!(serde_json::from_str::<Sha256>(&format!("\"{ABC}\"")).unwrap(), abc);
    }

    #[test]
    fn digest_is_shown_stored_and_read_with_its_algorithm() {
        let digest = Digest::from(Sha256::of(b"abc"));
        let text = format!("sha-256:{ABC}");
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest.clone()));
        assert_eq!(serde_json::to_value(&digest).unwrap(), text);
        assert_eq!(serde_json::from_value::<Digest>(text.into()).unwrap(), digest);
    }

    #[test]
    fn a_digest_of_another_length_is_refused() {
        assert_eq!(
            Digest::new(Algorithm::Md5, [0; 20]),
            Err(DigestError::Length { algorithm: Algorithm::Md5, expected: 16, actual: 20 })
        );
        assert!(matches!("ba78".parse::<Sha256>(), Err(DigestError::Length { actual: 2, .. })));
        assert!(matches!("md5:ba78".parse::<Digest>(), Err(DigestError::Length { actual: 2, .. })));
    }

    #[test]
    fn what_is_no_digest_says_why() {
        assert!(matches!("abc".parse::<Digest>(), Err(DigestError::Form(_))));
        assert!(matches!("crc32:00".parse::<Digest>(), Err(DigestError::Algorithm(_))));
        assert!(matches!("md5:xyz".parse::<Digest>(), Err(DigestError::NotHex(_))));
        assert!(matches!("ü".parse::<Sha256>(), Err(DigestError::NotHex(_))));
    }
}
