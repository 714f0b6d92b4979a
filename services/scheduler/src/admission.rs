//! Which run gets a place next. A place is memory; a scheduler has a stated amount of it. Pure.
//!
//! Runs of operators come before scheduled ones. A run that has used its first turn is long: long runs are sure of a
//! quarter of memory and places, and take at most half while others wait. Within a priority, hosts take turns, and no
//! host has more than half while others wait.

use std::collections::{HashMap, VecDeque};

use model::SourceId;

/// Each such grant goes to scheduled runs first, so that a stream of operators' runs cannot put them off for ever.
const SCHEDULED_FIRST: u64 = 8;

/// The priority of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// An operator asked for it.
    Urgent,
    /// Its schedule, a hub or a hint asked for it.
    Scheduled,
    /// It has used its first turn: a large first harvest, or a slow Source.
    Long,
}

/// A run that waits for a place, or has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Its Source.
    pub(crate) source: SourceId,
    /// Its priority.
    pub(crate) priority: Priority,
    /// The host of the Source's entry.
    pub(crate) host: String,
    /// The memory that it takes, in bytes.
    pub(crate) bytes: u64,
}

/// The runs that wait for a place, and the memory in use.
#[derive(Debug)]
pub(crate) struct Admission {
    /// All memory, and the most runs: with more, they would only share the processors.
    capacity: Usage,
    used: Usage,
    used_by_long: Usage,
    used_by_host: HashMap<String, Usage>,
    urgent: Queue,
    scheduled: Queue,
    long: Queue,
    /// The queue of each that waits.
    waiting: HashMap<SourceId, (Priority, String)>,
    grants: u64,
    /// Whether the last refused candidate lacked memory, rather than its share.
    is_full: bool,
}

/// Runs in places, and their memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usage {
    runs: usize,
    bytes: u64,
}

impl Usage {
    /// With one more run.
    fn with(self, bytes: u64) -> Self {
        Self { runs: self.runs + 1, bytes: self.bytes + bytes }
    }

    /// With one run less.
    fn without(self, bytes: u64) -> Self {
        Self { runs: self.runs.saturating_sub(1), bytes: self.bytes.saturating_sub(bytes) }
    }

    /// One of `parts` equal parts, of one run at least.
    fn part(self, parts: usize) -> Self {
        Self { runs: (self.runs / parts).max(1), bytes: self.bytes / parts as u64 }
    }

    fn is_within(self, limit: Self) -> bool {
        self.runs <= limit.runs && self.bytes <= limit.bytes
    }
}

/// The candidates of one priority. Hosts take turns.
#[derive(Debug, Default)]
struct Queue {
    turns: VecDeque<String>,
    by_host: HashMap<String, VecDeque<Candidate>>,
}

impl Admission {
    /// For this much memory, in bytes, and this many runs at a time.
    pub(crate) fn new(capacity: u64, most_runs: usize) -> Self {
        Self {
            capacity: Usage { runs: most_runs.max(1), bytes: capacity },
            used: Usage::default(),
            used_by_long: Usage::default(),
            used_by_host: HashMap::new(),
            urgent: Queue::default(),
            scheduled: Queue::default(),
            long: Queue::default(),
            waiting: HashMap::new(),
            grants: 0,
            is_full: false,
        }
    }

    /// Adds a run that waits. A Source waits once.
    pub(crate) fn wait(&mut self, candidate: Candidate) {
        if !self.waiting.contains_key(&candidate.source) {
            let at = (candidate.priority, candidate.host.clone());
            self.waiting.insert(candidate.source.clone(), at);
            self.queue(candidate.priority).push(candidate);
        }
    }

    /// Removes a run that waits.
    pub(crate) fn withdraw(&mut self, source: &SourceId) {
        if let Some((priority, host)) = self.waiting.remove(source) {
            self.queue(priority).remove(source, &host);
        }
    }

    /// How many runs wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Memory in use, in bytes.
    pub(crate) fn used(&self) -> u64 {
        self.used.bytes
    }

    /// Gives the next run its place, if there is one for it. [`release`](Self::release) takes it back.
    pub(crate) fn grant(&mut self) -> Option<Candidate> {
        self.is_full = self.used.runs >= self.capacity.runs;
        if self.is_full {
            return None;
        }
        let granted = self.order().into_iter().find_map(|priority| self.grant_of(priority))?;
        self.waiting.remove(&granted.source);
        self.grants += 1;
        self.used = self.used.with(granted.bytes);
        let of_host = self.used_by_host.entry(granted.host.clone()).or_default();
        *of_host = of_host.with(granted.bytes);
        if granted.priority == Priority::Long {
            self.used_by_long = self.used_by_long.with(granted.bytes);
        }
        Some(granted)
    }

