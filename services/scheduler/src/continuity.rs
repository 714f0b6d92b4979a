//! Whether a set's change documents tell every change since the moment up to which it is synchronized. Pure.
//!
//! A document with `from` tells all changes from there on: up to its `until` when it is closed, up to the moment of reading
//! while it is open (RS-5). Documents may overlap and stand in any order; only a time that **no** document tells of is a hole.
//! Two join on when the later one's `from` lies no later than the end of the second, or minute, that the earlier one's
//! `until` names; times without zone order nothing.
//!
//! A document **without `from`** does not say where it begins, so nothing can be missing before it for certain, and it proves
//! nothing either: it moves the set on only where its oldest change reaches back to what is synchronized (or where
//! nothing was synchronized yet, so that there is nothing to join on to). One thing is certain, though: when it told of a
//! change before and now begins with later ones, changes fell off its end, maybe some that were never seen. That is a hole
//! up to its oldest change.

use jiff::{SignedDuration, Timestamp};
use model::{DocumentRecord, DocumentState, RunId};
use resourcesync::Capability;

use crate::ways;

/// A time of which no document tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hole {
    /// Up to here all changes are known.
    pub(crate) after: Timestamp,
    /// From here on they are told again.
    pub(crate) before: Timestamp,
}

/// What the change documents of a set prove.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// Up to here no change is missing.
    pub(crate) reached: Option<Timestamp>,
    /// In the order of time.
    pub(crate) holes: Vec<Hole>,
}

/// Follows the change documents of a set from `reached` on. `documents` are all that are known of the set; those count that
/// were read by `run`, and closed ones that were read whole before.
pub(crate) fn follow<'a>(
    reached: Option<Timestamp>,
    run: RunId,
    documents: impl Iterator<Item = &'a DocumentRecord>,
) -> Coverage {
    let is_read = |record: &&DocumentRecord| record.run == run || is_closed(record);
    let mut changes: Vec<&DocumentRecord> = documents
        .filter(|record| ways::is_changes(&record.capability) && !record.leads_to_documents())
        // The packages of a dump that could not be read tell nothing; whatever tells the same counts by itself.
        .filter(|record| record.capability != Capability::ChangeDump || record.is_read_whole())
        .filter(is_read)
        .collect();
    changes.sort_by_key(|record| (record.from, record.oldest_change));
    let (dated, undated): (Vec<_>, Vec<_>) = changes.into_iter().partition(|record| record.from.is_some());

    let mut coverage = Coverage { reached, holes: Vec::new() };
    for record in undated.iter().filter(|record| record.is_read_whole()) {
        if let (Some(after), Some(before)) = (reached, record.unseen_before)
            && before > after
        {
            coverage.holes.push(Hole { after, before });
        }
    }
    // Up to here it is told, though perhaps behind a hole; and whether some document tells everything from there on.
    let (mut told, mut is_open) = (reached, false);
    let mut is_known = true;
    for record in &dated {
        let Some(from) = record.from else { continue };
        if let Some(after) = told
            && !is_open
            && is_later(from, after)
        {
            coverage.holes.push(Hole { after, before: from });
        }
        // What a document that could not be read tells is not known, so neither is that anything is missing behind it.
        is_known &= record.is_read_whole();
        is_open |= record.until.is_none() || !is_known;
        told = told.max(Some(from)).max(end(record));
        if coverage.holes.is_empty() && is_known {
            coverage.reached = told;
        }
    }
    if coverage.holes.is_empty() {
        for record in undated.iter().filter(|record| record.is_read_whole()) {
            let reaches_back = match (coverage.reached, record.oldest_change) {
                (None, _) => true,
                (Some(reached), Some(oldest)) => oldest <= reached,
                (Some(_), None) => false,
            };
            if reaches_back {
                coverage.reached = coverage.reached.max(end(record));
            }
        }
    }
    coverage.holes.sort_by_key(|hole| hole.before);
    coverage
}

/// Whether a document was closed, and read whole: what it tells will always be known.
fn is_closed(record: &DocumentRecord) -> bool {
    record.state == DocumentState::Done && record.until.is_some()
}

/// How far a document tells for certain: to the end of what its `until` names, or to its latest change.
fn end(record: &DocumentRecord) -> Option<Timestamp> {
    record.until_latest.max(record.until).max(record.latest_change)
}

/// Whether there is a time between the two, at the precision that they have: what begins with the second after the last
/// one joins on to it.
fn is_later(from: Timestamp, told: Timestamp) -> bool {
    told.checked_add(SignedDuration::from_nanos(1)).is_ok_and(|next| from > next)
}

#[cfg(test)]
mod tests;
