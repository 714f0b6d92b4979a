//! Decides what to do about one entry. Pure, so that every case is a test.

use fixity::{Computed, Digest};
use jiff::Timestamp;
use model::{Declaration, Listing, PendingRecord, ResourceRecord, Why};
use resourcesync::Change;

use crate::horizon::Moment;

/// Decision about an entry, given the current state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Fetch the resource.
    Fetch,
    /// Remove the resource: the Source says it deleted it.
    Delete,
    /// Request the resource: the Source lists its deletion, but it is unknown whether that was before the stored
    /// version.
    Ask,
    /// The entry describes the stored version.
    Unchanged,
    /// The entry is older than the known state.
    Stale,
}

/// Current state of the resource of an entry.
#[derive(Debug, Clone, Copy, Default)]
pub struct CurrentState<'a> {
    /// The stored record.
    pub record: Option<&'a ResourceRecord>,
    /// The pending record.
    pub pending: Option<&'a PendingRecord>,
    /// The baseline contains every change up to this time (RS-4).
    pub baseline_at: Option<Timestamp>,
}

/// Decides about one entry. Idempotent: the same entry read again changes nothing.
///
/// `moment` gives the last instant that the entry's time can mean: `12:00:05` is any time before `12:00:06`.
pub fn decide(
    declaration: &Declaration,
    listing: &Listing,
    moment: Moment,
    known: CurrentState<'_>,
) -> Decision {
    let newest = newest_known(listing, known);
    // An entry that is certainly older than the known state must not be applied over it. An entry without a time, or
    // with the same time, is never stale: to skip it would be a guess.
    if moment.latest.zip(newest).is_some_and(|(latest, newest)| latest < newest) {
        return Decision::Stale;
    }
    if listing.change == Some(Change::Deleted) {
        let held = known.record.is_some_and(|record| record.is_present() && !was_undone(listing, record));
        let is_vague =
            moment.is_vague && newest.is_some_and(|newest| listing.as_of.is_none_or(|first| first < newest));
        return match held || known.pending.is_some() {
            // No resource to delete. The deletion must still be recorded, because an older list would bring the
            // resource back.
            false if is_news(listing, known.record) && !is_vague => Decision::Delete,
            false => Decision::Unchanged,
            true if is_vague => Decision::Ask,
            true => Decision::Delete,
        };
    }
    match known.record {
        Some(record) if was_applied(declaration, listing, record) => Decision::Unchanged,
        Some(record) if is_same_link(listing, record) => Decision::Unchanged,
        Some(record) if describes_what_is_held(declaration, record) => Decision::Unchanged,
        _ => Decision::Fetch,
    }
}

/// Reason for a decision.
pub fn why(decision: Decision, declaration: &Declaration, record: Option<&ResourceRecord>) -> Why {
    match decision {
        Decision::Delete => return Why::Deleted,
        Decision::Ask => return Why::DeletedPerhaps,
        Decision::Fetch | Decision::Unchanged | Decision::Stale => {}
    }
    let Some((record, held)) = record.and_then(|record| Some((record, record.bitstream.as_ref()?))) else {
        return Why::New;
    };
    if agree(&declaration.digests, &held.computed) == Some(false)
        || declaration.unjudged != record.declaration.unjudged
    {
        Why::OtherDigest
    } else if declaration.length.is_some_and(|length| length != held.computed.length()) {
        Why::OtherLength
    } else if declaration.lastmod.is_some() && declaration.lastmod != record.declaration.lastmod {
        Why::OtherLastmod
    } else {
        Why::NothingToCompare
    }
}

/// The latest time of the known state.
fn newest_known(listing: &Listing, known: CurrentState<'_>) -> Option<Timestamp> {
    let newest_known = [
        known.record.and_then(|record| record.listing.as_of),
        known.pending.and_then(|pending| pending.listing.as_of),
        // Only changes are compared with the baseline: its own entries carry its `at`.
        known.baseline_at.filter(|_| listing.change.is_some() && !is_new(listing, known.record)),
    ];
    newest_known.into_iter().flatten().max()
}

/// Whether a deletion is about a version that was stored before it. A baseline of a later time omitted the resource,
/// but that deleted nothing: the operator keeps absent resources, or the absence waits for confirmation. The deletion
/// is now explicit.
fn is_new(listing: &Listing, record: Option<&ResourceRecord>) -> bool {
    let held = record.filter(|record| record.is_present()).and_then(|record| record.listing.as_of);
    listing.change == Some(Change::Deleted) && held.zip(listing.as_of).is_some_and(|(held, gone)| held < gone)
}

/// Whether this change was already applied: an open Change List is read many times.
fn was_applied(declaration: &Declaration, listing: &Listing, record: &ResourceRecord) -> bool {
    record.is_present()
        && listing.change.is_some()
        && listing.as_of.is_some()
        && listing.as_of == record.listing.as_of
        && listing.change == record.listing.change
        && *declaration == record.declaration
}

