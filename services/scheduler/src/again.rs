//! Selects sets that need a full rescan although their changes are followed. Reasons: absences wait for a second
//! list, lists were read and not compared, or part of a list or dump could not be read.

use std::collections::{HashMap, HashSet};

use catalog::Batch;
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{
    Absent, DocumentRecord, DocumentState, PackageRecord, PackageState, ProblemRecord, SetId, SetRecord,
    Subject, Waiting, wait_again,
};
use resourcesync::Capability;

use crate::absent::Lists;
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::options::HarvestOptions;
use crate::{queue, ways};

impl Harvest {
    /// The sets that a run that starts now rescans in full.
    pub(crate) async fn sets_again(&self) -> Result<HashSet<SetId>, HarvestError> {
        let now = self.clock.now();
        let waiting = self.sets.iter().filter(|(_, set)| is_due(set, &self.options, now));
        let mut again: HashSet<SetId> = waiting.map(|(id, _)| id.clone()).collect();
        if !self.has_problems {
            return Ok(again);
        }
        let documents = queue::by_set(&self.catalog).await?;
        let mut problems = self.catalog.scan_problems().await?;
        while let Some((subject, problem)) = problems.try_next().await? {
            let Subject::Document(uri) = subject else { continue };
            if is_tried_again(&problem, now)
                && let Some(set) = self.set_left_unread(&uri, &documents).await?
            {
                again.insert(set);
            }
        }
        Ok(again)
    }

    /// The set of a list, dump or package that could not be read and that covers the whole set.
    async fn set_left_unread(
        &self,
        uri: &str,
        documents: &HashMap<SetId, Vec<DocumentRecord>>,
    ) -> Result<Option<SetId>, HarvestError> {
        if let Some(record) = self.catalog.document(uri).await? {
            let is_unread = record.state == DocumentState::Failed && ways::is_baseline(&record.capability);
            return Ok(is_unread.then_some(record.set));
        }
        let Some(record) = self.catalog.package(uri).await? else { return Ok(None) };
        let is_unread = record.state == PackageState::Failed && record.capability == Capability::ResourceDump;
        Ok((is_unread && !is_told_by_lists(&record, documents)).then_some(record.set))
    }

    /// Records for a set whose lists were compared with the catalog whether an absence waits for the next lists.
    pub(crate) fn note_waiting(
        &mut self,
        batch: &mut Batch,
        id: &SetId,
        lists: &Lists,
        waits: bool,
        is_guarded: bool,
    ) {
        let (now, percent) = (self.clock.now(), self.options.max_deletes_percent);
        // A list without a date never confirms an absence.
        let waits = waits && lists.at.is_some();
        self.note(batch, id, |before| {
            waits.then(|| Waiting {
                since: before.map_or(now, |before| before.since),
                looked_at: now,
                uncompared: false,
                guarded_percent: is_guarded.then_some(percent),
            })
        });
    }

    /// Records the sets whose lists were requested in this run, but not compared with the catalog: a later run must
    /// compare them. `compared` are the other sets.
    pub(crate) async fn note_uncompared(&mut self, compared: &HashSet<SetId>) -> Result<(), HarvestError> {
        let now = self.clock.now();
        // Whether any was a list. Unchanged packages are not opened again, so reading a dump once more brings nothing
        // new.
        let mut read: HashMap<SetId, bool> = HashMap::new();
        let mut asked: HashSet<SetId> = HashSet::new();
        let mut doubtful: HashSet<SetId> = HashSet::new();
        for (uri, record) in queue::documents(&self.catalog).await? {
            if record.run != self.run.id || !ways::is_baseline(&record.capability) {
                continue;
            }
            // No conclusion is possible from a doubtful document or its parts, however often it is read.
            if record.doubtful {
                doubtful.insert(record.set.clone());
            }
            let is_news = !self.unmodified.contains(&uri) && record.is_read_whole();
            if is_news {
                *read.entry(record.set.clone()).or_default() |= record.capability == Capability::ResourceList;
            }
            asked.insert(record.set);
        }
        let mut batch = Batch::new();
        for id in asked.iter().filter(|id| !compared.contains(*id)) {
            let Some(set) = self.sets.get(id) else { continue };
            let may_tell = set.may_be_held() && !set.doubtful && !doubtful.contains(id);
            let is_list = read.get(id).copied().filter(|_| may_tell);
            self.note(&mut batch, id, |before| {
                let fresh = is_list.map(|uncompared| Waiting {
                    since: now,
                    looked_at: now,
                    uncompared,
                    guarded_percent: None,
                });
                match before {
                    Some(before) => {
                        let uncompared = before.uncompared || is_list == Some(true);
                        Some(Waiting { looked_at: now, uncompared, ..before })
                    }
                    None => fresh,
                }
            });
        }
        self.commit(batch).await
    }

    fn note(
        &mut self,
        batch: &mut Batch,
        id: &SetId,
        waiting: impl FnOnce(Option<Waiting>) -> Option<Waiting>,
    ) {
        let Some(set) = self.sets.get_mut(id) else { return };
        let before = set.waiting;
        set.waiting = waiting(before);
        if set.waiting != before {
            batch.put_set(id, set);
        }
    }

    /// Whether a set's lists must be read whole even if the server says that they did not change.
    pub(crate) fn is_uncompared(&self, set: &SetId) -> bool {
        let waiting = self.sets.get(set).and_then(|set| set.waiting);
        self.options.absent != Absent::Keep && waiting.is_some_and(|waiting| waiting.uncompared)
    }
}

/// Whether a full rescan of a set is due.
pub(crate) fn is_due(set: &SetRecord, options: &HarvestOptions, now: Timestamp) -> bool {
    let Some(waiting) = set.waiting.filter(|_| options.absent != Absent::Keep) else { return false };
    // The operator has approved what the deletion guard asked for.
    let is_allowed = waiting.guarded_percent.is_some_and(|percent| options.max_deletes_percent > percent);
    is_allowed || waiting.is_due(now)
}

/// Whether the run that could not read a package read the set's Resource Lists whole, which list the same resources.
pub(crate) fn is_told_by_lists(
    package: &PackageRecord,
    documents: &HashMap<SetId, Vec<DocumentRecord>>,
) -> bool {
    documents.get(&package.set).is_some_and(|documents| ways::is_listed(package.run, documents))
}

/// Whether a failed document or package is retried: by the next run, and less often the longer it fails.
fn is_tried_again(problem: &ProblemRecord, now: Timestamp) -> bool {
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
    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + hour * 3_600).unwrap()
    }

    fn waiting(guarded_percent: Option<u8>) -> SetRecord {
        let waiting = Waiting { since: at(0), looked_at: at(10), uncompared: false, guarded_percent };
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
            mend: false,
        };
        assert!(is_tried_again(&failed(5, 5, None), at(5)));
        assert!(!is_tried_again(&failed(0, 5, None), at(9)));
        assert!(is_tried_again(&failed(0, 5, None), at(10)));
        assert!(!is_tried_again(&failed(5, 5, Some(8)), at(7)));
        assert!(is_tried_again(&failed(0, 7, Some(8)), at(8)));
    }
}
