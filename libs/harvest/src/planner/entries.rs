//! Plans entries: each becomes a pending record or a queued document, depending on the current state.

use std::collections::HashMap;

use catalog::Batch;
use model::{
    ChangeTimes, DocumentRecord, HomeSite, ProblemReason, ResourceRecord, ResourceUri, SetId, Validators,
};
use planning::follow::{self, AfterChange, BesideTarget, Merged};
use planning::{
    ByUri, CurrentState, Decision, EntryContext, Horizon, ListedEntry, decide, is_settled_part,
    queued_document, strategy,
};
use resourcesync::{Datetime, Entry, Item, Quirk};

use crate::adopt;
use crate::error::HarvestError;
use crate::planner::admission::{is_admitted, is_wanted, leave_to_links};
use crate::planner::apply::{apply, leaves_alone, listed};
use crate::planner::follow::FollowedLinks;
use crate::planner::planned::Plans;
use crate::planner::{Planner, follow as links, missed_notifications, rescan};
use crate::run::RunContext;

/// Entries, and the stored records of their resources.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// In document order.
    pub(crate) planned: Vec<ListedEntry>,
    pub(crate) records: ByUri<ResourceRecord>,
    /// URIs of the entries that may have a pending record already.
    pub(crate) may_be_pending: Vec<ResourceUri>,
    /// Bytes of spooled entries.
    pub(crate) bytes: usize,
}

impl Planner {
    /// Turns entries of a list into pending records if they need work. Returns the changes of all entries, including
    /// those of excluded resources.
    pub(crate) async fn plan_entries(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        context: &EntryContext,
        items: Vec<Item>,
    ) -> Result<ChangeTimes, HarvestError> {
        self.plan_entries_beside(ctx, batch, context, items, ByUri::default()).await
    }

    /// The same, if the catalog was asked for the records of some resources already.
    pub(crate) async fn plan_entries_beside(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        context: &EntryContext,
        items: Vec<Item>,
        known: ByUri<Option<Box<ResourceRecord>>>,
    ) -> Result<ChangeTimes, HarvestError> {
        ctx.know_publications_of(&items).await?;
        let (planned, changes) = self.read_entries(ctx, batch, context, items, None);
        let mut uris: Vec<ResourceUri> = planned.iter().map(|planned| planned.uri.clone()).collect();
        uris.sort_unstable();
        uris.dedup();
        let may_be_pending: Vec<_> = uris.iter().filter(|uri| ctx.may_be_pending(uri)).cloned().collect();
        uris.retain(|uri| !known.contains_key(uri));
        let records = ctx.records_of(&uris).await?;
        let records = uris.into_iter().zip(records).chain(known);
        let records = records.filter_map(|(uri, record)| Some((uri, *record?))).collect();
        self.decide_all(ctx, batch, Entries { planned, records, may_be_pending, bytes: 0 }).await?;
        Ok(changes)
    }

