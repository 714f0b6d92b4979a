//! Collections that resources belong to, and how many belong to each (ResourceSync 1.1, section 14.7).

use std::collections::{BTreeSet, HashMap};

use resourcesync::{Link, relation};

use crate::card::Collection;
use crate::shown;

/// The most collections that are counted: a Source may have one for each resource.
const COUNTED: usize = 2_000;
/// The most collections that are shown.
const SHOWN: usize = 50;

/// Resources by collection. Collections beyond the limit are not counted.
#[derive(Debug, Default)]
pub(crate) struct Collections(HashMap<String, u64>);

impl Collections {
    /// Counts a resource with these links in each of its collections.
    pub(crate) fn count(&mut self, links: &[Link]) {
        let links = links.iter().filter(|link| link.rel == relation::COLLECTION);
        let uris: BTreeSet<&str> = links.map(|link| link.href.as_str()).collect();
        for uri in uris {
            let is_full = self.0.len() >= COUNTED;
            match self.0.get_mut(uri) {
                Some(resources) => *resources += 1,
                None if is_full => {}
                None => drop(self.0.insert(uri.to_owned(), 1)),
            }
        }
    }

    /// The largest ones.
    pub(crate) fn largest(&self) -> Vec<Collection> {
        let all = self.0.iter().map(|(uri, resources)| (std::cmp::Reverse(*resources), uri));
        let mut all: Vec<_> = all.collect();
        all.sort_unstable();
        all.truncate(SHOWN);
        let shown = all
            .into_iter()
            .map(|(resources, uri)| Collection { uri: shown::uri(uri), resources: resources.0 });
        shown.collect()
    }

    /// How many counted ones are not among the largest.
    pub(crate) fn left_out(&self) -> u64 {
        self.0.len().saturating_sub(SHOWN) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(uris: &[&str]) -> Vec<Link> {
        uris.iter().map(|uri| Link::new(relation::COLLECTION, *uri)).collect()
    }

    #[test]
    fn a_resource_counts_once_in_each_of_its_collections() {
        let mut collections = Collections::default();
        collections.count(&of(&["http://h/2", "http://h/1", "http://h/2"]));
        collections.count(&of(&["http://h/2"]));
        collections.count(&[Link::new(relation::VIA, "http://h/3")]);
        let found: Vec<_> = collections.largest().into_iter().map(|one| (one.uri, one.resources)).collect();
        assert_eq!(found, [("http://h/2".to_owned(), 2), ("http://h/1".to_owned(), 1)]);
        assert_eq!(collections.left_out(), 0);
    }

    #[test]
    fn any_number_of_collections_is_bounded() {
        let mut collections = Collections::default();
        for n in 0..2 * COUNTED {
            collections.count(&of(&[&format!("http://h/{n}"), "http://h/0"]));
        }
        let largest = collections.largest();
        assert_eq!((collections.0.len(), largest.len()), (COUNTED, SHOWN));
        assert_eq!((largest[0].uri.as_str(), largest[0].resources), ("http://h/0", 2 * COUNTED as u64));
        assert_eq!(collections.left_out(), (COUNTED - SHOWN) as u64);
    }
}
