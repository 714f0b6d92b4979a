//! Stored resources that a set's lists no longer list. An absence is not a deletion. It must be seen twice, in
//! complete lists without doubtful entries, and for few resources at a time. Otherwise all resources are kept, and
//! the run reports that.

mod resumed;
mod unlisted;

use std::collections::HashSet;

use catalog::Batch;
use jiff::Timestamp;
use model::{
    Absence, Absent, Action, DocumentRecord, DocumentState, Listing, OaiDeletions, PageState, PendingRecord,
    ProblemReason, Provenance, ResourceRecord, ResourceUri, SetId, SetRecord, Subject, Validators, Why,
};
use planning::{
    AbsenceCount, GuardReport, Lists, ManyAbsent, is_listed_by_others, is_newer, is_stored_in, strategy,
};
use reconcile::{AbsentResources, AbsentSpool};
use resourcesync::Capability;

use crate::error::HarvestError;
use crate::planner::{Planner, pages};
use crate::run::RunContext;

/// Records per batch.
const BATCH: usize = 500;
impl Planner {
    /// Starts to record the names in a set's lists, if an absence can have a meaning. An empty list counts too.
    pub(crate) fn expect_names(&mut self, ctx: &mut RunContext, record: &DocumentRecord) {
        let is_list = strategy::is_baseline(&record.capability);
        let may_be_held = ctx.sets.get(&record.set).is_some_and(SetRecord::may_be_held);
        if is_list && may_be_held && ctx.options.absent != Absent::Keep {
            self.reconciler.expect_names(&record.set);
        }
    }

    /// Queues the unmodified lists of a set again if one of its lists was read, because an absence needs all lists of
    /// the set. Returns whether it queued any.
    pub(crate) async fn queue_unread_lists(&mut self, ctx: &mut RunContext) -> Result<bool, HarvestError> {
        let mut batch = Batch::new();
        for uri in std::mem::take(&mut self.reading.unmodified) {
            let Some(record) = ctx.catalog().await?.document(&uri).await? else { continue };
            let is_seen = self.reconciler.records_names_of(&record.set);
            if is_seen && record.capability == Capability::ResourceList && !record.doubtful {
                self.uncount_unmodified(ctx, &uri, &record);
                let queued = DocumentRecord {
                    state: DocumentState::Queued,
                    validators: Validators::default(),
                    ..record
                };
                batch.put_document(&uri, &queued);
            } else {
                self.reading.unmodified.insert(uri);
            }
        }
        let any = !batch.is_empty();
        ctx.commit(batch).await?;
        Ok(any)
    }

    /// Settles the absences: stored resources that the lists omit.
    pub(crate) async fn settle_absences(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        Box::pin(self.reconcile_names(ctx)).await?;
        let mut compared = HashSet::new();
        for (set, absences) in std::mem::take(&mut self.reconciler.absences) {
            let Some(found) = absences.and_then(|absences| absences.found) else { continue };
            if let Some(lists) = self.whole_lists(ctx, &set).await?
                && self.compare(ctx, &set, &lists, found).await?
            {
                compared.insert(set);
            }
        }
        self.note_uncompared(ctx, &compared).await?;
        self.tell_uncompared(ctx).await
    }

    /// The set's lists, if this run read all of them whole and without doubtful entries.
    async fn whole_lists(&self, ctx: &mut RunContext, set: &SetId) -> Result<Option<Lists>, HarvestError> {
        let (kind, lists) = self.snapshots(ctx, set).await?;
        let Some(known) = ctx.sets.get(set).filter(|known| !known.doubtful) else { return Ok(None) };
        let is_whole = |(uri, record): &(String, DocumentRecord)| {
            record.is_read_whole() && !record.doubtful && self.reading.whole.contains(uri)
        };
        let Some((document, _)) = lists.iter().find(|(_, record)| record.parent.is_none()) else {
            return Ok(None);
        };
        let is_read = |uri: &str| lists.iter().any(|(list, _)| list == uri);
        if !lists.iter().all(is_whole) || !known.documents(&kind).all(is_read) {
            return Ok(None);
        }
        let at = lists.iter().map(|(_, record)| record.at).min().flatten();
        Ok(Some(Lists {
            set: set.clone(),
            document: document.clone(),
            at,
            uris: lists.iter().map(|(uri, _)| uri.clone()).collect(),
        }))
    }

