//! What a walk meets, beside the rows of the last scan. Only files with another stamp are read.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::atomic;

use tokio::runtime::Handle;

use super::hash::{Hashed, NotHashed, ToHash, hash_all};
use super::looks::Looks;
use super::old_rows::{Old, OldRows};
use super::row::Row;
use super::row_writer::RowWriter;
use super::rows::FILES;
use super::scan::{Outcome, Scan};
use super::spelling::order;
use super::walk::{Found, FoundFile};
use crate::PublishError;
use crate::place::lasting;
use crate::scanned::{Problem, Scanned};

/// Steps that are held at a time, each perhaps with its open folder.
const TOGETHER: usize = 256;
/// The most changed rows that are held for those who tell them.
const MOST_RECENT: usize = 10_000;

/// Something to write in its turn.
enum Step {
    /// Old rows that stay.
    Keep(Range<u64>),
    /// A new row.
    Row(Row),
    /// The row of a file that is to be read.
    Hash(ToHash, String, Option<Old>),
}

/// Rows in the making.
pub(super) struct Merge<'a> {
    scan: &'a Scan,
    old: OldRows,
    steps: Vec<Step>,
    rows: RowWriter,
    done: Scanned,
    again: Looks,
    recent: Option<Vec<Row>>,
    is_changed: bool,
    unsaved: u64,
}

impl<'a> Merge<'a> {
    pub(super) fn begin(scan: &'a Scan) -> Result<Self, PublishError> {
        // Without changes of earlier scans that are still to be published, all such changes are of this one.
        let are_all_new = scan.old.as_ref().is_none_or(|old| old.head.changed < scan.published);
        Ok(Self {
            scan,
            old: OldRows::begin(scan.old.as_ref(), scan.looks.are_all()),
            steps: Vec::new(),
            rows: RowWriter::begin(scan.place.temporary()?, scan.old.clone())?,
            done: Scanned::default(),
            again: Looks::default(),
            recent: are_all_new.then(Vec::new),
            is_changed: scan.old.is_none(),
            unsaved: 0,
        })
    }

    /// Files that the old rows have, of those that were met.
    pub(super) fn before(&self) -> u64 {
        self.old.files()
    }

    /// All rows before a path stay.
    pub(super) fn keep_until(&mut self, path: &str) -> Result<(), PublishError> {
        let passed = self.old.pass_to(path)?;
        passed.map_or(Ok(()), |rows| self.keep(rows))
    }

    /// Takes what a walk meets.
    pub(super) fn take(&mut self, found: Found) -> Result<(), PublishError> {
        match found {
            Found::File(found) => self.file(found),
            Found::Unknown(path) => self.unknown(&path),
        }
    }

    /// A file that is there.
    fn file(&mut self, found: FoundFile) -> Result<(), PublishError> {
        let FoundFile { folder, path, stamp, has_names } = found;
        if has_names {
            self.again.insert(&path);
        }
        // Of most files.
        if let Some(at) = self.old.pass_same(&path, stamp)? {
            return self.keep(at);
        }
        match self.take_at(&path)? {
            Some(Old { row, at }) if row.sha256.is_some() && row.stamp == stamp && !row.unsure => {
                self.keep(at)
            }
            old => {
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                self.push(Step::Hash(ToHash { folder, name }, path, old))
            }
        }
    }

    /// Nothing is known now of this path and what is below it: that stays as it was.
    fn unknown(&mut self, path: &str) -> Result<(), PublishError> {
        self.again.insert(path);
        if let Some(old) = self.take_at(path)? {
            self.keep(old.at)?;
        }
        while let Some(old) = self.old.take_below(path)? {
            self.keep(old.at)?;
        }
        Ok(())
    }

    /// All at this path and below it was met: what was not is gone.
    pub(super) fn end(&mut self, path: &str) -> Result<(), PublishError> {
        while let Some(old) = self.old.take_below(path)? {
            self.gone(old)?;
        }
        Ok(())
    }

    /// All other rows stay. Returns the new ones, if any row changed; their head is not written.
    pub(super) fn finish(mut self) -> Result<(Outcome, Option<RowWriter>), PublishError> {
        if let Some(rows) = self.old.pass_all()? {
            self.keep(rows)?;
        }
        self.flush()?;
        let Self { rows, done: scanned, again, recent, is_changed, .. } = self;
        Ok((Outcome { scanned, rows: None, again, recent }, is_changed.then_some(rows)))
    }

