//! The runs of one priority that wait. Hosts take turns.

use std::collections::{HashMap, VecDeque};

use model::SourceId;

use super::Candidate;

/// The candidates of one priority. Hosts take turns.
#[derive(Debug, Default)]
pub(super) struct Queue {
    turns: VecDeque<String>,
    by_host: HashMap<String, VecDeque<Candidate>>,
}

/// What follows for the candidate at the head of a host's turn.
pub(super) enum Verdict {
    Take,
    NextHost,
    /// It must have its place before any other of its priority: else small runs would put off large ones for ever.
    Stop,
}

impl From<bool> for Verdict {
    fn from(takes: bool) -> Self {
        if takes { Self::Take } else { Self::NextHost }
    }
}

impl Queue {
    pub(super) fn push(&mut self, candidate: Candidate) {
        let of_host = self.by_host.entry(candidate.host.clone()).or_default();
        if of_host.is_empty() {
            self.turns.push_back(candidate.host.clone());
        }
        of_host.push_back(candidate);
    }

    pub(super) fn remove(&mut self, source: &SourceId, host: &str) {
        let Some(of_host) = self.by_host.get_mut(host) else { return };
        of_host.retain(|candidate| candidate.source != *source);
        if of_host.is_empty() {
            self.by_host.remove(host);
            self.turns.retain(|turn| turn != host);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_host.is_empty()
    }

    /// Whether a run at this host waits.
    pub(super) fn has_host(&self, host: &str) -> bool {
        self.by_host.contains_key(host)
    }

    /// How many hosts have runs that wait.
    pub(super) fn hosts(&self) -> usize {
        self.turns.len()
    }

    /// The next candidate that is taken. Its host has its next turn after all others.
    pub(super) fn pop(&mut self, mut decide: impl FnMut(&Candidate) -> Verdict) -> Option<Candidate> {
        for at in 0..self.turns.len() {
            let waiting = self.by_host.get_mut(&self.turns[at])?;
            match decide(waiting.front()?) {
                Verdict::NextHost => continue,
                Verdict::Stop => return None,
                Verdict::Take => {}
            }
            let taken = waiting.pop_front();
            let is_last = waiting.is_empty();
            let host = self.turns.remove(at)?;
            if is_last {
                self.by_host.remove(&host);
            } else {
                self.turns.push_back(host);
            }
            return taken;
        }
        None
    }
}
