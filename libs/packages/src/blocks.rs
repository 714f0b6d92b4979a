//! Many small reads of one neighbourhood, answered from a few large ones.

use std::collections::VecDeque;
use std::io;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::ReadAt;
use crate::read_at::exactly;

/// A package read in whole blocks, of which the last few are kept: what makes a hundred thousand small members, visited in the order in which they
/// lie, cost one read per block instead of two per member.
///
/// The block after the one in use is read meanwhile, on a task of its own. At most four blocks are held or under way. Reads as
/// long as a block or longer go straight through, so large members keep their own [`ReadAhead`](crate::ReadAhead). Reads take turns: each
/// walker has a `Blocks` of its own.
pub struct Blocks<R> {
    source: R,
    block: u64,
    /// The youngest last.
    slots: Mutex<VecDeque<Slot>>,
}

const KEPT: usize = 4;

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

impl<R: ReadAt + Clone + 'static> Blocks<R> {
    /// Reads `source` in blocks of `block` bytes; 4 MiB suits an object store. `source` is cloned for each block: hand in an `Arc`.
    pub fn new(source: R, block: usize) -> Self {
        Self { source, block: block.max(1) as u64, slots: Mutex::default() }
    }

    /// Sends for a block, unless it is there, on its way, or behind the end.
    fn send_for(&self, slots: &mut VecDeque<Slot>, number: u64) {
        let start = number.saturating_mul(self.block);
        if start >= self.source.len() || slots.iter().any(|slot| slot.number == number) {
            return;
        }
        let length = (self.source.len() - start).min(self.block) as usize;
        let source = self.source.clone();
        let read = async move { exactly(source.read_at(start, length).await?, length) };
        slots.push_back(Slot { number, state: State::Coming(tokio::spawn(read)) });
        if slots.len() > KEPT {
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
        // The one in use must not be the oldest when the next is sent for.
        let Some(mut slot) = slots.remove(at) else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        self.send_for(slots, number + 1);
        let bytes = match &mut slot.state {
            State::Coming(task) => task.await.map_err(io::Error::other)??,
            State::Here(bytes) => bytes.clone(),
        };
        slots.push_back(Slot { number, state: State::Here(bytes.clone()) });
        if slots.len() > KEPT {
            slots.pop_front();
        }
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
        if length as u64 >= self.block {
            return self.source.read_at(offset, length).await;
        }
        if length == 0 {
            return Ok(Bytes::new());
        }
        let mut slots = self.slots.lock().await;
        let (first, last) = (offset / self.block, (end - 1) / self.block);
        let one = self.block(&mut slots, first).await?;
        let from = (offset - first * self.block) as usize;
        if first == last {
            return Ok(one.slice(from..from + length));
        }
        let other = self.block(&mut slots, last).await?;
        let mut both = BytesMut::with_capacity(length);
        both.extend_from_slice(&one[from..]);
        both.extend_from_slice(&other[..(end - last * self.block) as usize]);
        Ok(both.freeze())
    }
}