    /// A file that is gone. Its row stays until that is published.
    fn gone(&mut self, Old { row, at }: Old) -> Result<(), PublishError> {
        if row.sha256.is_none() && row.changed < self.scan.published {
            self.is_changed = true;
            return Ok(());
        }
        self.again.insert(&row.path);
        if row.sha256.is_none() {
            return self.keep(at);
        }
        self.done.deleted += 1;
        self.push(Step::Row(Row { sha256: None, changed: self.scan.number, created: false, ..row }))
    }

    /// The old row at a path. Files before it are gone.
    fn take_at(&mut self, path: &str) -> Result<Option<Old>, PublishError> {
        loop {
            match self.old.peek()?.map(|row| order(&row.path, path)) {
                Some(Ordering::Less) => {
                    if let Some(old) = self.old.take()? {
                        self.gone(old)?;
                    }
                }
                Some(Ordering::Equal) => return self.old.take(),
                Some(Ordering::Greater) | None => return Ok(None),
            }
        }
    }

    fn keep(&mut self, at: Range<u64>) -> Result<(), PublishError> {
        if let Some(Step::Keep(last)) = self.steps.last_mut()
            && last.end == at.start
        {
            last.end = at.end;
            return Ok(());
        }
        self.push(Step::Keep(at))
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
            match step {
                Step::Keep(at) => self.rows.keep(at)?,
                Step::Row(row) => self.write(row)?,
                Step::Hash(_, path, old) => {
                    let read = hashed.next().unwrap_or(Err(NotHashed::Stopped));
                    self.settle(path, old, read)?;
                }
            }
        }
        if self.unsaved >= self.scan.save_every && self.done.deleted == 0 {
            self.save()?;
            self.unsaved = 0;
        }
        Ok(())
    }

    /// Writes the row of a file that was read. Without a digest it stays as it was.
    fn settle(
        &mut self,
        path: String,
        old: Option<Old>,
        read: Result<Hashed, NotHashed>,
    ) -> Result<(), PublishError> {
        let hashed = match read {
            Ok(hashed) => hashed,
            Err(failed) => {
                self.again.insert(&path);
                match failed {
                    NotHashed::Changing => self.done.problems.add(Problem::Changing, &path),
                    NotHashed::Unreadable => self.done.problems.add(Problem::Unreadable, &path),
                    NotHashed::Gone | NotHashed::Stopped => {}
                }
                return old.map_or(Ok(()), |old| Ok(self.rows.keep(old.at)?));
            }
        };
        let Hashed { stamp, sha256, is_unsure: unsure } = hashed;
        if unsure {
            self.again.insert(&path);
        }
        self.done.read += 1;
        self.done.read_bytes += stamp.length;
        self.unsaved += stamp.length;
        let old = old.map(|old| old.row);
        let before = old.as_ref().and_then(|old| old.sha256);
        let row = match old {
            Some(old) if before == Some(sha256) => Row { stamp, unsure, ..old },
            _ => {
                let created = before.is_none();
                *(if created { &mut self.done.created } else { &mut self.done.updated }) += 1;
                let changed = self.scan.number;
                Row { path, stamp, sha256: Some(sha256), changed, created, unsure }
            }
        };
        self.write(row)
    }

    /// Writes a new row.
    fn write(&mut self, row: Row) -> Result<(), PublishError> {
        self.is_changed = true;
        self.rows.push(&row)?;
        if row.changed == self.scan.number
            && let Some(recent) = &mut self.recent
        {
            recent.push(row);
            if recent.len() > MOST_RECENT {
                self.recent = None;
            }
        }
        Ok(())
    }

    /// Saves what is known by now: the new rows, and the old ones behind them.
    fn save(&mut self) -> Result<(), PublishError> {
        let rest = self.old.position().unwrap_or_default();
        let into = self.scan.place.temporary()?;
        let file = self.rows.copy_to(into, self.scan.head(true), rest)?;
        Handle::current().block_on(self.scan.place.put_file(FILES, file, &lasting()))
    }
}

impl Step {
    fn file(&self) -> Option<&ToHash> {
        match self {
            Self::Hash(file, ..) => Some(file),
            Self::Keep(_) | Self::Row(_) => None,
        }
    }
}
