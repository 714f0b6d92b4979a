//! Limits of deliveries: requests per second at one callback, and payloads in process, for one callback and in total.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use control::SubscriptionId;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::rate;

/// The most callbacks to remember. Only those of subscriptions get here, so the number exceeds that of the fleet only
/// by callbacks of ended subscriptions.
const REMEMBERED: usize = 100_000;

/// The limits of all callbacks. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Hands {
    quota: Quota,
    each: usize,
    room: Arc<Semaphore>,
    callbacks: Arc<Mutex<HashMap<SubscriptionId, Arc<One>>>>,
}

/// The limits of one callback.
#[derive(Debug)]
struct One {
    limiter: DefaultDirectRateLimiter,
    room: Arc<Semaphore>,
}

/// A permit for one payload. Dropping it returns it.
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
    /// The seconds until the next request is accepted, when this one exceeds the rate.
    pub(super) fn count(&self, id: &SubscriptionId) -> Result<(), u64> {
        rate::count(&self.one(id).limiter)
    }

    /// A permit for a payload at a callback, if one is free now.
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
        // Each change is a single insertion or removal, so the map is consistent even after a panic.
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
