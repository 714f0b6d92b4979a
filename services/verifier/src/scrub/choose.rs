//! What a scrub reads: everything, a daily share, or a random sample.

use std::num::NonZeroU32;

use fixity::Sha256;
use store::Key;

use super::{Reservoir, ScrubItem};

/// What a scrub reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Everything that is stored.
    All,
    /// The share of one day.
    Share(Share),
    /// A number of random resources, which are in memory.
    Sample {
        /// Maximum number.
        size: usize,
        /// The same seed selects the same resources of the same collection.
        seed: u64,
    },
}

/// The share of one day, of a cycle of `days` in which everything is read once.
///
/// The day and the name of the object alone decide what is due, so no state is needed. What a day's scrub did not
/// reach is due again `days` days later. A pack or package is read whole on its day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Length of the cycle in days.
    pub days: NonZeroU32,
    /// The day, counted from any start.
    pub day: u64,
}

impl Share {
    /// Whether an object is due.
    fn has(&self, key: &str) -> bool {
        let digest = Sha256::of(key.as_bytes());
        let mut number = [0; 8];
        number.copy_from_slice(&digest.as_bytes()[..8]);
        let days = u64::from(self.days.get());
        u64::from_be_bytes(number) % days == self.day % days
    }
}

/// Selects from the offered items.
pub(super) enum Chosen {
    All,
    Share(Share),
    Sample(Box<Reservoir<ScrubItem>>),
}

impl Chosen {
    pub(super) fn new(choice: Choice) -> Self {
        match choice {
            Choice::All => Self::All,
            Choice::Share(share) => Self::Share(share),
            Choice::Sample { size, seed } => Self::Sample(Box::new(Reservoir::new(size, seed))),
        }
    }

    /// Returns an item that is certain to be read; a sample is known only at the end.
    pub(super) fn take(&mut self, held: ScrubItem) -> Option<ScrubItem> {
        match self {
            Self::All => Some(held),
            Self::Share(share) => share.has(&Key::of(&held.location).to_string()).then_some(held),
            Self::Sample(sample) => {
                sample.offer(|| held);
                None
            }
        }
    }

    pub(super) fn drawn(self) -> Vec<ScrubItem> {
        match self {
            Self::All | Self::Share(_) => Vec::new(),
            Self::Sample(sample) => sample.into_items(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_has_its_turn_once_in_so_many_days() {
        let days = NonZeroU32::new(7).unwrap();
        for n in 0..1_000 {
            let key = format!("packs/s/{n}.zip");
            for begin in [0, 20_000] {
                let turns = (begin..begin + 7).filter(|&day| Share { days, day }.has(&key)).count();
                assert_eq!(turns, 1, "{key}");
            }
        }
        let today = (0..1_000).filter(|n| Share { days, day: 3 }.has(&format!("packs/s/{n}.zip"))).count();
        assert!((100..190).contains(&today), "{today}");
    }
}
