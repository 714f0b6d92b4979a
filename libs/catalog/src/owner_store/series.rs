//! A series of numbered files, and the boundary below which they are removed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, Extensions, GetResult, ObjectMeta, PutResult, Result};
use tokio::time::Instant;

use super::{BELIEVED, number_of};
use crate::known_object::{answer, written};

/// The most files whose list is kept. Old ones are removed after some minutes.
const MOST_LISTED: usize = 1_000;

/// A series, and what is known of it.
#[derive(Debug)]
pub(super) struct Series {
    folder: Path,
    /// What the names of its files end with.
    suffix: String,
    boundary: Path,
    known: Mutex<Known>,
}

/// What an object is in a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// The file with this number.
    File(u64),
    /// The boundary.
    Boundary,
}

/// A request to the store that was sent.
#[derive(Debug)]
pub(super) struct Asked {
    at: Instant,
    /// How often the series had been written or doubted then.
    turn: u64,
}

#[derive(Debug, Default)]
struct Known {
    newest: Option<File>,
    /// When the store was asked that knew no file after the newest one.
    none_after: Option<Instant>,
    /// The boundary; none where there is none.
    boundary: Option<File>,
    /// When it was asked for, since the last write to the series.
    boundary_at: Option<Instant>,
    /// All files, and when they were listed, since the last write to the series.
    listed: Option<(Instant, Vec<ObjectMeta>)>,
    turn: u64,
}

/// An object and its bytes.
#[derive(Debug, Clone)]
struct File {
    number: u64,
    meta: ObjectMeta,
    bytes: Bytes,
}

impl Series {
    /// The series `name` of the catalog at `path`.
    pub(super) fn of(path: &str, name: &str) -> Self {
        Self {
            folder: Path::from(format!("{path}/{name}")),
            suffix: format!(".{name}"),
            boundary: Path::from(format!("{path}/gc/{name}.boundary")),
            known: Mutex::default(),
        }
    }

    /// What an object is in this series; none if it is not of it.
    pub(super) fn part(&self, at: &Path) -> Option<Part> {
        if *at == self.boundary {
            return Some(Part::Boundary);
        }
        number_of(at, &self.folder, &self.suffix).map(Part::File)
    }

    /// Whether this is the folder of its files.
    pub(super) fn is_folder(&self, folder: &Path) -> bool {
        *folder == self.folder
    }

    /// The answer to a request, as far as it is known. Otherwise the store is to be asked.
    pub(super) fn known(
        &self,
        at: &Path,
        part: Part,
        e_tag: Option<&str>,
    ) -> std::result::Result<Result<GetResult>, Asked> {
        let known = self.lock();
        let file = match part {
            Part::File(number) => match &known.newest {
                Some(newest) if newest.number == number => Some(newest),
                Some(newest) if newest.number + 1 == number && is_believed(known.none_after) => None,
                _ => return Err(known.asked()),
            },
            Part::Boundary if is_believed(known.boundary_at) => known.boundary.as_ref(),
            Part::Boundary => return Err(known.asked()),
        };
        let path = at.to_string();
        Ok(match file {
            None => Err(Error::NotFound { path, source: "there was none a moment ago".into() }),
            Some(file) if e_tag.is_some() && file.meta.e_tag.as_deref() == e_tag => {
                Err(Error::NotModified { path, source: "it is the same".into() })
            }
            Some(file) => Ok(file.clone().into_result()),
        })
    }

    /// Takes note of the store's answer to a request, and gives it back.
    pub(super) async fn note_get(
        &self,
        part: Part,
        e_tag: Option<&str>,
        asked: &Asked,
        answer: Result<GetResult>,
    ) -> Result<GetResult> {
        let result = match answer {
            Ok(result) => result,
            Err(error) => {
                self.note_refused(part, e_tag, asked, &error);
                return Err(error);
            }
        };
        let meta = result.meta.clone();
        let number = if let Part::File(number) = part { number } else { 0 };
        let file = File { number, meta, bytes: result.bytes().await? };
        let mut known = self.lock();
        match part {
            Part::File(number) if known.newest.as_ref().is_none_or(|newest| newest.number < number) => {
                known.newest = Some(file.clone());
                // If it is the last one of a list, the list tells that nothing follows.
                known.none_after = known.listed.as_ref().and_then(|(at, files)| {
                    let last = files.iter().filter_map(|file| self.part(&file.location)).max();
                    (last == Some(part)).then_some(*at)
                });
            }
            Part::Boundary if known.is_current(asked) => {
                known.boundary = Some(file.clone());
                known.boundary_at = Some(asked.at);
            }
            _ => {}
        }
        Ok(file.into_result())
    }

