//! Serves many small reads of one region from a few large ones.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::ReadAt;
use crate::read_at::exactly;

/// A package read in whole blocks, of which the last few are cached. A hundred thousand small members,
/// visited in the order of their offsets, then cost one read per block instead of two per member.
///
/// The block after the current one is read meanwhile, on a task of its own. At most [`HELD`](Self::HELD)
/// blocks are cached or being read. Reads as long as a block or longer bypass the cache, so large members
/// keep their own [`ReadAhead`](crate::ReadAhead). Reads are serialized: each reader of a package has a
/// `Blocks` of its own.
pub struct Blocks<R> {
    source: R,
    /// The range that is read in blocks; the first block begins at its start.
    part: Range<u64>,
    block: u64,
    /// The newest last.
    slots: Mutex<VecDeque<Slot>>,
}

struct Slot {
    number: u64,
    state: State,
}

enum State {
    Coming(JoinHandle<io::Result<Bytes>>),
    Here(Bytes),
}

impl Drop for State {
    fn drop(&mut self) {
        if let Self::Coming(task) = self {
            task.abort();
        }
    }
}

impl<R> Blocks<R> {
    /// The most blocks that are cached or being read: the previous, the current and the next.
    pub const HELD: usize = 3;
}

impl<R: ReadAt + Clone + 'static> Blocks<R> {
    /// Reads `source` in blocks of `block` bytes; 4 MiB suits an object store. `source` is cloned for each
    /// block: pass an `Arc`.
    pub fn new(source: R, block: usize) -> Self {
        let whole = 0..source.len();
        Self::within(source, whole, block)
    }

    /// The same, for a part of it: no block includes bytes outside. Reads outside bypass the cache.
    pub fn within(source: R, part: Range<u64>, block: usize) -> Self {
        let part = part.start..part.end.min(source.len());
        Self { source, part, block: block.max(1) as u64, slots: Mutex::default() }
    }

    /// The offset of a block.
    fn start(&self, number: u64) -> u64 {
        self.part.start.saturating_add(number.saturating_mul(self.block))
    }

    /// Requests a block, unless it is cached, being read, or behind the end.
    fn send_for(&self, slots: &mut VecDeque<Slot>, number: u64) {
        let start = self.start(number);
        if start >= self.part.end || slots.iter().any(|slot| slot.number == number) {
            return;
        }
        let length = (self.part.end - start).min(self.block) as usize;
        let source = self.source.clone();
        let read = async move { exactly(source.read_at(start, length).await?, length) };
        slots.push_back(Slot { number, state: State::Coming(tokio::spawn(read)) });
        if slots.len() > Self::HELD {
            slots.pop_front();
        }
    }

    async fn block(&self, slots: &mut VecDeque<Slot>, number: u64) -> io::Result<Bytes> {
        self.send_for(slots, number);
        let Some(at) = slots.iter().position(|slot| slot.number == number) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        if let State::Here(bytes) = &slots[at].state {
            return Ok(bytes.clone());
        }
        // The current block must not be evicted when the next is requested. There is room for one more beside
        // them.
        let Some(mut slot) = slots.remove(at) else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        slots.drain(..slots.len().saturating_sub(Self::HELD - 2));
        self.send_for(slots, number + 1);
        let bytes = match &mut slot.state {
            State::Coming(task) => task.await.map_err(io::Error::other)??,
            State::Here(bytes) => bytes.clone(),
        };
        slots.push_back(Slot { number, state: State::Here(bytes.clone()) });
        Ok(bytes)
    }
}

#[async_trait]
impl<R: ReadAt + Clone + 'static> ReadAt for Blocks<R> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    async fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let Some(end) = offset.checked_add(length as u64).filter(|&end| end <= self.len()) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let is_inside = self.part.start <= offset && end <= self.part.end;
        if length as u64 >= self.block || !is_inside {
            return self.source.read_at(offset, length).await;
        }
        if length == 0 {
            return Ok(Bytes::new());
        }
        let mut slots = self.slots.lock().await;
        let number = |at: u64| (at - self.part.start) / self.block;
        let first = number(offset);
        let last = number(end - 1);
        let one = self.block(&mut slots, first).await?;
        let from = (offset - self.start(first)) as usize;
        if first == last {
            return Ok(one.slice(from..from + length));
        }
        let other = self.block(&mut slots, last).await?;
        let mut both = BytesMut::with_capacity(length);
        both.extend_from_slice(&one[from..]);
        both.extend_from_slice(&other[..(end - self.start(last)) as usize]);
        Ok(both.freeze())
    }
}
