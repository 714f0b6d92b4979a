//! The bytes of the resources: generated from seed, index and version, never stored.

use std::collections::HashMap;
use std::sync::Mutex;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use md5::Md5;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::spec::{Algorithm, Size};

/// The cache has at most this many digests: some 15 MB.
const REMEMBERED: usize = 100_000;
/// Bodies are generated in pieces of this many bytes.
const PIECE: u64 = 64 * 1024;

/// Generates the bytes of every version of every resource.
#[derive(Debug)]
pub(crate) struct Content {
    seed: u64,
    size: Size,
    /// Digests in lower-case hex, by index, version and algorithm.
    remembered: Mutex<HashMap<(u64, u32, Algorithm), String>>,
}

/// The bytes of one version from one offset to another, piece by piece.
pub(crate) struct Pieces {
    rng: ChaCha8Rng,
    skip: usize,
    left: u64,
    flip_first: bool,
}

impl Content {
    pub(crate) fn new(seed: u64, size: Size) -> Content {
        Content { seed, size, remembered: Mutex::new(HashMap::new()) }
    }

    /// The length of a version in bytes.
    pub(crate) fn length(&self, index: u64, version: u32) -> u64 {
        match self.size {
            Size::Fixed(bytes) => bytes,
            Size::Range(least, most) => {
                let span = most.saturating_sub(least).saturating_add(1);
                least + mix(self.seed ^ mix(index) ^ mix(u64::from(version) << 40)) % span
            }
        }
    }

    /// The bytes of a version from `from` up to (not including) `to`.
    pub(crate) fn pieces(&self, index: u64, version: u32, from: u64, to: u64) -> Pieces {
        let mut seed = [0_u8; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        seed[8..16].copy_from_slice(&index.to_le_bytes());
        seed[16..20].copy_from_slice(&version.to_le_bytes());
        let mut rng = ChaCha8Rng::from_seed(seed);
        rng.set_word_pos(u128::from(from / 4));
        Pieces { rng, skip: (from % 4) as usize, left: to.saturating_sub(from), flip_first: false }
    }

    /// A version as one piece, for comparisons.
    pub(crate) fn whole(&self, index: u64, version: u32) -> Vec<u8> {
        self.pieces(index, version, 0, self.length(index, version)).flatten().collect()
    }

    /// The digest of a version in lower-case hex.
    pub(crate) fn digest(&self, index: u64, version: u32, algorithm: Algorithm) -> String {
        let key = (index, version, algorithm);
        if let Some(known) = self.remembered.lock().expect("no holder panics").get(&key) {
            return known.clone();
        }
        let pieces = self.pieces(index, version, 0, self.length(index, version));
        let digest = match algorithm {
            Algorithm::Md5 => digest_of::<Md5>(pieces),
            Algorithm::Sha1 => digest_of::<Sha1>(pieces),
            Algorithm::Sha256 => digest_of::<Sha256>(pieces),
        };
        let mut remembered = self.remembered.lock().expect("no holder panics");
        if remembered.len() < REMEMBERED {
            remembered.insert(key, digest.clone());
        }
        digest
    }
}

impl Pieces {
    /// Changes the first byte, so that the bytes no longer match their digest.
    pub(crate) fn spoiled(mut self) -> Pieces {
        self.flip_first = true;
        self
    }

    /// Whether no byte is left.
    pub(crate) fn is_done(&self) -> bool {
        self.left == 0
    }
}

impl Iterator for Pieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.left == 0 {
            return None;
        }
        let length = self.left.min(PIECE) as usize;
        // Whole words are drawn, so that the stream does not depend on where a piece ends.
        let mut piece = vec![0_u8; (self.skip + length).next_multiple_of(4)];
        self.rng.fill_bytes(&mut piece);
        piece.truncate(self.skip + length);
        let start = self.skip;
        if self.flip_first {
            piece[start] ^= 0xff;
            self.flip_first = false;
        }
        self.left -= length as u64;
        self.skip = 0;
        // A piece that began within a word ended at a multiple of four only by chance.
        if !(start + length).is_multiple_of(4) && self.left > 0 {
            self.rng.set_word_pos(self.rng.get_word_pos() - 1);
            self.skip = (start + length) % 4;
        }
        Some(Bytes::from(piece).slice(start..))
    }
}

/// Spreads a number over all 64 bits (the finaliser of splitmix64).
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A digest in lower-case hex.
fn digest_of<D: Digest>(pieces: Pieces) -> String {
    let mut digest = D::new();
    for piece in pieces {
        digest.update(&piece);
    }
    HEXLOWER.encode(&digest.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_equals_that_slice_of_the_whole() {
        let content = Content::new(7, Size::Fixed(200_003));
        let whole = content.whole(3, 1);
        assert_eq!(whole.len(), 200_003);
        for (from, to) in
            [(0, 1), (1, 5), (3, 70_000), (65_535, 65_537), (65_537, 200_003), (200_002, 200_003)]
        {
            let part: Vec<u8> = content.pieces(3, 1, from, to).flatten().collect();
            assert!(part == whole[from as usize..to as usize], "{from}..{to} differs");
        }
    }

    #[test]
    fn seed_index_and_version_each_change_the_bytes() {
        let content = Content::new(7, Size::Fixed(64));
        let bytes = content.whole(3, 1);
        assert_ne!(bytes, content.whole(4, 1));
        assert_ne!(bytes, content.whole(3, 2));
        assert_ne!(bytes, Content::new(8, Size::Fixed(64)).whole(3, 1));
        assert_eq!(bytes, Content::new(7, Size::Fixed(64)).whole(3, 1));
    }

    #[test]
    fn digests_are_those_of_the_bytes() {
        let content = Content::new(7, Size::Fixed(0));
        assert_eq!(content.digest(0, 0, Algorithm::Md5), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(content.digest(0, 0, Algorithm::Sha1), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        let content = Content::new(7, Size::Fixed(100_000));
        let expected = HEXLOWER.encode(&Sha256::digest(content.whole(5, 0)));
        assert_eq!(content.digest(5, 0, Algorithm::Sha256), expected);
        assert_eq!(content.digest(5, 0, Algorithm::Sha256), expected, "and so are remembered ones");
    }

    #[test]
    fn sizes_stay_within_their_range_and_differ() {
        let content = Content::new(7, Size::Range(10, 20));
        let lengths: Vec<u64> = (0..200).map(|index| content.length(index, 0)).collect();
        assert!(lengths.iter().all(|length| (10..=20).contains(length)));
        assert!(lengths.contains(&10) && lengths.contains(&20));
    }
}
