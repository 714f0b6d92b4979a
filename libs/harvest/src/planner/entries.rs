//! Plans entries: each becomes a pending record or a queued document, depending on the current state.

use std::collections::HashMap;

use catalog::Batch;
use model::{
    Action, ChangeTimes, Declaration, DocumentRecord, HomeSite, Listing, MirrorPlan, Mirrors, PendingRecord,
    ProblemReason, ProblemRecord, Provenance, ResourceRecord, ResourceUri, SetId, Subject, Validators,
};
use planning::follow::{self, AfterChange, BesideTarget, Merged};
use planning::{
    ByUri, CurrentState, Decision, EntryContext, Horizon, ListedEntry, decide, is_settled_part, mirrors,
    patches, queued_document, relinked, strategy, why,
};
use resourcesync::{Datetime, Entry, Item, Quirk};

use crate::adopt;
use crate::error::HarvestError;
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

    /// Parses entries of a list. Returns the wanted entries, and the changes of all entries. Counts each entry.
    /// Records the names that they list, except those that are spooled by the document with the number `spooled`.
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

/// Whether the resource of an entry is wanted. Counts it as listed if so, and as foreign if it belongs to another
/// site.
pub(crate) fn is_wanted(ctx: &mut RunContext, home: &HomeSite, uri: &str) -> bool {
    let filter = &ctx.options.filter;
    let counters = &mut ctx.run.counters;
    let is_wanted = filter.takes(uri);
    counters.listed += u64::from(is_wanted);
    counters.foreign += u64::from(is_wanted && home.is_foreign(uri));
    counters.foreign_left_out += u64::from(!is_wanted && filter.leaves_out_as_foreign(uri));
    is_wanted
}

/// Whether an entry of a wanted URI is wanted for what it says of its resource. If not, it no longer counts as listed.
pub(crate) fn is_admitted(ctx: &mut RunContext, home: &HomeSite, entry: &ListedEntry) -> bool {
    let is_admitted = ctx.options.filter.admits(entry);
    if !is_admitted {
        let is_loop = ctx.options.filter.is_loop(entry);
        let counters = &mut ctx.run.counters;
        counters.listed -= 1;
        counters.foreign -= u64::from(home.is_foreign(entry.uri.as_str()));
        counters.loops += u64::from(is_loop);
        counters.out_of_scope += u64::from(!is_loop);
    }
    is_admitted
}

/// Counts links that declare other bytes of a listed resource than its own entry.
pub(crate) fn note_contradictions(ctx: &mut RunContext, times: u64) {
    if times > 0 {
        ctx.run.counters.add_quirk(Quirk::LinkContradicts.as_str(), times);
    }
}

/// Leaves a resource to what its links lead to, by the operator's rule. It no longer counts as listed.
fn leave_to_links(ctx: &mut RunContext, home: &HomeSite, entry: &ListedEntry) {
    let counters = &mut ctx.run.counters;
    counters.listed -= 1;
    counters.foreign -= u64::from(home.is_foreign(entry.uri.as_str()));
    counters.by_rule += 1;
}

/// Whether an entry is about the version of a resource whose problem the operator ignores. Nothing is planned for
/// it then.
pub(crate) fn leaves_alone(
    ctx: &mut RunContext,
    batch: &mut Batch,
    planned: &ListedEntry,
    decision: Decision,
    record: Option<&ResourceRecord>,
    problem: Option<&ProblemRecord>,
    plans: &mut Plans,
) -> bool {
    // A stored resource that is unreliable is repaired all the same.
    let is_mended = plans.get(&planned.uri).is_some_and(|plan| plan.repair);
    let is_ignored = decision == Decision::Fetch
        && !is_mended
        && problem.is_some_and(|problem| {
            problem.ignored.is_some() && problem.is_about(&planned.declaration, &planned.listing)
        });
    if is_ignored {
        ctx.run.counters.ignored += 1;
        note_listed(ctx, batch, &planned.uri, record, &planned.listing);
        if plans.give_up(&planned.uri) {
            ctx.run.counters.superseded += 1;
        }
    }
    is_ignored
}

