//! Notices: what hubs delivered about the Source's changes (CN-4, CN-5).
//!
//! A notification is a change document like any other: it is read by the same reader, its entries are planned like those of a Change List, and
//! whether it joins on to what is synchronized is judged together with the Change Lists (`continuity`). The only differences are where it comes
//! from, and that nobody can ask for it again: its message is acknowledged when its entries are durable, and not before.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bus::{ConsumerSpec, DeadLetter, Delivery, Filter};
use catalog::Batch;
use model::{DocumentRecord, DocumentState, Notice, SetId, SetRecord};
use resourcesync::{Capability, Mode as ReadMode};
use tokio::time::Instant;
use url::Url;

use crate::entry::Horizon;
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::{continuity, queue, read};

/// Notices in hand at a time. Each may have 750 KiB.
const AT_A_TIME: usize = 16;
/// How long one may be silent while it is planned. One that an owner had in hand who died is planned so much later.
const ACK_WAIT: Duration = Duration::from_secs(15);
/// Deliveries of one before it is given up as poison: a look whether there is any counts too.
const MAX_DELIVER: u32 = 1_000;
/// How long one that is missing between others is waited for, before the Change Lists are asked for what it told. Those that a hub sends at once
/// arrive within that; one that it sends again comes minutes later, and is not waited for.
const LATE: Duration = Duration::from_millis(300);
/// How long notices are taken up before what they ask for is fetched. What comes after that is for the next run.
const LONGEST: Duration = Duration::from_secs(2);

/// How the notices of a Source are handed out.
pub(crate) fn consumer(filter: Filter) -> ConsumerSpec {
    ConsumerSpec::new(filter, AT_A_TIME, ACK_WAIT, MAX_DELIVER)
}

/// How long a run stays for more, when all is done that was told: to open the catalog for each would take longer than to fetch what it tells.
const STAYS: Duration = Duration::from_secs(1);
/// How long a run goes on, however many come. Then others have their turn.
pub(crate) const LONGEST_STAY: Duration = Duration::from_secs(30);

impl Harvest {
    /// Plans what hubs delivered. Returns whether documents are to be read too: because none waited, or what came does not join on to what
    /// is synchronized. They are queued then.
    pub(crate) async fn plan_notices(&mut self) -> Result<bool, HarvestError> {
        let filter = Filter::Notices(self.source.clone());
        self.bus.open(consumer(filter.clone())).await?;
        let mut taken = 0;
        let begun = Instant::now();
        // Whether something is missing, as long as nothing has come since that was found out.
        let (mut missing_since, mut lacks) = (None, None);
        while begun.elapsed() < LONGEST {
            self.check_stop()?;
            let wait =
                missing_since.map_or(Duration::ZERO, |since: Instant| LATE.saturating_sub(since.elapsed()));
            let deliveries = self.bus.pull(&filter, AT_A_TIME, wait).await?;
            let is_last = deliveries.is_empty();
            if !is_last {
                lacks = None;
            }
            let mut told_elsewhere = Vec::new();
            for delivery in deliveries {
                taken += 1;
                match self.plan_notice(&delivery).await? {
                    true => delivery.ack().await?,
                    false => told_elsewhere.push(delivery),
                }
            }
            if !told_elsewhere.is_empty() {
                self.begin_beside(taken).await?;
            }
            // The lists that tell the same are queued: whoever goes on with this run reads them.
            for delivery in told_elsewhere {
                delivery.ack().await?;
            }
            if is_last {
                if missing_since.is_some() && wait.is_zero() {
                    break;
                }
                let lacks_now = self.lacks_notices().await?;
                lacks = Some(lacks_now);
                if !lacks_now {
                    break;
                }
                // Counted from the first look on: where many come, one of them would always be on its way.
                missing_since.get_or_insert_with(Instant::now);
            }
        }
        // What an earlier process has taken up is not known whole.
        let may_be_enough = taken > 0 && !self.has_begun && !self.is_resumed;
        let is_enough = may_be_enough
            && match lacks {
                Some(lacks) => !lacks,
                None => !self.lacks_notices().await?,
            };
        if !is_enough {
            self.begin_beside(taken).await?;
        }
        Ok(!is_enough)
    }

    /// Queues the Source's documents, unless that is done: something is missing between the notices, or one cannot be read, or tells of what is not known.
    async fn begin_beside(&mut self, notices: usize) -> Result<(), HarvestError> {
        if self.has_begun {
            return Ok(());
        }
        tracing::info!(notices, "the Source's lists are read beside what its hub delivered");
        self.begin().await
    }

