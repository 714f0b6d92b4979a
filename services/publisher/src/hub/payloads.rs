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
    /// The bytes of all hubs' bodies, also of those that left and are still under way.
    of_all: Arc<AtomicUsize>,
    /// The most bytes of all hubs' bodies. While so many are there, no further payload is kept.
    most_of_all: usize,
}

/// A body, which counts until its last user drops it.
struct Counted {
    body: Vec<u8>,
    of_all: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.of_all.fetch_sub(self.body.len(), Ordering::Relaxed);
    }
}

impl Payloads {
    /// None yet: all before `until` was told in earlier ones. `of_all` counts the bytes of all hubs, and may reach
    /// `most_of_all`.
    pub(super) fn begin(until: Timestamp, of_all: Arc<AtomicUsize>, most_of_all: usize) -> Self {
        Self { kept: Mutex::default(), until: watch::Sender::new(until), of_all, most_of_all }
    }

    /// The body of a new payload, whose bytes count, as long as it is kept or under way.
    pub(super) fn counted(&self, body: Vec<u8>) -> Bytes {
        self.of_all.fetch_add(body.len(), Ordering::Relaxed);
        Bytes::from_owner(Counted { body, of_all: Arc::clone(&self.of_all) })
    }

    /// Adds one that joins on to the newest, or leaves a gap.
    pub(super) fn push(&self, payload: Payload) {
        let until = payload.until;
        {
            let mut kept = self.kept();
            kept.push_back(payload);
            let mut bytes: usize = kept.iter().map(|payload| payload.body.len()).sum();
            let is_full = || self.of_all.load(Ordering::Relaxed) > self.most_of_all;
            while bytes > MOST_BYTES && kept.len() > 1 || is_full() {
                let Some(oldest) = kept.pop_front() else { break };
                bytes -= oldest.body.len();
            }
        }
        self.until.send_replace(until);
    }

    /// Whether it keeps none.
    pub(super) fn is_empty(&self) -> bool {
        self.kept().is_empty()
    }

    /// Keeps none any more. Who was not told of them yet gets their changes from the Change Lists.
    pub(super) fn give_up(&self) {
        *self.kept() = VecDeque::new();
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

    /// A payload whose bytes count.
    fn counted(payloads: &Payloads, from: i64, bytes: usize) -> Payload {
        Payload { from: at(from), until: at(from + 1), body: payloads.counted(vec![b'x'; bytes]) }
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
        one.push(counted(&one, 0, 60));
        two.push(counted(&two, 0, 30));
        two.push(counted(&two, 1, 30));
        assert_eq!(two.after(at(0)), Next::Behind(at(1)), "its oldest made room");
        assert_eq!(two.after(at(1)), Next::Payload(payload(1, 2, 30)));
        two.push(counted(&two, 2, 90));
        assert_eq!(two.after(at(2)), Next::Behind(at(3)), "there is no room for it at all");
        assert_eq!(one.after(at(0)), Next::Payload(payload(0, 1, 60)), "the other keeps its own");
        drop(one);
        assert_eq!(of_all.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_body_that_is_under_way_counts_until_it_is_delivered() {
        let of_all = Arc::new(AtomicUsize::new(0));
        let payloads = Payloads::begin(at(0), Arc::clone(&of_all), 100);
        payloads.push(counted(&payloads, 0, 60));
        let Next::Payload(under_way) = payloads.after(at(0)) else { panic!("it is kept") };
        payloads.push(counted(&payloads, 1, 60));
        assert!(payloads.is_empty(), "there is no room beside what is under way");
        assert_eq!(of_all.load(Ordering::Relaxed), 60);
        drop(under_way);
        assert_eq!(of_all.load(Ordering::Relaxed), 0);
        payloads.push(counted(&payloads, 2, 60));
        assert_eq!(payloads.after(at(2)), Next::Payload(payload(2, 3, 60)));
    }

    #[test]
    fn a_hub_that_gives_up_its_payloads_has_no_memory_and_leads_to_the_change_lists() {
        let of_all = Arc::new(AtomicUsize::new(0));
        let payloads = Payloads::begin(at(0), Arc::clone(&of_all), 100);
        payloads.push(counted(&payloads, 0, 60));
        payloads.give_up();
        assert_eq!((payloads.is_empty(), of_all.load(Ordering::Relaxed)), (true, 0));
        assert_eq!((payloads.after(at(0)), payloads.after(at(1))), (Next::Behind(at(1)), Next::UpToDate));
    }
}
