//! The queues of one filter: what waits, what is out, and who is told when that changes.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use model::SourceId;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::later;
use super::turns::Turns;
use crate::place::{places_within, spare_within};
use crate::{ConsumerSpec, Depth, Message, MessageId, Payload, Queue};

/// The queues of one filter.
#[derive(Debug, Default)]
pub(super) struct Stage {
    spec: Option<ConsumerSpec>,
    waiting: Turns<Stored>,
    out: BTreeMap<u64, Out>,
    /// Places that are taken, each of which counts as one more that is out.
    places: usize,
    /// The number of the next message to go out, and of the next delivery.
    next: u64,
    changed: Arc<Notify>,
}

/// A message in the bus.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) id: MessageId,
    pub(super) queue: Queue,
    pub(super) payload: Payload,
    /// How often it was handed out.
    pub(super) deliveries: u32,
}

/// What a pull hands out, and what it found to be handed out too often.
#[derive(Debug, Default)]
pub(super) struct Handed {
    pub(super) deliveries: Vec<(Key, Message)>,
    pub(super) buried: Vec<Stored>,
}

/// Which delivery of which message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    message: u64,
    delivery: u64,
}

/// A message that was handed out and takes up one of the places in flight.
#[derive(Debug)]
struct Out {
    stored: Stored,
    standing: Standing,
    /// It is not to be handed out again, but whoever holds it still works, and takes up its place.
    forgotten: bool,
}

#[derive(Debug, Clone, Copy)]
enum Standing {
    /// In the hands of a delivery, until its silence has lasted too long.
    Held { delivery: u64, until: Instant },
    /// To be handed out again, not before this moment.
    Resting { until: Instant },
}

impl Stored {
    pub(super) fn message(&self, attempt: u32) -> Message {
        Message { id: self.id.clone(), queue: self.queue.clone(), payload: self.payload.clone(), attempt }
    }
}

impl Standing {
    fn until(self) -> Instant {
        match self {
            Self::Held { until, .. } | Self::Resting { until } => until,
        }
    }
}

impl Stage {
    pub(super) fn open(&mut self, spec: ConsumerSpec) {
        self.spec = Some(spec);
    }

    /// Nothing is handed out until it is opened again.
    pub(super) fn close(&mut self) {
        self.spec = None;
    }

    /// Takes one of the places, where one is free. What is handed out leaves room for it from now on.
    pub(super) fn take_place(&mut self, limit: usize) -> bool {
        let is_free = self.places < places_within(limit);
        self.places += usize::from(is_free);
        is_free
    }

    /// Takes a place if the lane is open and has one to spare: see [`Bus::spare_place`](crate::Bus::spare_place).
    pub(super) fn take_spare_place(&mut self) -> bool {
        let Some(limit) = self.spec.as_ref().map(ConsumerSpec::max_in_flight) else { return false };
        let is_spare = self.waiting.is_empty()
            && self.places < spare_within(limit)
            && self.out.len() + self.places < limit;
        self.places += usize::from(is_spare);
        is_spare
    }

    pub(super) fn give_place_back(&mut self) {
        self.places -= 1;
    }

    /// Whether what is out leaves room for the places that are taken.
    pub(super) fn has_room(&self, limit: usize) -> bool {
        let limit = self.spec.as_ref().map_or(limit, ConsumerSpec::max_in_flight);
        self.out.is_empty() || self.out.len() + self.places <= limit
    }

    /// Whether nothing lies in it and nobody has a place.
    pub(super) fn is_unused(&self) -> bool {
        self.is_empty() && self.places == 0
    }

    /// Whether it is as good as one that was never used.
    pub(super) fn is_forgettable(&self) -> bool {
        self.is_unused() && self.spec.is_none()
    }

    /// Resolves at the next change after this call.
    pub(super) fn changed(&self) -> impl Future<Output = ()> + Send + use<> {
        Arc::clone(&self.changed).notified_owned()
    }

    /// Lets everybody who waits look again.
    pub(super) fn notify(&self) {
        self.changed.notify_waiters();
    }

    pub(super) fn put(&mut self, stored: Stored) {
        let source = stored.queue.source().clone();
        self.waiting.push(&source, stored);
        self.notify();
    }

