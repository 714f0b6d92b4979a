//! Several digests and the length, in one pass.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::saved::{Running, SavedHasher};
use crate::{Algorithm, Digest, Sha256};

/// Why digests do not belong to one bitstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComputedError {
    /// SHA-256 is always computed, so a value without it comes from elsewhere.
    #[error("there is no sha-256 among the computed digests")]
    NoSha256,
    /// Two digests of one algorithm.
    #[error("there is more than one {0} among the computed digests")]
    Twice(Algorithm),
}

/// Computes digests and length of a bitstream, piece by piece.
pub struct Hasher {
    length: u64,
    states: Vec<(Algorithm, Box<dyn Running>)>,
}

/// The length and the digests of a bitstream; SHA-256 is always among them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Computed {
    length: u64,
    sha256: Sha256,
    digests: Vec<Digest>,
}

#[derive(Serialize, Deserialize)]
struct Parts {
    length: u64,
    digests: Vec<Digest>,
}

impl Hasher {
    /// A hasher for `algorithms`, each once, and SHA-256.
    pub fn new(algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        let mut wanted: Vec<_> = algorithms.into_iter().chain([Algorithm::Sha256]).collect();
        wanted.sort_unstable();
        wanted.dedup();
        Self {
            length: 0,
            states: wanted.into_iter().map(|algorithm| (algorithm, state(algorithm))).collect(),
        }
    }

    /// Takes the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.length += piece.len() as u64;
        for (_, state) in &mut self.states {
            state.update(piece);
        }
    }

    /// How many bytes were hashed.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The state so far, to be saved. [Restored](Self::restore), it continues behind the last piece.
    pub fn save(&self) -> SavedHasher {
        SavedHasher::of(self.length, &self.states)
    }

    /// Restores a saved hasher. None when the state is in the format of another release, or of other
    /// algorithms: then the bytes have to be hashed again.
    pub fn restore(algorithms: impl IntoIterator<Item = Algorithm>, saved: &SavedHasher) -> Option<Self> {
        let mut hasher = Self::new(algorithms);
        saved.restore(&mut hasher.states)?;
        hasher.length = saved.length();
        Some(hasher)
    }

    /// The result for all pieces.
    pub fn finish(self) -> Computed {
        let digests = self.states.into_iter().map(|(algorithm, state)| {
            Digest::new(algorithm, state.finalize()).expect("each algorithm gives digests of its own length")
        });
        Computed::new(self.length, digests).expect("Hasher::new takes each algorithm once, and SHA-256")
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithms: Vec<_> = self.states.iter().map(|(algorithm, _)| algorithm).collect();
        f.debug_struct("Hasher").field("length", &self.length).field("algorithms", &algorithms).finish()
    }
}

impl Computed {
    /// The length in bytes and the digests of one bitstream.
    ///
    /// # Errors
    /// [`ComputedError`] when SHA-256 is missing or an algorithm occurs twice.
    pub fn new(length: u64, digests: impl IntoIterator<Item = Digest>) -> Result<Self, ComputedError> {
        let mut digests: Vec<_> = digests.into_iter().collect();
        digests.sort_unstable();
        if let Some(pair) = digests.windows(2).find(|pair| pair[0].algorithm() == pair[1].algorithm()) {
            return Err(ComputedError::Twice(pair[0].algorithm()));
        }
        let sha256 = digests
            .iter()
            .find(|digest| digest.algorithm() == Algorithm::Sha256)
            .and_then(|digest| digest.bytes().try_into().ok())
            .map(Sha256::from_bytes)
            .ok_or(ComputedError::NoSha256)?;
        Ok(Self { length, sha256, digests })
    }

    /// The length and SHA-256 of bytes in memory.
    pub fn of(data: &[u8]) -> Self {
        let mut hasher = Hasher::new([]);
        hasher.update(data);
        hasher.finish()
    }

    /// The length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// SHA-256.
    pub fn sha256(&self) -> Sha256 {
        self.sha256
    }

    /// All digests, one for each algorithm computed.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// The digest of `algorithm`, if it was computed.
    pub fn get(&self, algorithm: Algorithm) -> Option<&Digest> {
        self.digests.iter().find(|digest| digest.algorithm() == algorithm)
    }
}

impl TryFrom<Parts> for Computed {
    type Error = ComputedError;

    fn try_from(parts: Parts) -> Result<Self, ComputedError> {
        Self::new(parts.length, parts.digests)
    }
}

impl From<Computed> for Parts {
    fn from(computed: Computed) -> Self {
        Self { length: computed.length, digests: computed.digests }
    }
}

fn state(algorithm: Algorithm) -> Box<dyn Running> {
    match algorithm {
        Algorithm::Md5 => Box::new(md5::Md5::default()),
        Algorithm::Sha1 => Box::new(sha1::Sha1::default()),
        Algorithm::Sha224 => Box::new(sha2::Sha224::default()),
        Algorithm::Sha256 => Box::new(sha2::Sha256::default()),
        Algorithm::Sha384 => Box::new(sha2::Sha384::default()),
        Algorithm::Sha512 => Box::new(sha2::Sha512::default()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_algorithm_gives_the_published_value_of_abc() {
        let mut hasher = Hasher::new(Algorithm::ALL);
        hasher.update(b"abc");
        let computed = hasher.finish();
        for (algorithm, hex) in [
            (Algorithm::Md5, "900150983cd24fb0d6963f7d28e17f72"),
            (Algorithm::Sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (Algorithm::Sha224, "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
            (Algorithm::Sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                Algorithm::Sha384,
                "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed\
                 8086072ba1e7cc2358baeca134c825a7",
            ),
            (
                Algorithm::Sha512,
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                 2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            ),
        ] {
            assert_eq!(computed.get(algorithm).unwrap().to_string(), format!("{algorithm}:{hex}"));
        }
        assert_eq!(computed.length(), 3);
    }

    #[test]
    fn sha256_is_computed_unasked_and_nothing_else() {
        let computed = Computed::of(b"");
        assert_eq!(computed.digests(), [Digest::from(Sha256::of(b""))]);
        assert_eq!(computed.get(Algorithm::Md5), None);
    }

    #[test]
    fn an_algorithm_asked_for_twice_is_computed_once() {
        let hasher = Hasher::new([Algorithm::Md5, Algorithm::Sha256, Algorithm::Md5]);
        assert_eq!(hasher.finish().digests().len(), 2);
    }

    #[test]
    fn stored_form_is_plain_and_checked_when_read() {
        let computed = Computed::of(b"abc");
        let json = serde_json::to_value(&computed).unwrap();
        assert_eq!(json["length"], 3);
        assert_eq!(json["digests"][0], computed.digests()[0].to_string());
        assert_eq!(serde_json::from_value::<Computed>(json).unwrap(), computed);
        assert!(serde_json::from_str::<Computed>(r#"{"length":3,"digests":[]}"#).is_err());
        let sha256 = Digest::from(computed.sha256());
        let twice = Computed::new(3, [sha256.clone(), sha256]);
        assert_eq!(twice, Err(ComputedError::Twice(Algorithm::Sha256)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn pieces_give_what_the_whole_gives(
            data in proptest::collection::vec(any::<u8>(), 0..400), cuts in proptest::collection::vec(0usize..400, 0..5)
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(data.len())).chain([0, data.len()]).collect();
            cuts.sort_unstable();
            let mut hasher = Hasher::new([]);
            for pair in cuts.windows(2) {
                hasher.update(&data[pair[0]..pair[1]]);
            }
            prop_assert_eq!(hasher.finish(), Computed::of(&data));
        }
    }
}
