//! Which run gets a place next. A place is memory; a scheduler has a stated amount of it. Pure.
//!
//! Runs of operators come before scheduled ones. A run that has used its first turn is long: long runs are sure of a
//! quarter of memory and places, and take at most half while others wait. Within a priority, hosts take turns, and no
//! host has more than half while others wait. Nor has any value of a label that the operator has chosen. Tasks come last,
//! and one of them has a place in any case.

mod queue;
mod usage;

use std::collections::HashMap;
use std::sync::Arc;

use model::SourceId;

use queue::{Queue, Verdict};
use usage::{Usage, UsageBy};

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
    /// It is a task, such as a backfill: no copy is outdated while it waits.
    Task,
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
    /// The value of the label whose values have shares, if the Source has it.
    pub(crate) owner: Option<Arc<str>>,
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
    used_by_host: UsageBy,
    used_by_owner: UsageBy,
    urgent: Queue,
    scheduled: Queue,
    long: Queue,
    tasks: Queue,
    /// Tasks in places.
    tasks_placed: usize,
    /// Where each waits.
    waiting: HashMap<SourceId, Waiting>,
    /// How many of each owner wait.
    waiting_of: HashMap<Arc<str>, usize>,
    grants: u64,
    /// Whether the last refused candidate lacked memory, rather than its share.
    is_full: bool,
}

/// Where a run waits.
#[derive(Debug)]
struct Waiting {
    priority: Priority,
    host: String,
    owner: Option<Arc<str>>,
}

impl Admission {
    /// For this much memory, in bytes, and this many runs at a time.
    pub(crate) fn new(capacity: u64, most_runs: usize) -> Self {
        Self {
            capacity: Usage { runs: most_runs.max(1), bytes: capacity },
            used: Usage::default(),
            used_by_long: Usage::default(),
            used_by_host: UsageBy::default(),
            used_by_owner: UsageBy::default(),
            urgent: Queue::default(),
            scheduled: Queue::default(),
            long: Queue::default(),
            tasks: Queue::default(),
            tasks_placed: 0,
            waiting: HashMap::new(),
            waiting_of: HashMap::new(),
            grants: 0,
            is_full: false,
        }
    }

    /// Adds a run that waits. A Source waits once: with its sync or with its task.
    pub(crate) fn wait(&mut self, candidate: Candidate) {
        if let Some(waiting) = self.waiting.get(&candidate.source) {
            let is_task = |priority| priority == Priority::Task;
            if is_task(waiting.priority) == is_task(candidate.priority) {
                return;
            }
            self.withdraw(&candidate.source);
        }
        let Candidate { source, priority, host, owner, .. } = &candidate;
        let at = Waiting { priority: *priority, host: host.clone(), owner: owner.clone() };
        self.waiting.insert(source.clone(), at);
        if let Some(owner) = owner {
            *self.waiting_of.entry(Arc::clone(owner)).or_default() += 1;
        }
        self.queue(candidate.priority).push(candidate);
    }

    /// Removes a run that waits.
    pub(crate) fn withdraw(&mut self, source: &SourceId) {
        if let Some(Waiting { priority, host, .. }) = self.waits_no_more(source) {
            self.queue(priority).remove(source, &host);
        }
    }

    fn waits_no_more(&mut self, source: &SourceId) -> Option<Waiting> {
        let waiting = self.waiting.remove(source)?;
        if let Some(owner) = &waiting.owner
            && let Some(count) = self.waiting_of.get_mut(owner)
        {
            *count -= 1;
            if *count == 0 {
                self.waiting_of.remove(owner);
            }
        }
        Some(waiting)
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
        self.waits_no_more(&granted.source);
        self.grants += 1;
        self.used = self.used.with(granted.bytes);
        self.used_by_host.add(&granted.host, granted.bytes);
        if let Some(owner) = &granted.owner {
            self.used_by_owner.add(owner, granted.bytes);
        }
        if granted.priority == Priority::Long {
            self.used_by_long = self.used_by_long.with(granted.bytes);
        }
        self.tasks_placed += usize::from(granted.priority == Priority::Task);
        Some(granted)
    }

    /// Takes a place back.
    pub(crate) fn release(&mut self, place: &Candidate) {
        self.used = self.used.without(place.bytes);
        if place.priority == Priority::Long {
            self.used_by_long = self.used_by_long.without(place.bytes);
        }
        self.tasks_placed -= usize::from(place.priority == Priority::Task);
        self.used_by_host.remove(&place.host, place.bytes);
        if let Some(owner) = &place.owner {
            self.used_by_owner.remove(owner, place.bytes);
        }
    }