    /// Plans what hubs deliver while this run, which notices alone have asked for, is under way. Returns whether it stays for more: not where
    /// nothing comes for a while, and not where what comes does not join on. That is left where it is too, and asks for the next run.
    pub(crate) async fn plan_later_notices(&mut self, until: Instant) -> Result<bool, HarvestError> {
        if Instant::now() >= until {
            return Ok(false);
        }
        let filter = Filter::Notices(self.source.clone());
        let bus = Arc::clone(&self.bus);
        let deliveries = tokio::select! {
            deliveries = bus.pull(&filter, AT_A_TIME, STAYS) => deliveries?,
            () = self.stop.cancelled() => return Err(HarvestError::Stopped),
        };
        let (mut joined_on, mut is_whole) = (Vec::new(), true);
        for delivery in deliveries {
            is_whole &= self.plan_notice(&delivery).await?;
            joined_on.push(delivery);
        }
        if joined_on.is_empty() || !is_whole || self.lacks_notices().await? {
            return Ok(false);
        }
        for delivery in joined_on {
            delivery.ack().await?;
        }
        Ok(true)
    }

    /// Plans one, and says whether that was all there is to it. Whoever asks acknowledges it.
    async fn plan_notice(&mut self, delivery: &Delivery) -> Result<bool, HarvestError> {
        let notice: Notice = match delivery.payload.read() {
            Ok(notice) => Arc::unwrap_or_clone(notice),
            Err(error) => {
                // Only a gateway writes here: somebody should see that.
                DeadLetter::bury(&*self.bus, delivery, &error.to_string()).await?;
                return Ok(false);
            }
        };
        let base = Url::parse(&notice.topic).ok();
        let is_known = self.sets.get(&notice.set).is_some_and(|set| set.has_baseline);
        let (Some(base), true) = (base, is_known) else {
            // Nothing is held that it could be a change of; the lists that are read instead tell what it told.
            return Ok(false);
        };
        let uri = uri_of(&notice, delivery.id.as_str());
        self.read_notice(&uri, notice, base).await
    }

    async fn read_notice(&mut self, uri: &str, notice: Notice, base: Url) -> Result<bool, HarvestError> {
        let before = self.catalog.document(uri).await?;
        if let Some(known) = before.as_ref().filter(|known| known.is_read_whole()) {
            // It was read, and not acknowledged.
            return self.is_told_whole(known).await;
        }
        let mut record = queue::queued(self.run.id, &notice.set, &Capability::ChangeNotification, before);
        // The channel leads to it; to ask the Source whether it still offers it would be of no use.
        record.parent = Some(notice.topic.clone());
        let mode = if self.options.strict { ReadMode::Strict } else { ReadMode::Tolerant };
        let horizon = Horizon::at(self.clock.now());
        let stream = read::open_bytes(notice.body, base, horizon.options(mode));
        self.read_document(uri, record, stream, horizon).await?;
        let Some(mut record) = self.catalog.document(uri).await? else { return Ok(false) };
        if record.state == DocumentState::Done && record.until.is_none() {
            // Nothing is added to a notification, whatever it says: it tells up to its latest change for certain.
            record.until = record.latest_change.or(record.from);
            let mut batch = Batch::new();
            batch.put_document(uri, &record);
            self.commit(batch).await?;
        }
        self.is_told_whole(&record).await
    }

    /// Whether a notice that was read tells all that it should. Then that is untold no longer.
    async fn is_told_whole(&mut self, notice: &DocumentRecord) -> Result<bool, HarvestError> {
        let is_whole = notice.is_read_whole() && notice.bad == 0;
        if is_whole {
            self.take_back_untold(notice).await?;
        }
        Ok(is_whole)
    }

    /// Whether a document of this URI came by a channel.
    pub(crate) fn came_by_channel(&self, document: &str) -> bool {
        document.split_once('#').is_some_and(|(topic, _)| self.topics.contains(topic))
    }

    /// Whether something is missing between what is synchronized and the notices that were planned.
    async fn lacks_notices(&self) -> Result<bool, HarvestError> {
        let notices = queue::notices(&self.catalog).await?;
        let lacks = |(id, set): (&SetId, &SetRecord)| {
            let notices = notices.iter().filter(|record| record.set == *id);
            !continuity::follow(set.synchronized_to, self.run.id, notices).holes.is_empty()
        };
        Ok(self.sets.iter().any(lacks))
    }
}

/// The channels that sets offer, without fragments.
pub(crate) fn topics<'a>(sets: impl Iterator<Item = &'a SetRecord>) -> HashSet<String> {
    let topics = sets.flat_map(|set| set.documents(&Capability::ChangeNotification));
    topics.map(|topic| topic_of(topic).to_owned()).collect()
}

fn topic_of(uri: &str) -> &str {
    uri.split('#').next().unwrap_or_default()
}

/// Whether a document came by a channel: nobody can ask for it.
pub(crate) fn is_notice(record: &DocumentRecord) -> bool {
    record.capability == Capability::ChangeNotification
}

/// What a notice is known by: its channel, and the name of its message, which is the same for what is delivered twice.
fn uri_of(notice: &Notice, message: &str) -> String {
    format!("{}#{message}", topic_of(&notice.topic))
}

#[cfg(test)]
#[path = "notices_tests.rs"]
mod tests;
