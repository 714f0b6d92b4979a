//! The digest of a document's body, by which a poll recognizes it.

use fixity::{Hasher, Sha256};

/// Computes SHA-256 of a body as it arrives. The bytes count as received, before any decompression: a poll then
/// inflates nothing.
#[derive(Debug)]
pub struct BodyDigest(Option<Hasher>);

impl BodyDigest {
    /// The longest body that gets a digest, in bytes: a poll receives no more of one.
    pub const LONGEST: u64 = 8 << 20;

    /// Takes the next piece.
    pub fn add(&mut self, piece: &[u8]) {
        if let Some(hasher) = &mut self.0 {
            hasher.update(piece);
            if hasher.length() > Self::LONGEST {
                self.0 = None;
            }
        }
    }

    /// The digest of all pieces; none if they are too long.
    pub fn finish(self) -> Option<Sha256> {
        Some(self.0?.finish().sha256())
    }
}

impl Default for BodyDigest {
    fn default() -> Self {
        Self(Some(Hasher::new([])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_a_digest_up_to_the_longest_one() {
        let piece = vec![b'x'; 1 << 20];
        let mut digest = BodyDigest::default();
        for _ in 0..8 {
            digest.add(&piece);
        }
        assert_eq!(digest.finish(), Some(Sha256::of(&vec![b'x'; 8 << 20])));
        let mut digest = BodyDigest::default();
        for _ in 0..8 {
            digest.add(&piece);
        }
        digest.add(b"x");
        digest.add(b"y");
        assert_eq!(digest.finish(), None);
    }
}
