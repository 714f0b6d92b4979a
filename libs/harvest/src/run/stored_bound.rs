//! Bound on stored resources: answers from memory which cannot be stored, so that they need no lookup.

use fastbloom::BloomFilter;
use foldhash::quality::RandomState;
use model::ResourceUri;

/// How often a filter takes a resource for a stored one that is not. That costs a lookup.
const MISTAKEN: f64 = 0.01;
/// How many resources each filter takes, 1.2 bytes for each. All together have 23 MB.
const SIZES: [usize; 5] = [4_096, 32_768, 262_144, 2_097_152, 16_777_216];

/// Which resources may be stored. A first harvest stores millions, and would look up each of them before.
#[derive(Debug)]
pub(crate) enum StoredBound {
    /// Any: some were stored when the run began, or more came since than the filters take.
    Anything,
    /// Those that this run has stored, and a few more.
    OfThisRun(Filters),
}

/// Filters of growing size; the last one is filled.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    all: Vec<BloomFilter<RandomState>>,
    /// Resources in the last one.
    in_last: usize,
}

impl StoredBound {
    /// The bound at the start of a run.
    pub(crate) fn after(is_anything_stored: bool) -> Self {
        if is_anything_stored { Self::Anything } else { Self::OfThisRun(Filters::default()) }
    }

    /// Whether no resource is stored.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::OfThisRun(filters) if filters.all.is_empty())
    }

    /// Whether a resource may be stored.
    pub(crate) fn holds(&self, uri: &ResourceUri) -> bool {
        match self {
            Self::Anything => true,
            Self::OfThisRun(filters) => filters.all.iter().any(|filter| filter.contains(uri.as_str())),
        }
    }

    /// Extends the bound to a resource that is stored now.
    pub(crate) fn note(&mut self, uri: &str) {
        let Self::OfThisRun(filters) = self else { return };
        if !filters.add(uri) {
            *self = Self::Anything;
        }
    }
}

impl Filters {
    /// Adds a resource. Returns false if there is no room.
    fn add(&mut self, uri: &str) -> bool {
        let filled = self.all.len();
        if filled == 0 || self.in_last >= SIZES[filled - 1] {
            let Some(size) = SIZES.get(filled) else { return false };
            let filter = BloomFilter::with_false_pos(MISTAKEN).hasher(RandomState::default());
            self.all.push(filter.expected_items(*size));
            self.in_last = 0;
        }
        if let Some(last) = self.all.last_mut() {
            last.insert(uri);
            self.in_last += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(number: usize) -> ResourceUri {
        format!("http://h/{number}").parse().unwrap()
    }

    #[test]
    fn what_the_run_stored_is_held_and_few_others() {
        let mut bound = StoredBound::after(false);
        assert!(bound.is_nothing());
        assert!(!bound.holds(&uri(0)));
        (0..50_000).for_each(|number| bound.note(uri(number).as_str()));
        assert!(!bound.is_nothing());
        assert!((0..50_000).all(|number| bound.holds(&uri(number))));
        let mistaken = (50_000..100_000).filter(|number| bound.holds(&uri(*number))).count();
        assert!(mistaken < 2_500, "{mistaken} of 50,000");
    }

    #[test]
    fn of_what_was_stored_before_the_run_nothing_is_known() {
        let mut bound = StoredBound::after(true);
        assert!(bound.holds(&uri(1)));
        bound.note(uri(1).as_str());
        assert!(!bound.is_nothing());
        assert!(bound.holds(&uri(2)));
    }

    #[test]
    fn where_more_came_than_the_filters_take_any_may_be_stored() {
        let mut full = Filters::default();
        for size in SIZES {
            full.all.push(BloomFilter::with_num_bits(64).hasher(RandomState::default()).hashes(1));
            full.in_last = size;
        }
        let mut bound = StoredBound::OfThisRun(full);
        bound.note(uri(1).as_str());
        assert!(matches!(bound, StoredBound::Anything));
    }
}
