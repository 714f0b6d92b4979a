//! Wrong tokens: how many a client may show before it has to wait.
//!
//! While a client waits, its tokens are not looked at, so that guessing goes no faster than this.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::client::ClientAddress;

/// How long wrong tokens are counted together.
const WINDOW: Duration = Duration::from_secs(60);
/// The most clients that are counted each by itself; all beyond are counted together.
const MOST_CLIENTS: usize = 10_000;

/// Where a token is shown. Each place counts by itself: strangers reach some of them and not others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Door {
    /// The operator's API.
    Api,
    /// The console's page for signing in.
    Console,
    /// The inboxes.
    Inbox,
}

impl Door {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Api, Self::Console, Self::Inbox];

    /// Its name among the metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Console => "console",
            Self::Inbox => "inbox",
        }
    }
}

type Key = (Door, ClientAddress);

/// The wrong tokens of the last minute, by client.
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

    /// Whether a token of this client is looked at now.
    ///
    /// # Errors
    /// In how many seconds it is, after too many wrong ones.
    pub(crate) fn check(&self, door: Door, client: ClientAddress) -> Result<(), u64> {
        let clients = self.clients();
        let Some(counted) = clients.get(&key(&clients, door, client)) else { return Ok(()) };
        let left = WINDOW.saturating_sub(counted.since.elapsed());
        if left.is_zero() || counted.count < self.per_minute.get() {
            return Ok(());
        }
        Err(left.as_secs() + 1)
    }

    /// Counts a wrong token.
    pub(crate) fn note(&self, door: Door, client: ClientAddress) {
        let mut clients = self.clients();
        if clients.len() >= MOST_CLIENTS {
            clients.retain(|_, counted| counted.since.elapsed() < WINDOW);
        }
        let key = key(&clients, door, client);
        let fresh = || Counted { since: Instant::now(), count: 0 };
        let counted = clients.entry(key).or_insert_with(fresh);
        if counted.since.elapsed() >= WINDOW {
            *counted = fresh();
        }
        counted.count = counted.count.saturating_add(1);
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<Key, Counted>> {
        // Single insertions and removals: what a panicking thread left is whole.
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Under which key a client is counted.
fn key(clients: &HashMap<Key, Counted>, door: Door, client: ClientAddress) -> Key {
    let own = (door, client);
    if clients.len() >= MOST_CLIENTS && !clients.contains_key(&own) {
        return (door, ClientAddress::UNKNOWN);
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
            assert_eq!(wrong.check(Door::Api, client(1)), Ok(()));
            wrong.note(Door::Api, client(1));
        }
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(wrong.check(Door::Api, client(1)), Err(51));
        assert_eq!(wrong.check(Door::Api, client(2)), Ok(()));
        assert_eq!(wrong.check(Door::Inbox, client(1)), Ok(()), "each door counts by itself");
        tokio::time::advance(Duration::from_secs(51)).await;
        assert_eq!(wrong.check(Door::Api, client(1)), Ok(()));
        wrong.note(Door::Api, client(1));
        assert_eq!(wrong.check(Door::Api, client(1)), Ok(()), "the count has begun anew");
    }

    #[tokio::test(start_paused = true)]
    async fn clients_without_number_take_bounded_room_and_wait_together() {
        let wrong = WrongTokens::new(NonZeroU32::new(3).unwrap());
        for number in 0..20_000 {
            wrong.note(Door::Api, client(number));
        }
        assert!(wrong.clients().len() <= MOST_CLIENTS + Door::ALL.len());
        assert!(
            wrong.check(Door::Api, client(30_000)).is_err(),
            "whoever is not counted by itself waits too"
        );
        assert_eq!(wrong.check(Door::Api, client(0)), Ok(()));
        tokio::time::advance(WINDOW).await;
        assert_eq!(wrong.check(Door::Api, client(30_000)), Ok(()));
    }
}
