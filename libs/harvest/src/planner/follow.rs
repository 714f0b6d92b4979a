//! Follows links: an entry's links that the operator's rules select become entries of the same document
//! (docs/adr/0068). What they lead to is planned, found absent and deleted like what lists name.

use catalog::Batch;
use model::{
    Absence, Action, Linked, Links, Listing, PendingRecord, ProblemReason, Provenance, ResourceRecord,
    ResourceUri, SetId, Why, counted,
};
use planning::follow::{AfterChange, EndedLink, Followed};
use planning::pages;
use planning::{ByUri, Decision, EntryContext, ListedEntry};
use resourcesync::Position;

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::planner::entries::Entries;
use crate::planner::planned::Plans;
use crate::run::RunContext;

/// The entries of an entry's links.
#[derive(Debug, Default)]
pub(crate) struct FollowedLinks {
    pub(crate) entries: Vec<ListedEntry>,
    /// Whether one of them is fetched in place of the resource that has the link.
    pub(crate) instead: bool,
}

impl Planner {
    /// The entries of a wanted entry's links. Those beyond a limit are a problem of the entry; their targets are named
    /// all the same, so that none counts as absent.
    pub(crate) fn follow(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        context: &EntryContext,
        entry: &ListedEntry,
        position: Position,
    ) -> FollowedLinks {
        if ctx.options.follow.is_empty() || ctx.options.filter.leaves_open(entry) {
            return FollowedLinks::default();
        }
        let known = self.reading.unasked.contains(&entry.uri).then(|| pages::without_page(entry));
        let entry = known.as_ref().unwrap_or(entry);
        let Followed { mut entries, mut beyond, left_out, unfit, mut instead } =
            ctx.options.follow.follow(&ctx.options.filter, entry);
        let most = entries.len();
        let many = beyond.len() + entries.len();
        let is_beyond = !beyond.is_empty();
        let (room, met) = self.reading.budget.take_links(&ctx.options.limits, entries.len());
        instead &= room == entries.len();
        beyond.extend(entries.drain(room..).map(|linked| linked.uri));
        if entry.listing.change.is_none() {
            let names = beyond.iter().chain(&left_out);
            names.for_each(|uri| self.reconciler.note_name(ctx, &context.document, &context.set, uri));
        }
        let at = || match position.line {
            // A record of OAI-PMH has no place in a document.
            0 => format!("{}#{}", context.document, entry.uri),
            line => format!("{}#{line}:{}", context.document, position.column),
        };
        if let Some(met) = met {
            // Once: what follows is beyond the same limit.
            if !std::mem::replace(&mut self.reading.has_met_links, true) {
                ctx.entry_problem(batch, at(), met.reason(), &met.to_string());
            }
        } else if is_beyond {
            let links = counted(many as u64, "link that is", "links that are");
            let why = format!(
                "the entry has {links} to be followed; {most} of them are. If this Source is to be trusted, allow more \
                 with --follow-max or the max of a --follow-rule, in a fleet with those of the Source"
            );
            ctx.entry_problem(batch, at(), ProblemReason::LimitLinks, &why);
        } else if let Some((link, error)) = unfit {
            let why = format!("the link {} to {} is not followed: {error}", link.rel, link.href);
            ctx.entry_problem(batch, at(), ProblemReason::BadUri, &why);
        }
        ctx.run.counters.linked += entries.len() as u64;
        FollowedLinks { entries, instead }
    }

    /// Names what the links of an entry lead to that the operator's filter leaves out. Other options stored it, and it
    /// is not absent.
    pub(crate) fn name_links(&mut self, ctx: &mut RunContext, context: &EntryContext, entry: &ListedEntry) {
        if ctx.options.follow.is_empty() || entry.listing.change.is_some() {
            return;
        }
        for uri in ctx.options.follow.follow(&ctx.options.filter, entry).targets() {
            self.reconciler.note_name(ctx, &context.document, &context.set, &uri);
        }
    }

    /// Names what links lead to that are followed, for a list that names the resource with the links.
    pub(crate) fn name_targets(
        &mut self,
        ctx: &mut RunContext,
        document: &str,
        set: &SetId,
        links: Option<&Links>,
    ) {
        if ctx.options.follow.is_empty() {
            return;
        }
        let links = links.map(Links::to_vec).unwrap_or_default();
        let targets: Vec<ResourceUri> = ctx.options.follow.targets(&links).collect();
        for uri in targets {
            self.reconciler.note_name(ctx, document, set, &uri);
        }
    }

