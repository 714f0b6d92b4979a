//! Entries: what one asks for, given what is known, becomes a pending record or a queued document.

use std::collections::HashMap;

use catalog::Batch;
use jiff::Timestamp;
use model::{
    Account, Action, DocumentRecord, Lane, PendingRecord, ProblemReason, ProblemRecord, ResourceRecord,
    ResourceUri, SetId, SetRecord, Subject, Told, Validators,
};
use resourcesync::{Datetime, Entry, Item};

use crate::decide::{Decision, Known, decide, why};
use crate::entry::{Context, Horizon, Planned};
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::queue;

impl Harvest {
    /// Entries of a list become pending records where something is to be done. Gives the changes that they tell of, those of
    /// resources that are not wanted too.
    pub(crate) async fn plan_entries(
        &mut self,
        batch: &mut Batch,
        context: &Context,
        items: Vec<Item>,
    ) -> Result<Told, HarvestError> {
        let mut told = Told::default();
        let mut entries: Vec<Planned> = Vec::with_capacity(items.len());
        for item in items {
            let entry = match item {
                Item::Entry(entry) => *entry,
                Item::Bad(bad) => {
                    self.bad_entry(batch, &context.document, &bad);
                    continue;
                }
            };
            let is_wanted = self.options.filter.takes(&entry.loc);
            self.run.counters.listed += u64::from(is_wanted);
            let position = entry.position;
            match context.read(entry) {
                Ok(planned) => {
                    planned.listing.change_time.into_iter().for_each(|time| told.add(time));
                    if planned.listing.change.is_none() {
                        self.note_named(&context.set, &planned.uri);
                    }
                    entries.extend(is_wanted.then_some(planned));
                }
                Err(_) if !is_wanted => {}
                Err(error) => {
                    let at = format!("{}#{}:{}", context.document, position.line, position.column);
                    self.entry_problem(batch, at, ProblemReason::BadUri, &error.to_string());
                }
            }
        }
        let uris: Vec<ResourceUri> = entries.iter().map(|planned| planned.uri.clone()).collect();
        let records = self.records_of(&uris).await?;
        let pending = match self.has_pending {
            true => self.catalog.pending_many(&uris).await?,
            false => uris.iter().map(|_| None).collect(),
        };
        // Several changes of one resource may stand in one batch: each sees what the one before it planned.
        let mut plans: HashMap<ResourceUri, Option<PendingRecord>> =
            uris.into_iter().zip(pending).filter(|(_, pending)| pending.is_some()).collect();
        let problems = match self.has_ignored {
            true => {
                self.problems_of(&entries.iter().map(|planned| planned.uri.clone()).collect::<Vec<_>>())
                    .await?
            }
            false => entries.iter().map(|_| None).collect(),
        };
        let mut untold = Vec::new();
        let baseline_at = self.sets.get(&context.set).and_then(baseline_for_changes);
        for ((planned, record), problem) in entries.into_iter().zip(&records).zip(&problems) {
            let known = Known {
                record: record.as_ref(),
                pending: plans.get(&planned.uri).and_then(Option::as_ref),
                baseline_at,
            };
            let decision = decide(&planned.declaration, &planned.listing, planned.moment, known);
            let (record, problem) = (record.as_ref(), problem.as_ref());
            if let Some(change) = self.untold(context, &planned, decision, record, known.pending) {
                untold.push((planned.uri.clone(), change));
            }
            if !self.leaves_alone(batch, &planned, decision, record, problem, &mut plans) {
                self.apply(batch, planned, decision, record, &mut plans);
            }
        }
        self.note_untold(batch, &context.set, untold).await?;
        Ok(told)
    }

    /// Whether an entry asks for the very version of a resource whose problem the operator ignores. Nothing is planned for it then.
    pub(crate) fn leaves_alone(
        &mut self,
        batch: &mut Batch,
        planned: &Planned,
        decision: Decision,
        record: Option<&ResourceRecord>,
        problem: Option<&ProblemRecord>,
        plans: &mut HashMap<ResourceUri, Option<PendingRecord>>,
    ) -> bool {
        // What is held and is not to be relied on is mended all the same.
        let is_mended =
            plans.get(&planned.uri).is_some_and(|plan| plan.as_ref().is_some_and(|plan| plan.mend));
        let is_ignored = decision == Decision::Fetch
            && !is_mended
            && problem.is_some_and(|problem| {
                problem.ignored.is_some() && problem.is_about(&planned.declaration, &planned.listing)
            });
        if is_ignored {
            self.run.counters.ignored += 1;
            note_listed(batch, &planned.uri, record, planned.listing.set.clone());
            if let Some(Some(_)) = plans.insert(planned.uri.clone(), None) {
                self.run.counters.moot += 1;
                batch.delete_pending(&planned.uri);
            }
        }
        is_ignored
    }

