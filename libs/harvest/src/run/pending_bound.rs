//! Bound on pending records: answers from memory whether a resource may have one.

use model::ResourceUri;

use super::uri_filter::UriFilter;

/// How often a filter takes a resource for a planned one that is not. One lookup makes all others of its batch wait for
/// the commits before it, so it is to be rare.
const MISTAKEN: f64 = 0.000_01;
/// How many resources each filter takes, 3 bytes for each. All together have 7 MB.
const SIZES: &[usize] = &[4_096, 32_768, 262_144, 2_097_152];

/// For which resources pending records may exist. Those that this run did not plan need no lookup.
#[derive(Debug)]
pub(crate) enum PendingBound {
    /// For none.
    Nowhere,
    /// For those that this run planned, and few others.
    OfThisRun(Planned),
    /// For any: an earlier process planned.
    Anywhere,
}

/// What was planned since no record was pending.
#[derive(Debug)]
pub(crate) struct Planned {
    /// The last URI, by bytes. Lists in this order need no filter, however long they are.
    last: String,
    /// Those in any other order. None where more came than it takes.
    filter: Option<UriFilter>,
}

impl PendingBound {
    /// The bound at the start of a run. The plans of an earlier process are unknown.
    pub(crate) fn after(is_interrupted: bool) -> Self {
        if is_interrupted { Self::Anywhere } else { Self::Nowhere }
    }

    /// Whether any pending record may exist.
    pub(crate) fn is_anything_planned(&self) -> bool {
        !matches!(self, Self::Nowhere)
    }

    /// Whether a resource may have a pending record.
    pub(crate) fn holds(&self, uri: &ResourceUri) -> bool {
        match self {
            Self::Nowhere => false,
            Self::OfThisRun(planned) => planned.may_hold(uri.as_str()),
            Self::Anywhere => true,
        }
    }

    /// Extends the bound to a planned resource.
    pub(crate) fn note(&mut self, uri: &ResourceUri) {
        match self {
            Self::Nowhere => *self = Self::OfThisRun(Planned::first(uri.as_str())),
            Self::OfThisRun(planned) => planned.add(uri.as_str()),
            Self::Anywhere => {}
        }
    }
}

impl Planned {
    fn first(uri: &str) -> Self {
        let mut planned = Self { last: String::new(), filter: Some(UriFilter::new(SIZES, MISTAKEN)) };
        planned.add(uri);
        planned
    }

    fn may_hold(&self, uri: &str) -> bool {
        uri <= self.last.as_str() && self.filter.as_ref().is_none_or(|filter| filter.holds(uri))
    }

    fn add(&mut self, uri: &str) {
        if uri > self.last.as_str() {
            // Reuses the allocation: entries of a sorted list need no new one.
            self.last.clear();
            self.last.push_str(uri);
        }
        if self.filter.as_mut().is_some_and(|filter| !filter.add(uri)) {
            self.filter = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(name: &str) -> ResourceUri {
        format!("http://h/{name}").parse().unwrap()
    }

    fn noted(names: &[&str]) -> PendingBound {
        let mut bound = PendingBound::Nowhere;
        names.iter().for_each(|name| bound.note(&uri(name)));
        bound
    }

    #[test]
    fn before_anything_is_planned_nothing_is() {
        assert!(!noted(&[]).is_anything_planned());
        assert!(!noted(&[]).holds(&uri("a")));
    }

    #[test]
    fn what_was_planned_is_held_in_whatever_order_it_was() {
        for names in [&["a", "c", "e"], &["e", "a", "c"]] {
            let bound = noted(names);
            assert!(bound.is_anything_planned());
            let held = ["a", "b", "c", "e", "e/"].map(|name| bound.holds(&uri(name)));
            assert_eq!(held, [true, false, true, true, false], "{names:?}");
        }
    }

    #[test]
    fn numbers_without_padding_need_no_lookup_though_bytes_order_them_otherwise() {
        let mut bound = PendingBound::Nowhere;
        let mut mistaken = 0;
        for number in 1..100_000 {
            let uri = uri(&number.to_string());
            mistaken += u32::from(bound.holds(&uri));
            bound.note(&uri);
            assert!(bound.holds(&uri));
        }
        assert!(mistaken < 50, "{mistaken} of 100,000");
    }

    #[test]
    fn where_more_came_than_the_filter_takes_the_order_tells() {
        let filter = Some(UriFilter::new(&[1], MISTAKEN));
        let mut bound = PendingBound::OfThisRun(Planned { last: String::new(), filter });
        ["a", "c"].iter().for_each(|name| bound.note(&uri(name)));
        let held = ["a", "b", "c", "d"].map(|name| bound.holds(&uri(name)));
        assert_eq!(held, [true, true, true, false]);
    }

    #[test]
    fn of_what_an_earlier_process_planned_nothing_is_known() {
        let mut bound = PendingBound::after(true);
        bound.note(&uri("a"));
        assert!(bound.is_anything_planned());
        assert!(bound.holds(&uri("z")));
        assert!(!PendingBound::after(false).is_anything_planned());
    }
}
