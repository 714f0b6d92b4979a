//! What is read: everything, a share of each day, or a random sample.

use std::num::NonZeroU32;

use fixity::Sha256;
use store::Key;

use super::{Held, Reservoir};

/// What is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// All that is held.
    All,
    /// The share of one day.
    Share(Share),
    /// So many resources, drawn at random. They are held in memory.
    Sample {
        /// How many at most.
        size: usize,
        /// The same seed draws the same of the same collection.
        seed: u64,
    },
}

/// The share of one day, of so many in which everything has its turn once.
///
/// Whose turn it is follows from the day and the name of the object alone, so nothing has to be remembered: what a day's scrub did not come to has its
/// turn again when as many days have passed. A pack or package is read whole on its day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Days in which everything has its turn once.
    pub days: NonZeroU32,
    /// The day, counted from any beginning.
    pub day: u64,
}

impl Share {
    /// Whether an object has its turn.
    fn has(&self, key: &str) -> bool {
        let digest = Sha256::of(key.as_bytes());
        let mut number = [0; 8];
        number.copy_from_slice(&digest.as_bytes()[..8]);
        let days = u64::from(self.days.get());
        u64::from_be_bytes(number) % days == self.day % days
    }
}

/// What is offered goes through here.
pub(super) enum Chosen {
    All,
    Share(Share),
    Sample(Box<Reservoir<Held>>),
}

impl Chosen {
    pub(super) fn new(choice: Choice) -> Self {
        match choice {
            Choice::All => Self::All,
            Choice::Share(share) => Self::Share(share),
            Choice::Sample { size, seed } => Self::Sample(Box::new(Reservoir::new(size, seed))),
        }
    }

    /// What is certain to be read; a sample is known at the end only.
    pub(super) fn take(&mut self, held: Held) -> Option<Held> {
        match self {
            Self::All => Some(held),
            Self::Share(share) => share.has(&Key::of(&held.location).to_string()).then_some(held),
            Self::Sample(sample) => {
                sample.offer(|| held);
                None
            }
        }
    }

    pub(super) fn drawn(self) -> Vec<Held> {
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
