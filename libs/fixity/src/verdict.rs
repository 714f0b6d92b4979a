//! The verdict: declared values compared with computed ones.

use std::fmt;

use crate::{Algorithm, Computed, Digest};

/// The result of comparing declared and computed values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// At least one declared digest matches, and nothing declared differs.
    Verified {
        /// The algorithms whose digests match, each once.
        by: Vec<Algorithm>,
    },
    /// The declared length matches; no supported digest was declared.
    LengthOnly,
    /// Nothing comparable was declared.
    NothingDeclared,
    /// A declared value differs from the bytes.
    Mismatch {
        /// The first difference: the length, then the digests in the order declared.
        what: Mismatch,
    },
}

/// A declared value that differs from the computed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// The lengths differ, in bytes.
    Length {
        /// As declared.
        expected: u64,
        /// As computed.
        computed: u64,
    },
    /// Digests of one algorithm differ.
    Digest {
        /// As declared.
        expected: Box<Digest>,
        /// As computed.
        computed: Box<Digest>,
    },
}

/// Judges `computed` against what was declared. One value that disagrees outweighs all that agree.
///
/// A declared digest whose algorithm was not computed is not judged: it neither verifies nor contradicts. The
/// caller must therefore give the declared algorithms to the [`Hasher`](crate::Hasher).
pub fn judge(declared_digests: &[Digest], declared_length: Option<u64>, computed: &Computed) -> Verdict {
    if let Some(expected) = declared_length
        && expected != computed.length()
    {
        return Verdict::Mismatch { what: Mismatch::Length { expected, computed: computed.length() } };
    }
    let mut by = Vec::new();
    for expected in declared_digests {
        let algorithm = expected.algorithm();
        let Some(computed) = computed.get(algorithm) else { continue };
        if computed != expected {
            let what = Mismatch::Digest {
                expected: Box::new(expected.clone()),
                computed: Box::new(computed.clone()),
            };
            return Verdict::Mismatch { what };
        }
        if !by.contains(&algorithm) {
            by.push(algorithm);
        }
    }
    match (by.is_empty(), declared_length) {
        (false, _) => Verdict::Verified { by },
        (true, Some(_)) => Verdict::LengthOnly,
        (true, None) => Verdict::NothingDeclared,
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { expected, computed } => {
                let bytes = if *expected == 1 { "byte was" } else { "bytes were" };
                let were = if *computed == 1 { "was" } else { "were" };
                write!(f, "{expected} {bytes} declared, {computed} {were} received")
            }
            Self::Digest { expected, computed } => {
                write!(f, "{expected} was declared, the bytes received give {computed}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hasher, Sha256, parse_hashes};

    fn computed() -> Computed {
        let mut hasher = Hasher::new([Algorithm::Md5]);
        hasher.update(b"abc");
        hasher.finish()
    }

    fn declared(attribute: &str) -> Vec<Digest> {
        parse_hashes(attribute).known
    }

    const MD5: &str = "md5:900150983cd24fb0d6963f7d28e17f72";
    const WRONG_MD5: &str = "md5:00000000000000000000000000000000";

    #[test]
    fn digests_that_agree_verify() {
        let both = [declared(MD5), vec![Sha256::of(b"abc").into()], declared(MD5)].concat();
        let by = vec![Algorithm::Md5, Algorithm::Sha256];
        assert_eq!(judge(&both, Some(3), &computed()), Verdict::Verified { by });
    }

    #[test]
    fn a_length_alone_is_less_than_a_digest_and_nothing_is_nothing() {
        assert_eq!(judge(&[], Some(3), &computed()), Verdict::LengthOnly);
        assert_eq!(judge(&[], None, &computed()), Verdict::NothingDeclared);
    }

    #[test]
    fn one_wrong_digest_outweighs_the_right_ones() {
        let digests = [vec![Sha256::of(b"abc").into()], declared(WRONG_MD5)].concat();
        let Verdict::Mismatch { what: Mismatch::Digest { expected, computed } } =
            judge(&digests, Some(3), &computed())
        else {
            panic!("a wrong digest was overlooked");
        };
        assert_eq!((expected.to_string().as_str(), computed.to_string().as_str()), (WRONG_MD5, MD5));
    }

    #[test]
    fn two_values_of_one_algorithm_must_both_agree() {
        let digests = declared(&format!("{MD5} {WRONG_MD5}"));
        assert!(matches!(judge(&digests, None, &computed()), Verdict::Mismatch { .. }));
    }

    #[test]
    fn a_wrong_length_outweighs_a_right_digest() {
        let what = Mismatch::Length { expected: 4, computed: 3 };
        assert_eq!(judge(&declared(MD5), Some(4), &computed()), Verdict::Mismatch { what });
    }

    #[test]
    fn a_digest_that_was_not_computed_is_not_judged() {
        let sha1 = declared("sha-1:0000000000000000000000000000000000000000");
        assert_eq!(judge(&sha1, None, &computed()), Verdict::NothingDeclared);
        assert_eq!(judge(&sha1, Some(3), &computed()), Verdict::LengthOnly);
    }
}
