//! Walks a directory in one order, whatever its size: it holds the names of one folder of each depth.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::{io, vec};

use rustix::fs::{AtFlags, Dir, FileType, Stat};
use rustix::io::Errno;

use super::beneath;
use super::stamp::Stamp;
use crate::scanned::{Problem, Problems};

/// The most folders above a file.
const DEEPEST: usize = 100;
/// The most names of a folder.
const MOST_NAMES: usize = 1_000_000;
/// The longest path: object stores accept keys of 1,024 bytes.
const LONGEST_PATH: usize = 900;
/// The longest URL that all readers accept.
const LONGEST_URL: usize = 2_000;

/// What the walk meets.
pub(super) enum Found {
    /// A file that may be published: the folder it is in, its path, and its stamp.
    File(Arc<OwnedFd>, String, Stamp),
    /// Nothing is known now of what is at this path or below.
    Unknown(String),
}

/// A walk in the order of the paths.
pub(super) struct Walk {
    levels: Vec<Level>,
    /// The URL of the directory.
    url: String,
    /// A folder that is passed over: the publication itself.
    passed_over: Option<(u64, u64)>,
}

struct Level {
    folder: Arc<OwnedFd>,
    /// The path of the folder with a slash behind it, or nothing.
    prefix: String,
    names: vec::IntoIter<(String, FileType)>,
}

impl Walk {
    /// Begins at a directory with this URL.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(super) fn begin(
        directory: &Path,
        url: &str,
        publication: Option<&Path>,
        problems: &mut Problems,
    ) -> io::Result<Self> {
        let passed_over = publication.map(rustix::fs::stat).transpose()?.as_ref().map(identity);
        let mut walk = Self { levels: Vec::new(), url: url.to_owned(), passed_over };
        let level = walk.read(beneath::root(directory)?, String::new(), problems);
        walk.levels.push(level.map_err(|problem| io::Error::other(problem.to_string()))?);
        Ok(walk)
    }

    /// The next file.
    pub(super) fn next(&mut self, problems: &mut Problems) -> Option<Found> {
        loop {
            let level = self.levels.last_mut()?;
            let Some((name, kind)) = level.names.next() else {
                self.levels.pop();
                continue;
            };
            let path = format!("{}{name}", level.prefix);
            let folder = Arc::clone(&level.folder);
            let met = match kind {
                FileType::Directory => self.enter(&folder, &name, &path, problems),
                FileType::RegularFile => stamp(&folder, &name),
                FileType::Symlink => Err(Problem::SymbolicLink),
                _ => Err(Problem::SpecialFile),
            };
            match met {
                Ok(Some(stamp)) => return Some(Found::File(folder, path, stamp)),
                Ok(None) => {}
                Err(problem) => {
                    problems.add(problem, &path);
                    if !problem.is_rule() {
                        return Some(Found::Unknown(path));
                    }
                }
            }
        }
    }

    /// Enters a folder. One that is gone by now has no files.
    fn enter(
        &mut self,
        above: &OwnedFd,
        name: &str,
        path: &str,
        problems: &mut Problems,
    ) -> Result<Option<Stamp>, Problem> {
        if self.levels.len() >= DEEPEST {
            return Err(Problem::TooDeep);
        }
        let folder = match beneath::folder(above, name) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(_) => return Err(Problem::Unreadable),
        };
        if self.passed_over.is_some() {
            let found = rustix::fs::fstat(&folder).map_err(|_| Problem::Unreadable)?;
            if self.passed_over == Some(identity(&found)) {
                return Ok(None);
            }
        }
        let level = self.read(folder, format!("{path}/"), problems)?;
        self.levels.push(level);
        Ok(None)
    }

    /// Reads the names of a folder, and sorts them.
    fn read(&self, folder: OwnedFd, prefix: String, problems: &mut Problems) -> Result<Level, Problem> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder).map_err(|_| Problem::Unreadable)? {
            let entry = entry.map_err(|_| Problem::Unreadable)?;
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            let Ok(name) = std::str::from_utf8(bytes) else {
                problems.add(Problem::NameNotUtf8, &format!("{prefix}{}", String::from_utf8_lossy(bytes)));
                continue;
            };
            let path = format!("{prefix}{name}");
            if let Some(problem) = self.of_path(name, &path) {
                problems.add(problem, &path);
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match stat(&folder, name) {
                    Ok(Some(found)) => FileType::from_raw_mode(found.st_mode),
                    Ok(None) => continue,
                    // It is told when its turn comes.
                    Err(_) => FileType::RegularFile,
                },
                kind => kind,
            };
            if names.len() >= MOST_NAMES {
                return Err(Problem::TooManyNames);
            }
            names.push((name.to_owned(), kind));
        }
        names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        Ok(Level { folder: Arc::new(folder), prefix, names: names.into_iter() })
    }

    fn of_path(&self, name: &str, path: &str) -> Option<Problem> {
        if name.starts_with('.') {
            Some(Problem::Hidden)
        } else if name.chars().any(char::is_control) {
            Some(Problem::ControlCharacter)
        } else if path.len() > LONGEST_PATH || super::spelling::url(&self.url, path).len() > LONGEST_URL {
            Some(Problem::TooLong)
        } else {
            None
        }
    }
}

/// The stamp of a file. None if it is gone, or no file any more.
fn stamp(folder: &OwnedFd, name: &str) -> Result<Option<Stamp>, Problem> {
    match stat(folder, name) {
        Ok(Some(found)) if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile => {
            Ok(Some(Stamp::of_stat(&found)))
        }
        Ok(_) => Ok(None),
        Err(_) => Err(Problem::Unreadable),
    }
}

fn stat(folder: &OwnedFd, name: &str) -> rustix::io::Result<Option<Stat>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

#[expect(clippy::unnecessary_cast, reason = "the types differ between systems")]
fn identity(found: &Stat) -> (u64, u64) {
    (found.st_dev as u64, found.st_ino as u64)
}
