//! When a list is compared with what is held, and whether it is one that the options choose.

use jiff::{SignedDuration, Timestamp};
use model::{OaiDeletions, OaiList, OaiOptions, OaiProgress, SetRecord};

/// The time between two lists of all identifiers, where the repository does not tell all deletions, or who leaves a set.
const SWEEP_EVERY: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The same where it does: a list may have skipped records that did not change, and no later list of changes has them.
const SWEEP_ALL_EVERY: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Days of a month, for samples.
const MONTH: i64 = 30;
/// One of so many records is asked for in a month, to see whether it changed without a new datestamp.
const ONE_IN_A_MONTH: u64 = 100;

/// Whether the identifiers of a list are due to be compared with what is held.
pub fn is_sweep_due(set: &SetRecord, now: Timestamp) -> bool {
    let Some(list) = set.oai.as_ref().filter(|_| set.has_baseline) else { return false };
    let OaiProgress { swept_at, compare_soon, records_soon, .. } = list.progress;
    let is_old = |at: Timestamp, every| now.duration_since(at) >= every;
    compare_soon
        || records_soon
        || if list.deletions == OaiDeletions::Persistent && list.set.is_none() {
            swept_at.is_some_and(|at| is_old(at, SWEEP_ALL_EVERY))
        } else {
            swept_at.is_none_or(|at| is_old(at, SWEEP_EVERY))
        }
}

/// One of how many records that seem unchanged are asked for by themselves when all identifiers are compared: one of a
/// hundred in a month.
pub fn sample_one_in(swept_at: Option<Timestamp>, now: Timestamp) -> u64 {
    let since = swept_at.map_or(SWEEP_ALL_EVERY, |at| now.duration_since(at));
    let days = since.as_hours().div_euclid(24).clamp(1, MONTH);
    ONE_IN_A_MONTH * MONTH.unsigned_abs() / days.unsigned_abs()
}

/// Whether these lists are those that the options choose. Without any, the entry URL may name a set: it is `given`.
pub fn are_wanted(lists: &[&OaiList], options: &OaiOptions, given: Option<&str>) -> bool {
    let OaiOptions { metadata_prefix, sets, encoding: _ } = options;
    if !lists.iter().all(|list| metadata_prefix.as_ref().is_none_or(|prefix| list.prefix == *prefix)) {
        return false;
    }
    if sets.is_empty() {
        return matches!(lists, [list] if list.set.as_deref() == given);
    }
    let is_chosen = |list: &&OaiList| list.set.as_ref().is_some_and(|set| sets.contains(set));
    lists.len() == sets.len() && lists.iter().all(is_chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(prefix: &str, set: Option<&str>, deletions: OaiDeletions) -> OaiList {
        OaiList {
            base: "http://h/oai".to_owned(),
            prefix: prefix.to_owned(),
            set: set.map(str::to_owned),
            by_seconds: true,
            deletions,
            earliest: None,
            progress: Default::default(),
        }
    }

    #[test]
    fn a_repository_that_does_not_tell_all_is_compared_weekly_and_any_other_monthly() {
        let now: Timestamp = "2026-03-08T00:00:00Z".parse().unwrap();
        let week = ("2026-03-01T00:00:00Z", "2026-03-01T00:00:01Z");
        let month = ("2026-02-06T00:00:00Z", "2026-02-06T00:00:01Z");
        for (of_set, deletions, is_due_at_first, (due, not_due)) in [
            (None, OaiDeletions::No, true, week),
            (None, OaiDeletions::Transient, true, week),
            (Some("a"), OaiDeletions::Persistent, true, week),
            (None, OaiDeletions::Persistent, false, month),
        ] {
            let is_due = |swept: Option<&str>, compare_soon| {
                let mut list = list("oai_dc", of_set, deletions);
                list.progress.compare_soon = compare_soon;
                list.progress.swept_at = swept.map(|at| at.parse().unwrap());
                let set = SetRecord { has_baseline: true, oai: Some(Box::new(list)), ..SetRecord::default() };
                is_sweep_due(&set, now)
            };
            assert_eq!(is_due(None, false), is_due_at_first, "{of_set:?} {deletions:?}");
            assert!(is_due(Some(due), false), "{of_set:?} {deletions:?}");
            assert!(!is_due(Some(not_due), false), "{of_set:?} {deletions:?}");
            assert!(is_due(Some(not_due), true), "records were skipped");
        }
        assert!(!is_sweep_due(&SetRecord { has_baseline: true, ..SetRecord::default() }, now));
    }

    #[test]
    fn one_record_of_a_hundred_is_asked_for_in_a_month_however_often_identifiers_are_compared() {
        let now: Timestamp = "2026-03-31T00:00:00Z".parse().unwrap();
        let days = |days: i64| Some(now - SignedDuration::from_hours(24 * days));
        assert_eq!(sample_one_in(None, now), 100);
        assert_eq!(
            [400, 30, 7, 1, 0].map(|since| sample_one_in(days(since), now)),
            [100, 100, 428, 3_000, 3_000]
        );
        assert_eq!(sample_one_in(days(-5), now), 3_000, "a clock that was set back");
    }

    #[test]
    fn a_record_that_changed_without_a_new_datestamp_asks_for_a_list_of_all() {
        let now: Timestamp = "2026-03-08T00:00:00Z".parse().unwrap();
        let mut list = list("oai_dc", None, OaiDeletions::Persistent);
        list.progress.swept_at = Some(now);
        list.progress.records_soon = true;
        let set = SetRecord { oai: Some(Box::new(list)), has_baseline: true, ..SetRecord::default() };
        assert!(is_sweep_due(&set, now));
    }

    #[test]
    fn other_options_choose_other_lists() {
        let all = list("mets", None, OaiDeletions::No);
        let one = list("mets", Some("a"), OaiDeletions::No);
        let options = |prefix: Option<&str>, sets: &[&str]| OaiOptions {
            metadata_prefix: prefix.map(str::to_owned),
            sets: sets.iter().map(ToString::to_string).collect(),
            encoding: None,
        };
        assert!(are_wanted(&[&all], &options(None, &[]), None));
        assert!(are_wanted(&[&all], &options(Some("mets"), &[]), None));
        assert!(!are_wanted(&[&all], &options(Some("oai_dc"), &[]), None));
        assert!(!are_wanted(&[&all], &options(None, &["a"]), None));
        assert!(are_wanted(&[&one], &options(None, &["a"]), None));
        assert!(are_wanted(&[&one], &options(None, &[]), Some("a")), "the URL names it");
        assert!(!are_wanted(&[&one], &options(None, &[]), None));
    }
}
