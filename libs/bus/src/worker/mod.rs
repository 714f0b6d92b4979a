//! The work loop: pull only what can be started, and acknowledge last.
//!
//! A handler gets a [`Message`], does its work, publishes what follows from it and waits until that is queued; only then it
//! returns [`Work::Done`], and the message is acknowledged. Whoever dies in between leaves a message that is handed out again.

mod handle;
mod lanes;
mod shares;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use shares::Shares;

use crate::{Bus, BusError, ConsumerSpec, Delivery, Filter, Message, MessageId};

/// How long one pull waits for a message. Both buses end it at once when there is one, or the consumer is closed: it is long
/// so that a fleet with a thousand idle lanes stays calm.
const PULL_WAIT: Duration = Duration::from_secs(20);
/// The first wait after a pull or a message failed; it doubles with every failure in a row.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A handler's answer: what becomes of its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Done, and what follows from it is queued: acknowledge.
    Done,
    /// Not now: something that is needed does not work. Hand it out again.
    Later {
        /// Not before this time has passed; without it, after a wait that doubles with each attempt, up to a minute.
        after: Option<Duration>,
        /// What does not work.
        why: String,
    },
    /// Another attempt would end the same way: among the dead letters with it.
    Poison {
        /// What is wrong with it.
        why: String,
    },
    /// Nothing will work before a person has acted: put it back and stop the worker.
    Halt {
        /// What a person has to do.
        why: String,
    },
}

impl Work {
    /// What is needed does not work now: again, after the usual wait.
    pub fn later(why: impl fmt::Display) -> Self {
        Self::Later { after: None, why: why.to_string() }
    }

    /// Another attempt would end the same way.
    pub fn poison(why: impl fmt::Display) -> Self {
        Self::Poison { why: why.to_string() }
    }

    /// The answer of a handler whose failures are answers: without one, it is done.
    pub fn from_result(worked: Result<(), Self>) -> Self {
        worked.err().unwrap_or(Self::Done)
    }
}

/// Something that kept a message from being worked on, told to an observer: a full disk, a store that is down, a panic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What the worker was pulling.
    pub filter: Filter,
    /// The message.
    pub id: MessageId,
    /// Which delivery it was, from 1.
    pub attempt: u32,
    /// What happened.
    pub why: String,
    /// The message was given up: it lies with the dead letters.
    pub given_up: bool,
}

type Observer = Arc<dyn Fn(Trouble) + Send + Sync>;

/// A handler and the bus it works on. Cheap to clone: all clones share the handler.
pub struct Worker<H> {
    bus: Arc<dyn Bus>,
    handler: Arc<H>,
    observer: Option<Observer>,
    capacity: Option<Arc<Semaphore>>,
    shares: Option<Shares>,
    at_most: usize,
}

/// Works the messages of one consumer, which must be open, until `stop`; see [`Worker::run`].
///
/// # Errors
/// See [`Worker::run`].
pub async fn run<H, F>(
    bus: Arc<dyn Bus>,
    spec: ConsumerSpec,
    stop: CancellationToken,
    handler: H,
) -> Result<(), BusError>
where
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = Work> + Send + 'static,
{
    Worker::new(bus, handler).run(spec, stop).await
}

/// Works the fetch jobs of every active lane until `stop`; see [`Worker::run_lanes`].
///
/// # Errors
/// See [`Worker::run_lanes`].
pub async fn run_lanes<H, F>(bus: Arc<dyn Bus>, stop: CancellationToken, handler: H) -> Result<(), BusError>
where
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = Work> + Send + 'static,
{
    Worker::new(bus, handler).run_lanes(stop).await
}

