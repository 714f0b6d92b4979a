//! Compares a stored record with the last entry about its resource. Pure, so that every case is a test.

use fixity::Verdict;
use model::{Declaration, DifferenceKind, ResourceRecord, bytes};
use planning::{CurrentState, Decision, ListedEntry, agree, contradiction, decide};
use resourcesync::Change;

/// Result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Stored as declared.
    InSync,
    /// No declaration contradicts the stored bytes, but no digest proves them.
    WithoutFixity,
    /// The stored version is newer.
    Newer,
    /// Neither stored nor listed.
    Nothing,
    /// It differs.
    Differs {
        kind: DifferenceKind,
        /// What would repair it; none if no automatic repair exists.
        decision: Option<Decision>,
        why: String,
    },
}

/// Compares a stored record with the last entry about its resource.
pub(crate) fn judge(entry: &ListedEntry, record: Option<&ResourceRecord>) -> Finding {
    let known = CurrentState { record, pending: None, baseline_at: None };
    let decision = decide(&entry.declaration, &entry.listing, entry.moment, known);
    let is_gone = entry.listing.change == Some(Change::Deleted);
    let held = record.and_then(|record| Some((record, record.bitstream.as_ref()?)));
    let Some((record, bitstream)) = held else {
        return match decision {
            Decision::Stale => Finding::Newer,
            _ if is_gone => Finding::Nothing,
            _ => differs(DifferenceKind::Missing, Some(Decision::Fetch), missing(record)),
        };
    };
    if is_gone {
        return match decision {
            Decision::Stale => Finding::Newer,
            // A deletion that the operator has undone.
            Decision::Unchanged | Decision::Fetch => Finding::InSync,
            Decision::Delete | Decision::Ask => {
                differs(DifferenceKind::Extra, Some(decision), "the Source has deleted it".to_owned())
            }
        };
    }
    if let Some(why) = contradiction(&bitstream.location, &bitstream.computed) {
        return differs(DifferenceKind::Differing, Some(Decision::Fetch), why);
    }
    let declared = &entry.declaration;
    match fixity::judge(&declared.digests, declared.length, &bitstream.computed) {
        Verdict::Verified { .. } => Finding::InSync,
        _ if decision == Decision::Stale => Finding::Newer,
        Verdict::Mismatch { what } if is_same_version(declared, &record.declaration) => {
            let why = format!(
                "the stored bytes do not match what is declared of this version: {}",
                described(&what)
            );
            differs(DifferenceKind::Differing, Some(Decision::Fetch), why)
        }
        Verdict::Mismatch { what } => {
            let why = format!("the Source lists a later version: {}", described(&what));
            differs(DifferenceKind::Stale, Some(Decision::Fetch), why)
        }
        // Without any declaration to compare, a run asks the server; an audit requests no resource.
        Verdict::LengthOnly | Verdict::NothingDeclared
            if decision == Decision::Fetch && tells_of_another(entry, record) =>
        {
            let why = "the Source lists a later version, without a digest to compare";
            differs(DifferenceKind::Stale, Some(Decision::Fetch), why.to_owned())
        }
        Verdict::LengthOnly | Verdict::NothingDeclared => Finding::WithoutFixity,
    }
}

/// Whether the Source declares the same about this version as when it was stored, or at least the same last
/// modification.
fn is_same_version(declared: &Declaration, before: &Declaration) -> bool {
    let is_said = |one: &Declaration| !one.digests.is_empty() || one.length.is_some();
    let same_said = declared.digests == before.digests
        && declared.unjudged == before.unjudged
        && declared.length == before.length;
    (same_said && is_said(declared)) || (declared.lastmod.is_some() && declared.lastmod == before.lastmod)
}

/// Whether an entry without a comparable digest is about another version than the record.
fn tells_of_another(entry: &ListedEntry, record: &ResourceRecord) -> bool {
    let declared = &entry.declaration;
    let has_other_digests = agree(&declared.digests, &record.bitstream.as_ref().expect("held").computed)
        .is_none()
        && (!declared.digests.is_empty() || !declared.unjudged.is_empty());
    let is_modified = declared.lastmod.is_some() && declared.lastmod != record.declaration.lastmod;
    has_other_digests || is_modified || entry.listing.change.is_some()
}

