#![doc = include_str!("../README.md")]

mod algorithm;
mod digest;
mod hasher;
mod hashes;
mod saved;
mod verdict;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use digest::{Digest, DigestError, Sha256};
pub use hasher::{Computed, ComputedError, Hasher};
pub use hashes::{Hashes, parse_hashes};
pub use saved::SavedHasher;
pub use verdict::{Mismatch, Verdict, judge};
