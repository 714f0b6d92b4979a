//! Sets and counts of quirks. Each format has quirks of its own, and all count them alike.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use serde::{Serialize, Serializer};

/// The quirks of one format.
pub trait QuirkKind: Copy + Ord + 'static {
    /// All of them, in order: at most 128.
    const EVERY: &'static [Self];

    /// Its bit in a [`QuirkSetOf`], by its place among all.
    fn bit(self) -> u128;

    /// Its stable name.
    fn name(self) -> &'static str;

    /// Whether conclusions from the document are doubtful.
    fn is_doubtful(self) -> bool;
}

/// Gives the quirks of a format what all formats have alike: the look-up by name, the name as text and in JSON, and
/// [`QuirkKind`]. The enum has no values of its own, and `ALL`, `as_str` and `casts_doubt`.
#[macro_export]
macro_rules! quirk_kind {
    ($quirk:ident) => {
        impl $quirk {
            /// The quirk of this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|quirk| quirk.as_str() == name)
            }
        }

        impl ::std::fmt::Display for $quirk {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::serde::Serialize for $quirk {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        const _: () = assert!($quirk::ALL.len() <= u128::BITS as usize, "a set has a bit for each quirk");

        impl $crate::QuirkKind for $quirk {
            const EVERY: &'static [Self] = Self::ALL;

            fn bit(self) -> u128 {
                1 << self as u32
            }

            fn name(self) -> &'static str {
                self.as_str()
            }

            fn is_doubtful(self) -> bool {
                self.casts_doubt()
            }
        }
    };
}

/// The set of quirks of one value, without counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuirkSetOf<Q>(u128, PhantomData<Q>);

impl<Q> Default for QuirkSetOf<Q> {
    fn default() -> Self {
        Self(0, PhantomData)
    }
}

impl<Q: QuirkKind> QuirkSetOf<Q> {
    /// Adds a quirk.
    pub fn insert(&mut self, quirk: Q) {
        self.0 |= quirk.bit();
    }

    /// Whether the quirk is in the set.
    pub fn contains(self, quirk: Q) -> bool {
        self.0 & quirk.bit() != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The quirks, in the order of all.
    pub fn iter(self) -> impl Iterator<Item = Q> {
        Q::EVERY.iter().copied().filter(move |&quirk| self.contains(quirk))
    }
}

/// How often each quirk occurred. Serialised as a map from name to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuirkCounts<Q>(BTreeMap<Q, u64>);

impl<Q> Default for QuirkCounts<Q> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<Q: QuirkKind> QuirkCounts<Q> {
    /// Counts a quirk once more.
    pub fn add(&mut self, quirk: Q) {
        self.add_many(quirk, 1);
    }

    /// Counts a quirk this many times.
    pub fn add_many(&mut self, quirk: Q, times: u64) {
        if times > 0 {
            *self.0.entry(quirk).or_default() += times;
        }
    }

    /// Adds the counts of another document.
    pub fn merge(&mut self, other: &Self) {
        for (quirk, times) in other.iter() {
            self.add_many(quirk, times);
        }
    }

    /// How often a quirk occurred.
    pub fn count(&self, quirk: Q) -> u64 {
        self.0.get(&quirk).copied().unwrap_or(0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every quirk that occurred, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (Q, u64)> {
        self.0.iter().map(|(&quirk, &times)| (quirk, times))
    }

    /// Whether any of them makes conclusions from the document doubtful.
    pub fn casts_doubt(&self) -> bool {
        self.0.keys().any(|quirk| quirk.is_doubtful())
    }
}

impl<Q: QuirkKind> Serialize for QuirkCounts<Q> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(quirk, times)| (quirk.name(), times)))
    }
}
