//! The state of the fleet, counted in one pass over the live views. It costs no request and opens no catalog.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use control::{LeaseTerm, MemberId, Run, RunStatus, SourceSpec};
use jiff::Timestamp;

use super::top::Top;
use super::waits::{RunLink, Waits, WaitsFor};
use crate::console::live;
use crate::console::source_health::SourceHealth;
use crate::state::Gateway;
use crate::tokens::Caller;

/// Active runs on the page.
const ACTIVE: usize = 10;
/// Failures on the page.
const FAILURES: usize = 10;

/// The state of the fleet.
#[derive(Debug)]
pub(super) struct Overview {
    /// Sources by health, in the order of [`SourceHealth::all`].
    pub(super) health: [u64; 9],
    /// Runs that a scheduler works on, those that began first.
    pub(super) active: Top<Timestamp, Active>,
    /// Runs by what they wait for, in the order of [`WaitsFor::ALL`].
    pub(super) waits: [Waits; 8],
    /// Sources whose last run failed, the newest failure first.
    pub(super) failures: Top<Reverse<Timestamp>, Failure>,
    /// Pending records of runs that are not over.
    pub(super) pending: u64,
    /// Active runs by their scheduler.
    pub(super) places: BTreeMap<MemberId, u64>,
}

/// A run that a scheduler works on.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) link: RunLink,
    pub(super) owner: MemberId,
    pub(super) began: Timestamp,
    pub(super) planned: u64,
    pub(super) stored: u64,
    pub(super) pending: Option<u64>,
    /// What it reports to wait for.
    pub(super) waits_for: Option<String>,
}

/// A run that failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) link: RunLink,
    pub(super) at: Timestamp,
    pub(super) why: String,
}

impl Default for Overview {
    fn default() -> Self {
        Self {
            health: [0; 9],
            active: Top::new(ACTIVE),
            waits: Default::default(),
            failures: Top::new(FAILURES),
            pending: 0,
            places: BTreeMap::new(),
        }
    }
}

impl Overview {
    /// Counts the Sources that the caller sees, or all, with their current or last runs.
    pub(super) fn of(gateway: &Gateway, caller: Option<&Caller>, now: Timestamp) -> Self {
        let mut overview = Self::default();
        live::for_each_source(gateway, caller, |spec, run, term| {
            overview.add(spec, run.map(|run| &**run), term, now);
        });
        overview
    }

    fn add(&mut self, spec: &SourceSpec, run: Option<&Run>, term: Option<&LeaseTerm>, now: Timestamp) {
        let status = run.map(|run| run.status(term));
        let health = SourceHealth::of(spec, run, status.as_ref(), now);
        self.health[health as usize] += 1;
        let Some((run, status)) = run.zip(status) else { return };
        if !run.state.is_over() {
            self.pending += run.progress.pending.unwrap_or(0);
        }
        if let Some(waits_for) = WaitsFor::of(run, &status) {
            self.waits[waits_for as usize].add(waits_for, run);
        }
        match status {
            RunStatus::Running { owner, .. } => {
                let began = run.started_at.unwrap_or(run.spec.asked_at);
                self.active.offer(began, || Active::new(run, owner, began));
                *self.places.entry(owner.clone()).or_default() += 1;
            }
            RunStatus::Failed { why } => {
                let at = run.finished_at.unwrap_or(run.spec.asked_at);
                self.failures.offer(Reverse(at), || Failure {
                    link: RunLink::of(run),
                    at,
                    why: why.to_owned(),
                });
            }
            _ => {}
        }
    }

    /// All Sources.
    pub(super) fn sources(&self) -> u64 {
        self.health.iter().sum()
    }

    /// Sources with this health.
    pub(super) fn with(&self, health: SourceHealth) -> u64 {
        self.health[health as usize]
    }

    /// The runs that wait for this.
    pub(super) fn waits(&self, waits_for: WaitsFor) -> &Waits {
        &self.waits[waits_for as usize]
    }
}

impl Active {
    fn new(run: &Run, owner: &MemberId, began: Timestamp) -> Self {
        let counted = &run.progress.counters;
        Self {
            link: RunLink::of(run),
            owner: owner.clone(),
            began,
            planned: counted.planned,
            stored: counted.stored,
            pending: run.progress.pending,
            waits_for: run.progress.waits_for.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
