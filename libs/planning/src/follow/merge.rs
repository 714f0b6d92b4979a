//! Entries of links, beside each other and beside what is known of their targets.

use std::collections::{HashMap, HashSet};

use model::{Action, Declaration, Linked, Listing, PendingRecord, ResourceUri};
use resourcesync::Change;

use super::BesideTarget;
use crate::decide::CurrentState;
use crate::entry::ListedEntry;

/// Entries after the merge of links.
#[derive(Debug)]
pub struct Merged {
    /// The entries, in their order.
    pub entries: Vec<ListedEntry>,
    /// How many are left out.
    pub left_out: u64,
    /// How many of these declare another digest or length of their target than the target's own entry.
    pub contradicting: u64,
}

/// Merges the entries of links to one target, and drops those whose target a list names, or whose resource is deleted
/// later.
pub fn merge_links(entries: Vec<ListedEntry>) -> Merged {
    if entries.iter().all(|entry| entry.listing.linked.is_none()) {
        return Merged { entries, left_out: 0, contradicting: 0 };
    }
    let contradicting = contradicting(&entries);
    let mut named = HashSet::new();
    let mut deleted = HashMap::new();
    for entry in entries.iter().filter(|entry| entry.listing.linked.is_none()) {
        if entry.listing.change == Some(Change::Deleted) {
            deleted.insert(entry.uri.clone(), entry.listing.as_of);
        } else {
            named.insert(entry.uri.clone());
        }
    }
    let mut left_out = 0;
    let mut merged: Vec<Option<ListedEntry>> = Vec::with_capacity(entries.len());
    let mut places: HashMap<ResourceUri, usize> = HashMap::new();
    for mut entry in entries {
        let Some(linked) = entry.listing.linked.take() else {
            merged.push(Some(entry));
            continue;
        };
        let is_ended = entry.listing.change.is_some()
            && deleted.get(&linked.from).is_some_and(|as_of| entry.listing.as_of <= *as_of);
        if is_ended || named.contains(&entry.uri) {
            left_out += 1;
            continue;
        }
        let before = places.get(&entry.uri).copied();
        if let Some(earlier) = before.and_then(|place| merged.get_mut(place)).and_then(Option::as_mut) {
            left_out += 1;
            if entry.listing.change.is_none() {
                // Lists name no order, so the first link counts.
                let first = earlier.listing.linked.take();
                earlier.listing.linked = first.map(|first| Box::new(first.beside(Some(&linked))));
                continue;
            }
        }
        let earlier = before.and_then(|place| merged[place].take());
        let linked = linked.beside(earlier.as_ref().and_then(|earlier| earlier.listing.linked.as_deref()));
        entry.listing.linked = Some(Box::new(linked));
        places.insert(entry.uri.clone(), merged.len());
        merged.push(Some(entry));
    }
    Merged { entries: merged.into_iter().flatten().collect(), left_out, contradicting }
}

/// How many of the links contradict an entry of their target in a list. The entry counts.
fn contradicting(entries: &[ListedEntry]) -> u64 {
    let (links, own): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.listing.linked.is_some());
    let mut of_targets: HashMap<&ResourceUri, Vec<&Declaration>> = HashMap::new();
    for link in links {
        of_targets.entry(&link.uri).or_default().push(&link.declaration);
    }
    let own = own.into_iter().filter(|entry| entry.listing.change != Some(Change::Deleted));
    let targets = own.filter_map(|entry| Some((of_targets.remove(&entry.uri)?, &entry.declaration)));
    targets.map(|(links, own)| links.into_iter().filter(|link| contradicts(link, own)).count() as u64).sum()
}

/// Whether a link declares another length, or another digest of the same algorithm, than the target's own entry.
fn contradicts(link: &Declaration, own: &Declaration) -> bool {
    let is_other_digest = link.digests.iter().any(|linked| {
        let mut of_same = own.digests.iter().filter(|own| own.algorithm() == linked.algorithm()).peekable();
        of_same.peek().is_some() && !of_same.any(|own| own == linked)
    });
    is_other_digest || link.length.zip(own.length).is_some_and(|(linked, own)| linked != own)
}

/// Lays the entry of a link beside what is known of its target.
pub fn beside_target(mut entry: ListedEntry, known: CurrentState<'_>) -> BesideTarget {
    let Some(linked) = entry.listing.linked.take() else { return BesideTarget::Open(Box::new(entry)) };
    let held = known.record.filter(|record| record.is_present());
    let is_list = entry.listing.change.is_none();
    // A list that omits it was seen. Another list that links to it makes it linked.
    let is_listed =
        held.is_some_and(|held| held.listing.linked.is_none() && !(is_list && held.absent.is_some()));
    let fetch = known.pending.filter(|pending| matches!(pending.action, Action::Fetch { .. }));
    if is_listed || fetch.is_some_and(|pending| pending.listing.linked.is_none()) {
        let own = fetch.map(|pending| &pending.declaration).or(held.map(|held| &held.declaration));
        let contradicts = own.is_some_and(|own| contradicts(&entry.declaration, own));
        return BesideTarget::Listed { contradicts };
    }
    let first = fetch.and_then(|pending| pending.listing.linked.as_deref());
    let linked = linked.beside(held.and_then(|held| held.listing.linked.as_deref())).beside(first);
    if let Some((pending, first)) = fetch.zip(first)
        && is_list
        && is_of_edition(pending, &entry.listing)
    {
        return BesideTarget::Planned(Box::new(Linked { shared: linked.shared, ..first.clone() }));
    }
    entry.listing.linked = Some(Box::new(linked));
    BesideTarget::Open(Box::new(entry))
}

/// Whether a plan came from the same edition of a list.
fn is_of_edition(pending: &PendingRecord, listing: &Listing) -> bool {
    pending.listing.change.is_none()
        && pending.listing.as_of == listing.as_of
        && pending.listing.set == listing.set
        && pending.attempts == 0
}