    /// Takes note of an answer without an object.
    fn note_refused(&self, part: Part, e_tag: Option<&str>, asked: &Asked, error: &Error) {
        let mut known = self.lock();
        if matches!((part, error), (Part::File(_), Error::NotFound { .. })) {
            // A list that names it is out of date: another owner has removed it.
            let names_it = |file: &ObjectMeta| self.part(&file.location) == Some(part);
            known.listed = known.listed.take().filter(|(_, files)| !files.iter().any(names_it));
        }
        if !known.is_current(asked) {
            return;
        }
        match (part, error) {
            (Part::File(number), Error::NotFound { .. })
                if known.newest.as_ref().is_some_and(|newest| newest.number + 1 == number) =>
            {
                known.none_after = Some(asked.at);
            }
            (Part::Boundary, Error::NotFound { .. }) => {
                known.boundary = None;
                known.boundary_at = Some(asked.at);
            }
            (Part::Boundary, Error::NotModified { .. })
                if known.boundary.as_ref().is_some_and(|file| file.meta.e_tag.as_deref() == e_tag) =>
            {
                known.boundary_at = Some(asked.at);
            }
            _ => {}
        }
    }

    /// All files of the series, if they were listed a moment ago. Otherwise the store is to be asked.
    pub(super) fn listed(&self) -> std::result::Result<Vec<ObjectMeta>, Asked> {
        let known = self.lock();
        match &known.listed {
            Some((at, files)) if is_believed(Some(*at)) && !known.is_behind() => Ok(files.clone()),
            _ => Err(known.asked()),
        }
    }

    /// Takes note of all files of the series.
    pub(super) fn note_list(&self, asked: &Asked, files: &[ObjectMeta]) {
        let mut known = self.lock();
        let is_later = |file: &ObjectMeta| match (self.part(&file.location), &known.newest) {
            (Some(Part::File(number)), Some(newest)) => number > newest.number,
            _ => false,
        };
        if files.iter().any(is_later) {
            // Another owner's.
            known.none_after = None;
        }
        if known.is_current(asked) && files.len() <= MOST_LISTED {
            known.listed = Some((asked.at, files.to_vec()));
        }
    }

    /// Takes note of a write.
    pub(super) fn note_put(&self, at: &Path, part: Part, bytes: Bytes, result: &Result<PutResult>) {
        // Another owner may have been first, and the boundary is to be read after each write.
        self.doubt();
        let (Part::File(number), Ok(put)) = (part, result) else { return };
        let mut known = self.lock();
        if known.newest.as_ref().is_some_and(|newest| newest.number >= number) {
            return;
        }
        let meta = written(at, bytes.len(), put);
        known.newest = Some(File { number, meta, bytes });
        known.none_after = Some(Instant::now());
    }

    /// The answer to a write of the file with this number, if it would say what the newest one says: that one counts,
    /// and nothing follows it.
    pub(super) fn said_already(&self, number: u64, bytes: &Bytes) -> Option<PutResult> {
        let known = self.lock();
        let counts = is_believed(known.none_after) && is_believed(known.boundary_at) && !known.is_behind();
        let newest = known.newest.as_ref().filter(|_| counts)?;
        let is_same = newest.number + 1 == number && newest.bytes == *bytes;
        let (e_tag, version) = (newest.meta.e_tag.clone(), newest.meta.version.clone());
        is_same.then(|| PutResult { e_tag, version, extensions: Extensions::new() })
    }

    /// Believes nothing that may have changed: the store is to be asked.
    pub(super) fn doubt(&self) {
        let mut known = self.lock();
        known.turn += 1;
        known.none_after = None;
        known.boundary_at = None;
        known.listed = None;
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// A request that is sent now.
    fn asked(&self) -> Asked {
        Asked { at: Instant::now(), turn: self.turn }
    }

    /// Whether nothing was written since a request was sent: what was is later than its answer.
    fn is_current(&self, asked: &Asked) -> bool {
        self.turn == asked.turn
    }

    /// Whether files are removed up to the newest one that is known, or beyond. The newest of all is never removed, so
    /// another owner has written later ones.
    fn is_behind(&self) -> bool {
        let text = self.boundary.as_ref().and_then(|file| std::str::from_utf8(&file.bytes).ok());
        let boundary: Option<u64> = text.and_then(|text| text.trim().parse().ok());
        self.newest.as_ref().is_some_and(|newest| boundary >= Some(newest.number))
    }
}

impl File {
    fn into_result(self) -> GetResult {
        let Self { meta, bytes, .. } = self;
        let range = 0..bytes.len() as u64;
        answer(meta, range, bytes)
    }
}

/// Whether what the store said then is still believed.
fn is_believed(asked: Option<Instant>) -> bool {
    asked.is_some_and(|asked| asked.elapsed() < BELIEVED)
}

#[cfg(test)]
mod tests;
