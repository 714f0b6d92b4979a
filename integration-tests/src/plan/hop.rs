//! What follows the steps of a chain: the copy is published, and a second copy follows that.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::seed::Draw;
use super::{Plan, Step};
use crate::effects::{Halt, mix};

/// What follows a step where the copy is published, and a second copy follows that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Whether the copy is published.
    pub publishes: bool,
    /// Where that process stops.
    pub publish_halt: Option<Halt>,
    /// Whether the second copy is synced after that.
    pub follows: bool,
    /// Where that process stops.
    pub follow_halt: Option<Halt>,
}

impl Hop {
    /// Both, without a stop.
    pub fn clean() -> Self {
        Self { publishes: true, publish_halt: None, follows: true, follow_halt: None }
    }
}

impl Plan {
    /// What follows each step of a chain.
    pub fn hops(&self) -> Vec<Hop> {
        // By numbers of their own, so that the plan is that of its seed.
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(!mix(self.seed)));
        let hop = |_: &Step| Hop {
            publishes: !draw.one_in(3),
            publish_halt: if draw.one_in(2) { Some(draw.halt()) } else { None },
            follows: !draw.one_in(3),
            follow_halt: if draw.one_in(2) { Some(draw.halt()) } else { None },
        };
        self.steps.iter().map(hop).collect()
    }
}
