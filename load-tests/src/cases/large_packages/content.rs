//! The content of members: generated from their numbers, a piece at a time.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Bytes generated at once.
const PIECE: usize = 64 << 10;
/// The number of words for texts.
const WORDS: usize = 4096;

/// The words for texts, each with a space behind it.
#[derive(Debug)]
pub(super) struct Vocabulary(Vec<Vec<u8>>);

/// The content of a member.
#[derive(Debug)]
pub(super) struct Content<'a> {
    random: ChaCha8Rng,
    /// The words of a text; without them the content is random, like a picture.
    words: Option<&'a Vocabulary>,
    left: u64,
    piece: Vec<u8>,
}

impl Vocabulary {
    /// Always the same.
    pub(super) fn new() -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(u64::MAX);
        let mut word = || {
            let letters = 2 + random.next_u32() % 9;
            let letters = (0..letters).map(|_| b'a' + (random.next_u32() % 26) as u8);
            letters.chain([b' ']).collect()
        };
        Self((0..WORDS).map(|_| word()).collect())
    }
}

impl<'a> Content<'a> {
    /// `length` bytes that follow from the member's number.
    pub(super) fn new(member: u64, length: u64, words: Option<&'a Vocabulary>) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(member), words, left: length, piece: Vec::new() }
    }

    /// The next bytes; nothing at the end.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
        let length = self.left.min(PIECE as u64) as usize;
        if length == 0 {
            return None;
        }
        self.piece.clear();
        match self.words {
            None => {
                self.piece.resize(length, 0);
                self.random.fill_bytes(&mut self.piece);
            }
            Some(Vocabulary(words)) => {
                while self.piece.len() < length {
                    let two = self.random.next_u32();
                    self.piece.extend_from_slice(&words[two as usize % WORDS]);
                    self.piece.extend_from_slice(&words[(two >> 16) as usize % WORDS]);
                }
                self.piece.truncate(length);
            }
        }
        self.left -= length as u64;
        Some(&self.piece)
    }
}
