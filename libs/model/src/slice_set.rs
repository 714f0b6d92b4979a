//! Sets of slices of a package.

use serde::{Deserialize, Serialize};

/// A set of slice numbers, stored as runs `[first, end)` in order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SliceSet(Vec<(u32, u32)>);

impl SliceSet {
    /// Adds a slice. Returns whether it is new.
    pub fn insert(&mut self, number: u32) -> bool {
        let at = self.0.partition_point(|(_, end)| *end < number);
        match self.0.get_mut(at) {
            Some((first, end)) if (*first..*end).contains(&number) => return false,
            Some((_, end)) if *end == number => *end += 1,
            Some((first, _)) if *first == number + 1 => *first = number,
            _ => self.0.insert(at, (number, number + 1)),
        }
        if let Some(&[(first, end), (next, last)]) = self.0.get(at..at + 2)
            && end == next
        {
            self.0[at] = (first, last);
            self.0.remove(at + 1);
        }
        true
    }

    /// Whether it holds a slice.
    pub fn contains(&self, number: u32) -> bool {
        self.0.iter().any(|(first, end)| (*first..*end).contains(&number))
    }

    /// How many slices it holds.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|(first, end)| end - first).sum()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds all slices of another set.
    pub fn extend(&mut self, other: &Self) {
        for number in other.0.iter().flat_map(|(first, end)| *first..*end) {
            self.insert(number);
        }
    }

    /// The numbers below `all` that it lacks, in order.
    pub fn missing(&self, all: u32) -> impl Iterator<Item = u32> + '_ {
        (0..all).filter(|number| !self.contains(*number))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slices_that_touch_are_one_run() {
        let mut set = SliceSet::default();
        for number in [5, 3, 4, 0, 9] {
            assert!(set.insert(number), "{number}");
        }
        assert!(!set.insert(4));
        assert_eq!(set.0, [(0, 1), (3, 6), (9, 10)]);
        assert_eq!(set.missing(7).collect::<Vec<_>>(), [1, 2, 6]);
    }

    proptest! {
        #[test]
        fn a_slice_set_holds_what_was_put_in(numbers in prop::collection::vec(0u32..40, 0..60)) {
            let mut set = SliceSet::default();
            let mut known = std::collections::BTreeSet::new();
            for number in numbers {
                prop_assert_eq!(set.insert(number), known.insert(number));
                prop_assert!(set.0.windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?}", set);
            }
            prop_assert_eq!(set.len() as usize, known.len());
            prop_assert!((0..41).all(|number| set.contains(number) == known.contains(&number)));
        }
    }
}