    /// Takes up to `max` messages out, or tells that no consumer is open.
    pub(super) fn take(&mut self, max: usize, now: Instant) -> Option<Handed> {
        let spec = self.spec.clone()?;
        let limit = spec.max_in_flight().saturating_sub(self.places);
        let mut handed = Handed::default();
        self.take_again(&spec, limit, max, now, &mut handed);
        while handed.deliveries.len() < max && self.out.len() < limit {
            let Some(mut stored) = self.waiting.pop() else { break };
            stored.deliveries += 1;
            let message = stored.message(stored.deliveries);
            let key = Key { message: self.number(), delivery: self.number() };
            let standing = Standing::Held { delivery: key.delivery, until: later(now, spec.ack_wait()) };
            self.out.insert(key.message, Out { stored, standing, forgotten: false });
            handed.deliveries.push((key, message));
        }
        Some(handed)
    }

    /// Takes those that were out before, in the order in which they first went out.
    fn take_again(
        &mut self,
        spec: &ConsumerSpec,
        limit: usize,
        max: usize,
        now: Instant,
        handed: &mut Handed,
    ) {
        let due: Vec<u64> = self
            .out
            .iter()
            .filter(|(_, out)| out.standing.until() <= now)
            .map(|(number, _)| *number)
            .collect();
        let mut held = self.out.len() - self.out.values().filter(|out| out.is_free(now)).count();
        for number in due {
            let delivery = self.number();
            let Some(out) = self.out.get_mut(&number) else { continue };
            if out.forgotten {
                self.out.remove(&number);
            } else if out.stored.deliveries >= spec.max_deliver() {
                handed.buried.extend(self.out.remove(&number).map(|out| out.stored));
            } else if handed.deliveries.len() < max && held < limit {
                held += 1;
                out.stored.deliveries += 1;
                out.standing = Standing::Held { delivery, until: later(now, spec.ack_wait()) };
                let message = out.stored.message(out.stored.deliveries);
                handed.deliveries.push((Key { message: number, delivery }, message));
            }
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// When the next message is to be handed out again by the clock alone. One that is due already waits for a place.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        self.out.values().map(|out| out.standing.until()).filter(|until| *until > now).min()
    }

    /// Messages of a Source, waiting or out.
    pub(super) fn count(&self, source: &SourceId) -> usize {
        self.waiting.len_of(source)
            + self.out.values().filter(|out| out.stored.queue.source() == source).count()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.out.is_empty()
    }

    pub(super) fn depth(&self) -> Depth {
        Depth { waiting: self.waiting.len(), in_flight: self.out.len() }
    }

    pub(super) fn drop_oldest(&mut self) -> Option<Stored> {
        self.waiting.pop()
    }

    /// Drops what a Source has here; what is held by a worker is finished, but not handed out again.
    pub(super) fn purge(&mut self, source: &SourceId) -> usize {
        let waiting = self.waiting.remove(source);
        let before = self.out.len();
        self.out.retain(|_, out| {
            let ours = out.stored.queue.source() == source;
            out.forgotten |= ours;
            !(ours && matches!(out.standing, Standing::Resting { .. }))
        });
        waiting + before - self.out.len()
    }

    /// The message is done, or given up.
    pub(super) fn settle(&mut self, key: Key) {
        let Some(out) = self.out.get_mut(&key.message) else { return };
        match out.standing {
            Standing::Held { delivery, .. } if delivery != key.delivery => out.forgotten = true,
            Standing::Held { .. } | Standing::Resting { .. } => {
                self.out.remove(&key.message);
            }
        }
    }

    /// The message is to be handed out again after `delay`. Nothing, if another delivery holds it now.
    pub(super) fn put_back(&mut self, key: Key, now: Instant, delay: Duration) {
        let Some(out) = self.out.get_mut(&key.message) else { return };
        if !out.is_held_by(key) {
            return;
        }
        if out.forgotten {
            self.out.remove(&key.message);
        } else {
            out.standing = Standing::Resting { until: later(now, delay) };
        }
    }

    /// Whoever holds the message is at work.
    pub(super) fn progress(&mut self, key: Key, now: Instant) {
        let Some(ack_wait) = self.spec.as_ref().map(ConsumerSpec::ack_wait) else { return };
        if let Some(out) = self.out.get_mut(&key.message).filter(|out| out.is_held_by(key)) {
            out.standing = Standing::Held { delivery: key.delivery, until: later(now, ack_wait) };
        }
    }
}

impl Out {
    fn is_held_by(&self, key: Key) -> bool {
        matches!(self.standing, Standing::Held { delivery, .. } if delivery == key.delivery)
    }

    /// Whether nobody works on it, as far as one can tell.
    fn is_free(&self, now: Instant) -> bool {
        matches!(self.standing, Standing::Resting { .. }) || self.standing.until() <= now
    }
}
