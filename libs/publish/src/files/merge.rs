//! One scan: a walk of the directory beside the rows of the last one. Only files with another stamp are read.

use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use tempfile::NamedTempFile;
use tokio::runtime::Handle;

use super::hash::{Hashed, NotHashed, ToHash, hash_all};
use super::rows::{FILES, Head, Row, RowReader, RowWriter, Rows, VERSION};
use super::spelling::{is_at_or_below, order};
use super::stamp::Stamp;
use super::walk::{Found, Walk};
use crate::PublishError;
use crate::place::{About, Place};
use crate::scanned::{Problem, Problems, Scanned};

/// Files that are held at a time, each perhaps with its open folder.
const TOGETHER: usize = 256;
/// After so many bytes were read, what is known is saved: a killed scan reads no more than that again.
pub(super) const SAVE_EVERY: u64 = 4 << 30;

/// What a scan needs.
pub(super) struct Scan {
    pub(super) directory: PathBuf,
    pub(super) url: String,
    pub(super) place: Place,
    pub(super) old: Option<Rows>,
    /// The number of its changes.
    pub(super) number: u64,
    /// The first change that is not published yet: rows of files deleted before are dropped.
    pub(super) published: u64,
    pub(super) allow_deletes: bool,
    pub(super) save_every: u64,
    pub(super) stop: Arc<AtomicBool>,
}

/// Something to write in its turn.
enum Step {
    Row(Row),
    Hash(ToHash, String, Option<Row>),
}

struct Merge<'a> {
    scan: &'a Scan,
    old: Option<RowReader>,
    /// The next old row, and where it begins.
    peeked: Option<(Row, u64)>,
    steps: Vec<Step>,
    rows: RowWriter,
    done: Scanned,
    /// Files that were published before.
    before: u64,
    is_changed: bool,
    unsaved: u64,
}

impl Scan {
    /// Scans. Returns the new rows, if they differ from the old ones.
    pub(super) fn run(&self) -> Result<(Scanned, Option<NamedTempFile>), PublishError> {
        let at = self.directory.display().to_string();
        let mut problems = Problems::default();
        let walk = Walk::begin(&self.directory, &self.url, self.place.local(), &mut problems);
        let mut walk = walk.map_err(|error| PublishError::Directory(at.clone(), error))?;
        let mut merge = Merge {
            scan: self,
            old: self.old.as_ref().map(Rows::read),
            peeked: None,
            steps: Vec::new(),
            rows: RowWriter::begin(self.place.temporary()?),
            done: Scanned::default(),
            before: 0,
            is_changed: false,
            unsaved: 0,
        };
        while let Some(found) = walk.next(&mut problems) {
            match found {
                Found::File(folder, path, stamp) => merge.file(ToHash::of(folder, &path), path, stamp)?,
                Found::Unknown(path) => merge.unknown(&path)?,
            }
        }
        while let Some(row) = merge.take()? {
            merge.gone(row)?;
        }
        merge.flush()?;
        let Merge { mut rows, mut done, before, is_changed, .. } = merge;
        done.problems.join(problems);
        if done.deleted > before / 2 && !self.allow_deletes {
            return Err(PublishError::ManyDeleted { at, deleted: done.deleted, before });
        }
        if !is_changed && self.old.is_some() {
            return Ok((done, None));
        }
        let head = self.head(done.created + done.updated + done.deleted > 0);
        Ok((done, Some(rows.assemble(self.place.temporary()?, head, None)?)))
    }

    fn head(&self, has_changes: bool) -> Head {
        let old = self.old.as_ref().map(|old| old.head);
        let changed = old.filter(|_| !has_changes).map_or(self.number, |old| old.changed);
        Head { version: VERSION, begun: old.map_or(self.number, |old| old.begun), changed }
    }
}

impl ToHash {
    fn of(folder: Arc<std::os::fd::OwnedFd>, path: &str) -> Self {
        Self { folder, name: path.rsplit('/').next().unwrap_or_default().to_owned() }
    }
}