    /// Takes a place back.
    pub(crate) fn release(&mut self, place: &Candidate) {
        self.used = self.used.without(place.bytes);
        if place.priority == Priority::Long {
            self.used_by_long = self.used_by_long.without(place.bytes);
        }
        if let Some(used) = self.used_by_host.get_mut(&place.host) {
            *used = used.without(place.bytes);
            if used.runs == 0 {
                self.used_by_host.remove(&place.host);
            }
        }
    }

    /// Gives a run in its place this much more memory, if it is free. Runs that wait are not asked: the run has begun, and
    /// would be read anew in another place.
    pub(crate) fn grow(&mut self, place: &mut Candidate, bytes: u64) -> bool {
        if self.used.bytes + bytes > self.capacity.bytes {
            return false;
        }
        self.used.bytes += bytes;
        self.used_by_host.entry(place.host.clone()).or_default().bytes += bytes;
        if place.priority == Priority::Long {
            self.used_by_long.bytes += bytes;
        }
        place.bytes += bytes;
        true
    }

    /// Whether a run whose turn is over should leave its place: others wait that it keeps from theirs.
    pub(crate) fn should_yield(&self, place: &Candidate) -> bool {
        let waits_at_host = |queue: &Queue| queue.by_host.contains_key(&place.host);
        let keeps_others =
            self.is_full || [&self.urgent, &self.scheduled, &self.long].into_iter().any(waits_at_host);
        let is_sure = place.priority == Priority::Long
            && self.used_by_long.is_within(self.capacity.part(4))
            && self.long.is_empty();
        !self.waiting.is_empty() && keeps_others && !is_sure
    }

    /// The priorities, the next to be served first.
    fn order(&self) -> Vec<Priority> {
        use Priority::{Long, Scheduled, Urgent};
        let short = if (self.grants + 1).is_multiple_of(SCHEDULED_FIRST) {
            [Scheduled, Urgent]
        } else {
            [Urgent, Scheduled]
        };
        let quarter = self.capacity.part(4);
        let has_less = self.used_by_long.runs < quarter.runs && self.used_by_long.bytes < quarter.bytes;
        let is_long_due = has_less && self.grants.is_multiple_of(2);
        let [first, second] = short;
        if is_long_due { vec![Long, first, second] } else { vec![first, second, Long] }
    }

    fn grant_of(&mut self, priority: Priority) -> Option<Candidate> {
        let only_long = self.urgent.is_empty() && self.scheduled.is_empty();
        let hosts = self.used_by_host.len();
        let is_alone = self.used.runs == 0;
        let free = self.capacity.bytes.saturating_sub(self.used.bytes);
        let half = self.capacity.part(2);
        // One run has a place whatever it takes.
        let may_have = |used: Usage, more: u64| used.runs == 0 || used.with(more).is_within(half);
        let used_by_long = self.used_by_long;
        let used_by_host = &self.used_by_host;
        let queue = match priority {
            Priority::Urgent => &mut self.urgent,
            Priority::Scheduled => &mut self.scheduled,
            Priority::Long => &mut self.long,
        };
        let other_hosts_wait = queue.turns.len() > 1 || hosts > 1;
        let mut is_full = false;
        let granted = queue.pop(|candidate| {
            let of_host = used_by_host.get(&candidate.host).copied().unwrap_or_default();
            let within_host = !other_hosts_wait || may_have(of_host, candidate.bytes);
            let within_long =
                priority != Priority::Long || only_long || may_have(used_by_long, candidate.bytes);
            // A run that needs more than all the memory has it alone.
            let fits = candidate.bytes <= free || is_alone;
            is_full |= within_host && within_long && !fits;
            if is_full { Verdict::Stop } else { Verdict::from(within_host && within_long) }
        });
        self.is_full |= is_full;
        granted
    }

    fn queue(&mut self, priority: Priority) -> &mut Queue {
        match priority {
            Priority::Urgent => &mut self.urgent,
            Priority::Scheduled => &mut self.scheduled,
            Priority::Long => &mut self.long,
        }
    }
}

/// What follows for the candidate at the head of a host's turn.
enum Verdict {
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
    fn push(&mut self, candidate: Candidate) {
        let of_host = self.by_host.entry(candidate.host.clone()).or_default();
        if of_host.is_empty() {
            self.turns.push_back(candidate.host.clone());
        }
        of_host.push_back(candidate);
    }

    fn remove(&mut self, source: &SourceId, host: &str) {
        let Some(of_host) = self.by_host.get_mut(host) else { return };
        of_host.retain(|candidate| candidate.source != *source);
        if of_host.is_empty() {
            self.by_host.remove(host);
            self.turns.retain(|turn| turn != host);
        }
    }

    fn is_empty(&self) -> bool {
        self.by_host.is_empty()
    }

    /// The next candidate that is taken. Its host has its next turn after all others.
    fn pop(&mut self, mut decide: impl FnMut(&Candidate) -> Verdict) -> Option<Candidate> {
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

#[cfg(test)]
#[path = "admission_tests.rs"]
mod tests;
