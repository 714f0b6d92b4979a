//! Digests, as bytes.

use fixity::{Algorithm, Computed, Digest, Sha256};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes, behind their number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw<'a>(pub(super) &'a [u8]);

/// A digest.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct DigestForm<'a> {
    algorithm: u8,
    #[serde(borrow)]
    value: Raw<'a>,
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&[u8]>::deserialize(deserializer).map(Self)
    }
}

impl<'a> Raw<'a> {
    pub(super) fn of(sha256: &'a Sha256) -> Self {
        Self(sha256.as_bytes())
    }

    pub(super) fn array<const N: usize>(self) -> Result<[u8; N], String> {
        self.0.try_into().map_err(|_| format!("a value has {} bytes instead of {N}", self.0.len()))
    }

    pub(super) fn sha256(self) -> Result<Sha256, String> {
        self.array().map(Sha256::from_bytes)
    }
}

impl<'a> DigestForm<'a> {
    pub(super) fn of(digest: &'a Digest) -> Self {
        Self { algorithm: code(digest.algorithm()), value: Raw(digest.bytes()) }
    }

    pub(super) fn read(self) -> Result<Digest, String> {
        Digest::new(algorithm(self.algorithm)?, self.value.0).map_err(|error| error.to_string())
    }
}

/// The other digests of a bitstream, beside SHA-256.
pub(super) fn beside_sha256(computed: &Computed) -> Vec<DigestForm<'_>> {
    let others = computed.digests().iter().filter(|digest| digest.algorithm() != Algorithm::Sha256);
    others.map(DigestForm::of).collect()
}

/// The number of an algorithm, which never changes.
pub(super) fn code(algorithm: Algorithm) -> u8 {
    match algorithm {
        Algorithm::Md5 => 0,
        Algorithm::Sha1 => 1,
        Algorithm::Sha224 => 2,
        Algorithm::Sha256 => 3,
        Algorithm::Sha384 => 4,
        Algorithm::Sha512 => 5,
    }
}

pub(super) fn algorithm(number: u8) -> Result<Algorithm, String> {
    let found = Algorithm::ALL.into_iter().find(|algorithm| code(*algorithm) == number);
    found.ok_or_else(|| format!("{number} is no digest algorithm"))
}
