//! After a move of the Source (docs/adr/0067): bytes that are stored already are adopted. The verifier reads them, and no
//! request is sent.

use std::collections::HashMap;

use catalog::Batch;
use futures::TryStreamExt;
use model::{Action, Adopted, Bitstream, PendingRecord, ResourceRecord, ResourceUri, StoredBitstream};
use planning::{Decision, ListedEntry, agree};

use crate::error::HarvestError;
use crate::run::RunContext;
use crate::settler::candidate::{Step, next_step};

/// Pending records that are looked at together, and digests that are removed together.
const TOGETHER: usize = 500;

/// The stored bytes to be read again, if an entry declares their digest and no list of this Source named the resource
/// yet: nothing has read them since the move.
pub(crate) fn to_read_again<'r>(
    ctx: &RunContext,
    entry: &ListedEntry,
    decision: Decision,
    record: Option<&'r ResourceRecord>,
) -> Option<&'r Bitstream> {
    let record = record.filter(|_| ctx.adopts && decision == Decision::Unchanged)?;
    let bitstream = record.bitstream.as_ref()?;
    let is_new = !record.sets.iter().any(|set| ctx.counts(set));
    (is_new && agree(&entry.declaration.digests, &bitstream.computed) == Some(true)).then_some(bitstream)
}

/// Lets a plan take stored bytes in place of a request.
pub(crate) fn take(plan: &mut PendingRecord, from: &ResourceUri, stored: &Bitstream) {
    plan.candidate = Some(Box::new(candidate(stored)));
    plan.account.why = None;
    plan.account.adopted = Some(Adopted { from: from.clone(), stored_at: stored.stored_at });
}

/// Stored bytes as if they had just been received. The validators are of another URL.
fn candidate(stored: &Bitstream) -> StoredBitstream {
    StoredBitstream {
        location: stored.location.clone(),
        computed: stored.computed.clone(),
        media_type: stored.media_type.clone(),
        encoding: stored.encoding.clone(),
        validators: Default::default(),
        modified: None,
        final_url: None,
    }
}

/// Lets planned resources take bytes that are stored under another URI and have all digests and the length that are
/// declared.
///
/// # Errors
/// When the harvest is stopped, or the catalog fails.
pub(crate) async fn adopt(ctx: &mut RunContext) -> Result<(), HarvestError> {
    if !ctx.adopts || !ctx.is_anything_planned() {
        return Ok(());
    }
    let mut after: Option<ResourceUri> = None;
    loop {
        ctx.check_stop()?;
        let (plans, last) = next_plans(ctx, after.as_ref()).await?;
        let Some(last) = last else { return Ok(()) };
        after = Some(last);
        let mut batch = Batch::new();
        for (uri, plan) in adopted(ctx, plans).await? {
            ctx.put_pending(&mut batch, &uri, &plan);
        }
        ctx.commit(batch).await?;
    }
}

/// A planned resource that may be adopted.
type Plan = (ResourceUri, PendingRecord);

/// Of the next pending records those that declare a digest and have no candidate, and the last of all.
async fn next_plans(
    ctx: &mut RunContext,
    after: Option<&ResourceUri>,
) -> Result<(Vec<Plan>, Option<ResourceUri>), HarvestError> {
    let catalog = ctx.catalog().await?;
    let mut pending = catalog.scan_pending(after).await?;
    let (mut plans, mut last, mut seen) = (Vec::new(), None, 0);
    while seen < TOGETHER
        && let Some((uri, plan)) = pending.try_next().await?
    {
        seen += 1;
        last = Some(uri.clone());
        let is_fetch = matches!(plan.action, Action::Fetch { .. }) && !plan.repair;
        if is_fetch && plan.candidate.is_none() && !plan.declaration.digests.is_empty() {
            plans.push((uri, plan));
        }
    }
    Ok((plans, last))
}

/// The plans that take stored bytes.
async fn adopted(ctx: &mut RunContext, plans: Vec<Plan>) -> Result<Vec<Plan>, HarvestError> {
    let declared = plans.iter().flat_map(|(_, plan)| &plan.declaration.digests);
    let digests: Vec<String> = declared.map(ToString::to_string).collect();
    let catalog = ctx.catalog().await?;
    let mut holders = catalog.holders_of(&digests).await?.into_iter();
    let holders: Vec<Vec<ResourceUri>> = plans
        .iter()
        .map(|(_, plan)| holders.by_ref().take(plan.declaration.digests.len()).flatten().collect())
        .collect();
    let mut uris: Vec<ResourceUri> = holders.iter().flatten().cloned().collect();
    uris.sort_unstable();
    uris.dedup();
    let records = catalog.resources_many(&uris).await?;
    let stored = records.into_iter().map(|record| record.and_then(|record| record.bitstream));
    let stored: HashMap<&ResourceUri, Bitstream> =
        uris.iter().zip(stored).filter_map(|(uri, bitstream)| Some((uri, bitstream?))).collect();
    let mut adopted = Vec::new();
    for ((uri, plan), holders) in plans.into_iter().zip(&holders) {
        let candidates = holders.iter().filter_map(|from| Some((from, stored.get(from)?)));
        let mut taken = candidates.map(|(from, bitstream)| {
            let mut plan = plan.clone();
            take(&mut plan, from, bitstream);
            plan
        });
        adopted.extend(taken.find(|plan| matches!(next_step(plan), Step::Judge(_))).map(|plan| (uri, plan)));
    }
    Ok(adopted)
}

/// Removes the index of digests once all lists of the moved Source were read.
///
/// # Errors
/// When the catalog fails.
pub(crate) async fn forget_digests(ctx: &mut RunContext) -> Result<(), HarvestError> {
    if !ctx.adopts || ctx.sets.is_empty() || !ctx.sets.values().all(|set| set.has_baseline) {
        return Ok(());
    }
    let mut digests = ctx.catalog().await?.scan_held_digests().await?;
    let mut batch = Batch::new();
    while let Some((digest, _)) = digests.try_next().await? {
        batch.delete_held_digest(&digest);
        if batch.len() >= TOGETHER {
            ctx.commit(std::mem::take(&mut batch)).await?;
        }
    }
    batch.put_adopts(false);
    ctx.adopts = false;
    ctx.commit(batch).await
}
