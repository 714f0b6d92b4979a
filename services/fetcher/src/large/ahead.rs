//! Bytes of a large resource that are not in the upload yet: each is open, missing, or on the disk.

use std::collections::BTreeMap;

use store::Spooled;
use tokio::task::JoinSet;

use super::piece::{Asking, Come, PieceEnd};

/// Ranges that are open or wait on the disk for those before them, per range that may be open.
const AHEAD: usize = 2;

/// Ranges of a large resource. All bytes before `next` were requested once.
#[derive(Debug)]
pub(super) struct Ahead {
    asking: Asking,
    pub(super) next: u64,
    pub(super) open: JoinSet<Come>,
    /// What broken ranges did not bring, by the first byte: the byte behind the last one.
    missing: BTreeMap<u64, u64>,
    /// What was received, by its first byte.
    come: BTreeMap<u64, Spooled>,
    /// Whether the server was asked for one of them, and answered or let the time pass.
    pub(super) was_asked: bool,
}

impl Ahead {
    /// No range of the bytes from `next` on.
    pub(super) fn new(asking: Asking, next: u64) -> Self {
        let open = JoinSet::new();
        Self { asking, next, open, missing: BTreeMap::new(), come: BTreeMap::new(), was_asked: false }
    }

    /// Receives the next range, up to before `to`, from its response.
    pub(super) fn take(&mut self, response: web::Response, to: u64) {
        self.open.spawn(self.asking.clone().take(response, self.next, to));
        self.next = to;
    }

    /// Requests what is missing, while fewer than `most` ranges are open.
    pub(super) fn ask_again(&mut self, most: usize) {
        while self.open.len() < most
            && let Some((from, to)) = self.missing.pop_first()
        {
            self.open.spawn(self.asking.clone().ask(from, to));
        }
    }

    /// Whether another range may be requested, where `most` may be open.
    pub(super) fn has_room(&self, most: usize) -> bool {
        self.open.len() < most && self.open.len() + self.come.len() < most * AHEAD
    }

    /// Requests the next range, up to before `to`.
    pub(super) fn ask(&mut self, to: u64) {
        self.open.spawn(self.asking.clone().ask(self.next, to));
        self.next = to;
    }

    /// Notes what came of a range, and what did not.
    pub(super) fn add(&mut self, piece: Come) {
        self.was_asked |= piece.bytes.is_some() || matches!(piece.end, PieceEnd::Cut(_));
        let came = piece.from + piece.length();
        if came < piece.to {
            self.missing.insert(came, piece.to);
        }
        if let Some(bytes) = piece.bytes.filter(|_| came > piece.from) {
            self.come.insert(piece.from, bytes);
        }
    }

    /// Whether the bytes from here on were requested, and did not come.
    pub(super) fn is_missing(&self, from: u64) -> bool {
        self.missing.contains_key(&from)
    }

    /// What begins at this byte, if it was received.
    pub(super) fn next_piece(&mut self, from: u64) -> Option<Spooled> {
        self.come.remove(&from)
    }

    /// Ends all ranges, and notes the bytes that came.
    pub(super) async fn stop(&mut self) {
        self.asking.stop.cancel();
        while let Some(ended) = self.open.join_next().await {
            if let Ok(piece) = ended {
                self.add(piece);
            }
        }
    }

    /// Number of received ranges.
    pub(super) fn waiting(&self) -> usize {
        self.come.len()
    }
}
