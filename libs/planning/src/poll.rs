//! Whether a poll may replace the next run, and what it has to compare. Pure.
//!
//! A poll only proves that documents are unchanged. So it may replace a run only if that run would do nothing else:
//! no problem to retry, no discovery, no rescan, no set without a baseline.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use model::{
    Absent, DiscoveryRecord, DocumentRecord, Mode, Phase, PollDocument, RunRecord, SetId, SetRecord,
};

use crate::{HarvestOptions, Selection, is_due, is_settled_part, strategy};

/// The most documents of a poll. A Source with more needs runs.
pub const POLL_DOCUMENTS: usize = 8;

/// What a run left, as far as the next one depends on it.
#[derive(Debug, Clone, Copy)]
pub struct RunEnd<'a> {
    /// The run.
    pub run: &'a RunRecord,
    /// The entry URL.
    pub entry: &'a str,
    /// The operator's options, which the next run has too.
    pub options: &'a HarvestOptions,
    /// The cached discovery.
    pub discovery: Option<&'a DiscoveryRecord>,
    /// All known sets.
    pub sets: &'a HashMap<SetId, SetRecord>,
    /// Open and ignored problems, and reports of the deletion guard. A finished run leaves no pending record.
    pub unsettled: u64,
    /// The time.
    pub now: Timestamp,
}

/// The next run, if it finds no news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextRun {
    /// The documents that it requests first. An index leads to more.
    pub documents: Vec<String>,
    /// From then on it does more than to request these documents.
    pub until: Timestamp,
}

/// Why a poll cannot replace the next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPoll {
    /// The run is not finished, or was cancelled.
    Unfinished,
    /// An audit or a repair says nothing about the next run.
    NoSync,
    /// Problems or reports of the deletion guard are left.
    Unsettled,
    /// The run was begun with other options, so the next one reads everything again.
    OtherOptions,
    /// Each run of these options runs discovery.
    Rediscovers,
    /// Discovery was incomplete, is of another entry URL, or has expired.
    NotDiscovered,
    /// A set has no complete baseline.
    NoBaseline,
    /// Lists of a set have to be read again, or its full rescan is due.
    Rescan,
    /// Missed changes wait to be judged.
    MissedChanges,
    /// The Source offers nothing that a run reads.
    NothingOffered,
    /// The run did not read all of a document that the next one requests.
    NotRead,
    /// A document has neither validators nor a digest that count.
    Unrecognizable,
    /// Another URL answered for a document, and may be another one next time.
    Redirected,
    /// There are more documents than a poll may have.
    TooMany,
    /// Landing pages change without their list.
    LandingPages,
}

impl RunEnd<'_> {
    /// The documents of the next run, if nothing else is to be done.
    ///
    /// # Errors
    /// Why a poll cannot replace it.
    pub fn next_run(&self) -> Result<NextRun, NoPoll> {
        let Self { options, discovery, sets, now, .. } = *self;
        self.check_run()?;
        let discovery = discovery
            .filter(|known| known.entry == self.entry && known.failures == 0 && known.looked_up_at <= now)
            .ok_or(NoPoll::NotDiscovered)?;
        let age = SignedDuration::try_from(options.rediscover_after).unwrap_or(SignedDuration::MAX);
        let mut until = discovery.looked_up_at.checked_add(age).unwrap_or(Timestamp::MAX);
        if until <= now {
            return Err(NoPoll::NotDiscovered);
        }
        if sets.values().any(|set| set.missed.is_some()) {
            return Err(NoPoll::MissedChanges);
        }
        if sets.values().any(|set| set.pages.is_some()) {
            return Err(NoPoll::LandingPages);
        }
        // As the next run chooses. A run that follows changes only may read less, never more.
        let offered = discovery.sets.iter().filter_map(|id| Some((id, sets.get(id)?)));
        let chosen = strategy::choose(offered, None, options.prefer, &self.selection(), &HashSet::new())
            .ok_or(NoPoll::NothingOffered)?;
        for id in chosen.documents.iter().map(|(id, _, _)| id) {
            let Some(set) = sets.get(id) else { continue };
            until = until.min(settled_until(set, options, now)?);
        }
        let documents = chosen.documents.into_iter().map(|(_, _, uri)| uri).collect();
        Ok(NextRun { documents, until })
    }

    /// What a poll compares of a document that the next run requests.
    ///
    /// # Errors
    /// Why a poll cannot tell that the document is unchanged.
    pub fn document(&self, uri: &str, record: &DocumentRecord) -> Result<PollDocument, NoPoll> {
        if record.run != self.run.id || !record.is_read_whole() {
            return Err(NoPoll::NotRead);
        }
        if !self.selection().covers(record.selection) {
            return Err(NoPoll::OtherOptions);
        }
        let digest = record.digest.filter(|_| !self.does_more_with(record));
        if digest.is_none() && record.validators.is_empty() {
            return Err(NoPoll::Unrecognizable);
        }
        Ok(PollDocument { uri: uri.to_owned(), validators: record.validators.clone(), digest })
    }

    fn selection(&self) -> Selection {
        Selection::of(self.options, Some(self.run))
    }

    /// Whether the next run may have something to do if it gets the same document once more: it may request packages
    /// of a dump, or confirm the absences that a list shows. Only "not modified" says that it does not.
    fn does_more_with(&self, record: &DocumentRecord) -> bool {
        let is_waiting = self.sets.get(&record.set).is_some_and(|set| set.waiting.is_some());
        record.packages > 0
            || is_waiting && strategy::is_baseline(&record.capability) && self.options.absent != Absent::Keep
    }

    /// Whether the next run requests a part of an index that is unchanged. A closed change document that was read whole
    /// is not requested again. One that this run requested all the same may be: its index need not say that it is
    /// closed.
    pub fn is_requested_again(&self, part: &DocumentRecord) -> bool {
        part.run == self.run.id || !is_settled_part(part, part.until)
    }

    fn check_run(&self) -> Result<(), NoPoll> {
        let Self { run, options, .. } = *self;
        if run.phase != Phase::Finished || run.cancelled {
            return Err(NoPoll::Unfinished);
        }
        if matches!(run.mode, Mode::Audit | Mode::Repair) {
            return Err(NoPoll::NoSync);
        }
        if self.unsettled > 0 {
            return Err(NoPoll::Unsettled);
        }
        if run.options != options.fingerprint() {
            return Err(NoPoll::OtherOptions);
        }
        if options.rediscover || options.mode == Some(Mode::Baseline) {
            return Err(NoPoll::Rediscovers);
        }
        Ok(())
    }
}

/// Until when a run need not read a whole set, as long as its documents are unchanged.
fn settled_until(set: &SetRecord, options: &HarvestOptions, now: Timestamp) -> Result<Timestamp, NoPoll> {
    // A set that offers changes only never has a baseline.
    let is_partial = !set.has_baseline || set.partly_held;
    if is_partial && strategy::baseline_kind(set, options.prefer).is_some() {
        return Err(NoPoll::NoBaseline);
    }
    let Some(waiting) = set.waiting.filter(|_| options.absent != Absent::Keep) else {
        return Ok(Timestamp::MAX);
    };
    if waiting.uncompared || is_due(set, options, now) {
        return Err(NoPoll::Rescan);
    }
    Ok(waiting.due_at())
}

#[cfg(test)]
mod tests;
