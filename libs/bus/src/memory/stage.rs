//! The queues of one filter: the queued messages, the messages in flight, and the tasks that wait for a change.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use model::SourceId;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::fair_queue::FairQueue;
use super::later;
use crate::permit::{permits_within, spare_within};
use crate::{ConsumerSpec, Depth, Message, MessageId, Payload, Queue};

/// The queues of one filter.
#[derive(Debug, Default)]
pub(super) struct Stage {
    spec: Option<ConsumerSpec>,
    waiting: FairQueue<Stored>,
    out: BTreeMap<u64, Out>,
    /// Acquired permits. Each counts as one more in flight.
    permits: usize,
    /// The number of the next message, and of the next delivery.
    next: u64,
    changed: Arc<Notify>,
}

/// A message in the bus.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) id: MessageId,
    pub(super) queue: Queue,
    pub(super) payload: Payload,
    /// How often it was delivered.
    pub(super) deliveries: u32,
}

/// The deliveries of a pull, and the messages that it found to be delivered too often.
#[derive(Debug, Default)]
pub(super) struct Handed {
    pub(super) deliveries: Vec<(Key, Message)>,
    pub(super) buried: Vec<Stored>,
}

/// Identifies a delivery of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    message: u64,
    delivery: u64,
}

/// A message in flight.
#[derive(Debug)]
struct Out {
    stored: Stored,
    delivery_state: DeliveryState,
    /// It must not be redelivered, but its worker is still busy with it, so it counts as in flight.
    forgotten: bool,
}

#[derive(Debug, Clone, Copy)]
enum DeliveryState {
    /// Delivered to a worker, until it is silent for too long.
    Held { delivery: u64, until: Instant },
    /// To be redelivered, not before this time.
    Resting { until: Instant },
}

impl Stored {
    pub(super) fn message(&self, attempt: u32) -> Message {
        Message { id: self.id.clone(), queue: self.queue.clone(), payload: self.payload.clone(), attempt }
    }
}

impl DeliveryState {
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

    /// Delivers nothing until it is opened again.
    pub(super) fn close(&mut self) {
        self.spec = None;
    }

    /// Acquires a permit, if one is free. From now on, deliveries leave room for it.
    pub(super) fn take_permit(&mut self, limit: usize) -> bool {
        let is_free = self.permits < permits_within(limit);
        self.permits += usize::from(is_free);
        is_free
    }

    /// Acquires a spare permit, if the origin queue is open and has one: see
    /// [`Bus::try_acquire_spare`](crate::Bus::try_acquire_spare).
    pub(super) fn take_spare_permit(&mut self) -> bool {
        let Some(limit) = self.spec.as_ref().map(ConsumerSpec::max_in_flight) else { return false };
        let is_spare = self.waiting.is_empty()
            && self.permits < spare_within(limit)
            && self.out.len() + self.permits < limit;
        self.permits += usize::from(is_spare);
        is_spare
    }

    pub(super) fn return_permit(&mut self) {
        self.permits -= 1;
    }

    /// Whether the messages in flight leave room for the acquired permits.
    pub(super) fn has_room(&self, limit: usize) -> bool {
        let limit = self.spec.as_ref().map_or(limit, ConsumerSpec::max_in_flight);
        self.out.is_empty() || self.out.len() + self.permits <= limit
    }

    /// Whether it has no messages and no acquired permits.
    pub(super) fn is_unused(&self) -> bool {
        self.is_empty() && self.permits == 0
    }

    /// Whether its state equals that of a new stage.
    pub(super) fn is_forgettable(&self) -> bool {
        self.is_unused() && self.spec.is_none()
    }

    /// Resolves at the next change after this call.
    pub(super) fn changed(&self) -> impl Future<Output = ()> + Send + use<> {
        Arc::clone(&self.changed).notified_owned()
    }

    /// Wakes all tasks that wait for a change.
    pub(super) fn notify(&self) {
        self.changed.notify_waiters();
    }