fn missing(record: Option<&ResourceRecord>) -> String {
    match record {
        Some(_) => "listed again after its deletion, not stored",
        None => "listed, not stored",
    }
    .to_owned()
}

fn described(what: &fixity::Mismatch) -> String {
    match what {
        fixity::Mismatch::Length { expected, computed } => {
            format!("{} declared, {computed} stored", bytes(expected.to_owned()))
        }
        fixity::Mismatch::Digest { expected, computed } => format!("{expected} declared, {computed} stored"),
    }
}

fn differs(kind: DifferenceKind, decision: Option<Decision>, why: String) -> Finding {
    Finding::Differs { kind, decision, why }
}

#[cfg(test)]
mod tests {
    use fixity::Sha256;
    use jiff::Timestamp;
    use model::{Assurance, Bitstream, Listing, PackId, SetId};

    use fixity::Computed;
    use model::{HeldBitstream, Location, Method};
    use planning::{Moment, is_stored_as_declared};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    fn listing(change: Option<Change>, second: i64) -> Listing {
        Listing {
            document: "http://h/list".into(),
            set: SetId::new("http://h/caps"),
            change,
            change_time: change.map(|_| at(second)),
            as_of: Some(at(second)),
            latest: None,
            links: None,
            linked: None,
        }
    }

    fn declares(content: &str) -> Declaration {
        Declaration {
            digests: vec![Sha256::of(content.as_bytes()).into()],
            length: Some(content.len() as u64),
            ..Declaration::default()
        }
    }

    fn modified(second: i64) -> Declaration {
        Declaration { lastmod: Some(at(second)), ..Declaration::default() }
    }

    fn entry(declaration: Declaration, change: Option<Change>, second: i64) -> ListedEntry {
        let moment = Moment { latest: Some(at(second)), is_vague: false };
        ListedEntry {
            uri: "http://h/a".parse().unwrap(),
            declaration,
            listing: listing(change, second),
            moment,
        }
    }

    /// Stored since second 1, the time of its declaration.
    fn held(content: &str, declaration: Declaration) -> ResourceRecord {
        let computed = Computed::of(content.as_bytes());
        ResourceRecord {
            bitstream: Some(Bitstream {
                location: Location::Object { sha256: computed.sha256() },
                computed,
                assurance: Assurance::None,
                media_type: None,
                encoding: None,
                validators: Default::default(),
                final_url: None,
                stored_at: at(1),
            }),
            declaration,
            listing: listing(None, 1),
            sets: vec![],
            deleted: None,
            collected: None,
            absent: None,
            settled_at: at(1),
        }
    }

    fn kind(finding: Finding) -> Option<DifferenceKind> {
        match finding {
            Finding::Differs { kind, .. } => Some(kind),
            _ => None,
        }
    }

    #[test]
    fn what_is_listed_and_not_held_is_missing() {
        assert_eq!(kind(judge(&entry(declares("a"), None, 5), None)), Some(DifferenceKind::Missing));
        let deleted = ResourceRecord { bitstream: None, ..held("a", declares("a")) };
        let again = judge(&entry(declares("a"), None, 5), Some(&deleted));
        assert_eq!(kind(again), Some(DifferenceKind::Missing));
    }

    #[test]
    fn what_was_deleted_after_the_list_is_not_missing() {
        let mut deleted = ResourceRecord { bitstream: None, ..held("a", declares("a")) };
        deleted.listing = listing(Some(Change::Deleted), 9);
        assert_eq!(judge(&entry(declares("a"), None, 5), Some(&deleted)), Finding::Newer);
    }

    #[test]
    fn a_declared_digest_that_is_that_of_what_is_held_is_in_sync() {
        assert_eq!(judge(&entry(declares("a"), None, 5), Some(&held("a", declares("a")))), Finding::InSync);
    }