    /// Returns whether there was disk space for it.
    async fn compare(
        &mut self,
        ctx: &mut RunContext,
        set: &SetId,
        lists: &Lists,
        found: AbsentResources,
    ) -> Result<bool, HarvestError> {
        let AbsentResources { held, absent, failed } = found;
        let mut count = AbsenceCount { held, ..AbsenceCount::default() };
        let (Ok(mut absentees), Ok(absent)) = (AbsentSpool::new(), absent.all()) else { return Ok(false) };
        let mut absent = absent.peekable();
        let lists_pages = pages::list_of(ctx, set).is_some();
        while absent.peek().is_some() {
            let uris: Vec<ResourceUri> = absent.by_ref().take(BATCH).collect();
            let records = ctx.catalog().await?.resources_many(&uris).await?;
            for (uri, record) in uris.iter().zip(records) {
                let Some(record) = record.filter(|record| is_stored_in(set, record)) else { continue };
                let at = if lists_pages { page_read_at(ctx, &record).await? } else { lists.at };
                // The operator follows other links now, and that deletes nothing.
                let leaves_out = if lists_pages {
                    pages::rules(ctx).leaves_out(uri, &record)
                } else {
                    ctx.options.follow.leaves_out(uri, &record)
                };
                if !leaves_out && !is_newer(&record.listing, at) {
                    count.absent += 1;
                    if absentees.note(uri.as_str().as_bytes()).is_err() {
                        return Ok(false);
                    }
                    count.to_delete += u64::from(ctx.deletion_guard().is_confirmed(&record, at));
                }
            }
        }
        self.settle_unlisted_failures(ctx, set, lists, failed).await?;
        let before = ctx.run.counters.absent;
        let is_guarded = ctx.deletion_guard().stops(&count);
        let lacks_too_many = !is_guarded && ctx.deletion_guard().warns(&count);
        if is_guarded {
            self.trip(ctx, lists, &count).await?;
        } else if lacks_too_many {
            self.tell_unlisted(ctx, lists, &count).await?;
        }
        if count.to_delete > 0 && !is_guarded && ctx.sets.get(set).is_some_and(promises_deletions) {
            let quirk = oaipmh::Quirk::PromisedDeletesMissing;
            ctx.run.counters.add_quirk(quirk.as_str(), count.to_delete);
        }
        let Ok(absentees) = absentees.all() else { return Ok(false) };
        let mut batch = Batch::new();
        for uri in absentees {
            let Some(record) = ctx.catalog().await?.resource(&uri).await? else { continue };
            if lists_pages {
                let lists = Lists { at: page_read_at(ctx, &record).await?, ..lists.clone() };
                self.settle_absence(ctx, &mut batch, &lists, &uri, record, is_guarded).await?;
            } else {
                self.settle_absence(ctx, &mut batch, lists, &uri, record, is_guarded).await?;
            }
            if batch.len() >= BATCH {
                ctx.commit(std::mem::take(&mut batch)).await?;
            }
        }
        let waits = ctx.run.counters.absent > before;
        self.note_waiting(ctx, &mut batch, set, lists, waits, is_guarded || lacks_too_many);
        ctx.commit(batch).await?;
        Ok(true)
    }

    pub(crate) async fn settle_absence(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        lists: &Lists,
        uri: &ResourceUri,
        mut record: ResourceRecord,
        is_guarded: bool,
    ) -> Result<(), HarvestError> {
        let set = &lists.set;
        if self.is_asked_for(ctx, set, lists, uri).await? {
            return Ok(());
        }
        let delete = ctx.deletion_guard().is_confirmed(&record, lists.at) && !is_guarded;
        if !delete {
            ctx.run.counters.absent += 1;
            // An absence from a list without a date is never confirmed.
            let is_noted = record.absent.as_ref().is_some_and(|seen| seen.at.is_some() || lists.at.is_none());
            if !is_noted {
                let seen_at = ctx.clock.now();
                record.absent = Some(Absence { document: lists.document.clone(), at: lists.at, seen_at });
                batch.put_resource(uri, &record);
            }
        } else if record.sets.iter().any(|other| other != set && ctx.counts(other)) {
            // Other sets still list it.
            record.sets.retain(|other| other != set && ctx.counts(other));
            record.absent = None;
            batch.put_resource(uri, &record);
        } else {
            let listing = Listing {
                document: lists.document.as_str().into(),
                set: set.clone(),
                change: None,
                change_time: None,
                as_of: lists.at,
                latest: None,
                links: None,
                linked: record.listing.linked,
            };
            let account = Provenance::of(Why::Absent);
            let pending =
                PendingRecord::new(ctx.next_seq(), Action::Delete, record.declaration, listing, account);
            ctx.put_pending(batch, uri, &pending);
            ctx.run.counters.planned += 1;
        }
        Ok(())
    }

