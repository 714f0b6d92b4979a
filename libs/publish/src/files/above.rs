//! The open folders that lead from the directory to a path. Paths that come one after the other share them.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use super::beneath::{self, identity, is_missing};
use super::spelling::{depth, is_at_or_below};
use super::walk::DEEPEST;
use crate::scanned::Problem;

/// The directory, and folders in it.
pub(super) struct Above {
    root: Arc<OwnedFd>,
    /// Each is in the one before, the first one in the directory.
    folders: Vec<(String, Arc<OwnedFd>)>,
    /// A folder that is passed over: the publication itself.
    passed_over: Option<(u64, u64)>,
}

impl Above {
    /// The directory.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(super) fn new(directory: &Path, publication: Option<&Path>) -> io::Result<Self> {
        let passed_over = publication.map(rustix::fs::stat).transpose()?.as_ref().map(identity);
        Ok(Self { root: Arc::new(beneath::root(directory)?), folders: Vec::new(), passed_over })
    }

    pub(super) fn root(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.root)
    }

    /// Whether this is the folder of the publication itself.
    pub(super) fn is_passed_over(&self, folder: &OwnedFd) -> Result<bool, Problem> {
        let Some(passed_over) = self.passed_over else { return Ok(false) };
        let found = rustix::fs::fstat(folder).map_err(|_| Problem::Unreadable)?;
        Ok(identity(&found) == passed_over)
    }

    /// Opens the folder at a path, as a walk enters it. None if there is none to be entered.
    pub(super) fn reach(&mut self, path: &str) -> Result<Option<Arc<OwnedFd>>, Problem> {
        while self.folders.last().is_some_and(|(reached, _)| !is_at_or_below(path, reached)) {
            self.folders.pop();
        }
        loop {
            let (reached, folder) = match self.folders.last() {
                Some((reached, folder)) => (reached.as_str(), folder),
                None => ("", &self.root),
            };
            let rest = path[reached.len()..].trim_start_matches('/');
            let Some(name) = rest.split('/').next().filter(|name| !name.is_empty()) else {
                return Ok(Some(Arc::clone(folder)));
            };
            let next = path[..path.len() - rest.len() + name.len()].to_owned();
            if depth(&next) >= DEEPEST {
                return Err(Problem::TooDeep);
            }
            let folder = match beneath::folder(folder, name) {
                Ok(folder) => folder,
                Err(error) if is_missing(&error) => return Ok(None),
                Err(_) => return Err(Problem::Unreadable),
            };
            if self.is_passed_over(&folder)? {
                return Ok(None);
            }
            self.folders.push((next, Arc::new(folder)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn folders_are_reached_one_after_the_other_and_never_through_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        for folder in ["a/b/c", "a/b.c", "own/x", "z"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("a/file"), "").unwrap();
        symlink(at("a"), at("link")).unwrap();
        let mut above = Above::new(directory.path(), Some(at("own").as_path())).unwrap();
        let found = |above: &mut Above, path: &str| {
            let folder = above.reach(path).unwrap()?;
            Some(identity(&rustix::fs::fstat(folder).unwrap()))
        };
        for path in ["", "a", "a/b/c", "a/b", "a/b.c", "a/b/c", "z"] {
            let there = identity(&rustix::fs::stat(at(path)).unwrap());
            assert_eq!(found(&mut above, path), Some(there), "{path}");
        }
        for nothing in ["link", "link/b", "a/file", "a/file/x", "nowhere/a", "own", "own/x"] {
            assert_eq!(found(&mut above, nothing), None, "{nothing}");
        }
    }
}
