//! The harvest, which changes: at a pace, or all at once.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

use crate::cases::publish::{Held, HeldWriter};

/// Commits in a second.
const COMMITS: u64 = 10;
/// Changes of a commit where all come at once.
const AT_ONCE: u64 = 5_000;

/// A harvest whose resources change, each once.
pub(super) struct Changing {
    resources: u64,
    writer: HeldWriter,
    /// When each resource changed, by its number: the first ones have.
    made: Vec<Instant>,
}

impl Changing {
    pub(super) async fn begin(held: Held) -> anyhow::Result<Self> {
        Ok(Self { resources: held.resources(), writer: held.writer().await?, made: Vec::new() })
    }

    pub(super) fn resources(&self) -> u64 {
        self.resources
    }

    /// How many changes were made.
    pub(super) fn made(&self) -> u64 {
        self.made.len() as u64
    }

    /// When the commit of a resource's change began. None of one that did not change.
    pub(super) fn made_at(&self, number: u64) -> Option<Instant> {
        self.made.get(usize::try_from(number).ok()?).copied()
    }

    /// So many changes a second, for so long.
    pub(super) async fn at_a_pace(&mut self, per_second: u64, seconds: u64) -> anyhow::Result<()> {
        let mut pace = interval(Duration::from_secs(1) / COMMITS as u32);
        // A commit that takes long is made up for.
        pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
        for tick in 1..=seconds * COMMITS {
            pace.tick().await;
            self.change(per_second * tick / COMMITS - self.made()).await?;
        }
        Ok(())
    }

    /// So many changes, as fast as they are written.
    pub(super) async fn at_once(&mut self, count: u64) -> anyhow::Result<()> {
        let end = self.made() + count;
        while self.made() < end {
            self.change(AT_ONCE.min(end - self.made())).await?;
        }
        Ok(())
    }

    async fn change(&mut self, count: u64) -> anyhow::Result<()> {
        let (first, begun) = (self.made(), Instant::now());
        self.writer.write(first..first + count, 1, Timestamp::now()).await?;
        self.made.extend(std::iter::repeat_n(begun, count as usize));
        Ok(())
    }
}
