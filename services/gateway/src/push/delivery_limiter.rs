//! Limits of deliveries: requests per second at one callback, and payloads in process, for one callback and in total.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use control::SubscriptionId;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::rate_limit;

/// Payloads of one callback in process at a time. So a slow or hostile hub leaves capacity for the others.
const EACH: usize = 8;
/// The most callbacks whose rates are remembered. Beyond that, those without a recent request are forgotten. Only
/// callbacks of known subscriptions are counted, so a stranger cannot add any.
const REMEMBERED: usize = 100_000;

/// The limits of all callbacks.
#[derive(Debug)]
pub(super) struct DeliveryLimiter {
    rates: DefaultKeyedRateLimiter<SubscriptionId>,
    payloads: Arc<Semaphore>,
    in_process: InProcess,
}

/// The number of payloads in process, by callback.
type InProcess = Arc<Mutex<HashMap<SubscriptionId, usize>>>;

/// A permit for one payload. Dropping it returns it.
#[derive(Debug)]
pub(super) struct PayloadPermit {
    id: SubscriptionId,
    in_process: InProcess,
    _total: OwnedSemaphorePermit,
}

impl DeliveryLimiter {
    pub(super) fn new(per_second: NonZeroU32, at_a_time: usize) -> Self {
        let burst = per_second.saturating_mul(const { NonZeroU32::new(2).unwrap() });
        let rates = RateLimiter::keyed(Quota::per_second(per_second).allow_burst(burst));
        Self { rates, payloads: Arc::new(Semaphore::new(at_a_time.max(1))), in_process: Arc::default() }
    }

    /// Counts a request at a callback.
    ///
    /// # Errors
    /// The seconds until the next request is accepted, when this one exceeds the rate.
    pub(super) fn count(&self, id: &SubscriptionId) -> Result<(), u64> {
        if self.rates.len() >= REMEMBERED {
            self.rates.retain_recent();
        }
        self.rates.check_key(id).map_err(rate_limit::seconds)
    }

    /// A permit for a payload at a callback, if one is free now.
    pub(super) fn permit(&self, id: &SubscriptionId) -> Option<PayloadPermit> {
        let total = Arc::clone(&self.payloads).try_acquire_owned().ok()?;
        let mut counts = lock(&self.in_process);
        let count = counts.entry(id.clone()).or_default();
        if *count == EACH {
            return None;
        }
        *count += 1;
        Some(PayloadPermit { id: id.clone(), in_process: Arc::clone(&self.in_process), _total: total })
    }
}

impl Drop for PayloadPermit {
    fn drop(&mut self) {
        let mut counts = lock(&self.in_process);
        if let Some(count) = counts.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.id);
            }
        }
    }
}

fn lock(in_process: &InProcess) -> MutexGuard<'_, HashMap<SubscriptionId, usize>> {
    // No code under this lock panics, so the counts are right even if it is poisoned.
    in_process.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> SubscriptionId {
        SubscriptionId::of(&"source".parse().unwrap(), &n.to_string(), "key")
    }

    #[test]
    fn one_callback_that_floods_is_limited_and_no_other_is() {
        let limiter = DeliveryLimiter::new(NonZeroU32::new(5).unwrap(), 4);
        let accepted = (0..1_000).filter(|_| limiter.count(&id(1)).is_ok()).count();
        assert!((10..30).contains(&accepted), "{accepted}");
        assert!(limiter.count(&id(1)).is_err_and(|seconds| seconds >= 1));
        assert!(limiter.count(&id(2)).is_ok());
    }

    #[test]
    fn one_callback_never_has_all_permits_and_permits_come_back() {
        let limiter = DeliveryLimiter::new(NonZeroU32::MIN, EACH + 1);
        let mut held: Vec<_> = (0..EACH).map(|_| limiter.permit(&id(1)).unwrap()).collect();
        assert!(limiter.permit(&id(1)).is_none(), "it has its share");
        let other = limiter.permit(&id(2)).unwrap();
        assert!(limiter.permit(&id(2)).is_none(), "no permit is left");
        held.pop();
        assert!(limiter.permit(&id(3)).is_some());
        drop((held, other));
        assert!(lock(&limiter.in_process).is_empty());
        let all = (0..99).map_while(|n| limiter.permit(&id(n)).map(std::mem::forget)).count();
        assert_eq!(all, EACH + 1);
    }
}