    /// Parses entries of a list, for which publications are known. Returns the wanted entries, and the changes of all
    /// entries. Counts each entry. Records the names that they list, except those that are spooled by the document with
    /// the number `spooled`.
    pub(crate) fn read_entries(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        context: &EntryContext,
        items: Vec<Item>,
        spooled: Option<usize>,
    ) -> (Vec<ListedEntry>, ChangeTimes) {
        let mut changes = ChangeTimes::default();
        let home = HomeSite::of(&ctx.entry);
        let mut entries: Vec<ListedEntry> = Vec::with_capacity(items.len());
        for item in items {
            let entry = match item {
                Item::Entry(entry) => *entry,
                Item::Bad(bad) => {
                    ctx.bad_entry(batch, &context.document, &bad);
                    continue;
                }
            };
            let is_wanted = is_wanted(ctx, &home, &entry.loc);
            let position = entry.position;
            match context.read(entry) {
                Ok(planned) => {
                    let is_wanted = is_wanted && is_admitted(ctx, &home, &planned);
                    planned.listing.change_time.into_iter().for_each(|time| changes.add(time));
                    if planned.listing.change.is_none() && (spooled.is_none() || !is_wanted) {
                        self.reconciler.note_name(ctx, &context.document, &context.set, &planned.uri);
                    }
                    if !is_wanted {
                        self.name_links(ctx, context, &planned);
                        continue;
                    }
                    let FollowedLinks { entries: followed, instead } =
                        self.follow(ctx, batch, context, &planned, position);
                    if planned.listing.change.is_none() && spooled.is_none() {
                        for linked in &followed {
                            self.reconciler.note_name(ctx, &context.document, &context.set, &linked.uri);
                        }
                    }
                    if instead {
                        // Not absent, and not requested either.
                        if planned.listing.change.is_none() {
                            self.reconciler.note_name(ctx, &context.document, &context.set, &planned.uri);
                        }
                        leave_to_links(ctx, &home, &planned);
                    } else {
                        entries.push(planned);
                    }
                    entries.extend(followed);
                }
                Err(_) if !is_wanted => {}
                Err(error) => {
                    let at = format!("{}#{}:{}", context.document, position.line, position.column);
                    ctx.entry_problem(batch, at, ProblemReason::BadUri, &error.to_string());
                }
            }
        }
        (entries, changes)
    }

    /// Decides about entries in order, and plans them.
    pub(crate) async fn decide_all(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        entries: Entries,
    ) -> Result<(), HarvestError> {
        self.decide_with(ctx, batch, entries, AfterChange::default()).await
    }

    /// The same, and settles what changes that were planned before mean for the targets of their links.
    pub(crate) async fn decide_with(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        entries: Entries,
        before: AfterChange,
    ) -> Result<(), HarvestError> {
        let Entries { planned, mut records, may_be_pending, .. } = entries;
        let Merged { entries: planned, left_out, contradicting } = follow::merge_links(planned);
        ctx.run.counters.superseded += left_out;
        note_contradictions(ctx, contradicting);
        let pending = if may_be_pending.is_empty() {
            Vec::new()
        } else {
            ctx.catalog().await?.pending_many(&may_be_pending).await?
        };
        let mut plans = Plans::of(may_be_pending.into_iter().zip(pending), planned.len());
        let mut after = decide_each(ctx, batch, planned, &mut records, &mut plans).await?;
        after.extend(before);
        if !after.is_empty() {
            links::look_up(ctx, &after, &mut records, &mut plans).await?;
            let Merged { entries: again, .. } = follow::merge_links(std::mem::take(&mut after.again));
            ctx.run.counters.linked += again.len() as u64;
            decide_each(ctx, batch, again, &mut records, &mut plans).await?;
            for ended in after.ended {
                links::end_link(ctx, batch, ended, &mut records, &mut plans);
            }
        }
        plans.write(ctx, batch);
        Ok(())
    }

    /// Queues the documents that an index lists, except closed ones whose same version was read whole before.
    pub(crate) async fn queue_children(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        index: &str,
        parent: &DocumentRecord,
        entries: Vec<Entry>,
    ) -> Result<(), HarvestError> {
        let horizon = Horizon::at(ctx.clock.now());
        let certain = |time: Option<Datetime>| time.and_then(|time| horizon.certain_instant(&time));
        for entry in entries {
            let until = certain(entry.metadata.until);
            let before = ctx.catalog().await?.document(&entry.loc).await?;
            let is_settled = |known: &DocumentRecord| {
                is_settled_part(known, until) && ctx.selection.covers(known.selection)
            };
            if before.as_ref().is_some_and(|known| known.run == ctx.run.id || is_settled(known)) {
                continue;
            }
            let from = certain(entry.metadata.from);
            let mut child = queued_document(ctx.run.id, &parent.set, &parent.capability, before);
            if !child.tells_changes() {
                // Its index has changed. Absences need all parts to be read.
                child.validators = Validators::default();
            }
            child.parent = Some(index.to_owned());
            child.from = from;
            // A part of an archived index is closed too. One of which no end is known covers nothing.
            child.archived_until = parent.archived_until.and(until.or(from));
            batch.put_document(&entry.loc, &child);
            self.reading.budget.queue(1);
        }
        Ok(())
    }
}

