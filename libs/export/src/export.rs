//! Makes an export, or resumes it.

use std::io;
use std::path::{Path, PathBuf};

use catalog::CatalogReader;
use jiff::Timestamp;
use model::SourceId;
use store::Store;

use crate::checkpoint::{Checkpoint, DATA, TEMPORARY};
use crate::request::{Destination, ExportRequest, Format, Observer, Seen, Sizes, Summary};
use crate::work::Work;
use crate::{ExportError, Selection, dump, parts, table, tar, tree};

/// An export.
#[derive(Debug, Clone)]
pub struct Export {
    /// Its format.
    pub format: Format,
    /// Its target.
    pub to: Destination,
    /// The selected resources.
    pub selection: Selection,
    /// The sizes of its pieces.
    pub sizes: Sizes,
}

impl Export {
    /// Makes the export from a Source's catalog, or resumes an interrupted one. The observer may stop it
    /// after any resource. Called again it resumes, and both parts are one export. Bytes are verified again
    /// as they pass; a mismatch is left out.
    ///
    /// Changes to the catalog between the two calls may or may not be included.
    ///
    /// # Errors
    /// [`ExportError::Refused`] when something else is at the target; after any other error the export can be
    /// resumed.
    pub async fn run(
        &self,
        store: &Store,
        catalog: &CatalogReader,
        source: &SourceId,
        now: Timestamp,
        observer: Observer<'_>,
    ) -> Result<Summary, ExportError> {
        let Self { format, to, selection, sizes } = self;
        let asked =
            ExportRequest { format: format.clone(), source: source.clone(), selection: selection.clone() };
        let checkpoint = Checkpoint::open(self.prepare()?, asked, now)?;
        if let Destination::Path(path) = to {
            checkpoint.check_files(path)?;
        }
        let mut work = Work { store, catalog, checkpoint, sizes: *sizes, observer };
        if work.checkpoint.after.is_some() {
            work.saw(Seen::Resumed(work.checkpoint.done))?;
        }
        work.checkpoint.save()?;
        match (format, to) {
            (Format::ResourceDump { base }, Destination::Path(path)) => {
                dump::write(&mut work, path, base).await?;
            }
            (Format::Tree, Destination::Path(path)) => tree::write(&mut work, path).await?,
            (Format::Parquet, Destination::Path(path)) => parts::write(&mut work, path).await?,
            (Format::Tar, Destination::Path(path)) => tar::to_file(&mut work, path).await?,
            (Format::Tar, Destination::Stdout) => tar::to_stdout(&mut work).await?,
            (Format::JsonLines, Destination::Path(path)) => table::to_file(&mut work, path).await?,
            (Format::JsonLines, Destination::Stdout) => table::to_stdout(&mut work).await?,
            (_, Destination::Stdout) => {
                return Err(ExportError::Refused(
                    "only a tar or lines of JSON can go to standard output; give a directory".to_owned(),
                ));
            }
        }
        let done = work.checkpoint.done;
        work.checkpoint.remove()?;
        Ok(done)
    }

    /// Prepares the target, and returns the path of its checkpoint. Existing files are never overwritten.
    fn prepare(&self) -> Result<Option<PathBuf>, ExportError> {
        let Destination::Path(path) = &self.to else { return Ok(None) };
        let refuse = |what: &str| {
            let place = path.display();
            Err(ExportError::Refused(format!("{place} {what}; give a place where nothing is")))
        };
        match self.format {
            Format::ResourceDump { .. } | Format::Tree | Format::Parquet => {
                let checkpoint = path.join(DATA).join("export.json");
                fs_err::create_dir_all(path)?;
                if !checkpoint.exists() && !is_untouched(path)? {
                    return refuse("is not empty");
                }
                fs_err::create_dir_all(path.join(DATA))?;
                Ok(Some(checkpoint))
            }
            Format::Tar | Format::JsonLines => {
                let checkpoint = path.with_added_extension("export.json");
                if !checkpoint.exists() && path.exists() {
                    return refuse("is there already");
                }
                Ok(Some(checkpoint))
            }
        }
    }
}

/// Whether a directory is empty, or has only the files of an export that was cut off before its first
/// checkpoint.
fn is_untouched(directory: &Path) -> io::Result<bool> {
    let data = directory.join(DATA);
    Ok(has_only(directory, |name| name == DATA)?
        && (!data.exists() || has_only(&data, |name| name.starts_with(TEMPORARY))?))
}

/// Whether all names in a directory are ours.
fn has_only(directory: &Path, ours: fn(&str) -> bool) -> io::Result<bool> {
    for entry in fs_err::read_dir(directory)? {
        if !entry?.file_name().to_str().is_some_and(ours) {
            return Ok(false);
        }
    }
    Ok(true)
}
