//! Digest algorithms, by ResourceSync's names.

use std::fmt;
use std::str::FromStr;

/// An unknown algorithm's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no digest algorithm known here (md5, sha-1, sha-224, sha-256, sha-384, sha-512)")]
pub struct UnknownAlgorithm(pub(crate) String);

/// A supported digest algorithm (RS-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// MD5: protects against accidents only.
    Md5,
    /// SHA-1: protects against accidents only.
    Sha1,
    /// SHA-224.
    Sha224,
    /// SHA-256, which is always computed.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Md5, Self::Sha1, Self::Sha224, Self::Sha256, Self::Sha384, Self::Sha512];

    /// Its name in the specification.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Sha1 => "sha-1",
            Self::Sha224 => "sha-224",
            Self::Sha256 => "sha-256",
            Self::Sha384 => "sha-384",
            Self::Sha512 => "sha-512",
        }
    }

    /// The length of its digests, in bytes.
    pub fn digest_len(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha224 => 28,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    /// Parses a name in any case, with hyphens or without (`sha-256`, `SHA256`, `MD-5`).
    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        Self::ALL
            .into_iter()
            .find(|known| plain(known.as_str()).eq(plain(name)))
            .ok_or_else(|| UnknownAlgorithm(name.to_owned()))
    }
}

/// A name's characters in lower case, without hyphens.
fn plain(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().filter(|byte| *byte != b'-').map(|byte| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_every_usual_spelling() {
        for (name, algorithm) in [
            ("md5", Algorithm::Md5),
            ("MD5", Algorithm::Md5),
            ("sha1", Algorithm::Sha1),
            ("SHA-1", Algorithm::Sha1),
            ("sha-224", Algorithm::Sha224),
            ("Sha256", Algorithm::Sha256),
            ("sha-256", Algorithm::Sha256),
            ("sha384", Algorithm::Sha384),
            ("SHA512", Algorithm::Sha512),
        ] {
            assert_eq!(name.parse(), Ok(algorithm), "{name}");
        }
    }

    #[test]
    fn every_algorithm_reads_its_own_name() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
    }

    #[test]
    fn other_algorithms_are_unknown() {
        for name in ["", "-", "sha", "sha-3", "sha-512/256", "crc32", "blake3", "md5 "] {
            assert!(name.parse::<Algorithm>().is_err(), "{name:?}");
        }
    }
}
