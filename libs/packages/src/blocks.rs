//! Many small reads of one neighbourhood, answered from a few large ones.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::ReadAt;
use crate::read_at::exactly;

/// A package read in whole blocks, of which the last few are kept: what makes a hundred thousand small members, visited in the order in which they
/// lie, cost one read per block instead of two per member.
///
/// The block after the one in use is read meanwhile, on a task of its own. At most [`HELD`](Self::HELD) blocks are held or under way. Reads as
/// long as a block or longer go straight through, so large members keep their own [`ReadAhead`](crate::ReadAhead). Reads take turns: each
/// walker has a `Blocks` of its own.
pub struct Blocks<R> {
    source: R,
    /// What is read in blocks; the first begins where this does.
    part: Range<u64>,
    block: u64,
    /// The youngest last.
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
    /// Blocks that are held or under way at any moment, at most: the one before, the one in use, and the next.
    pub const HELD: usize = 3;
}

impl<R: ReadAt + Clone + 'static> Blocks<R> {
    /// Reads `source` in blocks of `block` bytes; 4 MiB suits an object store. `source` is cloned for each block: hand in an `Arc`.
    pub fn new(source: R, block: usize) -> Self {
        let whole = 0..source.len();
        Self::within(source, whole, block)
    }

    /// The same, of a part of it: nothing that lies outside is read for a block. What is asked for there goes straight through.
    pub fn within(source: R, part: Range<u64>, block: usize) -> Self {
        let part = part.start..part.end.min(source.len());
        Self { source, part, block: block.max(1) as u64, slots: Mutex::default() }
    }

    /// Where a block begins.
    fn start(&self, number: u64) -> u64 {
        self.part.start.saturating_add(number.saturating_mul(self.block))
    }

    /// Sends for a block, unless it is there, on its way, or behind the end.
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
        // The one in use must not be the oldest when the next is sent for. Beside them there is room for one more.
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
        let (first, last) = (number(offset), number(end - 1));
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