    #[test]
    fn another_declaration_is_of_a_later_version_and_what_is_held_is_stale() {
        let finding = judge(&entry(declares("b"), None, 5), Some(&held("a", declares("a"))));
        assert_eq!(kind(finding), Some(DifferenceKind::Stale));
        let later = judge(&entry(modified(4), None, 5), Some(&held("a", modified(1))));
        assert_eq!(kind(later), Some(DifferenceKind::Stale));
        let longer = Declaration { length: Some(2), ..modified(4) };
        assert_eq!(
            kind(judge(&entry(longer, None, 5), Some(&held("a", modified(1))))),
            Some(DifferenceKind::Stale)
        );
    }

    #[test]
    fn the_same_declaration_that_contradicts_what_is_held_differs_in_fixity() {
        let finding = judge(&entry(declares("a"), None, 5), Some(&held("x", declares("a"))));
        assert_eq!(kind(finding), Some(DifferenceKind::Differing));
        // The Source has corrected a digest without touching the resource.
        let corrected = Declaration { lastmod: Some(at(1)), ..declares("b") };
        let before = Declaration { lastmod: Some(at(1)), ..declares("a") };
        let finding = judge(&entry(corrected, None, 5), Some(&held("a", before)));
        assert_eq!(kind(finding), Some(DifferenceKind::Differing));
    }

    #[test]
    fn a_record_that_contradicts_itself_differs_whatever_is_declared() {
        let mut record = held("a", declares("a"));
        record.bitstream.as_mut().unwrap().location = Location::Object { sha256: Sha256::of(b"b") };
        let finding = judge(&entry(declares("a"), None, 5), Some(&record));
        assert_eq!(kind(finding), Some(DifferenceKind::Differing));
        record.bitstream.as_mut().unwrap().location = Location::Pack {
            source: "s".parse().unwrap(),
            pack: PackId::fresh(),
            offset: 0,
            stored_length: 2,
            method: Method::Stored,
        };
        let finding = judge(&entry(modified(1), None, 5), Some(&record));
        assert_eq!(kind(finding), Some(DifferenceKind::Differing));
        let Bitstream { location, computed, .. } = record.bitstream.unwrap();
        let held = HeldBitstream { location, computed };
        assert!(!is_stored_as_declared(Sha256::of(b"a"), Some(1), Some(&held)));
    }

    #[test]
    fn with_a_length_a_time_or_nothing_at_all_it_is_without_fixity() {
        let length = Declaration { length: Some(1), ..modified(1) };
        for declared in [length, modified(1), Declaration::default()] {
            let finding = judge(&entry(declared.clone(), None, 5), Some(&held("a", declared)));
            assert_eq!(finding, Finding::WithoutFixity);
        }
    }

    #[test]
    fn a_list_of_an_earlier_moment_says_nothing_of_what_is_held_since() {
        let mut record = held("b", declares("b"));
        record.listing = listing(Some(Change::Updated), 9);
        assert_eq!(judge(&entry(declares("a"), None, 5), Some(&record)), Finding::Newer);
    }

    #[test]
    fn what_the_source_deleted_is_extra_until_it_is_deleted_here_or_was_restored() {
        let gone = entry(Declaration::default(), Some(Change::Deleted), 5);
        assert_eq!(kind(judge(&gone, Some(&held("a", declares("a"))))), Some(DifferenceKind::Extra));
        assert_eq!(judge(&gone, None), Finding::Nothing);
        let mut restored = held("a", declares("a"));
        restored.listing = gone.listing.clone();
        assert_eq!(judge(&gone, Some(&restored)), Finding::InSync);
    }

    #[test]
    fn a_change_that_was_not_applied_is_stale_and_one_that_was_is_not() {
        let updated = entry(Declaration::default(), Some(Change::Updated), 5);
        let mut record = held("a", Declaration::default());
        assert_eq!(kind(judge(&updated, Some(&record))), Some(DifferenceKind::Stale));
        record.listing = updated.listing.clone();
        assert_eq!(judge(&updated, Some(&record)), Finding::WithoutFixity);
    }
}