/// Decides about entries in order. Returns what the changes among them mean for the targets of links.
async fn decide_each(
    ctx: &mut RunContext,
    batch: &mut Batch,
    planned: Vec<ListedEntry>,
    records: &mut ByUri<ResourceRecord>,
    plans: &mut Plans,
) -> Result<AfterChange, HarvestError> {
    let problems = if ctx.problems.any_ignored {
        ctx.problems_of(&planned.iter().map(|planned| planned.uri.clone()).collect::<Vec<_>>()).await?
    } else {
        planned.iter().map(|_| None).collect()
    };
    let mut after = AfterChange::default();
    let mut missed: HashMap<SetId, Vec<_>> = HashMap::new();
    for (planned, problem) in planned.into_iter().zip(&problems) {
        let uri = planned.uri.clone();
        let record = records.get(&uri);
        let set = &planned.listing.set;
        let is_known = record.is_some_and(|record| record.is_present()) || plans.get(&uri).is_some();
        if !is_known && ctx.options.filter.leaves_open(&planned) {
            // Nothing says that it is wanted, and no list that did is known.
            ctx.run.counters.superseded += 1;
            continue;
        }
        let known = CurrentState {
            record,
            pending: plans.get(&uri),
            baseline_at: ctx.sets.get(set).and_then(strategy::baseline_for_changes),
        };
        let is_linked = planned.listing.linked.is_some();
        let planned = if is_linked {
            match follow::beside_target(planned, known) {
                BesideTarget::Open(planned) => *planned,
                BesideTarget::Listed { contradicts } => {
                    ctx.run.counters.superseded += 1;
                    note_contradictions(ctx, u64::from(contradicts));
                    continue;
                }
                BesideTarget::Planned(linked) => {
                    ctx.run.counters.superseded += 1;
                    plans.mark(&uri, linked);
                    continue;
                }
            }
        } else {
            planned
        };
        let decision = decide(&planned.declaration, &planned.listing, planned.moment, known);
        let adopted = adopt::to_read_again(ctx, &planned, decision, record);
        let decision = if adopted.is_some() { Decision::Fetch } else { decision };
        let taker = adopted.is_some().then(|| uri.clone());
        if !is_linked
            && let Some(change) = missed_notifications::missed(ctx, &planned, decision, record, known.pending)
        {
            missed.entry(planned.listing.set.clone()).or_default().push((uri.clone(), change));
        }
        after.extend(ctx.options.follow.after_change(&ctx.options.filter, &planned, decision, record));
        let is_held = record.is_some_and(ResourceRecord::is_present);
        if decision == Decision::Delete && !is_held && ctx.options.follow.has_instead() {
            // Its links may have led to what was fetched in its place, and no record has them.
            rescan::wait_for_lists(ctx, batch, &planned.listing.set);
        }
        let shared = links::shared(&planned, decision, record, plans);
        if let Some(shared) = &shared {
            batch.put_resource(&uri, shared);
        }
        let is_left_alone = leaves_alone(ctx, batch, &planned, decision, record, problem.as_deref(), plans);
        let is_listed = is_left_alone || decision == Decision::Unchanged;
        // An entry of another set may follow.
        let noted = record.filter(|_| is_listed).and_then(|record| listed(record, &planned.listing));
        let noted = noted.or(shared).map(|record| (uri, record));
        if !is_left_alone {
            apply(ctx, batch, planned, decision, record, plans);
        }
        if let Some((stored, uri)) = adopted.zip(taker)
            && let Some(plan) = plans.get_mut(&uri)
        {
            adopt::take(plan, &uri, stored);
        }
        records.extend(noted);
    }
    missed_notifications::note_missed(ctx, batch, missed).await?;
    Ok(after)
}

/// Counts links that declare other bytes of a listed resource than its own entry.
pub(crate) fn note_contradictions(ctx: &mut RunContext, times: u64) {
    if times > 0 {
        ctx.run.counters.add_quirk(Quirk::LinkContradicts.as_str(), times);
    }
}