/// Whether the link that led to the stored version speaks of the same version again.
fn is_same_link(listing: &Listing, record: &ResourceRecord) -> bool {
    let held = record.listing.linked.as_deref();
    record.is_present() && listing.linked.as_ref().is_some_and(|linked| linked.is_same(held))
}

/// Whether a deletion is newer than the known state of a resource that is not stored.
fn is_news(listing: &Listing, record: Option<&ResourceRecord>) -> bool {
    let known = record.map(|record| record.listing.as_of.filter(|_| !record.is_present()));
    listing.as_of.is_some() && known.is_none_or(|known| known.is_some() && known < listing.as_of)
}

/// Whether this deletion was already applied, and the operator restored the resource.
fn was_undone(listing: &Listing, record: &ResourceRecord) -> bool {
    record.listing.change == Some(Change::Deleted)
        && listing.as_of.is_some()
        && listing.as_of == record.listing.as_of
}

/// Whether the declaration describes the stored bytes. Digests decide if both sides have a common algorithm.
/// Otherwise the Source's last modification and length decide, if unchanged since they were stored. With nothing to
/// compare the answer is no. A fetch (conditional if the server gave validators) costs less than a wrong guess.
fn describes_what_is_held(declaration: &Declaration, record: &ResourceRecord) -> bool {
    let Some(bitstream) = &record.bitstream else { return false };
    let computed = &bitstream.computed;
    if declaration.length.is_some_and(|length| length != computed.length()) {
        return false;
    }
    match agree(&declaration.digests, computed) {
        Some(equal) => equal,
        None if !declaration.digests.is_empty() || !declaration.unjudged.is_empty() => {
            declaration.digests == record.declaration.digests
                && declaration.unjudged == record.declaration.unjudged
        }
        None => declaration.lastmod.is_some() && declaration.lastmod == record.declaration.lastmod,
    }
}

