//! Missed changes: a hub should have reported them, and did not.
//!
//! A change that a list shows first is **untold**. That means: no stored record, plan or problem has this change or a
//! later one, and it was made after the channel of its set became active. It is recorded with its set. A notification
//! whose interval contains it removes it again, however late the notification arrives. A change that is still untold
//! some time later, with no notification waiting to be read, was **missed**.
//!
//! A change without a certain time cannot be missed, and neither can one that only a Resource List shows.

use std::collections::HashMap;

use bus::Filter;
use catalog::Batch;
use jiff::Timestamp;
use model::{DocumentRecord, MissedChanges, PendingRecord, ResourceRecord, ResourceUri, SetId};
use planning::{Decision, ListedEntry, unreported};

use crate::error::HarvestError;
use crate::run::RunContext;

/// The time of a change that is news and that its channel should have reported.
pub(crate) fn missed(
    ctx: &mut RunContext,
    planned: &ListedEntry,
    decision: Decision,
    record: Option<&ResourceRecord>,
    pending: Option<&PendingRecord>,
) -> Option<Timestamp> {
    let channels = &ctx.options.channels;
    let listing = &planned.listing;
    if channels.since.is_empty() || listing.change.is_none() || ctx.push.has_delivered(&listing.document) {
        return None;
    }
    listing.change_time.filter(|change| {
        channels.tells(&listing.set, *change) && unreported::is_news(*change, decision, record, pending)
    })
}

/// Records untold changes with their sets, beside their plans.
pub(crate) async fn note_missed(
    ctx: &mut RunContext,
    batch: &mut Batch,
    found: HashMap<SetId, Vec<(ResourceUri, Timestamp)>>,
) -> Result<(), HarvestError> {
    for (set, found) in found {
        let uris: Vec<_> = found.iter().map(|(uri, _)| uri.clone()).collect();
        let problems = ctx.problems_of(&uris).await?;
        let Some(record) = ctx.sets.get_mut(&set) else { continue };
        for ((_, change), problem) in found.into_iter().zip(problems) {
            // A notification reported it, and it failed.
            let known = problem.and_then(|problem| problem.listing).and_then(|listing| listing.as_of);
            if known.is_none_or(|known| known < change) {
                record.missed = Some(unreported::with(record.missed, change));
            }
        }
        batch.put_set(&set, record);
    }
    Ok(())
}

/// A notification was read: its changes are no longer untold.
pub(crate) async fn take_back_missed(
    ctx: &mut RunContext,
    notice: &DocumentRecord,
) -> Result<(), HarvestError> {
    let Some(set) = ctx.sets.get_mut(&notice.set) else { return Ok(()) };
    let end = notice.until_latest.max(notice.until).max(notice.latest_change);
    let (Some(missed), Some(from), Some(until)) = (set.missed, notice.from.or(notice.oldest_change), end)
    else {
        return Ok(());
    };
    let left = unreported::without(missed, from, until, notice.entries);
    if left == Some(missed) {
        return Ok(());
    }
    set.missed = left;
    let mut batch = Batch::new();
    batch.put_set(&notice.set, set);
    ctx.commit(batch).await
}

/// At the end of a run: counts the missed changes, and forgets those that no channel has to report any more.
pub(crate) async fn judge_missed(ctx: &mut RunContext) -> Result<(), HarvestError> {
    let now = ctx.clock.now();
    let channels = &ctx.options.channels;
    let is_over = |missed: MissedChanges| unreported::is_past(missed.oldest, channels.patience, now);
    if !ctx.sets.values().any(|set| set.missed.is_some_and(is_over)) {
        return Ok(());
    }
    // A waiting notification may contain it.
    let waiting = ctx.bus.depth(&Filter::Notices(ctx.source.clone())).await?;
    if waiting.waiting + waiting.in_flight > 0 {
        return Ok(());
    }
    let mut batch = Batch::new();
    for (id, set) in &mut ctx.sets {
        let Some(missed) =
            set.missed.filter(|missed| unreported::is_past(missed.oldest, channels.patience, now))
        else {
            continue;
        };
        if channels.since.contains_key(id) {
            tracing::warn!(set.id = %id, changes = missed.changes, "the hub has not told of these changes");
            ctx.push.missed.insert(id.clone(), missed.changes);
        }
        set.missed = None;
        batch.put_set(id, set);
    }
    ctx.commit(batch).await
}
