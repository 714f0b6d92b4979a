//! The newest payloads of topics, in bounded memory: those of the sets that changed last stay.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lru::LruCache;

use crate::payload_limits::PAYLOAD_BYTES;

/// The most bytes of a server.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The newest payload of each topic. Clones share them.
#[derive(Debug, Clone)]
pub struct Topics(Arc<Mutex<Newest>>);

#[derive(Debug)]
struct Newest {
    payloads: LruCache<String, Bytes>,
    bytes: usize,
    most: usize,
}

impl Default for Topics {
    fn default() -> Self {
        Self::of(MOST_BYTES)
    }
}

impl Topics {
    /// Payloads of at most so many bytes: room for one, and for no more than are kept by default.
    pub(crate) fn of(most: usize) -> Self {
        Self::bounded(most.clamp(PAYLOAD_BYTES, MOST_BYTES))
    }

    fn bounded(most: usize) -> Self {
        Self(Arc::new(Mutex::new(Newest { payloads: LruCache::unbounded(), bytes: 0, most })))
    }

    /// The most bytes that they take.
    pub(crate) fn most_bytes(&self) -> usize {
        self.newest().most
    }

    /// The newest payload of a topic. None if there was none, or other topics had many since.
    pub(crate) fn get(&self, topic: &str) -> Option<Bytes> {
        self.newest().payloads.peek(topic).cloned()
    }

    /// Notes the newest payload of a topic.
    pub(crate) fn put(&self, topic: &str, payload: Bytes) {
        let newest = &mut *self.newest();
        let mut gone = if payload.len() > newest.most {
            newest.payloads.pop(topic)
        } else {
            newest.bytes += payload.len();
            newest.payloads.put(topic.to_owned(), payload)
        };
        loop {
            newest.bytes -= gone.map_or(0, |payload| payload.len());
            if newest.bytes <= newest.most {
                return;
            }
            gone = newest.payloads.pop_lru().map(|(_, payload)| payload);
        }
    }

    fn newest(&self) -> MutexGuard<'_, Newest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payloads_of_all_topics_are_bounded_together_and_those_that_changed_last_stay() {
        let topics = Topics::bounded(100);
        let put = |topic: &str, bytes: usize| topics.put(topic, vec![b'x'; bytes].into());
        let lengths = || ["a", "b", "c"].map(|topic| topics.get(topic).map(|payload| payload.len()));
        put("a", 40);
        put("b", 40);
        put("a", 50);
        assert_eq!(lengths(), [Some(50), Some(40), None]);
        put("c", 30);
        assert_eq!(lengths(), [Some(50), None, Some(30)], "the one that changed first made room");
        put("b", 101);
        assert_eq!(lengths(), [Some(50), None, Some(30)], "one that never fits drops no others");
        put("a", 101);
        assert_eq!(lengths(), [None, None, Some(30)], "its own earlier one is the newest no more");
        put("b", 100);
        assert_eq!(lengths(), [None, Some(100), None]);
    }

    #[test]
    fn there_is_room_for_the_largest_payload() {
        let topics = Topics::of(1);
        topics.put("a", vec![b'x'; PAYLOAD_BYTES].into());
        assert!(topics.get("a").is_some());
    }
}
