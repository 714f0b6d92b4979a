//! Room for bodies: each sender that has shown a token has some of its own, all of these together have no more than so much, and all others have theirs. So whoever
//! floods leaves room for the rest, and there is a bound for all of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::senders::Sender;

/// Bodies of senders with a token that are taken in at a time, all of them together.
const SENDERS_AT_A_TIME: usize = 32;
/// Bodies of those who show no token that are taken in at a time, all of them together.
const STRANGERS_AT_A_TIME: usize = 32;
/// How often a body is held while it is taken in, at most: as it came, as text within a message that is written, twice as long each, and as what is sent.
const COPIES: usize = 6;

/// Where bodies take their places.
#[derive(Debug)]
pub(super) struct Room {
    senders: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
}

/// Room for one body, given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    _of_all: OwnedSemaphorePermit,
    _own: Option<OwnedSemaphorePermit>,
}

impl Room {
    pub(super) fn new() -> Self {
        let room = |places| Arc::new(Semaphore::new(places));
        Self { senders: room(SENDERS_AT_A_TIME), strangers: room(STRANGERS_AT_A_TIME) }
    }

    /// The most memory that bodies of at most so many bytes take, all of them together.
    pub(super) fn bytes(body_bytes: usize) -> usize {
        COPIES * body_bytes * (SENDERS_AT_A_TIME + STRANGERS_AT_A_TIME)
    }

    /// Room for a body of a sender with a token, if there is any within this time.
    pub(super) async fn of_sender(&self, sender: &Sender, patience: Duration) -> Option<Place> {
        let waiting = async {
            // First that of its own, so that it does not hold what others could have.
            let own = sender.room().acquire_owned().await.ok()?;
            let of_all = Arc::clone(&self.senders).acquire_owned().await.ok()?;
            Some(Place { _of_all: of_all, _own: Some(own) })
        };
        timeout(patience, waiting).await.ok().flatten()
    }

    /// Room for a body of somebody else, if there is any now.
    pub(super) fn of_stranger(&self) -> Option<Place> {
        let of_all = Arc::clone(&self.strangers).try_acquire_owned().ok()?;
        Some(Place { _of_all: of_all, _own: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbox::senders::Senders;

    #[tokio::test(start_paused = true)]
    async fn all_senders_together_have_no_more_room_than_is_said_and_strangers_have_theirs() {
        let lines = (0..9).map(|n| format!("- {{name: s{n}, token: a-token-that-is-long-{n}}}\n"));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines.collect::<String>()).unwrap();
        let senders = Senders::of_file(file.path(), std::num::NonZeroU32::MIN).unwrap();
        let room = Room::new();
        let mut held = Vec::new();
        for n in 0..9 {
            let sender = senders.with_token(&format!("a-token-that-is-long-{n}")).unwrap();
            while let Some(place) = room.of_sender(&sender, Duration::from_secs(1)).await {
                held.push(place);
                assert!(held.len() <= 8 * (n + 1), "one sender has all the room");
            }
        }
        assert_eq!(held.len(), SENDERS_AT_A_TIME);
        while let Some(place) = room.of_stranger() {
            held.push(place);
        }
        assert_eq!(Room::bytes(1), COPIES * held.len());
        held.clear();
        assert!(room.of_stranger().is_some(), "room is given back");
    }
}
