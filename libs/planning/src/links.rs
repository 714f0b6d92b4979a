//! Which links a stored resource has, and which link leads to it, when another entry lists the stored version. Pure.

use model::{Links, Listing, ResourceRecord};
use resourcesync::Change;

/// The listing of a stored resource, if an entry about the stored version changes its links; none if it does not.
///
/// An entry of a list replaces the links. A change without any leaves them: silence removes nothing. Where several sets
/// list a resource, the links are those of the set whose entry settled the stored version, as long as it lists it.
/// Otherwise two sets that disagree would replace each other's links in every run.
pub fn relinked(record: &ResourceRecord, entry: &Listing) -> Option<Listing> {
    let held = &record.listing;
    if entry.linked != held.linked {
        return remarked(record, entry);
    }
    let is_silent = entry.links.is_none() && entry.change.is_some();
    let is_deleted = !record.is_present() || entry.change == Some(Change::Deleted);
    if is_deleted || is_silent || are_same(entry.links.as_ref(), held.links.as_ref()) {
        return None;
    }
    let is_of_owner = entry.set == held.set || !record.sets.contains(&held.set);
    if !is_of_owner {
        return None;
    }
    // An entry of a known time is now the newest that is applied; without a time, only its links are taken.
    if entry.as_of.is_some() && entry.as_of >= held.as_of {
        return Some(entry.clone());
    }
    Some(held.with_links_of(entry))
}

fn are_same(one: Option<&Links>, other: Option<&Links>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.are(other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// The listing of a stored resource, if an entry about the stored version changes which link leads to it. An entry of a
/// list ends the mark: a resource that is listed is not linked only.
fn remarked(record: &ResourceRecord, entry: &Listing) -> Option<Listing> {
    let held = &record.listing;
    if !record.is_present() || entry.change == Some(Change::Deleted) {
        return None;
    }
    let is_later = entry.as_of.is_some() && entry.as_of >= held.as_of;
    Some(match &entry.linked {
        // A change of another resource that links to it too: the first one stays.
        Some(linked)
            if entry.change.is_some()
                && held.linked.as_ref().is_some_and(|held| held.from != linked.from) =>
        {
            let linked = held.linked.clone().map(|first| Box::new(first.beside(Some(linked))));
            if linked == held.linked {
                return None;
            }
            Listing { linked, ..held.clone() }
        }
        _ if is_later => entry.clone(),
        linked => Listing { linked: linked.clone(), ..held.with_links_of(entry) },
    })
}

#[cfg(test)]
mod tests {
    use fixity::Computed;
    use jiff::Timestamp;
    use model::{Assurance, Bitstream, Declaration, Location, SetId, Validators};
    use resourcesync::Link;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    fn links(href: &str) -> Option<Links> {
        Links::of(&[Link::new("describedby", href)])
    }

    fn listing(set: &str, change: Option<Change>, as_of: Option<i64>, links: Option<Links>) -> Listing {
        let as_of = as_of.map(at);
        let document = format!("{set}/list").into();
        Listing {
            document,
            set: SetId::new(set),
            change,
            change_time: None,
            as_of,
            latest: None,
            links,
            linked: None,
        }
    }

    fn held(listing: Listing, sets: &[&str]) -> ResourceRecord {
        let computed = Computed::of(b"x");
        ResourceRecord {
            bitstream: Some(Bitstream {
                location: Location::Object { sha256: computed.sha256() },
                computed,
                assurance: Assurance::Digest,
                media_type: None,
                encoding: None,
                validators: Validators::default(),
                final_url: None,
                stored_at: at(0),
            }),
            declaration: Declaration::default(),
            listing,
            sets: sets.iter().map(|set| SetId::new(*set)).collect(),
            deleted: None,
            collected: None,
            absent: None,
            settled_at: at(0),
        }
    }

    #[test]
    fn an_entry_of_a_list_replaces_the_links() {
        let record = held(listing("a", None, Some(1), links("x")), &["a"]);
        let next = listing("a", None, Some(2), links("y"));
        assert_eq!(relinked(&record, &next), Some(next));
        let without = listing("a", None, Some(2), None);
        assert_eq!(relinked(&record, &without), Some(without));
        assert_eq!(relinked(&record, &listing("a", None, Some(2), links("x"))), None, "they are the same");
    }

    #[test]
    fn a_change_without_links_leaves_them() {
        let record = held(listing("a", None, Some(1), links("x")), &["a"]);
        assert_eq!(relinked(&record, &listing("a", Some(Change::Updated), Some(2), None)), None);
        let linked = listing("a", Some(Change::Updated), Some(2), links("y"));
        assert_eq!(relinked(&record, &linked), Some(linked));
        assert_eq!(relinked(&record, &listing("a", Some(Change::Deleted), Some(2), links("y"))), None);
    }

    #[test]
    fn sets_that_disagree_do_not_replace_each_others_links() {
        let record = held(listing("a", None, Some(1), links("x")), &["a", "b"]);
        let of_another = listing("b", None, Some(2), links("y"));
        assert_eq!(relinked(&record, &of_another), None);
        assert_eq!(relinked(&record, &listing("b", None, Some(2), None)), None);
        let left = held(listing("a", None, Some(1), links("x")), &["b"]);
        assert_eq!(relinked(&left, &of_another), Some(of_another), "the first set does not list it any more");
    }

    #[test]
    fn an_entry_without_a_time_gives_its_links_and_nothing_else() {
        let record = held(listing("a", Some(Change::Created), Some(5), links("x")), &["a"]);
        let found = relinked(&record, &listing("a", None, None, links("y"))).unwrap();
        assert_eq!(found, Listing { links: links("y"), ..record.listing });
    }

    #[test]
    fn links_of_another_document_name_it_and_are_given_once() {
        let mut record = held(listing("a", Some(Change::Created), Some(5), links("x")), &["a"]);
        let list = Listing { document: "a/other".into(), ..listing("a", None, None, links("y")) };
        let found = relinked(&record, &list).unwrap();
        let shown = found.shown_links().unwrap().to_vec();
        assert_eq!((shown[0].href.as_str(), shown[0].other["document"].as_str()), ("y", "a/other"));
        record.listing = found;
        assert_eq!(relinked(&record, &list), None, "they are the same, whichever document gave them");
    }

    #[test]
    fn a_tombstone_has_no_links_to_replace() {
        let record = held(listing("a", None, Some(1), links("x")), &["a"]);
        let gone = ResourceRecord { bitstream: None, ..record };
        assert_eq!(relinked(&gone, &listing("a", None, Some(2), links("y"))), None);
    }
}
