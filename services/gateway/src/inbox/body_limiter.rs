//! Permits for bodies. Each sender with a token has its own permits, all such senders share a limit, and all other
//! clients share another. So a flooding client leaves permits for the rest, and the memory for bodies is bounded.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::senders::Sender;

/// Bodies of senders with a token that are received at a time, in total.
const SENDERS_AT_A_TIME: usize = 32;
/// Bodies of clients without a token that are received at a time, in total.
const ANONYMOUS_AT_A_TIME: usize = 32;
/// The most copies of a body in memory: as received, as text within a serialized message, twice as long each, and as
/// sent.
const COPIES: usize = 6;

/// Permits for bodies.
#[derive(Debug)]
pub(super) struct BodyLimiter {
    senders: Arc<Semaphore>,
    anonymous: Arc<Semaphore>,
}

/// A permit for one body. Dropping it returns it.
#[derive(Debug)]
pub(super) struct BodyPermit {
    _of_all: OwnedSemaphorePermit,
    _own: Option<[OwnedSemaphorePermit; 2]>,
}

impl BodyLimiter {
    pub(super) fn new() -> Self {
        let permits = |count| Arc::new(Semaphore::new(count));
        Self { senders: permits(SENDERS_AT_A_TIME), anonymous: permits(ANONYMOUS_AT_A_TIME) }
    }

    /// The most memory that all bodies of at most `body_bytes` take.
    pub(super) fn bytes(body_bytes: usize) -> usize {
        COPIES * body_bytes * (SENDERS_AT_A_TIME + ANONYMOUS_AT_A_TIME)
    }

    /// Waits for a permit for a body of a sender with a token, up to this time. No more requests of a sender wait than
    /// [`REQUESTS`](super::senders::REQUESTS), so that they do not take all connections.
    pub(super) async fn of_sender(&self, sender: &Sender, wait: Duration) -> Option<BodyPermit> {
        let request = sender.requests().try_acquire_owned().ok()?;
        let waiting = async {
            // The sender's own permit first, so that waiting for it holds no shared permit.
            let own = sender.permits().acquire_owned().await.ok()?;
            let of_all = Arc::clone(&self.senders).acquire_owned().await.ok()?;
            Some(BodyPermit { _of_all: of_all, _own: Some([own, request]) })
        };
        timeout(wait, waiting).await.ok().flatten()
    }

    /// A permit for a body of a client without a token, if one is free now.
    pub(super) fn of_anonymous(&self) -> Option<BodyPermit> {
        let of_all = Arc::clone(&self.anonymous).try_acquire_owned().ok()?;
        Some(BodyPermit { _of_all: of_all, _own: None })
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;
    use tokio::time::sleep;

    use super::*;
    use crate::inbox::senders::{REQUESTS, Senders};

    #[tokio::test(start_paused = true)]
    async fn all_senders_together_have_no_more_room_than_is_said_and_strangers_have_theirs() {
        let lines = (0..9).map(|n| format!("- {{name: s{n}, token: a-token-that-is-long-{n}}}\n"));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines.collect::<String>()).unwrap();
        let senders = Senders::of_file(file.path(), std::num::NonZeroU32::MIN).unwrap();
        let limiter = BodyLimiter::new();
        let mut held = Vec::new();
        for n in 0..9 {
            let sender = senders.with_token(&format!("a-token-that-is-long-{n}")).unwrap();
            while let Some(permit) = limiter.of_sender(&sender, Duration::from_secs(1)).await {
                held.push(permit);
                assert!(held.len() <= 8 * (n + 1), "one sender has all the room");
            }
        }
        assert_eq!(held.len(), SENDERS_AT_A_TIME);
        while let Some(permit) = limiter.of_anonymous() {
            held.push(permit);
        }
        assert_eq!(BodyLimiter::bytes(1), COPIES * held.len());
        held.clear();
        assert!(limiter.of_anonymous().is_some(), "room is given back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_that_sends_much_at_once_waits_and_only_what_exceeds_its_requests_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "- {name: s, token: a-token-that-is-long}\n").unwrap();
        let senders = Senders::of_file(file.path(), std::num::NonZeroU32::MIN).unwrap();
        let sender = senders.with_token("a-token-that-is-long").unwrap();
        let limiter = Arc::new(BodyLimiter::new());
        let mut requests = JoinSet::new();
        for _ in 0..REQUESTS + 3 {
            let (limiter, sender) = (Arc::clone(&limiter), sender.clone());
            requests.spawn(async move {
                let permit = limiter.of_sender(&sender, Duration::from_secs(10)).await;
                sleep(Duration::from_secs(1)).await;
                permit.is_some()
            });
        }
        let admitted = requests.join_all().await;
        assert_eq!(admitted.into_iter().filter(|admitted| *admitted).count(), REQUESTS);
        assert!(limiter.of_sender(&sender, Duration::ZERO).await.is_some(), "its requests are over");
    }
}
