//! Whether a set's change documents cover every change since the time up to which the set is synchronized. Pure.
//!
//! A document with `from` covers all changes from there on: up to `until` if it is closed, up to the time of reading
//! if it is open (RS-5). Documents may overlap and come in any order. Only a time that **no** document covers is a
//! gap. Two documents join if the later `from` is no later than the end of the second, or minute, of the earlier
//! `until`. Times without a zone order nothing.
//!
//! A document **without `from`** does not say where it begins. So no change before it is missing for certain, and it
//! proves nothing either. It advances the set only if its oldest change reaches back to the synchronized time, or if
//! nothing was synchronized yet. One case is certain: it contained a change before and now begins with later ones.
//! Then changes fell off its end, perhaps some that were never read. That is a gap up to its oldest change.

use jiff::{SignedDuration, Timestamp};
use model::{DocumentRecord, DocumentState, RunId};
use resourcesync::Capability;

use crate::document::is_changes;

/// A time that no document covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// All changes up to here are known.
    pub after: Timestamp,
    /// Documents cover changes again from here on.
    pub before: Timestamp,
}

/// The time that a closed change document covers, as its Archive says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// Its start.
    pub from: Timestamp,
    /// Its end: the latest instant that it can mean.
    pub until: Timestamp,
}

/// Which of these documents cover a gap from end to end, by their positions: as few as possible, in the order of time.
/// None if they leave a hole.
pub fn covering(gap: Gap, documents: impl IntoIterator<Item = Closed>) -> Option<Vec<usize>> {
    let mut documents: Vec<(usize, Closed)> = documents.into_iter().enumerate().collect();
    documents.sort_by_key(|(_, document)| document.from);
    let mut documents = documents.into_iter().peekable();
    let mut chosen = Vec::new();
    let mut told = gap.after;
    while is_later(gap.before, told) {
        let mut best: Option<(usize, Closed)> = None;
        while let Some(next) = documents.next_if(|(_, document)| !is_later(document.from, told)) {
            best = Some(best.map_or(next, |best| if next.1.until > best.1.until { next } else { best }));
        }
        let (n, document) = best.filter(|(_, document)| document.until > told)?;
        chosen.push(n);
        told = document.until;
    }
    Some(chosen)
}

/// What the change documents of a set prove.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// No change up to here is missing.
    pub reached: Option<Timestamp>,
    /// In chronological order.
    pub gaps: Vec<Gap>,
}

/// Evaluates the change documents of a set from `reached` on. `documents` are all known documents of the set. Those
/// count that `run` read, and closed ones that were read whole before.
pub fn follow<'a>(
    reached: Option<Timestamp>,
    run: RunId,
    documents: impl Iterator<Item = &'a DocumentRecord>,
) -> Coverage {
    let is_read = |record: &&DocumentRecord| record.run == run || is_closed(record);
    let mut changes: Vec<&DocumentRecord> = documents
        .filter(|record| is_changes(&record.capability) && !record.leads_to_documents())
        // A dump with unreadable packages covers nothing. Another document that covers the same changes counts by
        // itself.
        .filter(|record| record.capability != Capability::ChangeDump || record.is_read_whole())
        .filter(is_read)
        .collect();
    changes.sort_by_key(|record| (record.from, record.oldest_change));
    let (dated, undated): (Vec<_>, Vec<_>) = changes.into_iter().partition(|record| record.from.is_some());

    let mut coverage = Coverage { reached, gaps: Vec::new() };
    for record in undated.iter().filter(|record| record.is_read_whole()) {
        if let (Some(after), Some(before)) = (reached, record.unseen_before)
            && before > after
        {
            coverage.gaps.push(Gap { after, before });
        }
    }
    // End of the covered time, though perhaps behind a gap; and whether a document covers all changes from there on.
    let mut told = reached;
    let mut is_open = false;
    let mut is_known = true;
    for record in &dated {
        let Some(from) = record.from else { continue };
        if let Some(after) = told
            && !is_open
            && is_later(from, after)
        {
            coverage.gaps.push(Gap { after, before: from });
        }
        // The content of an unreadable document is unknown, so a change behind it is not missing for certain.
        is_known &= record.is_read_whole();
        is_open |= record.until.is_none() || !is_known;
        told = told.max(Some(from)).max(end(record));
        if coverage.gaps.is_empty() && is_known {
            coverage.reached = told;
        }
    }
    if coverage.gaps.is_empty() {
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
    coverage.gaps.sort_by_key(|gap| gap.before);
    coverage
}

/// Whether a document was closed and read whole. Then its content stays known.
fn is_closed(record: &DocumentRecord) -> bool {
    record.state == DocumentState::Done && record.until.is_some()
}

/// End of the time that a document covers for certain: the end of its `until`, or its latest change.
fn end(record: &DocumentRecord) -> Option<Timestamp> {
    record.until_latest.max(record.until).max(record.latest_change)
}

/// Whether there is a time between the two, at their precision. A document that begins in the second after the last
/// one joins it.
fn is_later(from: Timestamp, told: Timestamp) -> bool {
    told.checked_add(SignedDuration::from_nanos(1)).is_ok_and(|next| from > next)
}

#[cfg(test)]
mod tests;
