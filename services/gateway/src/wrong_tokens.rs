//! Limits how many wrong tokens a client may show before it has to wait.
//!
//! While a client waits, the gateway does not check its tokens. So guessing is no faster than this limit. The counts are
//! in a map of its own rather than a cache, because a cache may evict a count, and that would give fresh guesses.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::client::ClientAddress;

/// The time window of the count.
const WINDOW: Duration = Duration::from_secs(60);
/// The most clients with a count of their own. All further clients share one count.
const MOST_CLIENTS: usize = 10_000;

/// Where a client shows a token. Each endpoint has its own count, because strangers reach some of them and not others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TokenEndpoint {
    /// The operator's API.
    Api,
    /// The sign-in page of the console.
    Console,
    /// The inboxes.
    Inbox,
}

impl TokenEndpoint {
    /// All endpoints.
    pub(crate) const ALL: [Self; 3] = [Self::Api, Self::Console, Self::Inbox];

    /// The label value in the metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Console => "console",
            Self::Inbox => "inbox",
        }
    }
}

type Key = (TokenEndpoint, ClientAddress);

/// Counts of wrong tokens in the last minute, by client.
#[derive(Debug)]
pub(crate) struct WrongTokens {
    per_minute: NonZeroU32,
    clients: Mutex<HashMap<Key, Counted>>,
}

#[derive(Debug)]
struct Counted {
    since: Instant,
    count: u32,
}

impl WrongTokens {
    pub(crate) fn new(per_minute: NonZeroU32) -> Self {
        Self { per_minute, clients: Mutex::default() }
    }

    /// Checks whether the gateway examines a token of this client now.
    ///
    /// # Errors
    /// The seconds until it does, after too many wrong tokens.
    pub(crate) fn check(&self, endpoint: TokenEndpoint, client: ClientAddress) -> Result<(), u64> {
        let clients = self.clients();
        let Some(counted) = clients.get(&key(&clients, endpoint, client)) else { return Ok(()) };
        let left = WINDOW.saturating_sub(counted.since.elapsed());
        if left.is_zero() || counted.count < self.per_minute.get() {
            return Ok(());
        }
        Err(left.as_secs() + 1)
    }

    /// Counts a wrong token.
    pub(crate) fn note(&self, endpoint: TokenEndpoint, client: ClientAddress) {
        let mut clients = self.clients();
        if clients.len() >= MOST_CLIENTS {
            clients.retain(|_, counted| counted.since.elapsed() < WINDOW);
        }
        let key = key(&clients, endpoint, client);
        let fresh = || Counted { since: Instant::now(), count: 0 };
        let counted = clients.entry(key).or_insert_with(fresh);
        if counted.since.elapsed() >= WINDOW {
            *counted = fresh();
        }
        counted.count = counted.count.saturating_add(1);
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<Key, Counted>> {
        // Each change is a single insertion or removal, so the map is consistent even after a panic.
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key under which a client is counted.
fn key(clients: &HashMap<Key, Counted>, endpoint: TokenEndpoint, client: ClientAddress) -> Key {
    let own = (endpoint, client);
    if clients.len() >= MOST_CLIENTS && !clients.contains_key(&own) {
        return (endpoint, ClientAddress::UNKNOWN);
    }
    own
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use axum::http::HeaderMap;

    use super::*;

    fn client(number: u32) -> ClientAddress {
        let address = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number));
        ClientAddress::of(address, &HeaderMap::new(), &[])
    }

    #[tokio::test(start_paused = true)]
    async fn after_too_many_wrong_tokens_a_client_waits_and_no_other_does() {
        let wrong = WrongTokens::new(NonZeroU32::new(3).unwrap());
        for _ in 0..3 {
            assert_eq!(wrong.check(TokenEndpoint::Api, client(1)), Ok(()));
            wrong.note(TokenEndpoint::Api, client(1));
        }
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(wrong.check(TokenEndpoint::Api, client(1)), Err(51));
        assert_eq!(wrong.check(TokenEndpoint::Api, client(2)), Ok(()));
        assert_eq!(wrong.check(TokenEndpoint::Inbox, client(1)), Ok(()), "each endpoint counts by itself");
        tokio::time::advance(Duration::from_secs(51)).await;
        assert_eq!(wrong.check(TokenEndpoint::Api, client(1)), Ok(()));
        wrong.note(TokenEndpoint::Api, client(1));
        assert_eq!(wrong.check(TokenEndpoint::Api, client(1)), Ok(()), "the count has begun anew");
    }

    #[tokio::test(start_paused = true)]
    async fn clients_without_number_take_bounded_room_and_wait_together() {
        let wrong = WrongTokens::new(NonZeroU32::new(3).unwrap());
        for number in 0..20_000 {
            wrong.note(TokenEndpoint::Api, client(number));
        }
        assert!(wrong.clients().len() <= MOST_CLIENTS + TokenEndpoint::ALL.len());
        assert!(
            wrong.check(TokenEndpoint::Api, client(30_000)).is_err(),
            "whoever is not counted by itself waits too"
        );
        assert_eq!(wrong.check(TokenEndpoint::Api, client(0)), Ok(()));
        tokio::time::advance(WINDOW).await;
        assert_eq!(wrong.check(TokenEndpoint::Api, client(30_000)), Ok(()));
    }
}