    /// Gives a run in its place this much more memory, if it is free. Runs that wait are not asked: the run has begun, and
    /// would be read anew in another place.
    pub(crate) fn grow(&mut self, place: &mut Candidate, bytes: u64) -> bool {
        if self.used.bytes + bytes > self.capacity.bytes {
            return false;
        }
        self.used.bytes += bytes;
        self.used_by_host.grow(&place.host, bytes);
        if let Some(owner) = &place.owner {
            self.used_by_owner.grow(owner, bytes);
        }
        if place.priority == Priority::Long {
            self.used_by_long.bytes += bytes;
        }
        place.bytes += bytes;
        true
    }

    /// Whether a run whose turn is over should leave its place: others wait that it keeps from theirs.
    pub(crate) fn should_yield(&self, place: &Candidate) -> bool {
        let waits_at_host = |queue: &Queue| queue.has_host(&place.host);
        let waits_of_owner = place.owner.as_ref().is_some_and(|owner| self.waiting_of.contains_key(owner));
        let keeps_at_host =
            [&self.urgent, &self.scheduled, &self.long, &self.tasks].into_iter().any(waits_at_host);
        let keeps_others = self.is_full || waits_of_owner || keeps_at_host;
        let is_sure = match place.priority {
            Priority::Urgent | Priority::Scheduled => false,
            Priority::Long => self.used_by_long.is_within(self.capacity.part(4)) && self.long.is_empty(),
            Priority::Task => {
                self.tasks_placed == 1 && self.tasks.is_empty() && !waits_of_owner && !keeps_at_host
            }
        };
        !self.waiting.is_empty() && keeps_others && !is_sure
    }

    /// The priorities, the next to be served first.
    fn order(&self) -> Vec<Priority> {
        use Priority::{Long, Scheduled, Task, Urgent};
        let short = if (self.grants + 1).is_multiple_of(SCHEDULED_FIRST) {
            [Scheduled, Urgent]
        } else {
            [Urgent, Scheduled]
        };
        let quarter = self.capacity.part(4);
        let has_less = self.used_by_long.runs < quarter.runs && self.used_by_long.bytes < quarter.bytes;
        let is_long_due = has_less && self.grants.is_multiple_of(2);
        let [first, second] = short;
        if is_long_due { vec![Long, first, second, Task] } else { vec![first, second, Long, Task] }
    }

    fn grant_of(&mut self, priority: Priority) -> Option<Candidate> {
        let only_long = self.urgent.is_empty() && self.scheduled.is_empty();
        let others_wait_for_tasks = !only_long || !self.long.is_empty();
        if priority == Priority::Task && others_wait_for_tasks && self.tasks_placed > 0 {
            return None;
        }
        let hosts = self.used_by_host.len();
        let is_alone = self.used.runs == 0;
        let free = self.capacity.bytes.saturating_sub(self.used.bytes);
        let half = self.capacity.part(2);
        // One run has a place whatever it takes.
        let may_have = |used: Usage, more: u64| used.runs == 0 || used.with(more).is_within(half);
        let used_by_long = self.used_by_long;
        let (used_by_host, used_by_owner) = (&self.used_by_host, &self.used_by_owner);
        let waiting_of = &self.waiting_of;
        let all_waiting = self.waiting.len();
        // Whether runs of other owners wait, or of none.
        let others_wait = |owner: &str| all_waiting > waiting_of.get(owner).copied().unwrap_or_default();
        let queue = match priority {
            Priority::Urgent => &mut self.urgent,
            Priority::Scheduled => &mut self.scheduled,
            Priority::Long => &mut self.long,
            Priority::Task => &mut self.tasks,
        };
        let other_hosts_wait = queue.hosts() > 1 || hosts > 1;
        let mut is_full = false;
        let granted = queue.pop(|candidate| {
            let of_host = used_by_host.of(&candidate.host);
            let within_host = !other_hosts_wait || may_have(of_host, candidate.bytes);
            let within_owner = candidate.owner.as_deref().is_none_or(|owner| {
                !others_wait(owner) || may_have(used_by_owner.of(owner), candidate.bytes)
            });
            let within_long =
                priority != Priority::Long || only_long || may_have(used_by_long, candidate.bytes);
            // A run that needs more than all the memory has it alone.
            let fits = candidate.bytes <= free || is_alone;
            let may_take = within_host && within_owner && within_long;
            is_full |= may_take && !fits;
            if is_full { Verdict::Stop } else { Verdict::from(may_take) }
        });
        self.is_full |= is_full;
        granted
    }

    fn queue(&mut self, priority: Priority) -> &mut Queue {
        match priority {
            Priority::Urgent => &mut self.urgent,
            Priority::Scheduled => &mut self.scheduled,
            Priority::Long => &mut self.long,
            Priority::Task => &mut self.tasks,
        }
    }
}

#[cfg(test)]
mod tests;