    pub(super) fn put(&mut self, stored: Stored) {
        let source = stored.queue.source().clone();
        self.waiting.push(&source, stored);
        self.notify();
    }

    /// Takes up to `max` messages, or returns None if no consumer is open.
    pub(super) fn take(&mut self, max: usize, now: Instant) -> Option<Handed> {
        let spec = self.spec.clone()?;
        let limit = spec.max_in_flight().saturating_sub(self.permits);
        let mut handed = Handed::default();
        self.take_again(&spec, limit, max, now, &mut handed);
        while handed.deliveries.len() < max && self.out.len() < limit {
            let Some(mut stored) = self.waiting.pop() else { break };
            stored.deliveries += 1;
            let message = stored.message(stored.deliveries);
            let key = Key { message: self.number(), delivery: self.number() };
            let delivery_state =
                DeliveryState::Held { delivery: key.delivery, until: later(now, spec.ack_wait()) };
            self.out.insert(key.message, Out { stored, delivery_state, forgotten: false });
            handed.deliveries.push((key, message));
        }
        Some(handed)
    }

    /// Takes the redeliveries, in the order of their first delivery.
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
            .filter(|(_, out)| out.delivery_state.until() <= now)
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
                out.delivery_state = DeliveryState::Held { delivery, until: later(now, spec.ack_wait()) };
                let message = out.stored.message(out.stored.deliveries);
                handed.deliveries.push((Key { message: number, delivery }, message));
            }
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The time of the next redelivery that depends on the clock alone. A message that is due already waits for a slot.
    pub(super) fn next_due(&self, now: Instant) -> Option<Instant> {
        self.out.values().map(|out| out.delivery_state.until()).filter(|until| *until > now).min()
    }

    /// Messages of a Source, queued or in flight.
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

    /// Drops the messages of a Source. A message in flight is finished, but not redelivered.
    pub(super) fn purge(&mut self, source: &SourceId) -> usize {
        let waiting = self.waiting.remove(source);
        let before = self.out.len();
        self.out.retain(|_, out| {
            let ours = out.stored.queue.source() == source;
            out.forgotten |= ours;
            !(ours && matches!(out.delivery_state, DeliveryState::Resting { .. }))
        });
        waiting + before - self.out.len()
    }

    /// The message is done, or given up.
    pub(super) fn settle(&mut self, key: Key) {
        let Some(out) = self.out.get_mut(&key.message) else { return };
        match out.delivery_state {
            DeliveryState::Held { delivery, .. } if delivery != key.delivery => out.forgotten = true,
            DeliveryState::Held { .. } | DeliveryState::Resting { .. } => {
                self.out.remove(&key.message);
            }
        }
    }

    /// Redelivers the message after `delay`, unless it was delivered again since.
    pub(super) fn put_back(&mut self, key: Key, now: Instant, delay: Duration) {
        let Some(out) = self.out.get_mut(&key.message) else { return };
        if !out.is_held_by(key) {
            return;
        }
        if out.forgotten {
            self.out.remove(&key.message);
        } else {
            out.delivery_state = DeliveryState::Resting { until: later(now, delay) };
        }
    }

    /// The worker of the message reports progress.
    pub(super) fn progress(&mut self, key: Key, now: Instant) {
        let Some(ack_wait) = self.spec.as_ref().map(ConsumerSpec::ack_wait) else { return };
        if let Some(out) = self.out.get_mut(&key.message).filter(|out| out.is_held_by(key)) {
            out.delivery_state = DeliveryState::Held { delivery: key.delivery, until: later(now, ack_wait) };
        }
    }
}

impl Out {
    fn is_held_by(&self, key: Key) -> bool {
        matches!(self.delivery_state, DeliveryState::Held { delivery, .. } if delivery == key.delivery)
    }

    /// Whether no worker has the message, as far as the bus can tell.
    fn is_free(&self, now: Instant) -> bool {
        matches!(self.delivery_state, DeliveryState::Resting { .. }) || self.delivery_state.until() <= now
    }
}
