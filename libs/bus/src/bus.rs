//! The trait that both buses implement.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::{Origin, SourceId};
use tokio::sync::watch;

use crate::{BusError, ConsumerSpec, Delivery, Filter, MessageId, OriginPermit, Payload, Queue};

/// The open origin queues, each with its consumer.
pub type OriginQueues = Arc<BTreeMap<Origin, ConsumerSpec>>;

/// The result of a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// A message with this ID was queued before, so this one was dropped. That counts as success.
    pub duplicate: bool,
}

/// The number of messages in the queues of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Messages that were not delivered yet.
    pub waiting: usize,
    /// Messages that were delivered and not settled, including those that wait for redelivery.
    pub in_flight: usize,
}

/// Queues between the stages. They are bounded, deliver at least once, and workers acknowledge last.
///
/// The bus keeps a message from the return of [`publish`](Self::publish) until a worker acknowledges it, even if
/// processes die in between. So it delivers some messages more than once, and every stage must be idempotent.
///
/// All futures may be dropped at any point. A dropped `publish` may have queued its message or not: send it again with
/// the same ID. Messages on their way to a dropped `pull` are redelivered.
#[async_trait]
pub trait Bus: Debug + Send + Sync {
    /// Opens the consumer of a filter, or changes the open one: the limit of an origin queue may rise and fall. An
    /// origin queue that is opened appears in [`origins`](Self::origins). Messages that were published before are delivered
    /// too.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn open(&self, spec: ConsumerSpec) -> Result<(), BusError>;

    /// Closes the consumer of a filter, and removes an origin queue from [`origins`](Self::origins). Returns whether it is
    /// closed: a consumer that still has messages stays open, so that no message is left without a consumer.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn close(&self, filter: &Filter) -> Result<bool, BusError>;

    /// Watches the open origin queues. Fetchers learn of new ones from it.
    fn origins(&self) -> watch::Receiver<OriginQueues>;

    /// Acquires a permit for a request to an origin outside of jobs. It counts as one more in flight while it is held,
    /// among the jobs of all workers of the origin queue. If the origin queue is open, the limit of its consumer holds,
    /// else `limit`. There is one permit less than the limit, and eight at most. The call waits until one is free, and
    /// then until the jobs in flight leave room for it. Meanwhile no job is delivered that would take that room.
    ///
    /// Dropping the permit returns it. The permit of a dead process is free again after 15 seconds. A holder must not
    /// wait for jobs, or it may wait for ever: with a limit of one, no job is delivered meanwhile.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn acquire_permit(&self, origin: &Origin, limit: usize) -> Result<OriginPermit, BusError>;

    /// Acquires a spare permit for a further request by a worker that has a job of the origin queue, if one is free
    /// now. The origin queue must be open, no job may wait for a slot, and one slot must be free. The call does not
    /// wait, so the worker may hold its job. A spare permit counts as any other
    /// [`acquire_permit`](Self::acquire_permit), but one permit is never given as a spare, so that other callers find
    /// it. A limit of one or two leaves no spare permits. The worker must return the permit after a while, so that
    /// newer jobs get their turn.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn try_acquire_spare(&self, origin: &Origin) -> Result<Option<OriginPermit>, BusError>;

    /// Queues a message. If the queue is full, the publisher waits until a message in it is acknowledged. Queues do not
    /// wait for each other. A task that both feeds a queue and drains its results must not await this without draining.
    ///
    /// An in-process bus need not serialize the message. It accepts no longer message than any other bus.
    ///
    /// # Errors
    /// [`BusError::TooLarge`] over [`MAX_PAYLOAD`](crate::MAX_PAYLOAD); [`BusError::Unavailable`].
    async fn publish(&self, queue: Queue, id: MessageId, payload: Payload) -> Result<Published, BusError>;

    /// Takes up to `max` messages, as soon as there is one; none when `wait` is over. Redeliveries come first. A
    /// message that was delivered too often moves to the dead letters of its Source instead, within this call.
    ///
    /// # Errors
    /// [`BusError::NotOpen`]; [`BusError::Unavailable`].
    async fn pull(&self, filter: &Filter, max: usize, wait: Duration) -> Result<Vec<Delivery>, BusError>;

    /// On a bus that ends with this process, waits until no message of a filter is queued or in flight. A caller that
    /// waits first loses less work if the process ends now. On a bus that outlives the process, it returns at once.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn caught_up(&self, filter: &Filter) -> Result<(), BusError>;

    /// Drops the fetch jobs of a Source at all origins. Its new owner plans from the catalog, where they are pending
    /// records. Jobs in flight are finished and not redelivered. Returns how many were dropped from the queues.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn purge(&self, source: &SourceId) -> Result<usize, BusError>;

    /// The number of messages in the queues of a filter. Queues that were never used have none.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn depth(&self, filter: &Filter) -> Result<Depth, BusError>;

    /// The number of messages of a Source that are queued or in flight in all stages, without Change Notifications and
    /// dead letters. A message that moves on meanwhile is counted at least once, so none is missed.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn under_way(&self, source: &SourceId) -> Result<usize, BusError>;
}