pub(crate) fn apply(
    ctx: &mut RunContext,
    batch: &mut Batch,
    planned: ListedEntry,
    decision: Decision,
    record: Option<&ResourceRecord>,
    plans: &mut Plans,
) {
    let ListedEntry { uri, mut declaration, listing, .. } = planned;
    let action = match decision {
        Decision::Stale => {
            ctx.run.counters.unchanged += 1;
            return;
        }
        Decision::Unchanged => {
            // A record with the same declaration does not settle a repair.
            if !plans.get(&uri).is_some_and(|plan| plan.repair) {
                ctx.run.counters.unchanged += 1;
                if plans.give_up(&uri) {
                    ctx.run.counters.superseded += 1;
                }
                if ctx.problems.any {
                    batch.delete_problem(&Subject::Resource(uri.as_str().to_owned()));
                }
            }
            note_listed(ctx, batch, &uri, record, &listing);
            return;
        }
        Decision::Delete => Action::Delete,
        Decision::Fetch | Decision::Ask => match uri.origin() {
            Ok(origin) => Action::Fetch { origin },
            Err(error) => {
                ctx.entry_problem(batch, uri.as_str().to_owned(), ProblemReason::BadUri, &error.to_string());
                return;
            }
        },
    };
    if decision == Decision::Ask
        && let Some(before) = plans.get(&uri)
    {
        // If the resource exists after all, it is verified against its earlier declaration.
        declaration.clone_from(&before.declaration);
    }
    // Whether the candidate matches the current declaration is checked when the last entry about it is read.
    let earlier = plans.get(&uri);
    let candidate = earlier.filter(|_| decision == Decision::Fetch).and_then(|plan| plan.candidate.clone());
    let tried = earlier.map(|plan| plan.account.tried.clone()).unwrap_or_default();
    let account = Provenance { tried, ..Provenance::of(why(decision, &declaration, record)) };
    let repair = earlier.is_some_and(|plan| plan.repair);
    let mirror = first_mirror(ctx, decision, &uri, &declaration, &listing);
    let at = mirror.as_ref().and_then(|plan| plan.at.as_ref()).and_then(|mirror| mirror.url.origin().ok());
    let action = at.map_or(action, |origin| Action::Fetch { origin });
    let patch = match decision {
        Decision::Fetch if !repair => {
            patches::plan(ctx.options.patches, &uri, &declaration, &listing, record, earlier).map(Box::new)
        }
        _ => None,
    };
    let pending = PendingRecord {
        candidate,
        repair,
        mirror,
        patch,
        ..PendingRecord::new(ctx.next_seq(), action, declaration, listing, account)
    };
    if plans.put(uri, Box::new(pending)) {
        ctx.run.counters.superseded += 1
    } else {
        ctx.run.counters.planned += 1
    }
}

/// The mirror that is requested first, where the operator wants one before the resource's own URI.
fn first_mirror(
    ctx: &RunContext,
    decision: Decision,
    uri: &ResourceUri,
    declaration: &Declaration,
    listing: &Listing,
) -> Option<Box<MirrorPlan>> {
    let mode = ctx.options.mirrors;
    if decision != Decision::Fetch || !matches!(mode, Mirrors::Prefer | Mirrors::Spread) {
        return None;
    }
    let usable = mirrors::usable(mode, uri, declaration, listing, &ctx.options.filter);
    mirrors::begin(mode, uri, &usable).map(Box::new)
}

/// Records that a list of this set contains a stored resource, which ends an absence, and the links that it gives. Sets
/// that do not count any more are left out.
fn note_listed(
    ctx: &RunContext,
    batch: &mut Batch,
    uri: &ResourceUri,
    record: Option<&ResourceRecord>,
    listing: &Listing,
) {
    let Some(record) = record else { return };
    let noted = if record.sets.iter().all(|set| ctx.counts(set)) {
        listed(record, listing)
    } else {
        let mut record = record.clone();
        record.sets.retain(|set| ctx.counts(set));
        listed(&record, listing)
    };
    if let Some(record) = noted {
        batch.put_resource(uri, &record);
    }
}

/// The updated record of a stored resource with this listing; none if nothing changes.
pub(crate) fn listed(record: &ResourceRecord, listing: &Listing) -> Option<ResourceRecord> {
    let is_of_set = record.sets.contains(&listing.set);
    let relinked = relinked(record, listing);
    if !record.is_present() || is_of_set && record.absent.is_none() && relinked.is_none() {
        return None;
    }
    let mut record = ResourceRecord { absent: None, ..record.clone() };
    if !is_of_set {
        record.sets.push(listing.set.clone());
    }
    if let Some(listing) = relinked {
        record.listing = listing;
    }
    Some(record)
}