    pub(crate) fn apply(
        &mut self,
        batch: &mut Batch,
        planned: Planned,
        decision: Decision,
        record: Option<&ResourceRecord>,
        plans: &mut HashMap<ResourceUri, Option<PendingRecord>>,
    ) {
        let Planned { uri, mut declaration, listing, .. } = planned;
        let action = match decision {
            Decision::Stale => {
                self.run.counters.unchanged += 1;
                return;
            }
            Decision::Unchanged => {
                // What is to be mended is not settled by a record that says what the entry says.
                if !plans.get(&uri).is_some_and(|plan| plan.as_ref().is_some_and(|plan| plan.mend)) {
                    self.run.counters.unchanged += 1;
                    if let Some(Some(_)) = plans.insert(uri.clone(), None) {
                        self.run.counters.moot += 1;
                        batch.delete_pending(&uri);
                    }
                    if self.has_problems {
                        batch.delete_problem(&Subject::Resource(uri.as_str().to_owned()));
                    }
                }
                note_listed(batch, &uri, record, listing.set);
                return;
            }
            Decision::Delete => Action::Delete,
            Decision::Fetch | Decision::Ask => match Lane::of(&uri.to_url()) {
                Ok(lane) => Action::Fetch { lane },
                Err(error) => {
                    self.entry_problem(
                        batch,
                        uri.as_str().to_owned(),
                        ProblemReason::BadUri,
                        &error.to_string(),
                    );
                    return;
                }
            },
        };
        if decision == Decision::Ask
            && let Some(Some(before)) = plans.get(&uri)
        {
            // Should it be there after all, it is judged by what was declared of it.
            declaration.clone_from(&before.declaration);
        }
        // Whether the candidate is what is declared now is asked when the last entry about it is read.
        let earlier = plans.get(&uri).and_then(Option::as_ref);
        let candidate =
            earlier.filter(|_| decision == Decision::Fetch).and_then(|plan| plan.candidate.clone());
        let tried = earlier.map(|plan| plan.account.tried.clone()).unwrap_or_default();
        let account = Account { tried, ..Account::of(why(decision, &declaration, record)) };
        let pending = PendingRecord {
            seq: self.next_seq(),
            action,
            declaration,
            listing,
            attempts: 0,
            next_attempt_at: None,
            candidate,
            mend: earlier.is_some_and(|plan| plan.mend),
            account,
        };
        batch.put_pending(&uri, &pending);
        self.has_pending = true;
        match plans.insert(uri, Some(pending)).flatten() {
            None => self.run.counters.planned += 1,
            Some(_) => self.run.counters.moot += 1,
        }
    }

    /// The documents that an index names are queued, unless this very version of a closed one was read whole before.
    pub(crate) async fn queue_children(
        &mut self,
        batch: &mut Batch,
        index: &str,
        parent: &DocumentRecord,
        entries: Vec<Entry>,
    ) -> Result<(), HarvestError> {
        let horizon = Horizon::at(self.clock.now());
        let certain = |time: Option<Datetime>| time.and_then(|time| horizon.certain_instant(&time));
        for entry in entries {
            let until = certain(entry.metadata.until);
            let before = self.catalog.document(&entry.loc).await?;
            if before
                .as_ref()
                .is_some_and(|known| known.run == self.run.id || queue::is_settled_child(known, until))
            {
                continue;
            }
            let from = certain(entry.metadata.from);
            let mut child = queue::queued(self.run.id, &parent.set, &parent.capability, before);
            if !child.tells_changes() {
                // Its index has changed: only parts that are all read tell what is absent from all of them.
                child.validators = Validators::default();
            }
            child.parent = Some(index.to_owned());
            child.from = from;
            batch.put_document(&entry.loc, &child);
        }
        Ok(())
    }
}

/// What is held is named by a list of this set: that ends an absence.
fn note_listed(batch: &mut Batch, uri: &ResourceUri, record: Option<&ResourceRecord>, set: SetId) {
    let is_news = |r: &&ResourceRecord| !r.sets.contains(&set) || r.absent.is_some();
    if let Some(record) = record.filter(|r| r.is_present()).filter(is_news) {
        let mut record = ResourceRecord { absent: None, ..record.clone() };
        if !record.sets.contains(&set) {
            record.sets.push(set);
        }
        batch.put_resource(uri, &record);
    }
}

/// Changes that the baseline contains are not applied again; before there is a baseline, there are none such.
pub(crate) fn baseline_for_changes(set: &SetRecord) -> Option<Timestamp> {
    set.baseline_at.filter(|_| set.has_baseline)
}
