//! Walks a directory in one order, whatever its size: it holds the names of one folder of each depth. It begins at the
//! directory, or at one path after another.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::{io, vec};

use rustix::fs::{Dir, FileType};

use super::above::Above;
use super::beneath::{self, stat};
use super::heard::Heard;
use super::spelling::{depth, url};
use super::stamp::Stamp;
use crate::scanned::{Problem, Problems};

/// The most folders above a file.
pub(super) const DEEPEST: usize = 100;
/// The most names of a folder.
const MOST_NAMES: usize = 1_000_000;
/// The longest path: object stores accept keys of 1,024 bytes.
pub(super) const LONGEST_PATH: usize = 900;
/// The longest URL that all readers accept.
const LONGEST_URL: usize = 2_000;
/// The most bytes of a URL for each byte of a path.
const MOST_ESCAPED: usize = 3;

/// What the walk meets.
pub(super) enum Found {
    /// A file that may be published.
    File(FoundFile),
    /// Nothing is known now of what is at this path or below.
    Unknown(String),
}

/// A file that may be published.
pub(super) struct FoundFile {
    /// The folder it is in.
    pub(super) folder: Arc<OwnedFd>,
    pub(super) path: String,
    pub(super) stamp: Stamp,
    /// Whether it has other names. What is written under those is not heard of.
    pub(super) has_names: bool,
}

/// A walk in the order of the paths.
pub(super) struct Walk<'a> {
    levels: Vec<Level>,
    /// What leads to where it begins.
    above: Above,
    /// The URL of the directory.
    url: String,
    /// What hears of changes in the folders.
    heard: Option<&'a Heard>,
}

struct Level {
    folder: Arc<OwnedFd>,
    /// The path of the folder with a slash behind it, or nothing.
    prefix: String,
    names: vec::IntoIter<(String, FileType)>,
}

impl<'a> Walk<'a> {
    /// A walk of a directory with this URL, that has not begun.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(super) fn new(
        directory: &Path,
        url: &str,
        publication: Option<&Path>,
        heard: Option<&'a Heard>,
    ) -> io::Result<Self> {
        let above = Above::new(directory, publication)?;
        Ok(Self { levels: Vec::new(), above, url: url.to_owned(), heard })
    }

    /// Begins at the directory, or a file or folder in it. Each begin is behind the one before.
    ///
    /// # Errors
    /// When the directory itself cannot be read.
    pub(super) fn begin(&mut self, path: &str, problems: &mut Problems) -> io::Result<()> {
        self.levels.clear();
        if path.is_empty() {
            let level = self.read(self.above.root(), String::new(), problems);
            self.levels.push(level.map_err(|problem| io::Error::other(problem.to_string()))?);
            return Ok(());
        }
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let prefix = &path[..path.len() - name.len()];
        if let Some(problem) = self.of_path(prefix, name) {
            problems.add(problem, path);
            return Ok(());
        }
        let (folder, kind) = match self.above.reach(above) {
            Ok(None) => return Ok(()),
            Ok(Some(folder)) => match stat(&folder, name) {
                Ok(Some(found)) => (folder, FileType::from_raw_mode(found.st_mode)),
                Ok(None) => return Ok(()),
                Err(_) => (folder, FileType::Unknown),
            },
            // Nothing is known of what is below a folder that cannot be entered.
            Err(_) => (self.above.root(), FileType::Unknown),
        };
        let names = vec![(name.to_owned(), kind)].into_iter();
        self.levels.push(Level { folder, prefix: prefix.to_owned(), names });
        Ok(())
    }

    /// The next file.
    pub(super) fn next(&mut self, problems: &mut Problems) -> Option<Found> {
        loop {
            let level = self.levels.last_mut()?;
            let Some((name, kind)) = level.names.next() else {
                self.levels.pop();
                continue;
            };
            let path = below(&level.prefix, &name);
            let folder = Arc::clone(&level.folder);
            let met = match kind {
                FileType::Directory => self.enter(&folder, &name, &path, problems),
                FileType::RegularFile => stamp(&folder, &name),
                FileType::Symlink => Err(Problem::SymbolicLink),
                FileType::Unknown => Err(Problem::Unreadable),
                _ => Err(Problem::SpecialFile),
            };
            match met {
                Ok(Some((stamp, has_names))) => {
                    return Some(Found::File(FoundFile { folder, path, stamp, has_names }));
                }
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
    ) -> Result<Option<(Stamp, bool)>, Problem> {
        if depth(path) >= DEEPEST {
            return Err(Problem::TooDeep);
        }
        let folder = match beneath::folder(above, name) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(_) => return Err(Problem::Unreadable),
        };
        if self.above.is_passed_over(&folder)? {
            return Ok(None);
        }
        let level = self.read(Arc::new(folder), format!("{path}/"), problems)?;
        self.levels.push(level);
        Ok(None)
    }

    /// Reads the names of a folder, and sorts them. Before that it is watched, so that no change is missed between.
    fn read(&self, folder: Arc<OwnedFd>, prefix: String, problems: &mut Problems) -> Result<Level, Problem> {
        if let Some(heard) = self.heard {
            heard.add(folder.as_fd(), prefix.trim_end_matches('/'));
        }
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
            if let Some(problem) = self.of_path(&prefix, name) {
                problems.add(problem, &below(&prefix, name));
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match stat(&folder, name) {
                    Ok(Some(found)) => FileType::from_raw_mode(found.st_mode),
                    Ok(None) => continue,
                    // It is told when its turn comes.
                    Err(_) => FileType::Unknown,
                },
                kind => kind,
            };
            if names.len() >= MOST_NAMES {
                return Err(Problem::TooManyNames);
            }
            names.push((name.to_owned(), kind));
        }
        names.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        Ok(Level { folder, prefix, names: names.into_iter() })
    }

    /// What is wrong with a name below a prefix.
    fn of_path(&self, prefix: &str, name: &str) -> Option<Problem> {
        if name.starts_with('.') {
            Some(Problem::Hidden)
        } else if name.chars().any(char::is_control) {
            Some(Problem::ControlCharacter)
        } else if prefix.len() + name.len() > LONGEST_PATH || self.is_url_too_long(prefix, name) {
            Some(Problem::TooLong)
        } else {
            None
        }
    }

    /// Most paths are so short that their URL need not be made.
    fn is_url_too_long(&self, prefix: &str, name: &str) -> bool {
        let most = self.url.len() + MOST_ESCAPED * (prefix.len() + name.len());
        most > LONGEST_URL && url(&self.url, &below(prefix, name)).len() > LONGEST_URL
    }
}

/// The path of a name below a prefix. A walk makes many of them, so it is made without a format.
fn below(prefix: &str, name: &str) -> String {
    let mut path = String::with_capacity(prefix.len() + name.len());
    path.push_str(prefix);
    path.push_str(name);
    path
}

/// The stamp of a file, and whether it has other names. None if it is gone, or no file any more.
fn stamp(folder: &OwnedFd, name: &str) -> Result<Option<(Stamp, bool)>, Problem> {
    match stat(folder, name) {
        Ok(Some(found)) if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile => {
            Ok(Some((Stamp::of_stat(&found), found.st_nlink > 1)))
        }
        Ok(_) => Ok(None),
        Err(_) => Err(Problem::Unreadable),
    }
}
