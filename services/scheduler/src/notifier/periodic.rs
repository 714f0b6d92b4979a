//! Periodic tasks, each at its time: requests to hubs, messages to send, inboxes to read.
//!
//! A task belongs to a row of a view: a subscription, a message, an inbox. Rows are looked at when they change, or
//! their Source does, and when they are due. So a change costs the same however many Sources there are.

mod feed;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use control::ChangedKey;
use jiff::Timestamp;
use model::{Clock, SourceId};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

pub(crate) use feed::Feed;
use rows::Rows;

use crate::agenda::Agenda;

/// Concurrent tasks.
const AT_A_TIME: usize = 8;
/// How long a row is left alone after its task: this process may not have received its own writes yet.
const AFTER_TASK: Duration = Duration::from_millis(250);
/// A row with a task is looked at again after this time, whatever is due: clocks may jump, and leases end.
const LONGEST_REST: Duration = Duration::from_secs(60);
/// Minimum time between two counts of all rows, for the metrics.
const BETWEEN_COUNTS: Duration = Duration::from_secs(1);

/// The key of a row in its view.
pub(crate) type Key = Arc<str>;

/// A provider of periodic tasks.
pub(crate) trait Periodic: Clone + Send + Sync + 'static {
    type Errand: Send + 'static;

    /// The changes of the Sources, of the rows, and of the schedulers, from now on.
    fn feed(&self) -> Feed;

    /// The keys of all rows.
    fn rows(&self) -> Vec<Key>;

    /// The Source of a row; none if there is no such row.
    fn source_of(&self, row: &str) -> Option<SourceId>;

    /// The task of a row, if it has one, and when it is due.
    fn due(&self, row: &str, now: Timestamp) -> Option<(Timestamp, Self::Errand)>;

    /// Counts the rows of this scheduler's Sources, for the metrics.
    fn count(&self, is_ours: &dyn Fn(&SourceId) -> bool, now: Timestamp);

    /// Executes a task. On return it is due later or not at all; or the result could not be recorded, and this has
    /// waited a little.
    fn run(&self, errand: Self::Errand) -> impl Future<Output = ()> + Send;
}

/// Executes due tasks until `stop`. Unfinished tasks are dropped then: the next owner finds them due again.
pub(crate) async fn make<P: Periodic>(periodic: P, clock: Arc<dyn Clock>, stop: CancellationToken) {
    // Before the first look, so that no later change is missed.
    let mut feed = periodic.feed();
    let mut maker = Maker {
        periodic,
        clock,
        rows: Rows::default(),
        agenda: Agenda::default(),
        working: JoinSet::new(),
        in_work: HashMap::new(),
        left_alone: HashSet::new(),
        looked_at_soon: VecDeque::new(),
        must_count: true,
    };
    let mut next_count = Instant::now();
    maker.look_at_all(&feed);
    while !stop.is_cancelled() {
        maker.begin();
        let wait = maker.wait();
        let soon = maker.looked_at_soon.front().map(|(at, _)| *at);
        tokio::select! {
            changed = feed.next() => match changed {
                ChangedKey::One(key) => maker.changed(&key, &feed),
                ChangedKey::Any => maker.look_at_all(&feed),
            },
            () = sleep(wait) => {}
            () = sleep_until(soon.unwrap_or(next_count)), if soon.is_some() => maker.look_again(&feed),
            () = sleep_until(next_count), if maker.must_count => {
                maker.count();
                next_count = Instant::now() + BETWEEN_COUNTS;
            }
            Some(ended) = maker.working.join_next_with_id() => maker.ended(ended),
            () = stop.cancelled() => {}
        }
    }
    maker.working.shutdown().await;
}

struct Maker<P> {
    periodic: P,
    clock: Arc<dyn Clock>,
    /// The rows of this scheduler's Sources.
    rows: Rows,
    agenda: Agenda<Key>,
    working: JoinSet<()>,
    /// The row of each task, in case it panics.
    in_work: HashMap<Id, Key>,
    /// Rows whose task is in work, or has just ended.
    left_alone: HashSet<Key>,
    looked_at_soon: VecDeque<(Instant, Key)>,
    /// Whether a row may have changed since the last count.
    must_count: bool,
}

impl<P: Periodic> Maker<P> {
    fn look_at_all(&mut self, feed: &Feed) {
        let mut all = self.rows.keys();
        all.extend(self.periodic.rows());
        all.iter().for_each(|key| self.look_at(key, feed));
    }

    /// A row has changed, or a Source has. Either concerns all rows of the Source.
    fn changed(&mut self, key: &Key, feed: &Feed) {
        // Before and after: a row that is gone belongs to no Source.
        let mut concerned = self.rows.beside(key);
        self.look_at(key, feed);
        concerned.extend(self.rows.beside(key));
        if let Ok(source) = key.parse() {
            concerned.extend(self.rows.of(&source));
        }
        concerned.remove(key);
        concerned.iter().for_each(|other| self.look_at(other, feed));
    }

    fn look_again(&mut self, feed: &Feed) {
        let now = Instant::now();
        while let Some((_, key)) = self.looked_at_soon.pop_front_if(|(at, _)| *at <= now) {
            self.left_alone.remove(&key);
            self.look_at(&key, feed);
        }
    }

    /// Finds out when the task of a row is due.
    fn look_at(&mut self, key: &Key, feed: &Feed) {
        self.must_count = true;
        if self.left_alone.contains(key) {
            return;
        }
        match self.periodic.source_of(key).filter(|source| feed.is_ours(source)) {
            Some(source) => {
                self.rows.put(key, source);
                let now = self.clock.now();
                let at = self.periodic.due(key, now).map(|(at, _)| at);
                self.set(key, at, now);
            }
            None => {
                self.rows.remove(key);
                self.agenda.clear(key);
            }
        }
    }

    fn set(&mut self, key: &Key, at: Option<Timestamp>, now: Timestamp) {
        match at {
            Some(at) => self.agenda.set(key, at.min(now.saturating_add(LONGEST_REST).unwrap_or(at))),
            None => self.agenda.clear(key),
        }
    }

    /// Begins the tasks that are due.
    fn begin(&mut self) {
        let now = self.clock.now();
        while self.working.len() < AT_A_TIME
            && let Some(key) = self.agenda.due(now)
        {
            match self.periodic.due(&key, now) {
                Some((at, errand)) if at <= now => {
                    let periodic = self.periodic.clone();
                    let task = self.working.spawn(async move { periodic.run(errand).await });
                    self.in_work.insert(task.id(), key.clone());
                    self.left_alone.insert(key);
                }
                later => self.set(&key, later.map(|(at, _)| at), now),
            }
        }
    }

    /// How long nothing is due. While the most tasks are in work, the end of one is awaited.
    fn wait(&self) -> Duration {
        if self.working.len() >= AT_A_TIME {
            return Duration::MAX;
        }
        self.agenda.wait(self.clock.now()).unwrap_or(Duration::MAX).min(LONGEST_REST)
    }

    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(%error, "a periodic task panicked; it is tried again");
                error.id()
            }
        };
        if let Some(key) = self.in_work.remove(&id) {
            self.looked_at_soon.push_back((Instant::now() + AFTER_TASK, key));
        }
    }

    fn count(&mut self) {
        self.must_count = false;
        self.periodic.count(&|source| self.rows.has(source), self.clock.now());
    }
}
