//! The last payloads, made once for all subscribers. Their intervals join.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::watch;

/// Bytes of payloads that are kept in memory. Who needs an earlier one gets it from the Change Lists.
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// A payload: the changes behind `from`, up to `until`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Payload {
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
    pub(super) body: Bytes,
}

/// What a subscriber gets next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This one joins on.
    Payload(Payload),
    /// It was told everything.
    UpToDate,
    /// It is to be told of the changes up to then, which are in no payload.
    Behind(Timestamp),
}

/// The last payloads.
pub(super) struct Payloads {
    kept: Mutex<VecDeque<Payload>>,
    /// The end of the newest.
    until: watch::Sender<Timestamp>,
    /// The bytes of those of all hubs.
    of_all: Arc<AtomicUsize>,
    /// The most bytes of those of all hubs.
    most_of_all: usize,
}

impl Payloads {
    /// None yet: all before `until` was told in earlier ones. `of_all` counts the bytes of all hubs, and may reach
    /// `most_of_all`.
    pub(super) fn begin(until: Timestamp, of_all: Arc<AtomicUsize>, most_of_all: usize) -> Self {
        Self { kept: Mutex::default(), until: watch::Sender::new(until), of_all, most_of_all }
    }

    /// Adds one that joins on to the newest, or leaves a gap.
    pub(super) fn push(&self, payload: Payload) {
        let until = payload.until;
        {
            let mut kept = self.kept();
            let mut of_all =
                self.of_all.fetch_add(payload.body.len(), Ordering::Relaxed) + payload.body.len();
            kept.push_back(payload);
            let mut bytes: usize = kept.iter().map(|payload| payload.body.len()).sum();
            while bytes > MOST_BYTES && kept.len() > 1 || of_all > self.most_of_all {
                let Some(oldest) = kept.pop_front() else { break };
                bytes -= oldest.body.len();
                of_all = self.of_all.fetch_sub(oldest.body.len(), Ordering::Relaxed) - oldest.body.len();
            }
        }
        self.until.send_replace(until);
    }

    /// The end of the newest.
    pub(super) fn until(&self) -> Timestamp {
        *self.until.borrow()
    }

    /// Changes with each payload.
    pub(super) fn newest(&self) -> watch::Receiver<Timestamp> {
        self.until.subscribe()
    }

    /// What comes next for one that was told until then.
    pub(super) fn after(&self, told: Timestamp) -> Next {
        let until = self.until();
        if told >= until {
            return Next::UpToDate;
        }
        let kept = self.kept();
        match kept.iter().find(|payload| payload.until > told) {
            Some(payload) if payload.from == told => Next::Payload(payload.clone()),
            Some(payload) if payload.from > told => Next::Behind(payload.from),
            // It begins within: after a kill, the payloads are cut at other times.
            Some(payload) => Next::Behind(payload.until),
            None => Next::Behind(until),
        }
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Payload>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Payloads {
    fn drop(&mut self) {
        let bytes: usize = self.kept().iter().map(|payload| payload.body.len()).sum();
        self.of_all.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn begin(until: i64) -> Payloads {
        Payloads::begin(at(until), Arc::default(), 10 * MOST_BYTES)
    }

    fn payload(from: i64, until: i64, bytes: usize) -> Payload {
        Payload { from: at(from), until: at(until), body: vec![b'x'; bytes].into() }
    }

    #[test]
    fn payloads_follow_each_other_and_who_is_between_them_is_brought_to_the_next_end() {
        let payloads = begin(10);
        assert_eq!(payloads.after(at(10)), Next::UpToDate);
        assert_eq!(payloads.after(at(5)), Next::Behind(at(10)), "told before the start");
        payloads.push(payload(10, 20, 1));
        payloads.push(payload(20, 30, 1));
        assert_eq!(payloads.after(at(10)), Next::Payload(payload(10, 20, 1)));
        assert_eq!(payloads.after(at(20)), Next::Payload(payload(20, 30, 1)));
        assert_eq!(payloads.after(at(5)), Next::Behind(at(10)));
        assert_eq!(payloads.after(at(15)), Next::Behind(at(20)));
        assert_eq!((payloads.after(at(30)), payloads.after(at(31))), (Next::UpToDate, Next::UpToDate));
    }

    #[test]
    fn memory_is_bounded_and_the_newest_stays() {
        let payloads = begin(0);
        for second in 0..5 {
            payloads.push(payload(second, second + 1, MOST_BYTES / 2));
        }
        assert_eq!(payloads.kept().len(), 2);
        assert_eq!(payloads.after(at(0)), Next::Behind(at(3)));
        payloads.push(payload(5, 6, 2 * MOST_BYTES));
        assert_eq!(payloads.kept().len(), 1);
        assert_eq!(payloads.until(), at(6));
    }

    #[test]
    fn payloads_of_all_hubs_are_bounded_together_and_who_needs_one_that_left_is_behind() {
        let of_all = Arc::new(AtomicUsize::new(0));
        let hub = || Payloads::begin(at(0), Arc::clone(&of_all), 100);
        let (one, two) = (hub(), hub());
        one.push(payload(0, 1, 60));
        two.push(payload(0, 1, 30));
        two.push(payload(1, 2, 30));
        assert_eq!(two.after(at(0)), Next::Behind(at(1)), "its oldest made room");
        assert_eq!(two.after(at(1)), Next::Payload(payload(1, 2, 30)));
        two.push(payload(2, 3, 90));
        assert_eq!(two.after(at(2)), Next::Behind(at(3)), "there is no room for it at all");
        assert_eq!(one.after(at(0)), Next::Payload(payload(0, 1, 60)), "the other keeps its own");
        drop(one);
        assert_eq!(of_all.load(Ordering::Relaxed), 0);
    }
}