/// Whether the digests match; none without a common algorithm.
pub fn agree(declared: &[Digest], computed: &Computed) -> Option<bool> {
    let mut common = None;
    for digest in declared {
        if let Some(ours) = computed.get(digest.algorithm()) {
            if ours != digest {
                return Some(false);
            }
            common = Some(true);
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use fixity::{Hasher, Sha256};
    use model::{Action, Assurance, Bitstream, Location, Seq, SetId};

    use super::*;

    fn judge(declaration: &Declaration, listing: &Listing, known: CurrentState<'_>) -> Decision {
        decide(declaration, listing, until(listing.as_of), known)
    }

    fn until(latest: Option<Timestamp>) -> Moment {
        Moment { latest, is_vague: false }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn listing(change: Option<Change>, as_of: Option<i64>) -> Listing {
        Listing {
            document: "http://h/list.xml".into(),
            set: SetId::new("http://h/caps.xml"),
            change,
            change_time: None,
            as_of: as_of.map(at),
            latest: None,
            links: None,
            linked: None,
        }
    }

    fn declares(content: &[u8]) -> Declaration {
        Declaration {
            digests: vec![Sha256::of(content).into()],
            length: Some(content.len() as u64),
            ..Declaration::default()
        }
    }

    fn held(content: &[u8], declaration: Declaration, as_of: Option<i64>) -> ResourceRecord {
        let mut hasher = Hasher::new([]);
        hasher.update(content);
        ResourceRecord {
            bitstream: Some(Bitstream {
                location: Location::Object { sha256: Sha256::of(content) },
                computed: hasher.finish(),
                assurance: Assurance::Digest,
                media_type: None,
                encoding: None,
                validators: Default::default(),
                final_url: None,
                stored_at: at(0),
            }),
            declaration,
            listing: listing(None, as_of),
            sets: vec![],
            deleted: None,
            collected: None,
            absent: None,
            settled_at: at(0),
        }
    }

    fn tombstone(as_of: i64) -> ResourceRecord {
        ResourceRecord {
            bitstream: None,
            listing: listing(Some(Change::Deleted), Some(as_of)),
            ..held(b"", Declaration::default(), None)
        }
    }

    fn pending(as_of: i64) -> PendingRecord {
        PendingRecord {
            seq: Seq::new(1),
            action: Action::Fetch { origin: "http://h".parse().unwrap() },
            declaration: declares(b"new"),
            listing: listing(Some(Change::Updated), Some(as_of)),
            attempts: 0,
            next_attempt_at: None,
            candidate: None,
            repair: false,
            mirror: None,
            patch: None,
            account: Default::default(),
        }
    }

    fn with(record: &ResourceRecord) -> CurrentState<'_> {
        CurrentState { record: Some(record), ..CurrentState::default() }
    }

    #[test]
    fn an_unknown_resource_is_fetched() {
        let decision = judge(&Declaration::default(), &listing(None, Some(1)), CurrentState::default());
        assert_eq!(decision, Decision::Fetch);
    }

    #[test]
    fn why_it_is_fetched_is_told_by_what_differs_from_what_is_held() {
        let dated = Declaration { lastmod: Some(at(1)), ..Declaration::default() };
        let record = held(b"x", dated.clone(), Some(1));
        let why = |declaration: &Declaration| why(Decision::Fetch, declaration, Some(&record));
        assert_eq!(why(&declares(b"y")), Why::OtherDigest);
        assert_eq!(why(&Declaration { length: Some(2), ..dated.clone() }), Why::OtherLength);
        assert_eq!(why(&Declaration { lastmod: Some(at(2)), ..dated }), Why::OtherLastmod);
        assert_eq!(why(&Declaration::default()), Why::NothingToCompare);
        assert_eq!(super::why(Decision::Fetch, &declares(b"x"), None), Why::New);
        assert_eq!(super::why(Decision::Fetch, &declares(b"x"), Some(&tombstone(1))), Why::New);
    }

    #[test]
    fn equal_digests_mean_unchanged_whatever_the_times_say() {
        let record = held(b"x", declares(b"x"), Some(1));
        let later = Declaration { lastmod: Some(at(9)), ..declares(b"x") };
        assert_eq!(judge(&later, &listing(None, Some(5)), with(&record)), Decision::Unchanged);
    }

    #[test]
    fn another_digest_or_length_means_fetch() {
        let record = held(b"x", declares(b"x"), Some(1));
        assert_eq!(judge(&declares(b"y"), &listing(None, Some(5)), with(&record)), Decision::Fetch);
        let longer = Declaration { length: Some(2), ..Declaration::default() };
        assert_eq!(judge(&longer, &listing(None, Some(5)), with(&record)), Decision::Fetch);
    }

    #[test]
    fn without_digests_the_same_lastmod_and_length_mean_unchanged() {
        let dated = Declaration { lastmod: Some(at(1)), length: Some(1), ..Declaration::default() };
        let record = held(b"x", dated.clone(), Some(1));
        assert_eq!(judge(&dated, &listing(None, Some(5)), with(&record)), Decision::Unchanged);
        let touched = Declaration { lastmod: Some(at(2)), ..dated };
        assert_eq!(judge(&touched, &listing(None, Some(5)), with(&record)), Decision::Fetch);
    }

    #[test]
    fn with_nothing_to_compare_it_is_fetched() {
        let record = held(b"x", Declaration::default(), Some(1));
        assert_eq!(judge(&Declaration::default(), &listing(None, Some(5)), with(&record)), Decision::Fetch);
    }

    #[test]
    fn a_digest_we_cannot_judge_counts_as_same_only_when_it_was_declared_before() {
        let odd = Declaration { unjudged: vec!["whirlpool:ab".into()], ..Declaration::default() };
        let record = held(b"x", odd.clone(), Some(1));
        assert_eq!(judge(&odd, &listing(None, Some(5)), with(&record)), Decision::Unchanged);
        let other = Declaration { unjudged: vec!["whirlpool:cd".into()], ..Declaration::default() };
        assert_eq!(judge(&other, &listing(None, Some(5)), with(&record)), Decision::Fetch);
    }

    #[test]
    fn an_older_list_does_not_undo_a_newer_change() {
        let record = held(b"new", declares(b"new"), Some(10));
        assert_eq!(judge(&declares(b"old"), &listing(None, Some(5)), with(&record)), Decision::Stale);
        let gone = tombstone(10);
        assert_eq!(judge(&declares(b"old"), &listing(None, Some(5)), with(&gone)), Decision::Stale);
    }

    #[test]
    fn a_newest_first_list_leaves_the_newest_plan() {
        let planned = pending(10);
        let known = CurrentState { pending: Some(&planned), ..CurrentState::default() };
        let earlier = listing(Some(Change::Created), Some(5));
        assert_eq!(judge(&declares(b"old"), &earlier, known), Decision::Stale);
    }

    #[test]
    fn a_change_that_the_baseline_contains_is_stale() {
        let known = CurrentState { baseline_at: Some(at(10)), ..CurrentState::default() };
        let change = listing(Some(Change::Updated), Some(9));
        assert_eq!(judge(&declares(b"x"), &change, known), Decision::Stale);
        let after = listing(Some(Change::Updated), Some(11));
        assert_eq!(judge(&declares(b"x"), &after, known), Decision::Fetch);
    }

    #[test]
    fn a_change_in_the_very_second_of_the_baseline_may_have_come_after_it() {
        let known = CurrentState { baseline_at: Some(at(10)), ..CurrentState::default() };
        let change = listing(Some(Change::Updated), Some(9));
        assert_eq!(decide(&declares(b"x"), &change, until(Some(at(10))), known), Decision::Fetch);
    }

    #[test]
    fn an_open_change_list_read_again_asks_for_nothing_new() {
        let mut change = listing(Some(Change::Updated), Some(10));
        change.change_time = Some(at(10));
        let mut record = held(b"x", Declaration::default(), Some(10));
        record.listing = change.clone();
        assert_eq!(judge(&Declaration::default(), &change, with(&record)), Decision::Unchanged);
    }

    #[test]
    fn a_resource_created_again_after_its_deletion_is_fetched() {
        let gone = tombstone(10);
        let created = listing(Some(Change::Created), Some(11));
        assert_eq!(judge(&declares(b"x"), &created, with(&gone)), Decision::Fetch);
    }

    #[test]
    fn a_deletion_applies_to_what_is_held_or_planned_and_is_known_of_what_is_not() {
        let deleted = listing(Some(Change::Deleted), Some(20));
        let record = held(b"x", declares(b"x"), Some(1));
        assert_eq!(judge(&Declaration::default(), &deleted, with(&record)), Decision::Delete);
        let planned = pending(10);
        let known = CurrentState { pending: Some(&planned), ..CurrentState::default() };
        assert_eq!(judge(&Declaration::default(), &deleted, known), Decision::Delete);
        // An older list that contains it would bring it back.
        assert_eq!(judge(&Declaration::default(), &deleted, CurrentState::default()), Decision::Delete);
        assert_eq!(judge(&Declaration::default(), &deleted, with(&tombstone(5))), Decision::Delete);
        assert_eq!(judge(&Declaration::default(), &deleted, with(&tombstone(20))), Decision::Unchanged);
        let undated = listing(Some(Change::Deleted), None);
        assert_eq!(judge(&Declaration::default(), &undated, CurrentState::default()), Decision::Unchanged);
        assert_eq!(judge(&Declaration::default(), &undated, with(&tombstone(5))), Decision::Unchanged);
    }

    #[test]
    fn a_deletion_before_the_baseline_applies_to_what_is_held_from_before_it_and_to_nothing_else() {
        let deleted = listing(Some(Change::Deleted), Some(20));
        let decision = |record: Option<&ResourceRecord>| {
            let known = CurrentState { record, pending: None, baseline_at: Some(at(30)) };
            judge(&Declaration::default(), &deleted, known)
        };
        let held = |as_of| held(b"x", declares(b"x"), as_of);
        assert_eq!(decision(Some(&held(Some(10)))), Decision::Delete);
        // The baseline listed it, or the date of the entry is unknown.
        assert_eq!(decision(Some(&held(Some(30)))), Decision::Stale);
        assert_eq!(decision(Some(&held(None))), Decision::Stale);
        assert_eq!(decision(None), Decision::Stale);
        assert_eq!(decision(Some(&tombstone(10))), Decision::Stale);
    }

    #[test]
    fn a_deletion_that_was_undone_is_not_applied_again_but_a_later_one_is() {
        let mut restored = held(b"x", declares(b"x"), None);
        restored.listing = tombstone(10).listing;
        restored.listing.change_time = Some(at(10));
        let deleted =
            |time| Listing { change_time: Some(at(time)), ..listing(Some(Change::Deleted), Some(time)) };
        assert_eq!(judge(&Declaration::default(), &deleted(10), with(&restored)), Decision::Unchanged);
        assert_eq!(judge(&Declaration::default(), &deleted(11), with(&restored)), Decision::Delete);
    }

    #[test]
    fn a_deletion_older_than_what_is_held_is_stale() {
        let record = held(b"x", declares(b"x"), Some(10));
        let deleted = listing(Some(Change::Deleted), Some(5));
        assert_eq!(judge(&Declaration::default(), &deleted, with(&record)), Decision::Stale);
    }

    #[test]
    fn a_deletion_of_a_vague_moment_is_applied_only_when_it_certainly_came_later() {
        let record = held(b"x", declares(b"x"), Some(10));
        let deleted = |first| listing(Some(Change::Deleted), first);
        let vague = |latest: Option<i64>| Moment { latest: latest.map(at), is_vague: true };
        let decision =
            |first, latest| decide(&Declaration::default(), &deleted(first), vague(latest), with(&record));
        assert_eq!(decision(Some(1), Some(9)), Decision::Stale);
        assert_eq!(decision(Some(5), Some(15)), Decision::Ask);
        assert_eq!(decision(None, None), Decision::Ask, "a moment in the future says nothing");
        assert_eq!(decision(Some(11), Some(21)), Decision::Delete);
        let unknown = decide(&Declaration::default(), &deleted(None), vague(None), CurrentState::default());
        assert_eq!(unknown, Decision::Unchanged);
    }
}
