//! IDs of messages that were queued lately.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::MessageId;

/// How long an ID is remembered: as long as on a NATS server.
pub(super) const WINDOW: Duration = Duration::from_secs(120);
/// The most IDs to remember, so that memory stays bounded at any rate.
const MOST: usize = 65_536;

/// IDs of messages that were queued lately.
#[derive(Debug, Default)]
pub(super) struct SeenIds {
    ids: HashSet<MessageId>,
    in_order: VecDeque<(Instant, MessageId)>,
}

impl SeenIds {
    pub(super) fn contains(&mut self, id: &MessageId, now: Instant) -> bool {
        self.forget(now);
        self.ids.contains(id)
    }

    /// Records an ID. Returns whether it is new.
    pub(super) fn insert(&mut self, id: MessageId, now: Instant) -> bool {
        self.forget(now);
        let new = self.ids.insert(id.clone());
        if new {
            self.in_order.push_back((now, id));
        }
        new
    }

    fn forget(&mut self, now: Instant) {
        while let Some((at, _)) = self.in_order.front() {
            if now < *at + WINDOW && self.in_order.len() <= MOST {
                return;
            }
            if let Some((_, id)) = self.in_order.pop_front() {
                self.ids.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_name_is_remembered_for_the_window_and_no_longer() {
        let mut seen = SeenIds::default();
        assert!(seen.insert(MessageId::new("a"), Instant::now()));
        tokio::time::advance(WINDOW - Duration::from_millis(1)).await;
        assert!(!seen.insert(MessageId::new("a"), Instant::now()));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!seen.contains(&MessageId::new("a"), Instant::now()));
        assert!(seen.insert(MessageId::new("a"), Instant::now()));
    }

    #[test]
    fn no_more_names_are_held_than_the_limit() {
        let mut seen = SeenIds::default();
        let now = Instant::now();
        for n in 0..MOST + 100 {
            seen.insert(MessageId::new(n.to_string()), now);
        }
        assert!(seen.ids.len() <= MOST + 1, "{}", seen.ids.len());
        assert_eq!(seen.ids.len(), seen.in_order.len());
        assert!(seen.contains(&MessageId::new((MOST + 99).to_string()), now));
    }
}
