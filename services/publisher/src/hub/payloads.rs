//! The last payloads, made once for all subscribers. Their intervals join.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
}

impl Payloads {
    /// None yet: all before `until` was told in earlier ones.
    pub(super) fn begin(until: Timestamp) -> Self {
        Self { kept: Mutex::default(), until: watch::Sender::new(until) }
    }

    /// Adds one that joins on to the newest, or leaves a gap.
    pub(super) fn push(&self, payload: Payload) {
        let until = payload.until;
        {
            let mut kept = self.kept();
            kept.push_back(payload);
            let mut bytes: usize = kept.iter().map(|payload| payload.body.len()).sum();
            while bytes > MOST_BYTES && kept.len() > 1 {
                bytes -= kept.pop_front().map_or(0, |oldest| oldest.body.len());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn payload(from: i64, until: i64, bytes: usize) -> Payload {
        Payload { from: at(from), until: at(until), body: vec![b'x'; bytes].into() }
    }

    #[test]
    fn payloads_follow_each_other_and_who_is_between_them_is_brought_to_the_next_end() {
        let payloads = Payloads::begin(at(10));
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
        let payloads = Payloads::begin(at(0));
        for second in 0..5 {
            payloads.push(payload(second, second + 1, MOST_BYTES / 2));
        }
        assert_eq!(payloads.kept().len(), 2);
        assert_eq!(payloads.after(at(0)), Next::Behind(at(3)));
        payloads.push(payload(5, 6, 2 * MOST_BYTES));
        assert_eq!(payloads.kept().len(), 1);
        assert_eq!(payloads.until(), at(6));
    }
}
