//! The sets that a record's header names, as links of its entry: the record is in the collection that a list of the set
//! is (ResourceSync 1.1, section 14.6). So they are stored, compared, shown and exported as all links are.

use std::borrow::Borrow;

use oaipmh::{BaseUrl, Granularity, Item, Request, Selection};
use resourcesync::{Limits, Link, relation};

/// The links of a record that is in these sets, and whether all of them are there: as many bytes of links are kept as of
/// an entry of a list.
pub(super) fn links(base: &BaseUrl, prefix: &str, sets: &[String]) -> (Vec<Link>, bool) {
    let most = Limits::default().max_link_bytes;
    let mut links = Vec::with_capacity(sets.len());
    let mut bytes = 0;
    for set in sets {
        let link = link(base, prefix, Some(set));
        bytes += link.href.len();
        if bytes > most {
            return (links, false);
        }
        links.push(link);
    }
    (links, true)
}

/// The link of a record that is in no set any more. Silence would leave its earlier links.
pub(super) fn of_none(base: &BaseUrl, prefix: &str) -> Link {
    link(base, prefix, None)
}

/// The items of a list of a set, without live records that their headers say are of other sets, and how many those are.
/// Where no header names the set, all stay: some repositories list sets that no header names.
pub(super) fn of_set<T: Borrow<Item>>(items: Vec<T>, set: &str) -> (Vec<T>, u64) {
    let is_of =
        |spec: &String| spec == set || spec.strip_prefix(set).is_some_and(|rest| rest.starts_with(':'));
    fn sets(item: &Item) -> Option<&Vec<String>> {
        match item {
            Item::Record(record) if !record.header.is_deleted() => Some(&record.header.sets),
            Item::Header(header) if !header.is_deleted() => Some(&header.sets),
            _ => None,
        }
    }
    if !items.iter().filter_map(|item| sets(item.borrow())).any(|sets| sets.iter().any(is_of)) {
        return (items, 0);
    }
    let before = items.len();
    let is_other = |item: &Item| sets(item).is_some_and(|sets| !sets.is_empty() && !sets.iter().any(is_of));
    let items: Vec<T> = items.into_iter().filter(|item| !is_other(item.borrow())).collect();
    let others = (before - items.len()) as u64;
    (items, others)
}

/// The link to the list of a set, or of all records.
fn link(base: &BaseUrl, prefix: &str, set: Option<&String>) -> Link {
    let selection = Selection { set: set.cloned(), ..Selection::all(prefix) };
    Link::new(relation::COLLECTION, Request::list_records(selection, Granularity::Day).url(base))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> BaseUrl {
        BaseUrl::new("https://e.org/oai".parse().unwrap()).unwrap()
    }

    #[test]
    fn a_set_is_the_collection_of_its_list() {
        let (links, is_all) = links(&base(), "oai_dc", &["a:b".to_owned(), "c".to_owned()]);
        let hrefs: Vec<&str> = links.iter().map(|link| link.href.as_str()).collect();
        assert_eq!(
            hrefs,
            [
                "https://e.org/oai?verb=ListRecords&metadataPrefix=oai_dc&set=a%3Ab",
                "https://e.org/oai?verb=ListRecords&metadataPrefix=oai_dc&set=c"
            ]
        );
        assert!(is_all && links.iter().all(|link| link.rel == "collection"));
    }

    #[test]
    fn more_sets_than_fit_are_left_out() {
        let sets: Vec<String> = (0..1_000).map(|n| format!("set-{n}")).collect();
        let (links, is_all) = links(&base(), "oai_dc", &sets);
        assert!(!is_all && !links.is_empty() && links.len() < 100, "{}", links.len());
    }
}
