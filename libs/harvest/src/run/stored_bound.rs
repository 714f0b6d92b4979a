//! Bound on stored resources: answers from memory which cannot be stored, so that they need no lookup.

use model::ResourceUri;

use super::uri_filter::UriFilter;

/// How often a filter takes a resource for a stored one that is not. That costs a lookup.
const MISTAKEN: f64 = 0.01;
/// How many resources each filter takes, 1.2 bytes for each. All together have 23 MB.
const SIZES: &[usize] = &[4_096, 32_768, 262_144, 2_097_152, 16_777_216];

/// Which resources may be stored. A first harvest stores millions, and would look up each of them before.
#[derive(Debug)]
pub(crate) enum StoredBound {
    /// Any: some were stored when the run began, or more came since than the filter takes.
    Anything,
    /// Those that this run has stored, and a few more.
    OfThisRun(UriFilter),
}

impl StoredBound {
    /// The bound at the start of a run.
    pub(crate) fn after(is_anything_stored: bool) -> Self {
        if is_anything_stored { Self::Anything } else { Self::OfThisRun(UriFilter::new(SIZES, MISTAKEN)) }
    }

    /// Whether no resource is stored.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::OfThisRun(filter) if filter.is_empty())
    }

    /// Whether a resource may be stored.
    pub(crate) fn holds(&self, uri: &ResourceUri) -> bool {
        match self {
            Self::Anything => true,
            Self::OfThisRun(filter) => filter.holds(uri.as_str()),
        }
    }

    /// Extends the bound to a resource that is stored now.
    pub(crate) fn note(&mut self, uri: &str) {
        let Self::OfThisRun(filter) = self else { return };
        if !filter.add(uri) {
            *self = Self::Anything;
        }
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
    fn where_more_came_than_the_filter_takes_any_may_be_stored() {
        let mut bound = StoredBound::OfThisRun(UriFilter::new(&[1], MISTAKEN));
        bound.note(uri(1).as_str());
        assert!(!bound.holds(&uri(2)));
        bound.note(uri(2).as_str());
        assert!(matches!(bound, StoredBound::Anything));
    }
}