    /// Whether a pending record still asks for a resource. An older list that omits it does not cancel what a newer
    /// document or another set asks for. A failed resource is pending again. If an earlier list asked for it, this
    /// list answers that.
    async fn is_asked_for(
        &self,
        ctx: &mut RunContext,
        set: &SetId,
        lists: &Lists,
        uri: &ResourceUri,
    ) -> Result<bool, HarvestError> {
        let pending = ctx.catalog().await?.pending(uri).await?;
        Ok(pending.is_some_and(|pending| is_listed_by_others(set, lists, &pending.listing)))
    }

    /// Makes the next run read the lists even if the server says that they did not change.
    async fn read_anew(
        &self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        lists: &Lists,
    ) -> Result<(), HarvestError> {
        for uri in &lists.uris {
            if let Some(record) = ctx.catalog().await?.document(uri).await? {
                batch.put_document(uri, &DocumentRecord { validators: Validators::default(), ..record });
            }
        }
        Ok(())
    }

    /// Records that the lists omit many stored resources. This stays a problem until the lists are read again.
    async fn tell_unlisted(
        &mut self,
        ctx: &mut RunContext,
        lists: &Lists,
        count: &AbsenceCount,
    ) -> Result<(), HarvestError> {
        let unlisted = ManyAbsent {
            document: lists.document.clone(),
            absent: count.absent,
            held: count.held,
            allowed_percent: ctx.options.max_deletes_percent,
        };
        let subject = Subject::Document(lists.document.clone());
        let before = ctx.problem_before(&subject).await?;
        let before = before.filter(|before| before.reason == ProblemReason::NotListed);
        let problem = ctx.problem(before, ProblemReason::NotListed, unlisted.to_string());
        let mut batch = Batch::new();
        ctx.put_problem(&mut batch, &subject, &problem);
        self.read_anew(ctx, &mut batch, lists).await?;
        if problem.ignored.is_none() {
            self.many_absent.push(unlisted);
        }
        ctx.commit(batch).await
    }

    /// Deletes nothing, reports that, and makes the next run read the lists again, in case the operator has approved.
    pub(crate) async fn trip(
        &mut self,
        ctx: &mut RunContext,
        lists: &Lists,
        count: &AbsenceCount,
    ) -> Result<(), HarvestError> {
        let allowed_percent = ctx.options.max_deletes_percent;
        let guard = GuardReport {
            document: lists.document.clone(),
            would_delete: count.to_delete,
            held: count.held,
            allowed_percent,
        };
        let subject = Subject::Document(lists.document.clone());
        let before = ctx.problem_before(&subject).await?;
        let before = before.filter(|before| before.reason != ProblemReason::NotListed);
        let problem = ctx.problem(before, ProblemReason::Guard, guard.to_string());
        let mut batch = Batch::new();
        ctx.put_problem(&mut batch, &subject, &problem);
        self.read_anew(ctx, &mut batch, lists).await?;
        self.guard = Some(guard);
        ctx.commit(batch).await
    }
}

/// Whether each deletion is to be shown: by a repository that keeps them all, in a list of all its records.
fn promises_deletions(set: &SetRecord) -> bool {
    set.oai.as_ref().is_some_and(|list| list.deletions == OaiDeletions::Persistent && list.set.is_none())
}

/// When this run read the landing page that led to a resource; none if it is not listed any more, or if its sitemap
/// tells its links: a list without a date confirms no absence.
async fn page_read_at(
    ctx: &mut RunContext,
    record: &ResourceRecord,
) -> Result<Option<Timestamp>, HarvestError> {
    let Some(linked) = record.listing.linked.as_deref() else { return Ok(None) };
    let page = ctx.catalog().await?.page(&linked.from).await?;
    let read = page.filter(|page| page.run == ctx.run.id && page.state == PageState::Done);
    Ok(read.and_then(|page| page.read_at))
}
