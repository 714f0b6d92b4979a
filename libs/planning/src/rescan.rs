//! When a set needs a full rescan although its changes are followed. Pure.

use std::collections::HashMap;

use jiff::Timestamp;
use model::{Absent, DocumentRecord, PackageRecord, ProblemRecord, SetId, SetRecord, wait_again};

use crate::{HarvestOptions, strategy};

/// Whether a full rescan of a set is due.
pub fn is_due(set: &SetRecord, options: &HarvestOptions, now: Timestamp) -> bool {
    let Some(waiting) = set.waiting.filter(|_| options.absent != Absent::Keep) else { return false };
    // The operator has approved what the deletion guard asked for.
    let is_allowed = waiting.guarded_percent.is_some_and(|percent| options.max_deletes_percent > percent);
    is_allowed || waiting.is_due(now)
}

/// Whether the run that could not read a package read the set's Resource Lists whole, which list the same resources.
pub fn is_listed_elsewhere(package: &PackageRecord, documents: &HashMap<SetId, Vec<DocumentRecord>>) -> bool {
    documents.get(&package.set).is_some_and(|documents| strategy::is_listed(package.run, documents))
}

/// Whether a failed document or package is retried: by the next run, and less often the longer it fails.
pub fn is_retried(problem: &ProblemRecord, now: Timestamp) -> bool {
    if problem.ignored.is_some() {
        return false;
    }
    match problem.next_attempt_at {
        Some(next) => next <= now,
        None => {
            let wait = wait_again(problem.last_seen.duration_since(problem.first_seen));
            let since_then = now.duration_since(problem.last_seen);
            since_then >= wait || since_then.is_negative()
        }
    }
}

#[cfg(test)]
mod tests {
    use model::PendingRescan;

    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + hour * 3_600).unwrap()
    }

    fn waiting(guarded_percent: Option<u8>) -> SetRecord {
        let waiting = PendingRescan { since: at(0), looked_at: at(10), uncompared: false, guarded_percent };
        SetRecord { waiting: Some(waiting), ..SetRecord::default() }
    }

    #[test]
    fn what_waits_is_due_by_time_or_when_more_deletions_are_allowed_and_never_where_all_is_kept() {
        let options = |absent, max_deletes_percent| HarvestOptions {
            absent,
            max_deletes_percent,
            ..HarvestOptions::default()
        };
        let confirm = options(Absent::Confirm, 10);
        assert!(!is_due(&SetRecord::default(), &confirm, at(1_000)));
        assert!(!is_due(&waiting(None), &confirm, at(19)));
        assert!(is_due(&waiting(None), &confirm, at(20)));
        assert!(!is_due(&waiting(None), &options(Absent::Keep, 10), at(1_000)));
        assert!(!is_due(&waiting(Some(10)), &confirm, at(11)));
        assert!(is_due(&waiting(Some(10)), &options(Absent::Confirm, 100), at(11)));
    }

    #[test]
    fn what_failed_is_tried_at_once_and_then_less_often_unless_a_server_said_when() {
        let failed = |first, last, next: Option<i64>| ProblemRecord {
            reason: model::ProblemReason::Timeout,
            message: String::new(),
            first_seen: at(first),
            last_seen: at(last),
            attempts: 1,
            retry: true,
            next_attempt_at: next.map(at),
            ignored: None,
            evidence: Default::default(),
            declaration: None,
            listing: None,
            repair: false,
        };
        assert!(is_retried(&failed(5, 5, None), at(5)));
        assert!(!is_retried(&failed(0, 5, None), at(9)));
        assert!(is_retried(&failed(0, 5, None), at(10)));
        assert!(!is_retried(&failed(5, 5, Some(8)), at(7)));
        assert!(is_retried(&failed(0, 7, Some(8)), at(8)));
    }
}
