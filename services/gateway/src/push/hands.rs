//! What is in hand: so many requests in a second at one callback, and so many payloads at a time, of one and of all.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use control::SubscriptionId;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::rate;

/// Callbacks that are remembered. Only those of subscriptions come here, so there are never more than a fleet has, but for those that have ended.
const REMEMBERED: usize = 100_000;

/// What all callbacks have in hand. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Hands {
    quota: Quota,
    each: usize,
    room: Arc<Semaphore>,
    callbacks: Arc<Mutex<HashMap<SubscriptionId, Arc<One>>>>,
}

/// One callback.
#[derive(Debug)]
struct One {
    limiter: DefaultDirectRateLimiter,
    room: Arc<Semaphore>,
}

/// Room for one payload, given back when dropped.
#[derive(Debug)]
pub(super) struct Room {
    _one: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl Hands {
    pub(super) fn new(per_second: NonZeroU32, at_a_time: usize, each: usize) -> Self {
        let burst = per_second.saturating_mul(const { NonZeroU32::new(2).unwrap() });
        let quota = Quota::per_second(per_second).allow_burst(burst);
        let room = Arc::new(Semaphore::new(at_a_time.max(1)));
        Self { quota, each: each.clamp(1, at_a_time.max(1)), room, callbacks: Arc::default() }
    }

    /// Counts a request at a callback.
    ///
    /// # Errors
    /// In how many seconds the next one is taken, when it is one too many.
    pub(super) fn count(&self, id: &SubscriptionId) -> Result<(), u64> {
        rate::count(&self.one(id).limiter)
    }

    /// Room for a payload at a callback, if there is any now.
    pub(super) fn room(&self, id: &SubscriptionId) -> Option<Room> {
        let one = Arc::clone(&self.one(id).room).try_acquire_owned().ok()?;
        let all = Arc::clone(&self.room).try_acquire_owned().ok()?;
        Some(Room { _one: one, _all: all })
    }

    fn one(&self, id: &SubscriptionId) -> Arc<One> {
        let mut callbacks = self.callbacks();
        if callbacks.len() >= REMEMBERED && !callbacks.contains_key(id) {
            callbacks.retain(|_, one| one.room.available_permits() < self.each);
        }
        let make = || {
            let (limiter, room) = (RateLimiter::direct(self.quota), Arc::new(Semaphore::new(self.each)));
            Arc::new(One { limiter, room })
        };
        Arc::clone(callbacks.entry(id.clone()).or_insert_with(make))
    }

    fn callbacks(&self) -> MutexGuard<'_, HashMap<SubscriptionId, Arc<One>>> {
        // Single insertions and removals: what a panicking thread left is whole.
        self.callbacks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> SubscriptionId {
        SubscriptionId::of(&"source".parse().unwrap(), &n.to_string(), "key")
    }

    #[test]
    fn who_floods_is_held_up_and_nobody_else() {
        let hands = Hands::new(NonZeroU32::new(5).unwrap(), 4, 2);
        let taken = (0..1_000).filter(|_| hands.count(&id(1)).is_ok()).count();
        assert!((10..30).contains(&taken), "{taken}");
        assert!(hands.count(&id(1)).is_err_and(|seconds| seconds >= 1));
        assert!(hands.count(&id(2)).is_ok());
    }

    #[test]
    fn one_callback_never_takes_all_the_room_and_room_is_given_back() {
        let hands = Hands::new(NonZeroU32::MIN, 4, 3);
        let mut held: Vec<Room> = (0..3).map(|_| hands.room(&id(1)).unwrap()).collect();
        assert!(hands.room(&id(1)).is_none(), "it has its share");
        let other = hands.room(&id(2)).unwrap();
        assert!(hands.room(&id(2)).is_none(), "there is no more");
        held.pop();
        assert!(hands.room(&id(3)).is_some());
        drop((held, other));
        assert_eq!((0..9).map_while(|n| hands.room(&id(n)).map(std::mem::forget)).count(), 4);
    }
}
