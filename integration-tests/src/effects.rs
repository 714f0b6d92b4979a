//! The effects of a process: everything it does that others can see, one after the other and numbered.
//!
//! A crash is identified by the number of an effect. Before or behind it, no further effect of the process
//! takes place, and the test runner drops all its tasks: as `kill -9` does.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Effects that are kept for the output of a failed simulation.
const KEPT: usize = 60;

/// The point at which a process stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Halt {
    /// The number of the effect, from 1.
    pub effect: u64,
    /// Whether this effect still takes place.
    pub done: bool,
}

/// Rates of faults, in a thousand effects of the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    /// Lost acknowledgements.
    pub lost_acks: u64,
    /// Messages that are delivered, and again because they were not acknowledged.
    pub redelivered: u64,
    /// Messages that the bus refuses.
    pub refused: u64,
    /// Messages that the bus accepts, and reports as failed.
    pub unsure: u64,
    /// Failing operations on objects other than the catalog's.
    pub store_fails: u64,
    /// The longest delay of messages in milliseconds, so that they overtake each other.
    pub delay_ms: u64,
}

/// Whether a process continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Runs,
    /// It has reached its halt.
    Halted,
}

/// The effects of one process.
#[derive(Debug)]
pub struct Effects {
    state: Mutex<State>,
    life: watch::Sender<Life>,
    /// Cancelled when the process is asked to leave its place to others.
    stop: CancellationToken,
    seed: u64,
    /// The rates of faults.
    pub rates: Rates,
}

#[derive(Debug, Default)]
struct State {
    number: u64,
    halt: Option<Halt>,
    /// The effect before which the process is asked to stop.
    parks: Option<u64>,
    last: VecDeque<String>,
}

/// A started effect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    number: u64,
    halts: bool,
    /// The random number that decides this effect's fate.
    pub(crate) lot: u64,
}

impl Effects {
    /// The effects of a process that stops at `halt`, if at all.
    pub fn new(seed: u64, halt: Option<Halt>, rates: Rates) -> Self {
        let state = Mutex::new(State { halt, ..State::default() });
        Self { state, life: watch::Sender::new(Life::Runs), stop: CancellationToken::new(), seed, rates }
    }

    /// Asks the process to stop before this effect: its run is parked, and another process takes it up.
    pub fn park_at(&self, effect: Option<u64>) {
        self.state().parks = effect;
    }

    /// Cancelled when the process is asked to stop.
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// The effects of a process that only reads.
    pub fn none() -> Self {
        Self::new(0, None, Rates::default())
    }

    /// The number of started effects.
    pub fn count(&self) -> u64 {
        self.state().number
    }

    /// The last ones, as text.
    pub fn last(&self) -> Vec<String> {
        self.state().last.iter().cloned().collect()
    }

    /// Returns when the process has reached its halt.
    pub async fn halted(&self) {
        let mut life = self.life.subscribe();
        // The sender is `self`'s.
        let _ = life.wait_for(|life| *life == Life::Halted).await;
    }

    /// Resumes a sleeping process.
    pub fn wake(&self) {
        self.state().halt = None;
        self.life.send_replace(Life::Runs);
    }

    /// All access to the outside waits here while the process is suspended.
    pub(crate) async fn alive(&self) {
        let mut life = self.life.subscribe();
        if life.wait_for(|life| *life == Life::Runs).await.is_err() {
            pending::<()>().await;
        }
    }

    /// Starts an effect; never returns if the process has stopped.
    pub(crate) async fn begin(&self, what: String) -> Begun {
        self.alive().await;
        let begun = {
            let mut state = self.state();
            state.number += 1;
            let number = state.number;
            if state.last.len() == KEPT {
                state.last.pop_front();
            }
            state.last.push_back(format!("{number} {what}"));
            if state.parks == Some(number) {
                self.stop.cancel();
            }
            let halt = state.halt.filter(|halt| halt.effect == number);
            if halt.is_some_and(|halt| !halt.done) {
                self.life.send_replace(Life::Halted);
            }
            Begun { number, halts: halt.is_some(), lot: mix(self.seed ^ mix(number)) }
        };
        self.alive().await;
        begun
    }

    /// Ends an effect that took place; the process may or may not learn of it.
    pub(crate) async fn end(&self, begun: Begun) {
        if begun.halts && self.state().halt.is_some_and(|halt| halt.effect == begun.number) {
            self.life.send_replace(Life::Halted);
        }
        self.alive().await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Begun {
    /// Whether it is one of `in_a_thousand`. Each kind of fate has a number of its own.
    pub(crate) fn is_one_of(&self, in_a_thousand: u64, kind: u64) -> bool {
        in_a_thousand > 0 && mix(self.lot ^ kind) % 1_000 < in_a_thousand
    }
}

/// A pseudo-random number that follows from another one.
pub(crate) fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
