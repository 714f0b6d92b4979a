//! Paths that are looked at again: a sorted set of files and folders, no one below another.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use super::spelling::{is_at_or_below, order};

/// The most paths. With more of them, everything is looked at.
pub(super) const MOST_LOOKS: usize = 10_000;

/// Paths to look at again: each is a file, or a folder with all that is below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Looks {
    paths: BTreeSet<Look>,
    most: usize,
}

/// A path, in the order of a walk: what is below it comes directly behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Look(String);

impl Ord for Look {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.0, &other.0)
    }
}

impl PartialOrd for Look {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Default for Looks {
    fn default() -> Self {
        Self { paths: BTreeSet::new(), most: MOST_LOOKS }
    }
}

impl Looks {
    /// Everything: the directory itself.
    pub(super) fn all() -> Self {
        Self { paths: BTreeSet::from([Look(String::new())]), ..Self::default() }
    }

    /// None, of at most so many.
    #[cfg(test)]
    pub(super) fn at_most(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Whether everything is looked at.
    pub(super) fn are_all(&self) -> bool {
        self.paths.first().is_some_and(|look| look.0.is_empty())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.paths.len()
    }

    /// The paths, in the order of a walk.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(|look| look.0.as_str())
    }

    /// Whether this path is looked at: it is one of these, or below one.
    pub(super) fn contain(&self, path: &str) -> bool {
        self.cover(&Look(path.to_owned()))
    }

    /// The one before is the path itself, or a folder above it, if there is any: between a folder and what is below it
    /// there is nothing else.
    fn cover(&self, look: &Look) -> bool {
        let before = self.paths.range::<Look, _>((Bound::Unbounded, Bound::Included(look))).next_back();
        self.are_all() || before.is_some_and(|before| is_at_or_below(&look.0, &before.0))
    }

    /// Adds a path. Returns whether there are too many now, so that everything is looked at instead.
    pub(super) fn insert(&mut self, path: &str) -> bool {
        let look = Look(path.to_owned());
        if self.cover(&look) {
            return false;
        }
        if path.is_empty() {
            *self = Self { most: self.most, ..Self::all() };
            return false;
        }
        let behind = self.paths.range::<Look, _>((Bound::Excluded(&look), Bound::Unbounded));
        let below: Vec<Look> = behind.take_while(|other| is_at_or_below(&other.0, path)).cloned().collect();
        for other in below {
            self.paths.remove(&other);
        }
        self.paths.insert(look);
        let are_too_many = self.paths.len() > self.most;
        if are_too_many {
            *self = Self { most: self.most, ..Self::all() };
        }
        are_too_many
    }

    /// Adds all paths of others.
    pub(super) fn join(&mut self, others: &Self) {
        for path in others.iter() {
            self.insert(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(paths: &[&str]) -> Looks {
        let mut looks = Looks::default();
        for path in paths {
            looks.insert(path);
        }
        looks
    }

    #[test]
    fn a_path_stands_for_all_below_it() {
        let looks = of(&["a/b/c", "a/b", "a/b/d", "a.txt", "a-", "a/b.c", "b/x"]);
        assert_eq!(looks.iter().collect::<Vec<_>>(), ["a/b", "a/b.c", "a-", "a.txt", "b/x"]);
        assert!(looks.contain("a/b/c/d") && !looks.contain("a") && !looks.contain("a/b.cc"));
        let looks = of(&["a/b", "", "c"]);
        assert!(looks.are_all() && looks.len() == 1 && looks.contain("x"));
        assert!(Looks::default().is_empty() && !Looks::default().are_all());
    }

    #[test]
    fn with_too_many_of_them_everything_is_looked_at() {
        let mut looks = Looks::at_most(2);
        assert!(!looks.insert("a/1") && !looks.insert("a/2") && !looks.insert("a/2"));
        assert!(!looks.clone().insert("a"), "one stands for two");
        assert!(looks.insert("b"));
        assert!(looks.are_all() && !looks.insert("c"));
    }

    proptest! {
        #[test]
        fn all_paths_are_covered_and_none_by_two(
            paths in prop::collection::vec("[ab.]{1,2}(/[ab.]{1,2}){0,3}", 0..30),
        ) {
            let mut looks = Looks::default();
            for path in &paths {
                looks.insert(path);
            }
            prop_assert!(paths.iter().all(|path| looks.contain(path)));
            let kept: Vec<&str> = looks.iter().collect();
            prop_assert!(kept.iter().all(|path| paths.iter().any(|one| one == path)));
            prop_assert!(kept.is_sorted_by(|one, other| order(one, other).is_lt()));
            prop_assert!(kept.windows(2).all(|two| !is_at_or_below(two[1], two[0])));
        }
    }
}
