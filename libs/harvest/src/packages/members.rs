//! Entries of a manifest: each is decided like an entry of a list, but its member is stored at once.

use std::collections::{HashMap, HashSet};

use catalog::Batch;
use fixity::Computed;
use model::{
    Action, Assurance, Bitstream, Failure, HomeSite, Links, MemberOutcome, MemberResult, PatchBase,
    PendingRecord, ProblemReason, ProblemRecord, Provenance, ResourceRecord, ResourceUri, StoredBitstream,
};
use planning::follow::AfterChange;
use planning::{CurrentState, Decision, EntryContext, ListedEntry, agree, decide, strategy, why};
use resourcesync::{Entry, Position};

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::planner::admission::{is_admitted, is_wanted};
use crate::planner::apply::{apply, leaves_alone};
use crate::planner::planned::Plans;
use crate::run::RunContext;
use crate::run::problems::subject;
use crate::settler::Settler;
use crate::settler::one_outcome::bitstream;
use crate::settler::outcomes::PriorRecords;

/// Next step for one entry.
enum Step {
    /// Its member has the wanted bytes, and settles this plan.
    Take { pending: PendingRecord, stored: StoredBitstream, assurance: Assurance },
    /// Plan it like an entry of a list. A failed member gives the reason for the request.
    Plan { planned: ListedEntry, decision: Decision, failure: Option<Failure> },
}

/// An entry, the result for its member, and the patch that lies in the package in its place, with its URL.
type WantedMember = (ListedEntry, MemberResult, Option<(String, Box<StoredBitstream>)>);

/// Settles members of a package. Their entries are of different resources.
pub(crate) async fn settle_members(
    ctx: &mut RunContext,
    planner: &mut Planner,
    settler: &mut Settler,
    batch: &mut Batch,
    context: &EntryContext,
    items: Vec<MemberOutcome>,
) -> Result<(), HarvestError> {
    let (members, mut linked) = wanted_members(ctx, planner, batch, context, items);
    let uris: Vec<ResourceUri> = members.iter().map(|(planned, ..)| planned.uri.clone()).collect();
    let is_member: HashSet<&ResourceUri> = uris.iter().collect();
    // A member of the package is listed.
    linked.retain(|entry| !is_member.contains(&entry.uri));
    let mut after = AfterChange::default();
    let records = ctx.records_of(&uris).await?;
    let pending = ctx.plans_of(&uris).await?;
    let problems = ctx.problems_of(&uris).await?;
    let versions = settler.versions_of(ctx, &uris).await?;
    let mut plans = Plans::of(uris.iter().cloned().zip(pending), uris.len());
    let mut steps = Vec::with_capacity(members.len());
    let mut patches = HashMap::new();
    for ((planned, result, patch), held) in members.into_iter().zip(records) {
        let before = plans.get(&planned.uri).cloned();
        let uri = planned.uri.clone();
        patches.extend(patch.map(|patch| (uri.clone(), patch)));
        let step = step(ctx, planned, result, held.as_deref(), before, &mut after);
        steps.push((uri, step, held));
    }
    after.retain(|uri| !is_member.contains(uri));
    show_taken(ctx, settler, &steps).await?;
    for (((uri, step, held), problem), versions) in steps.into_iter().zip(problems).zip(versions) {
        match step {
            Step::Take { pending, stored, assurance } => {
                if plans.has_met(&uri) {
                    ctx.run.counters.superseded += 1
                } else {
                    ctx.run.counters.planned += 1
                }
                let pending = Box::new(pending);
                let before = PriorRecords { pending, record: held, problem, versions };
                settler.take_verified(ctx, batch, &uri, stored, assurance, before);
            }
            Step::Plan { planned, decision, failure } => {
                if leaves_alone(
                    ctx,
                    batch,
                    &planned,
                    decision,
                    held.as_deref(),
                    problem.as_deref(),
                    &mut plans,
                ) {
                    continue;
                }
                apply(ctx, batch, planned, decision, held.as_deref(), &mut plans);
                if let Some((url, stored)) = patches.remove(&uri) {
                    note_patch(plans.get_mut(&uri), &url, *stored);
                }
                if let (Decision::Fetch, Some(failure)) = (decision, failure) {
                    note_bad_member(
                        ctx,
                        batch,
                        &uri,
                        failure,
                        problem.map(|problem| *problem),
                        plans.get_mut(&uri),
                    );
                }
            }
        }
    }
    // By now only resources whose members were not taken have plans.
    plans.write(ctx, batch);
    planner.plan_linked(ctx, batch, linked, after).await
}

/// Notes where the last patch of a plan is stored, if it is this one.
fn note_patch(plan: Option<&mut PendingRecord>, url: &str, stored: StoredBitstream) {
    let step = plan.and_then(|plan| plan.patch.as_mut()).and_then(|patch| patch.steps.last_mut());
    if let Some(step) = step.filter(|step| url.parse().is_ok_and(|url: ResourceUri| url == step.url)) {
        let StoredBitstream { location, computed, .. } = stored;
        step.stored = Some(Box::new(PatchBase { location, computed, media_type: None }));
    }
}

/// Records an unusable member as a problem until the resource itself was requested, and as an attempt in its
/// history.
fn note_bad_member(
    ctx: &mut RunContext,
    batch: &mut Batch,
    uri: &ResourceUri,
    failure: Failure,
    before: Option<ProblemRecord>,
    plan: Option<&mut PendingRecord>,
) {
    let mut problem = ctx.problem(before, failure.reason, failure.message.clone());
    problem.evidence = failure.evidence.clone();
    problem.declaration = plan.as_ref().map(|plan| plan.declaration.clone());
    problem.listing = plan.as_ref().map(|plan| plan.listing.clone());
    ctx.put_problem(batch, &subject(uri), &problem);
    if let Some(plan) = plan {
        plan.account.tried(&failure, ctx.clock.now());
    }
}

