//! When a directory is scanned, and what of it: what changed since the last scan, or everything.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::heard::Heard;
use super::looks::Looks;
use super::watch::Watch;
use crate::unheard::Unheard;

/// How changes of a directory are heard of from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watching {
    /// What changed is scanned when there was no further change for this time.
    pub quiet: Duration,
    /// It is scanned so long after the first change, at the latest.
    pub longest_wait: Duration,
    /// Everything is scanned again after this time.
    pub all_every: Duration,
    /// The most folders. With more, it is scanned as if nothing were heard.
    pub most_folders: usize,
}

impl Default for Watching {
    fn default() -> Self {
        Self {
            quiet: Duration::from_secs(1),
            longest_wait: Duration::from_secs(5),
            all_every: Duration::from_secs(3_600),
            most_folders: 100_000,
        }
    }
}

/// A directory whose changes are heard of, if possible.
#[derive(Debug)]
pub(super) struct Watched {
    directory: PathBuf,
    settings: Watching,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// None if the next scan is of everything.
    known: Option<Known>,
    /// When it could not be watched, for a reason that lasts.
    refused: Option<Instant>,
    /// The reasons that the operator was told, and when.
    told: BTreeMap<Unheard, Instant>,
}

/// What is known since the last scan.
#[derive(Debug)]
struct Known {
    watch: Arc<Watch>,
    /// What is looked at again, though nothing is heard of it.
    again: Looks,
    /// When everything was scanned last.
    all_at: Instant,
}

/// What a scan looks at.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) looks: Looks,
    known: Option<Known>,
    unheard: Option<Unheard>,
}

impl Plan {
    /// What hears of changes of the folders that are entered.
    pub(super) fn heard(&self) -> Option<Arc<Heard>> {
        self.known.as_ref().map(|known| Arc::clone(known.watch.heard()))
    }
}

impl Watched {
    pub(super) fn new(directory: PathBuf, settings: Watching) -> Self {
        Self { directory, settings, state: Mutex::default() }
    }

    /// Plans a scan. Unless it is [done](Self::done), the next one is of everything. `is_base`: whether the rows are
    /// those that the last scan left.
    pub(super) fn plan(&self, is_base: bool) -> Plan {
        let mut state = self.state();
        let mut unheard = None;
        if let Some(mut known) = state.known.take() {
            match known.watch.heard().take() {
                Ok(mut looks) => {
                    looks.join(&std::mem::take(&mut known.again));
                    if is_base && !self.is_all_due(&known) {
                        if looks.are_all() {
                            known.all_at = Instant::now();
                        }
                        return Plan { looks, known: Some(known), unheard: None };
                    }
                    // The next one begins anew. The system has a limit of both.
                    known.watch.heard().end(Unheard::Gone);
                }
                Err(why) => unheard = Some(why),
            }
        }
        if state.is_to_be_tried(unheard.as_ref(), self.settings.all_every) {
            match Watch::begin(&self.directory, self.settings.most_folders) {
                Ok(watch) => {
                    let (watch, again) = (Arc::new(watch), Looks::default());
                    let known = Some(Known { watch, again, all_at: Instant::now() });
                    state.refused = None;
                    return Plan { looks: Looks::all(), known, unheard };
                }
                Err(why) => {
                    state.note_refusal(&why);
                    unheard = Some(why);
                }
            }
        }
        Plan { looks: Looks::all(), known: None, unheard }
    }

    /// The scan has succeeded, and its rows are kept. `again` is what the next one must look at. Returns why changes
    /// are not heard of, unless that was told before.
    pub(super) fn done(&self, plan: Plan, again: Looks) -> Option<Unheard> {
        let mut state = self.state();
        let mut unheard = plan.unheard;
        if let Some(known) = plan.known {
            match known.watch.heard().unheard().filter(|why| !why.is_passing()) {
                Some(why) => {
                    state.note_refusal(&why);
                    unheard = Some(why);
                }
                None => {
                    state.told.retain(|why, _| why.is_passing());
                    state.known = Some(Known { again, ..known });
                }
            }
        }
        state.tell_once(unheard?, self.settings.all_every)
    }

    /// How many folders are watched.
    pub(super) fn folders(&self) -> u64 {
        self.state().known.as_ref().map_or(0, |known| known.watch.heard().folders())
    }

    /// Waits until a scan is due, which is not before `rest` has passed: if changes are heard of, soon after them, and
    /// after each `every` if something else is to be looked at; if not, after `every`.
    pub(super) async fn due(&self, rest: Duration, every: Duration) {
        let unheard_at = Instant::now() + rest.max(every);
        sleep(rest).await;
        // Where everything is looked at again, a change brings nothing.
        let watch = |known: &Known| (!known.again.are_all()).then(|| Arc::clone(&known.watch));
        let watch = self.state().known.as_ref().and_then(watch);
        let Some(watch) = watch else { return sleep_until(unheard_at).await };
        loop {
            tokio::select! {
                () = watch.heard().quiet(self.settings.quiet, self.settings.longest_wait) => {
                    if watch.heard().unheard().is_some() {
                        sleep_until(unheard_at).await;
                    }
                    return;
                }
                () = sleep(every) => {
                    let state = self.state();
                    let is_due = |known: &Known| !known.again.is_empty() || self.is_all_due(known);
                    if state.known.as_ref().is_none_or(is_due) {
                        return;
                    }
                }
            }
        }
    }

    /// Whether everything is to be scanned, though all changes are heard of.
    fn is_all_due(&self, known: &Known) -> bool {
        known.all_at.elapsed() >= self.settings.all_every || !known.watch.is_at(&self.directory)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether a watch is to be tried, after one that ended for this reason.
    fn is_to_be_tried(&mut self, ended: Option<&Unheard>, every: Duration) -> bool {
        if let Some(why) = ended {
            self.note_refusal(why);
        }
        self.refused.is_none_or(|at| at.elapsed() >= every)
    }

    fn note_refusal(&mut self, why: &Unheard) {
        self.refused = (!why.is_passing()).then(Instant::now);
    }

    /// The reason, if the operator does not know it: one that passes was not told for this time.
    fn tell_once(&mut self, why: Unheard, every: Duration) -> Option<Unheard> {
        let told = self.told.get(&why);
        let is_new = told.is_none_or(|at| why.is_passing() && at.elapsed() >= every);
        if is_new {
            self.told.insert(why.clone(), Instant::now());
        }
        is_new.then_some(why)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