impl<H, F> Worker<H>
where
    H: Fn(Message) -> F + Send + Sync + 'static,
    F: Future<Output = Work> + Send + 'static,
{
    /// A worker that hands every message to `handler`, each in a task of its own.
    pub fn new(bus: Arc<dyn Bus>, handler: H) -> Self {
        Self {
            bus,
            handler: Arc::new(handler),
            observer: None,
            capacity: None,
            shares: None,
            at_most: Semaphore::MAX_PERMITS,
        }
    }

    /// Tells `observer` whenever a message could not be worked on, so that a run on a laptop can stop instead of trying
    /// again for ever. It is called from the message's task and must not block.
    #[must_use]
    pub fn observed(mut self, observer: impl Fn(Trouble) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Works no more messages at a time than there are permits, over all consumers of all clones and whoever else holds some: what a
    /// process works on at a time bounds its memory. Where many lanes are busy, each of them may hold one message that waits
    /// for its permit.
    #[must_use]
    pub fn within(mut self, capacity: Arc<Semaphore>) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// Lets no Source have more than its share of what is worked on at a time, over all consumers of all clones.
    /// What waits for its share takes nothing of the capacity.
    #[must_use]
    pub fn sharing(mut self, shares: Shares) -> Self {
        self.shares = Some(shares);
        self
    }

    /// Takes no more than `at_most` messages of one consumer at a time: what cannot be started here lies in the queue for others,
    /// however long that lasts which is being worked on.
    #[must_use]
    pub fn at_most(self, at_most: usize) -> Self {
        Self { at_most: at_most.clamp(1, Semaphore::MAX_PERMITS), ..self }
    }

    /// Works the messages of one consumer, which must be open, up to `max_in_flight` at a time, until `stop` is cancelled:
    /// then it pulls no more, finishes what runs and returns.
    ///
    /// While a handler works, the bus hears of it well within `ack_wait`. A handler that says [`Work::Later`] has its
    /// message handed out again, until `max_deliver` is reached; then it becomes a dead letter. One that panics has it handed
    /// out three times at most.
    /// Dropped, the worker drops what it holds, and that is handed out again.
    ///
    /// # Errors
    /// [`BusError::NotOpen`] when the consumer was closed, [`BusError::Halted`] when a handler said so: both after what ran
    /// was finished. A bus that is unavailable is no error: it is asked again.
    pub async fn run(&self, spec: ConsumerSpec, stop: CancellationToken) -> Result<(), BusError> {
        let slots = Arc::new(Semaphore::new(spec.max_in_flight().min(self.at_most)));
        let halt = CancellationToken::new();
        let mut running = JoinSet::new();
        let mut failures = 0;
        let mut ended = Ok(());
        while ended.is_ok() {
            let pulled = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = halt.cancelled() => break,
                pulled = self.pull(&spec, &slots) => pulled,
            };
            match pulled {
                Ok(pulled) => {
                    failures = 0;
                    for (delivery, slot) in pulled {
                        running.spawn(self.clone().work(spec.clone(), delivery, slot, halt.clone()));
                    }
                }
                Err(error) if error.is_temporary() => {
                    let wait = backoff(failures);
                    failures += 1;
                    tracing::warn!(%error, retry_in_ms = wait.as_millis(), "cannot pull messages");
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = stop.cancelled() => {}
                        () = halt.cancelled() => {}
                    }
                }
                Err(error) => ended = Err(error),
            }
            while let Some(done) = running.try_join_next() {
                ended = ended.and(handle::ending(done));
            }
        }
        while let Some(done) = running.join_next().await {
            ended = ended.and(handle::ending(done));
        }
        ended
    }

    /// Takes as many messages as there are free slots, each with its slot. Waits for a slot first.
    async fn pull(
        &self,
        spec: &ConsumerSpec,
        slots: &Arc<Semaphore>,
    ) -> Result<Vec<(Delivery, OwnedSemaphorePermit)>, BusError> {
        // The semaphore is never closed.
        let Ok(first) = Arc::clone(slots).acquire_owned().await else { return Ok(Vec::new()) };
        let mut free = vec![first];
        // Whoever could not start what it pulls leaves it to others.
        let most = match &self.capacity {
            Some(capacity) => match capacity.acquire().await {
                Ok(_room) => capacity.available_permits() + 1,
                Err(_closed) => return Ok(Vec::new()),
            },
            None => usize::MAX,
        };
        while free.len() < most
            && let Ok(more) = Arc::clone(slots).try_acquire_owned()
        {
            free.push(more);
        }
        let deliveries = self.bus.pull(spec.filter(), free.len(), PULL_WAIT).await?;
        Ok(deliveries.into_iter().zip(free).collect())
    }
}

impl<H> Clone for Worker<H> {
    fn clone(&self) -> Self {
        Self {
            bus: Arc::clone(&self.bus),
            handler: Arc::clone(&self.handler),
            observer: self.observer.clone(),
            capacity: self.capacity.clone(),
            shares: self.shares.clone(),
            at_most: self.at_most,
        }
    }
}

impl<H> fmt::Debug for Worker<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("bus", &self.bus).finish_non_exhaustive()
    }
}

/// The wait after `failures` failures in a row.
fn backoff(failures: u32) -> Duration {
    FIRST_WAIT.saturating_mul(1 << failures.min(16)).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests;