/// The readable and wanted entries, in planning form, and the entries of their links.
fn wanted_members(
    ctx: &mut RunContext,
    planner: &mut Planner,
    batch: &mut Batch,
    context: &EntryContext,
    items: Vec<MemberOutcome>,
) -> (Vec<WantedMember>, Vec<ListedEntry>) {
    let mut members = Vec::with_capacity(items.len());
    let mut linked = Vec::new();
    let home = HomeSite::of(&ctx.entry);
    for MemberOutcome { entry, result, patch } in items {
        let patch = patch.and_then(|stored| Some((entry.patch()?.href, stored)));
        let at = format!("{}#{}:{}", context.document, entry.line, entry.column);
        if let MemberResult::BadEntry(why) = &result {
            ctx.entry_problem(batch, at, ProblemReason::Malformed, &format!("the entry was left out: {why}"));
            continue;
        }
        let is_wanted = is_wanted(ctx, &home, &entry.loc);
        let position = Position { line: entry.line, column: entry.column, ..Position::default() };
        let links = entry.links.as_ref().map(Links::to_vec).unwrap_or_default();
        let read = Entry {
            lastmod: entry.lastmod,
            metadata: entry.metadata,
            links,
            position,
            ..Entry::new(entry.loc)
        };
        match context.read(read) {
            Ok(planned) => {
                let is_wanted = is_wanted && is_admitted(ctx, &home, &planned);
                if planned.listing.change.is_none() {
                    planner.reconciler.note_name(ctx, &context.document, &context.set, &planned.uri);
                }
                if is_wanted {
                    // Its bytes came already, so nothing is fetched in its place.
                    linked.extend(planner.follow(ctx, batch, context, &planned, position).entries);
                    members.push((planned, result, patch));
                } else {
                    planner.name_links(ctx, context, &planned);
                }
            }
            Err(error) if is_wanted => {
                ctx.entry_problem(batch, at, ProblemReason::BadUri, &error.to_string());
            }
            Err(_) => {}
        }
    }
    if planner.reconciler.takes_names_of(&context.set) {
        for linked in linked.iter().filter(|linked| linked.listing.change.is_none()) {
            planner.reconciler.note_name(ctx, &context.document, &context.set, &linked.uri);
        }
    }
    (members, linked)
}

fn step(
    ctx: &mut RunContext,
    planned: ListedEntry,
    result: MemberResult,
    held: Option<&ResourceRecord>,
    before: Option<PendingRecord>,
    after: &mut AfterChange,
) -> Step {
    let baseline_at = ctx.sets.get(&planned.listing.set).and_then(strategy::baseline_for_changes);
    let known = CurrentState { record: held, pending: before.as_ref(), baseline_at };
    let decision = decide(&planned.declaration, &planned.listing, planned.moment, known);
    after.extend(ctx.options.follow.after_change(&ctx.options.filter, &planned, decision, held));
    let (stored, assurance) = match result {
        MemberResult::Verified { stored, assurance } => (stored, assurance),
        MemberResult::Failed(failure) => return Step::Plan { planned, decision, failure: Some(failure) },
        MemberResult::NoMember | MemberResult::BadEntry(_) => {
            return Step::Plan { planned, decision, failure: None };
        }
    };
    let repair = before.as_ref().is_some_and(|pending| pending.repair);
    if let Some(pending) = before.filter(|pending| is_asked_for(pending, &stored.computed)) {
        // A list asks for these very bytes, so they are taken whatever the times are.
        return Step::Take { pending, stored, assurance: Assurance::Digest };
    }
    if decision != Decision::Fetch {
        return Step::Plan { planned, decision, failure: None };
    }
    let origin = match planned.uri.origin() {
        Ok(origin) => origin,
        // It is never requested, and need not be: `apply` reports what is wrong with it.
        Err(_) => return Step::Plan { planned, decision, failure: None },
    };
    let account = Provenance::of(why(decision, &planned.declaration, held));
    let action = Action::Fetch { origin };
    let pending = PendingRecord {
        repair,
        ..PendingRecord::new(ctx.next_seq(), action, planned.declaration, planned.listing, account)
    };
    Step::Take { pending, stored, assurance }
}

/// Writes the files of the view before the catalog records them.
async fn show_taken(
    ctx: &mut RunContext,
    settler: &mut Settler,
    steps: &[(ResourceUri, Step, Option<Box<ResourceRecord>>)],
) -> Result<(), HarvestError> {
    if settler.view.is_none() {
        return Ok(());
    }
    let now = ctx.clock.now();
    let taken: Vec<(ResourceUri, Bitstream)> = steps
        .iter()
        .filter_map(|(uri, step, _)| match step {
            Step::Take { stored, assurance, .. } => {
                Some((uri.clone(), bitstream(stored.clone(), *assurance, now)))
            }
            Step::Plan { .. } => None,
        })
        .collect();
    settler.place_in_view(ctx, &taken).await
}

/// Whether a plan declares digests that all match these bytes.
fn is_asked_for(pending: &PendingRecord, computed: &Computed) -> bool {
    let declared = &pending.declaration;
    matches!(pending.action, Action::Fetch { .. })
        && declared.length.is_none_or(|length| length == computed.length())
        && agree(&declared.digests, computed) == Some(true)
}
