//! The trait that both buses keep.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::{Lane, SourceId};
use tokio::sync::watch;

use crate::{BusError, ConsumerSpec, Delivery, Filter, MessageId, Payload, Place, Queue};

/// The longest payload that any bus takes, in bytes: a NATS server's default of 1 MiB, less room for headers.
pub const MAX_PAYLOAD: usize = 1024 * 1024 - 4096;

/// The active lanes, each with the consumer that is open for it.
pub type Lanes = Arc<BTreeMap<Lane, ConsumerSpec>>;

/// What became of a published message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// A message of this name was queued before, so this one was left out. That is a success.
    pub duplicate: bool,
}

/// How much lies in the queues of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Messages that were not handed out yet.
    pub waiting: usize,
    /// Messages that were handed out and not settled, resting ones among them.
    pub in_flight: usize,
}

/// Queues between the stages: at least once, bounded, acknowledged last.
///
/// A message is kept from the moment [`publish`](Self::publish) returns until a worker acknowledges it, whoever dies in
/// between. It is therefore handed out more than once at times, and every stage is idempotent.
///
/// All futures may be dropped at any point. A `publish` that was dropped may have queued its message or not: send it again
/// under the same name. Messages on their way to a `pull` that was dropped are handed out again.
#[async_trait]
pub trait Bus: Debug + Send + Sync {
    /// Opens the consumer of a filter, or changes the one that is open: a lane's limit may rise and fall. A lane that is
    /// opened shows up in [`lanes`](Self::lanes). Messages that were published before are handed out too.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn open(&self, spec: ConsumerSpec) -> Result<(), BusError>;

    /// Closes the consumer of a filter, and takes a lane out of [`lanes`](Self::lanes). Says whether it is closed: one that
    /// still has messages stays open, so none is left where nobody looks.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn close(&self, filter: &Filter) -> Result<bool, BusError>;

    /// The active lanes, and a way to wait for a change of them; fetchers learn of new lanes by it.
    fn lanes(&self) -> watch::Receiver<Lanes>;

    /// A place at an origin, for a request that no job asks for: it counts as one more in flight, as long as the place is held,
    /// whoever works on the jobs of the lane. `limit` is what the origin allows where the lane is not open; otherwise its
    /// consumer's limit holds. Waits until one of the places is free, which are one less than the limit, and four at
    /// most, and then until the jobs that are out leave room for it: no job is handed out meanwhile that would take it.
    ///
    /// Dropped, the place is given back. That of a process that died is free again after a quarter of a minute. A holder
    /// waits for nobody's jobs while it has one, or it may wait for ever: with a limit of one, none are handed out.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn place(&self, lane: &Lane, limit: usize) -> Result<Place, BusError>;

    /// A place at an origin for one who works on a job of its lane and could do with a further request, if there is one to spare
    /// now: the lane is open, no job waits for a slot, and one is free. Nobody is waited for, so a job may be in hand. It counts
    /// as any other [`place`](Self::place), but one place is never given in this way: those who wait for one find it. Of a limit of one or
    /// two there is never any to spare. To be given back after a while, so that jobs that have come meanwhile have their turn.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn spare_place(&self, lane: &Lane) -> Result<Option<Place>, BusError>;

    /// Queues a message. A queue that is full makes its publishers wait until something in it is acknowledged; queues do not
    /// wait for each other. Whoever both feeds a queue and drains what comes of it must not await this without draining.
    ///
    /// A bus within one process need not write it, and takes no longer one than any other.
    ///
    /// # Errors
    /// [`BusError::TooLarge`] over [`MAX_PAYLOAD`]; [`BusError::Unavailable`].
    async fn publish(&self, queue: Queue, id: MessageId, payload: Payload) -> Result<Published, BusError>;

    /// Takes up to `max` messages, as soon as there is one; none when `wait` is over. Messages to be handed out again come
    /// first. One that was handed out too often is moved to its Source's dead letters instead, here and now.
    ///
    /// # Errors
    /// [`BusError::NotOpen`]; [`BusError::Unavailable`].
    async fn pull(&self, filter: &Filter, max: usize, wait: Duration) -> Result<Vec<Delivery>, BusError>;

    /// Waits, where messages end with this process, until none lies in the queues of a filter or is out: whoever goes on only then has
    /// one message less to make again should all end now. Messages that outlive the process are waited for by nobody.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn caught_up(&self, filter: &Filter) -> Result<(), BusError>;

    /// Drops the fetch jobs of a Source, in all lanes: its new owner plans from the catalog, where they stand as pending.
    /// Jobs that are being worked on are finished and not handed out again. Returns how many were dropped from the queues.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn purge(&self, source: &SourceId) -> Result<usize, BusError>;

    /// How much lies in the queues of a filter; nothing in those that nobody used.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn depth(&self, filter: &Filter) -> Result<Depth, BusError>;

    /// How many messages of a Source are under way: waiting or handed out, in the queues of every stage. Notices and dead letters
    /// do not count. A message that moves on meanwhile is counted once at least, so none is overlooked.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    async fn under_way(&self, source: &SourceId) -> Result<usize, BusError>;
}
