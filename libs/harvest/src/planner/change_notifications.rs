//! Change Notifications: what hubs delivered about the Source's changes (CN-4, CN-5).
//!
//! A notification is a change document like any other. The same reader reads it, and its entries are planned like
//! those of a Change List. Whether it joins the synchronized time is decided together with the Change Lists
//! (`continuity`). There are two differences. It comes from a hub, and it cannot be requested again. So its message
//! is acknowledged only when its entries are durable.

use std::sync::Arc;
use std::time::Duration;

use bus::{ConsumerSpec, DeadLetter, Delivery, Filter};
use catalog::Batch;
use model::{ChangeNotification, DocumentRecord, DocumentState, SetId, SetRecord};
use planning::{Horizon, continuity, queued_document};
use resourcesync::Capability;
use tokio::time::Instant;
use url::Url;

use crate::error::HarvestError;
use crate::planner::{Planner, missed_notifications};
use crate::run::push_tracker::topic_of;
use crate::run::{RunContext, document_queue};

/// Notifications in memory at a time. Each may have 750 KiB.
const AT_A_TIME: usize = 16;
/// How long a notification may be silent while it is planned. If its owner died, it is planned this much later.
const ACK_WAIT: Duration = Duration::from_secs(15);
/// Deliveries before a notification counts as poison. A check for waiting notifications counts as a delivery too.
const MAX_DELIVER: u32 = 1_000;
/// How long a run waits for a notification that is missing between others, before it reads the Change Lists instead.
/// Notifications that a hub sends together arrive within this time. A redelivery by the hub comes minutes later, and
/// the run does not wait for it.
const LATE: Duration = Duration::from_millis(300);
/// How long notifications are planned before their resources are fetched. The next run takes later ones.
const LONGEST: Duration = Duration::from_secs(2);

/// Consumer for the notifications of a Source.
pub fn consumer(filter: Filter) -> ConsumerSpec {
    ConsumerSpec::new(filter, AT_A_TIME, ACK_WAIT, MAX_DELIVER)
}

/// How long a run waits for more notifications when all reported changes are done. Opening the catalog for each would
/// take longer than fetching.
const STAYS: Duration = Duration::from_secs(1);
/// Maximum time that a run goes on while notifications keep coming. Then other Sources have their turn.
pub(crate) const LONGEST_STAY: Duration = Duration::from_secs(30);

impl Planner {
    /// Plans the delivered notifications. Returns whether documents must be read too: because no notification waited,
    /// or because they do not join the synchronized time. The documents are queued then.
    pub(crate) async fn plan_notices(&mut self, ctx: &mut RunContext) -> Result<bool, HarvestError> {
        let filter = Filter::Notices(ctx.source.clone());
        ctx.bus.open(consumer(filter.clone())).await?;
        let mut taken = 0;
        let begun = Instant::now();
        // Since when something is missing, and whether it still is, as long as no notification has come since that
        // check.
        let mut missing_since = None;
        let mut lacks = None;
        while begun.elapsed() < LONGEST {
            ctx.check_stop()?;
            let wait =
                missing_since.map_or(Duration::ZERO, |since: Instant| LATE.saturating_sub(since.elapsed()));
            let deliveries = ctx.bus.pull(&filter, AT_A_TIME, wait).await?;
            let is_last = deliveries.is_empty();
            if !is_last {
                lacks = None;
            }
            let mut told_elsewhere = Vec::new();
            for delivery in deliveries {
                taken += 1;
                if self.plan_notice(ctx, &delivery).await? {
                    delivery.ack().await?
                } else {
                    told_elsewhere.push(delivery)
                }
            }
            if !told_elsewhere.is_empty() {
                self.begin_beside(ctx, taken).await?;
            }
            // The lists with the same changes are queued; this run, or the owner that resumes it, reads them.
            for delivery in told_elsewhere {
                delivery.ack().await?;
            }
            if is_last {
                if missing_since.is_some() && wait.is_zero() {
                    break;
                }
                let lacks_now = lacks_notices(ctx).await?;
                lacks = Some(lacks_now);
                if !lacks_now {
                    break;
                }
                // Counted from the first check on. With many notifications, one would always be on its way.
                missing_since.get_or_insert_with(Instant::now);
            }
        }
        // What an earlier process has planned is not known in full.
        let may_be_enough = taken > 0 && !self.discovery.has_begun && !ctx.progress.is_resumed();
        let is_enough = may_be_enough
            && match lacks {
                Some(lacks) => !lacks,
                None => !lacks_notices(ctx).await?,
            };
        if !is_enough {
            self.begin_beside(ctx, taken).await?;
        }
        Ok(!is_enough)
    }

    /// Queues the Source's documents, if not yet done. Reasons: a notification is missing between others, one cannot
    /// be read, or one is about an unknown set.
    async fn begin_beside(&mut self, ctx: &mut RunContext, notices: usize) -> Result<(), HarvestError> {
        if self.discovery.has_begun {
            return Ok(());
        }
        tracing::info!(notices, "the Source's lists are read beside what its hub delivered");
        self.begin(ctx).await
    }

