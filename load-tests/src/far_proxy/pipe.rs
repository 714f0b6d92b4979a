//! One direction of a connection: bytes are sent as far as the window allows, and arrive after half a round trip.

use std::sync::{Mutex, PoisonError};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep_until};

use super::link::{Link, Queue};
use super::window::Window;

/// The most bytes sent at a time.
const PIECE: u64 = 16 << 10;

/// What the connections of one direction share.
#[derive(Debug)]
pub(super) struct Direction {
    link: Link,
    queue: Mutex<Queue>,
}

/// Bytes on their way.
struct Piece {
    arrives: Instant,
    bytes: Vec<u8>,
    /// Whether the link was free enough for more.
    may_grow: bool,
}

/// The report of a piece's arrival, and when the sender gets it.
struct Ack {
    at: Instant,
    bytes: u64,
    may_grow: bool,
}

impl Direction {
    pub(super) fn new(link: Link) -> Self {
        Self { link, queue: Mutex::new(Queue::new(link.bytes_per_second)) }
    }

    fn send(&self, now: Instant, bytes: u64) -> Instant {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).send(now, bytes)
    }
}

/// Passes bytes until `from` ends, and all of them have arrived. Equal numbers stall at the same pieces.
#[expect(
    clippy::disallowed_methods,
    reason = "pieces count as in flight until their acknowledgement is taken out, so the window bounds both channels"
)]
pub(super) async fn pass(
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    direction: std::sync::Arc<Direction>,
    number: u64,
) -> std::io::Result<()> {
    // The window bounds what is on its way.
    let (departing, arriving) = mpsc::unbounded_channel();
    let (acknowledging, acknowledged) = mpsc::unbounded_channel();
    let one_way = direction.link.one_way();
    tokio::try_join!(
        send(from, &direction, number, departing, acknowledged),
        deliver(to, arriving, acknowledging, one_way)
    )?;
    Ok(())
}

async fn send(
    mut from: OwnedReadHalf,
    direction: &Direction,
    number: u64,
    departing: mpsc::UnboundedSender<Piece>,
    mut acknowledged: mpsc::UnboundedReceiver<Ack>,
) -> std::io::Result<()> {
    let Link { round_trip, most_window, stalls, .. } = direction.link;
    let mut chances = ChaCha8Rng::seed_from_u64(number);
    let mut window = Window::new(most_window);
    let mut next_ack: Option<Ack> = None;
    let mut last_arrives = Instant::now();
    loop {
        // All reports that are due; without room also the next one, when it is due.
        loop {
            if next_ack.is_none() {
                next_ack = match window.room() {
                    0 => acknowledged.recv().await,
                    _ => acknowledged.try_recv().ok(),
                };
            }
            match next_ack.take() {
                Some(ack) if ack.at <= Instant::now() || window.room() == 0 => {
                    sleep_until(ack.at).await;
                    window.acknowledged(ack.bytes, ack.may_grow);
                }
                Some(ack) => {
                    next_ack = Some(ack);
                    break;
                }
                // The receiver has gone away.
                None if window.room() == 0 => return Ok(()),
                None => break,
            }
        }
        let mut bytes = vec![0; usize::try_from(window.room().min(PIECE)).unwrap_or(usize::MAX)];
        let read = from.read(&mut bytes).await?;
        if read == 0 {
            return Ok(());
        }
        bytes.truncate(read);
        let now = Instant::now();
        let sent = direction.send(now, read as u64);
        // Bytes arrive in order: one that is late holds up those behind it.
        last_arrives = last_arrives.max(sent + direction.link.one_way());
        if stalls > 0.0 && chances.random_bool(stalls.min(1.0)) {
            last_arrives += round_trip;
            window.stalled();
        }
        window.sent(read as u64);
        let may_grow = sent.duration_since(now) <= round_trip;
        if departing.send(Piece { arrives: last_arrives, bytes, may_grow }).is_err() {
            return Ok(());
        }
    }
}

async fn deliver(
    mut to: OwnedWriteHalf,
    mut arriving: mpsc::UnboundedReceiver<Piece>,
    acknowledging: mpsc::UnboundedSender<Ack>,
    one_way: Duration,
) -> std::io::Result<()> {
    while let Some(Piece { arrives, bytes, may_grow }) = arriving.recv().await {
        sleep_until(arrives).await;
        to.write_all(&bytes).await?;
        let ack = Ack { at: Instant::now() + one_way, bytes: bytes.len() as u64, may_grow };
        // The sender may have ended.
        let _ = acknowledging.send(ack);
    }
    to.shutdown().await
}
