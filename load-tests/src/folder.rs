//! The working directory. Nothing in it is deleted before the end: on a file system without a journal,
//! creating files soon after deleting many takes ten to twenty times as long, for minutes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::TempDir;

use crate::cli::Options;

/// A new directory for one case.
#[derive(Debug)]
pub(crate) struct WorkFolder {
    path: PathBuf,
    /// Deletes it at the end; absent if it is to be kept.
    _temporary: Option<TempDir>,
}

impl WorkFolder {
    /// Creates one where the options say.
    pub(crate) fn new(options: &Options, case: &str) -> anyhow::Result<Self> {
        let parent =
            options.dir.clone().unwrap_or_else(|| testkit::servers::target_directory().join("load-tests"));
        fs::create_dir_all(&parent).with_context(|| format!("cannot create {}", parent.display()))?;
        let parent = parent.canonicalize()?;
        let temporary = TempDir::with_prefix_in(format!("{case}-"), &parent)
            .with_context(|| format!("cannot create a directory in {}", parent.display()))?;
        if options.keep {
            let path = temporary.keep();
            eprintln!("Working in {}, which is left behind.", path.display());
            return Ok(Self { path, _temporary: None });
        }
        Ok(Self { path: temporary.path().to_owned(), _temporary: Some(temporary) })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A new folder inside it.
    pub(crate) fn make(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.path.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }
}

/// The files below a folder, in no order, one at a time.
pub(crate) fn files_below(folder: &Path) -> impl Iterator<Item = std::io::Result<fs::DirEntry>> + use<> {
    let mut waiting = vec![fs::read_dir(folder)];
    std::iter::from_fn(move || {
        loop {
            let entry = match waiting.last_mut()? {
                Ok(entries) => entries.next(),
                Err(_) => return waiting.pop().and_then(Result::err).map(Err),
            };
            match entry {
                None => drop(waiting.pop()),
                Some(Ok(entry)) if entry.file_type().is_ok_and(|kind| kind.is_dir()) => {
                    waiting.push(fs::read_dir(entry.path()));
                }
                Some(other) => return Some(other),
            }
        }
    })
}

/// Total bytes of all files below a folder; 0 if there is no such folder.
pub(crate) fn bytes_below(folder: &Path) -> anyhow::Result<u64> {
    if !folder.exists() {
        return Ok(0);
    }
    files_below(folder).try_fold(0, |sum, entry| Ok(sum + entry?.metadata()?.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_folders_in_folders_count() {
        let folder = TempDir::new().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        for (name, length) in [("one", 1), ("a/two", 2), ("a/b/four", 4)] {
            fs::write(folder.path().join(name), vec![0; length]).unwrap();
        }
        assert_eq!(bytes_below(folder.path()).unwrap(), 7);
        assert_eq!(files_below(folder.path()).count(), 3);
    }

    #[test]
    fn a_folder_that_is_missing_is_an_error_for_who_wants_its_files() {
        let found: Vec<_> = files_below(Path::new("/no/such/folder")).collect();
        assert!(matches!(&found[..], [Err(_)]), "{found:?}");
        assert_eq!(bytes_below(Path::new("/no/such/folder")).unwrap(), 0);
    }
}
