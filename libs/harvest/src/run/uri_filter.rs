//! A set of URIs in a few bytes each: it may hold others too, but forgets none.

use fastbloom::BloomFilter;
use foldhash::quality::RandomState;

/// Filters of growing size; the last one is filled. So a small run takes little memory.
#[derive(Debug)]
pub(crate) struct UriFilter {
    sizes: &'static [usize],
    mistaken: f64,
    all: Vec<BloomFilter<RandomState>>,
    /// URIs in the last one.
    in_last: usize,
}

impl UriFilter {
    /// An empty set. Each filter takes so many URIs, and holds an unknown one with this probability.
    pub(crate) fn new(sizes: &'static [usize], mistaken: f64) -> Self {
        Self { sizes, mistaken, all: Vec::new(), in_last: 0 }
    }

    /// Whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether a URI may have been added.
    pub(crate) fn holds(&self, uri: &str) -> bool {
        self.all.iter().any(|filter| filter.contains(uri))
    }

    /// Adds a URI. Returns false if there is no room.
    pub(crate) fn add(&mut self, uri: &str) -> bool {
        let filled = self.all.len();
        if filled == 0 || self.in_last >= self.sizes[filled - 1] {
            let Some(size) = self.sizes.get(filled) else { return false };
            let filter = BloomFilter::with_false_pos(self.mistaken).hasher(RandomState::default());
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

    #[test]
    fn what_was_added_is_held_and_few_others_until_there_is_no_room() {
        let mut filter = UriFilter::new(&[10, 1_000], 0.01);
        assert!(filter.is_empty());
        assert!(!filter.holds("0"));
        assert!((0..1_010).all(|number| filter.add(&number.to_string())));
        assert!(!filter.is_empty());
        assert!((0..1_010).all(|number| filter.holds(&number.to_string())));
        let mistaken = (10_000..20_000).filter(|number| filter.holds(&number.to_string())).count();
        assert!(mistaken < 1_000, "{mistaken} of 10,000");
        assert!(!filter.add("1010"));
    }
}