    /// Plans entries of links that came with members of a package, except those of the members themselves, and what
    /// changes among the members mean for the targets of their links.
    pub(crate) async fn plan_linked(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        planned: Vec<ListedEntry>,
        after: AfterChange,
    ) -> Result<(), HarvestError> {
        if planned.is_empty() && after.is_empty() {
            return Ok(());
        }
        let mut uris: Vec<ResourceUri> = planned.iter().map(|entry| entry.uri.clone()).collect();
        uris.sort_unstable();
        uris.dedup();
        let found = ctx.records_of(&uris).await?;
        let records = uris.iter().cloned().zip(found).filter_map(|(uri, record)| Some((uri, *record?)));
        let records = records.collect();
        let entries = Entries { planned, records, may_be_pending: uris, bytes: 0 };
        self.decide_with(ctx, batch, entries, after).await
    }
}

/// Reads the records and plans of the targets of links, as far as they are not known yet.
pub(crate) async fn look_up(
    ctx: &mut RunContext,
    after: &AfterChange,
    records: &mut ByUri<ResourceRecord>,
    plans: &mut Plans,
) -> Result<(), HarvestError> {
    let again = after.again.iter().map(|entry| &entry.uri);
    let mut uris: Vec<ResourceUri> =
        again.chain(after.ended.iter().map(|ended| &ended.uri)).cloned().collect();
    uris.sort_unstable();
    uris.dedup();
    let unplanned: Vec<ResourceUri> = uris.iter().filter(|uri| !plans.has_met(uri)).cloned().collect();
    uris.retain(|uri| !records.contains_key(uri));
    let found = ctx.records_of(&uris).await?;
    records.extend(uris.into_iter().zip(found).filter_map(|(uri, record)| Some((uri, *record?))));
    let pending = ctx.catalog().await?.pending_many(&unplanned).await?;
    plans.learn(unplanned.into_iter().zip(pending));
    Ok(())
}

/// An entry of a link that is older than what is known of its target asks for nothing. But its resource links to the
/// target too, so the target does not end with the first resource. Marks the plan, and returns the marked record.
pub(crate) fn shared(
    entry: &ListedEntry,
    decision: Decision,
    record: Option<&ResourceRecord>,
    plans: &mut Plans,
) -> Option<ResourceRecord> {
    entry.listing.linked.as_ref().filter(|linked| linked.shared && decision == Decision::Stale)?;
    let mark = |first: &Linked| Box::new(Linked { shared: true, ..first.clone() });
    if let Some(first) = plans.get(&entry.uri).and_then(|plan| plan.listing.linked.as_deref()).map(mark) {
        plans.mark(&entry.uri, first);
    }
    let record = record.filter(|record| record.is_present())?;
    let first = record.listing.linked.as_deref().filter(|first| !first.shared)?;
    let listing = Listing { linked: Some(mark(first)), ..record.listing.clone() };
    Some(ResourceRecord { listing, ..record.clone() })
}

/// Settles what a resource does not link to any more. If it was deleted and nothing else links to the target, the
/// target is deleted with it. Otherwise lists must tell whether anything still links to it.
pub(crate) fn end_link(
    ctx: &mut RunContext,
    batch: &mut Batch,
    ended: EndedLink,
    records: &mut ByUri<ResourceRecord>,
    plans: &mut Plans,
) {
    let EndedLink { uri, listing, is_deleted } = ended;
    let Some(link) = listing.linked.as_deref() else { return };
    let is_of = |held: Option<&Linked>| held.is_some_and(|held| held.from == link.from && !held.shared);
    if is_deleted && plans.get(&uri).is_some_and(|plan| is_of(plan.listing.linked.as_deref())) {
        plans.give_up(&uri);
        ctx.run.counters.superseded += 1;
    }
    let Some(record) = records.get_mut(&uri).filter(|record| record.is_present()) else { return };
    let Some(held) = record.listing.linked.as_deref().filter(|held| held.from == link.from) else { return };
    if is_deleted && !held.shared {
        let declaration = record.declaration.clone();
        let account = Provenance::of(Why::Deleted);
        let pending = PendingRecord::new(ctx.next_seq(), Action::Delete, declaration, listing, account);
        plans.put(uri, Box::new(pending));
        ctx.run.counters.planned += 1;
    } else if record.absent.is_none() {
        let document = listing.document.as_ref().to_owned();
        record.absent = Some(Absence { document, at: listing.as_of, seen_at: ctx.clock.now() });
        batch.put_resource(&uri, record);
        ctx.run.counters.absent += 1;
        super::rescan::wait_for_lists(ctx, batch, &listing.set);
    }
}
