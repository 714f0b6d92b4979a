//! One scan: what is looked at, beside the rows of the last scan.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tempfile::NamedTempFile;

use super::heard::Heard;
use super::looks::Looks;
use super::merge::Merge;
use super::row::Row;
use super::rows::{Head, Rows, VERSION};
use super::walk::Walk;
use super::walking::{beside, in_turn};
use crate::PublishError;
use crate::place::Place;
use crate::scanned::{Problems, Scanned};

/// After so many bytes were read, what is known is saved: a killed scan reads no more than that again.
pub(super) const SAVE_EVERY: u64 = 4 << 30;

/// What a scan needs.
pub(super) struct Scan {
    pub(super) directory: PathBuf,
    pub(super) url: String,
    pub(super) place: Place,
    pub(super) old: Option<Rows>,
    /// How many files the old rows have. Where everything is looked at, they are counted.
    pub(super) files: u64,
    /// What is looked at. Everything else stays as it is in the old rows.
    pub(super) looks: Looks,
    /// What hears of changes of the folders that are looked at.
    pub(super) heard: Option<Arc<Heard>>,
    /// The number of its changes.
    pub(super) number: u64,
    /// The first change that is not published yet: rows of files deleted before are dropped.
    pub(super) published: u64,
    pub(super) allow_deletes: bool,
    pub(super) save_every: u64,
    pub(super) stop: Arc<AtomicBool>,
}

/// What a scan leaves.
pub(super) struct Outcome {
    pub(super) scanned: Scanned,
    /// The new rows, if they differ from the old ones.
    pub(super) rows: Option<NamedTempFile>,
    /// What the next scan must look at, though no change is heard of: young files, those with other names, what could
    /// not be read, and files whose deletion is not published.
    pub(super) again: Looks,
    /// All rows that have a change that is not published, unless they are too many.
    pub(super) recent: Option<Vec<Row>>,
}

impl Scan {
    /// Scans.
    pub(super) fn run(&self) -> Result<Outcome, PublishError> {
        let at = self.directory.display().to_string();
        let unreadable = |error| PublishError::Directory(at.clone(), error);
        let mut problems = Problems::default();
        let walk = Walk::new(&self.directory, &self.url, self.place.local(), self.heard.as_deref());
        let mut walk = walk.map_err(unreadable)?;
        let mut merge = Merge::begin(self)?;
        for look in self.looks.iter() {
            merge.keep_until(look)?;
            walk.begin(look, &mut problems).map_err(unreadable)?;
            let take = |found| merge.take(found);
            if self.looks.are_all() {
                beside(&mut walk, &mut problems, &self.stop, take)?;
            } else {
                in_turn(&mut walk, &mut problems, &self.stop, take)?;
            }
            merge.end(look)?;
        }
        let before = if self.looks.are_all() { merge.before() } else { self.files };
        let (mut outcome, rows) = merge.finish()?;
        let scanned = &mut outcome.scanned;
        scanned.problems.join(problems);
        scanned.looks = (!self.looks.are_all()).then_some(self.looks.len() as u64);
        scanned.files = (before + scanned.created).saturating_sub(scanned.deleted);
        if scanned.deleted > before / 2 && !self.allow_deletes {
            return Err(PublishError::ManyDeleted { at, deleted: scanned.deleted, before });
        }
        if let Some(rows) = rows {
            let head = self.head(scanned.created + scanned.updated + scanned.deleted > 0);
            outcome.rows = Some(rows.finish(head)?);
        }
        Ok(outcome)
    }

    /// The first line of the rows.
    pub(super) fn head(&self, has_changes: bool) -> Head {
        let old = self.old.as_ref().map(|old| old.head);
        let changed = old.filter(|_| !has_changes).map_or(self.number, |old| old.changed);
        Head { version: VERSION, begun: old.map_or(self.number, |old| old.begun), changed }
    }
}

#[cfg(test)]
mod tests;
