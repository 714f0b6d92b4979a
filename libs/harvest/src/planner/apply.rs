//! Applies what was decided about an entry: to the plan of its resource, and to the record of it.

use catalog::Batch;
use model::{
    Action, Declaration, Listing, MirrorPlan, Mirrors, PendingRecord, ProblemReason, ProblemRecord,
    Provenance, ResourceRecord, ResourceUri, Subject,
};
use planning::{Decision, ListedEntry, mirrors, patches, relinked, why};

use crate::planner::planned::Plans;
use crate::run::RunContext;

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

/// Does what was decided about an entry: plans its resource, or records that it is listed.
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
pub(super) fn listed(record: &ResourceRecord, listing: &Listing) -> Option<ResourceRecord> {
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
