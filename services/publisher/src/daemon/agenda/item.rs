//! A publication on the agenda: what is known of it, and what came of its looks.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Mark, pauses};
use crate::follow::rest_after_look;
use crate::set::Set;

/// What came of a look at a Source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looked {
    /// It is published.
    Published {
        /// The changes that were told.
        changes: u64,
        /// The number of the next change of its catalog.
        next_change: Option<u64>,
        /// How long it took until they were told.
        until_told: Duration,
        /// How long all of it took.
        in_all: Duration,
    },
    /// Nothing of it is stored yet.
    Empty,
    /// Another publisher writes the publication.
    Held,
    /// It failed, and is tried again.
    Failed,
}

/// A look that begins.
pub(crate) struct Look {
    pub(crate) set: Set,
    /// Whether the last one took long.
    pub(crate) is_slow: bool,
    /// The number of the next change of the catalog that is published. None: also old lists and files are looked for.
    pub(crate) published: Option<u64>,
}

/// A publication, and when it is looked at.
pub(crate) struct Item {
    pub(crate) set: Set,
    /// Ends the tasks that tell its hubs, while they run.
    pub(crate) hubs: Option<CancellationToken>,
    /// Whether it is this publisher's to make.
    pub(crate) is_mine: bool,
    /// Whether its last look took long.
    pub(crate) is_slow: bool,
    /// Whether its last look failed.
    pub(crate) has_failed: bool,
    /// Whether nothing of it was stored at its last look.
    is_empty: bool,
    /// What was published, as far as runs tell.
    seen: Option<Mark>,
    /// What the look under way will have seen. None while there is no look.
    looking: Option<Option<Mark>>,
    /// The number of the next change of its catalog, after the last look.
    next_change: Option<u64>,
    /// Whether something else than its catalog has changed since its last look began.
    pub(super) is_stale: bool,
    /// When old lists and files were looked for.
    tidied: Instant,
    changed: Option<Instant>,
    pause: Duration,
    pub(super) due: Option<Instant>,
    /// No look begins before.
    pub(super) not_before: Instant,
}

impl Item {
    /// One that nothing is known of.
    pub(super) fn new(set: Set) -> Self {
        let now = Instant::now();
        Self {
            set,
            hubs: None,
            is_mine: false,
            is_slow: false,
            has_failed: false,
            is_empty: false,
            seen: None,
            looking: None,
            next_change: None,
            is_stale: false,
            tidied: now,
            changed: None,
            pause: pauses::FIRST_FAILURE,
            due: None,
            not_before: now,
        }
    }

    /// Whether what a run tells is news.
    pub(super) fn has_news(&self, mark: &Mark) -> bool {
        // The first publication has all of the first run, and not each part of it as a change.
        if self.is_empty && !mark.is_over() {
            return false;
        }
        // A look that is under way may not see what came after its beginning.
        let known = self.looking.as_ref().unwrap_or(&self.seen);
        mark.is_news(known.as_ref())
    }

    /// Begins a look at what runs tell by now. None if one is under way.
    pub(super) fn begin(&mut self, mark: Option<Mark>) -> Option<Look> {
        if self.looking.is_some() {
            return None;
        }
        self.looking = Some(mark);
        if std::mem::take(&mut self.is_stale) || self.tidied.elapsed() >= pauses::AGING_LOOKS {
            self.next_change = None;
        }
        Some(Look { set: self.set.clone(), is_slow: self.is_slow, published: self.next_change })
    }

    /// Notes what came of a look that ends `now`. Returns the pause until the next one.
    pub(super) fn end(&mut self, looked: Looked, is_slow: bool, now: Instant) -> Duration {
        let mark = self.looking.take().flatten();
        self.is_slow = is_slow;
        self.has_failed = looked == Looked::Failed;
        self.is_empty = looked == Looked::Empty || self.is_empty && looked == Looked::Held;
        match looked {
            Looked::Published { changes, next_change, until_told, in_all } => {
                let is_news = self.seen != mark || changes > 0;
                if self.next_change.is_none() {
                    self.tidied = now;
                }
                self.seen = mark;
                self.next_change = next_change;
                self.pause = pauses::FIRST_FAILURE;
                let rest = pauses::LEAST.max(rest_after_look(until_told, in_all));
                self.not_before = now + rest;
                if changes > 0 {
                    self.changed = Some(now);
                }
                match self.changed {
                    _ if is_news => pauses::AFTER_NEWS.max(rest),
                    Some(changed) if changed.elapsed() < pauses::AGING => pauses::AGING_LOOKS,
                    _ => pauses::IDLE_LOOKS,
                }
            }
            // The next run tells.
            Looked::Empty => {
                self.not_before = now + pauses::LEAST;
                pauses::IDLE_LOOKS
            }
            Looked::Held => pauses::WHILE_HELD,
            Looked::Failed => {
                self.next_change = None;
                let pause = self.pause;
                self.pause = (pause * 2).min(pauses::LONGEST_FAILURE);
                self.not_before = now + pause;
                pause
            }
        }
    }
}