    /// Plans notifications that arrive during a run that only notifications asked for. Returns whether to wait for
    /// more: not if none comes for a while, and not if one does not join. The latter is left in the queue too, and
    /// causes the next run.
    pub(crate) async fn plan_later_notices(
        &mut self,
        ctx: &mut RunContext,
        until: Instant,
    ) -> Result<bool, HarvestError> {
        if Instant::now() >= until {
            return Ok(false);
        }
        let filter = Filter::Notices(ctx.source.clone());
        let bus = Arc::clone(&ctx.bus);
        let deliveries = tokio::select! {
            deliveries = bus.pull(&filter, AT_A_TIME, STAYS) => deliveries?,
            () = ctx.stop.cancelled() => return Err(HarvestError::Stopped),
        };
        let mut joined_on = Vec::new();
        let mut is_whole = true;
        for delivery in deliveries {
            is_whole &= self.plan_notice(ctx, &delivery).await?;
            joined_on.push(delivery);
        }
        if joined_on.is_empty() || !is_whole || lacks_notices(ctx).await? {
            return Ok(false);
        }
        for delivery in joined_on {
            delivery.ack().await?;
        }
        Ok(true)
    }

    /// Plans one notification. Returns whether it was complete. The caller acknowledges it.
    async fn plan_notice(&mut self, ctx: &mut RunContext, delivery: &Delivery) -> Result<bool, HarvestError> {
        let notice: ChangeNotification = match delivery.payload.read() {
            Ok(notice) => Arc::unwrap_or_clone(notice),
            Err(error) => {
                // Only a gateway writes here, so an operator should see this.
                DeadLetter::bury(&*ctx.bus, delivery, &error.to_string()).await?;
                return Ok(false);
            }
        };
        let base = Url::parse(&notice.topic).ok();
        let is_known = ctx.sets.get(&notice.set).is_some_and(|set| set.has_baseline);
        let (Some(base), true) = (base, is_known) else {
            // Its set has no stored resource that could have changed. The lists, which are read instead, contain its
            // changes.
            return Ok(false);
        };
        let uri = uri_of(&notice, delivery.id.as_str());
        self.read_notice(ctx, &uri, notice, base).await
    }

    async fn read_notice(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        notice: ChangeNotification,
        base: Url,
    ) -> Result<bool, HarvestError> {
        let before = ctx.catalog().await?.document(uri).await?;
        if let Some(known) = before.as_ref().filter(|known| known.is_read_whole()) {
            // It was read, but not acknowledged.
            return self.is_told_whole(ctx, known).await;
        }
        let mut record = queued_document(ctx.run.id, &notice.set, &Capability::ChangeNotification, before);
        // The channel leads to it. Asking the Source whether it still offers it would be useless.
        record.parent = Some(notice.topic.clone());
        let mode = ctx.read_mode();
        let horizon = Horizon::at(ctx.clock.now());
        let stream = documents::open_bytes(notice.body, base, horizon.options(mode));
        self.read_document(ctx, uri, record, stream, horizon).await?;
        let Some(mut record) = ctx.catalog().await?.document(uri).await? else { return Ok(false) };
        if record.state == DocumentState::Done && record.until.is_none() {
            // A notification is never extended, whatever it says. It covers the time up to its latest change for
            // certain.
            record.until = record.latest_change.or(record.from);
            let mut batch = Batch::new();
            batch.put_document(uri, &record);
            ctx.commit(batch).await?;
        }
        self.is_told_whole(ctx, &record).await
    }

    /// Whether a notification that was read is complete. If so, its changes are no longer untold.
    async fn is_told_whole(
        &mut self,
        ctx: &mut RunContext,
        notice: &DocumentRecord,
    ) -> Result<bool, HarvestError> {
        let is_whole = notice.is_read_whole() && notice.bad == 0;
        if is_whole {
            missed_notifications::take_back_missed(ctx, notice).await?;
        }
        Ok(is_whole)
    }
}

/// Whether a change is missing between the synchronized time and the planned notifications.
pub(crate) async fn lacks_notices(ctx: &mut RunContext) -> Result<bool, HarvestError> {
    let notices = document_queue::notices(&*ctx.catalog().await?).await?;
    let lacks = |(id, set): (&SetId, &SetRecord)| {
        let notices = notices.iter().filter(|record| record.set == *id);
        !continuity::follow(set.synchronized_to, ctx.run.id, notices).gaps.is_empty()
    };
    Ok(ctx.sets.iter().any(lacks))
}

/// Identity of a notification: its channel and the name of its message. The name is the same for a duplicate
/// delivery.
fn uri_of(notice: &ChangeNotification, message: &str) -> String {
    format!("{}#{message}", topic_of(&notice.topic))
}

#[cfg(test)]
#[path = "change_notifications_tests.rs"]
mod tests;
