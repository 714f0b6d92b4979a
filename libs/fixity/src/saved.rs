//! Saved states of unfinished digests, to resume from.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::digest::DynDigest;
use sha2::digest::common::hazmat::{SerializableState, SerializedState};

use crate::Algorithm;

/// Version of the state format, which the digest crates define. They keep it within a minor version. A test
/// below fails when one of them changes it; then raise this number.
const FORMAT: u32 = 1;

/// The saved state of a [`Hasher`](crate::Hasher). It has a few hundred bytes, whatever was hashed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedHasher {
    format: u32,
    length: u64,
    states: BTreeMap<String, String>,
}

/// An unfinished digest that can be saved.
pub(crate) trait Running: DynDigest + Send + Sync {
    /// Its state.
    fn save(&self) -> Vec<u8>;
    /// Restores a state. Returns whether it was valid.
    fn restore(&mut self, state: &[u8]) -> bool;
}

impl<T: DynDigest + SerializableState + Send + Sync> Running for T {
    fn save(&self) -> Vec<u8> {
        self.serialize().to_vec()
    }

    fn restore(&mut self, state: &[u8]) -> bool {
        let restored =
            SerializedState::<T>::try_from(state).ok().and_then(|state| T::deserialize(&state).ok());
        match restored {
            Some(restored) => {
                *self = restored;
                true
            }
            None => false,
        }
    }
}

impl SavedHasher {
    /// Bytes that were hashed.
    pub fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn of(length: u64, digests: &[(Algorithm, Box<dyn Running>)]) -> Self {
        let states =
            digests.iter().map(|(algorithm, state)| (algorithm.to_string(), HEXLOWER.encode(&state.save())));
        Self { format: FORMAT, length, states: states.collect() }
    }

    /// Restores the state of each digest, if these are the states of these very digests.
    pub(crate) fn restore(&self, digests: &mut [(Algorithm, Box<dyn Running>)]) -> Option<()> {
        if self.format != FORMAT || self.states.len() != digests.len() {
            return None;
        }
        for (algorithm, digest) in digests {
            let state = HEXLOWER.decode(self.states.get(&algorithm.to_string())?.as_bytes()).ok()?;
            digest.restore(&state).then_some(())?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Hasher, Sha256};

    #[test]
    fn the_saved_form_is_the_one_of_this_format() {
        let mut hasher = Hasher::new(Algorithm::ALL);
        hasher.update(&[b'x'; 200]);
        let saved = serde_json::to_vec(&hasher.save()).unwrap();
        // Another digest here means that one of the crates changed its state format: raise FORMAT.
        let expected = "afce883832e94fc404d7f031391fef09e8610047564d134b17c47cf73bf004e5";
        assert_eq!(Sha256::of(&saved).to_string(), expected);
    }

    #[test]
    fn states_of_other_algorithms_or_formats_are_refused() {
        let saved = Hasher::new([Algorithm::Md5]).save();
        assert!(Hasher::restore([Algorithm::Md5], &saved).is_some());
        assert!(Hasher::restore([], &saved).is_none());
        assert!(Hasher::restore([Algorithm::Sha1], &saved).is_none());
        assert!(Hasher::restore([Algorithm::Md5, Algorithm::Sha1], &saved).is_none());
        let later = SavedHasher { format: FORMAT + 1, ..saved.clone() };
        assert!(Hasher::restore([Algorithm::Md5], &later).is_none());
        for damaged in ["", "00", "no hex"] {
            let mut saved = saved.clone();
            saved.states.insert(Algorithm::Md5.to_string(), damaged.into());
            assert!(Hasher::restore([Algorithm::Md5], &saved).is_none(), "{damaged:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn saved_and_restored_anywhere_the_digests_are_the_same(
            data in proptest::collection::vec(any::<u8>(), 0..600), cuts in proptest::collection::vec(0usize..600, 1..4)
        ) {
            let mut whole = Hasher::new(Algorithm::ALL);
            whole.update(&data);
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(data.len())).chain([0, data.len()]).collect();
            cuts.sort_unstable();
            let mut hasher = Hasher::new(Algorithm::ALL);
            for pair in cuts.windows(2) {
                hasher.update(&data[pair[0]..pair[1]]);
                let json = serde_json::to_string(&hasher.save()).unwrap();
                hasher = Hasher::restore(Algorithm::ALL, &serde_json::from_str(&json).unwrap()).unwrap();
                prop_assert_eq!(hasher.length(), pair[1] as u64);
            }
            prop_assert_eq!(hasher.finish(), whole.finish());
        }
    }
}