impl Merge<'_> {
    /// A file that is there.
    fn file(&mut self, file: ToHash, path: String, stamp: Stamp) -> Result<(), PublishError> {
        let old = self.take_at(&path)?;
        match old {
            Some(row) if row.sha256.is_some() && row.stamp == stamp && !row.unsure => {
                self.push(Step::Row(row))
            }
            old => self.push(Step::Hash(file, path, old)),
        }
    }

    /// Nothing is known now of this path and what is below it: that stays as it was.
    fn unknown(&mut self, path: &str) -> Result<(), PublishError> {
        if let Some(row) = self.take_at(path)? {
            self.push(Step::Row(row))?;
        }
        while self.peek()?.is_some_and(|row| is_at_or_below(&row.path, path)) {
            if let Some(row) = self.take()? {
                self.push(Step::Row(row))?;
            }
        }
        Ok(())
    }

    /// A file that is gone. Its row stays until that is published.
    fn gone(&mut self, row: Row) -> Result<(), PublishError> {
        if row.sha256.is_some() {
            self.done.deleted += 1;
            self.is_changed = true;
            return self.push(Step::Row(Row {
                sha256: None,
                changed: self.scan.number,
                created: false,
                ..row
            }));
        }
        if row.changed >= self.scan.published {
            return self.push(Step::Row(row));
        }
        self.is_changed = true;
        Ok(())
    }

    /// The old row at a path. Files before it are gone.
    fn take_at(&mut self, path: &str) -> Result<Option<Row>, PublishError> {
        loop {
            match self.peek()?.map(|row| order(&row.path, path)) {
                Some(Ordering::Less) => {
                    if let Some(row) = self.take()? {
                        self.gone(row)?;
                    }
                }
                Some(Ordering::Equal) => return self.take(),
                Some(Ordering::Greater) | None => return Ok(None),
            }
        }
    }

    fn peek(&mut self) -> Result<Option<&Row>, PublishError> {
        if self.peeked.is_none()
            && let Some(old) = &mut self.old
        {
            let offset = old.offset;
            self.peeked = old.next()?.map(|row| (row, offset));
        }
        Ok(self.peeked.as_ref().map(|(row, _)| row))
    }

    fn take(&mut self) -> Result<Option<Row>, PublishError> {
        self.peek()?;
        let row = self.peeked.take().map(|(row, _)| row);
        self.before += u64::from(row.as_ref().is_some_and(|row| row.sha256.is_some()));
        Ok(row)
    }

    fn push(&mut self, step: Step) -> Result<(), PublishError> {
        self.steps.push(step);
        if self.steps.len() >= TOGETHER { self.flush() } else { Ok(()) }
    }

    /// Reads the files that are to be read, and writes the rows.
    fn flush(&mut self) -> Result<(), PublishError> {
        let steps = std::mem::take(&mut self.steps);
        let files: Vec<ToHash> = steps.iter().filter_map(Step::file).cloned().collect();
        let mut hashed = hash_all(&files, &self.scan.stop).into_iter();
        if self.scan.stop.load(atomic::Ordering::Relaxed) {
            return Err(PublishError::Stopped);
        }
        for step in steps {
            let row = match step {
                Step::Row(row) => Some(row),
                Step::Hash(_, path, old) => {
                    let read = hashed.next().unwrap_or(Err(NotHashed::Stopped));
                    self.settle(path, old, read)
                }
            };
            if let Some(row) = row {
                self.done.files += u64::from(row.sha256.is_some());
                self.rows.push(&row)?;
            }
        }
        if self.unsaved >= self.scan.save_every && self.done.deleted == 0 {
            self.save()?;
            self.unsaved = 0;
        }
        Ok(())
    }

    /// The row of a file that was read. Without a digest it stays as it was.
    fn settle(&mut self, path: String, old: Option<Row>, read: Result<Hashed, NotHashed>) -> Option<Row> {
        let hashed = match read {
            Ok(hashed) => hashed,
            Err(failed) => {
                match failed {
                    NotHashed::Changing => self.done.problems.add(Problem::Changing, &path),
                    NotHashed::Unreadable => self.done.problems.add(Problem::Unreadable, &path),
                    NotHashed::Gone | NotHashed::Stopped => {}
                }
                return old;
            }
        };
        let Hashed { stamp, sha256, is_unsure: unsure } = hashed;
        self.done.read += 1;
        self.done.read_bytes += stamp.length;
        self.unsaved += stamp.length;
        self.is_changed = true;
        let before = old.as_ref().and_then(|old| old.sha256);
        match old {
            Some(old) if before == Some(sha256) => Some(Row { stamp, unsure, ..old }),
            _ => {
                let created = before.is_none();
                *(if created { &mut self.done.created } else { &mut self.done.updated }) += 1;
                let changed = self.scan.number;
                Some(Row { path, stamp, sha256: Some(sha256), changed, created, unsure })
            }
        }
    }

    /// Saves what is known by now: the new rows, and the old ones behind them.
    fn save(&mut self) -> Result<(), PublishError> {
        self.peek()?;
        let rest = match (&self.scan.old, &self.old) {
            (Some(rows), Some(reader)) => {
                Some((rows, self.peeked.as_ref().map_or(reader.offset, |(_, offset)| *offset)))
            }
            _ => None,
        };
        let file = self.rows.assemble(self.scan.place.temporary()?, self.scan.head(true), rest)?;
        Handle::current().block_on(self.scan.place.put_file(FILES, file, &About::default()))
    }
}

impl Step {
    fn file(&self) -> Option<&ToHash> {
        match self {
            Self::Row(_) => None,
            Self::Hash(file, ..) => Some(file),
        }
    }
}
