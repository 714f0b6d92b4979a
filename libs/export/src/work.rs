//! The request of an export, and the steps that all formats share.

use std::io::{self, BufWriter, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use catalog::CatalogReader;
use fs_err::{File, OpenOptions};
use futures::TryStreamExt as _;
use jiff::Timestamp;
use model::{ResourceUri, SourceId};
use serde::{Deserialize, Serialize};
use store::{Store, StoreError};
use url::Url;

use crate::note::{ExportRequest, Kept};
use crate::selection::Taken;
use crate::{ExportError, Selection, dump, note, parts, table, tar, tree};

/// The format of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "format")]
pub enum Format {
    /// A Resource Dump that any Destination can harvest (RS-33).
    ResourceDump {
        /// The URL at which its directory will be served, with a slash at its end.
        base: Url,
    },
    /// Files under readable names, as in a view.
    Tree,
    /// A tar of these files.
    Tar,
    /// The records of each resource, tombstones included: one line of JSON each.
    JsonLines,
    /// The same as tables of Apache Parquet.
    Parquet,
}

/// The target of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A file, or a directory for a format of several files.
    Path(PathBuf),
    /// Standard output: for a tar, or lines. It cannot be resumed.
    Stdout,
}

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

/// The sizes of an export's pieces: a resumed export repeats less than one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Entries of one package (at most 50,000 in a list, as in a Sitemap).
    pub package_entries: u64,
    /// A package is closed once it has this many bytes.
    pub package_bytes: u64,
    /// Rows of one table.
    pub table_rows: u64,
    /// Files of a tree, members of a tar, or lines between two checkpoints.
    pub kept_every: u64,
    /// Bytes of a tar between two checkpoints.
    pub kept_bytes: u64,
}

/// The totals of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Resources.
    pub resources: u64,
    /// Their bytes; none if only their records are exported.
    pub bytes: u64,
    /// Resources that were left out, since their stored bytes are damaged.
    pub damaged: u64,
}

/// An event that the observer of an export receives.
#[derive(Debug)]
pub enum Seen<'a> {
    /// An earlier export is resumed; it contains this much.
    Resumed(Summary),
    /// A resource was exported.
    Taken(&'a ResourceUri),
    /// A resource was left out, and why.
    Damaged(&'a ResourceUri, &'a StoreError),
}

/// State that all formats share.
pub(crate) struct Work<'a> {
    pub(crate) store: &'a Store,
    pub(crate) catalog: &'a CatalogReader,
    pub(crate) kept: Kept,
    pub(crate) sizes: Sizes,
    see: &'a mut dyn FnMut(Seen<'_>) -> ControlFlow<()>,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            package_entries: 50_000,
            package_bytes: 1 << 30,
            table_rows: 1_000_000,
            kept_every: 10_000,
            kept_bytes: 256 << 20,
        }
    }
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
        see: &mut dyn FnMut(Seen<'_>) -> ControlFlow<()>,
    ) -> Result<Summary, ExportError> {
        let Self { format, to, selection, sizes } = self;
        let asked =
            ExportRequest { format: format.clone(), source: source.clone(), selection: selection.clone() };
        let kept = Kept::open(self.prepare()?, asked, now)?;
        if let Destination::Path(path) = to {
            kept.note.must_be_there(path)?;
        }
        let mut work = Work { store, catalog, kept, sizes: *sizes, see };
        if work.kept.note.after.is_some() {
            work.saw(Seen::Resumed(work.kept.note.done))?;
        }
        work.kept.keep()?;
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
        let done = work.kept.note.done;
        work.kept.forget()?;
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
                let note = path.join(DATA).join("export.json");
                fs_err::create_dir_all(path)?;
                if !note.exists() && !is_untouched(path)? {
                    return refuse("is not empty");
                }
                fs_err::create_dir_all(path.join(DATA))?;
                Ok(Some(note))
            }
            Format::Tar | Format::JsonLines => {
                let mut note = path.as_os_str().to_owned();
                note.push(".export.json");
                let note = PathBuf::from(note);
                if !note.exists() && path.exists() { refuse("is there already") } else { Ok(Some(note)) }
            }
        }
    }
}

/// The folder for files that are no part of the export, until it is complete.
pub(crate) const DATA: &str = ".thresher";

/// Whether a directory is empty, or has only the files of an export that was cut off before its first
/// checkpoint.
fn is_untouched(directory: &Path) -> io::Result<bool> {
    let data = directory.join(DATA);
    Ok(has_only(directory, |name| name == DATA)?
        && (!data.exists() || has_only(&data, |name| name.starts_with(note::TEMPORARY))?))
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

impl Work<'_> {
    /// The file of a single-file export, opened for writing behind its checkpoint.
    pub(crate) fn file(&self, path: &Path) -> Result<BufWriter<File>, ExportError> {
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        let kept = self.kept.note.bytes;
        let there = file.metadata()?.len();
        if there < kept {
            return Err(note::changed(path, &format!("has {there} bytes of {kept} that were written")));
        }
        file.set_len(kept)?;
        file.seek(SeekFrom::End(0))?;
        Ok(BufWriter::new(file))
    }

    /// Selected resources that are still to come, in the catalog's order.
    pub(crate) async fn rest(
        &self,
    ) -> Result<impl futures::Stream<Item = Result<Taken, ExportError>> + use<>, ExportError> {
        let note = &self.kept.note;
        let selection = note.asked.selection.clone();
        let scan = self.catalog.scan_resources(selection.prefix.as_deref(), note.after.as_ref()).await?;
        let taken = scan.try_filter(move |(_, record)| std::future::ready(selection.takes(record)));
        Ok(taken.map_err(ExportError::from))
    }

    /// Records that a resource was written, though perhaps not yet to the disk.
    pub(crate) fn took(&mut self, uri: &ResourceUri, bytes: u64) -> Result<(), ExportError> {
        self.kept.note.done.resources += 1;
        self.kept.note.done.bytes += bytes;
        self.kept.note.after = Some(uri.clone());
        self.saw(Seen::Taken(uri))
    }

    /// Reports a resource that cannot be read. Any other failure of the store ends the export.
    pub(crate) fn missed(&mut self, uri: &ResourceUri, error: StoreError) -> Result<(), ExportError> {
        if !matches!(error, StoreError::NotFound { .. } | StoreError::Damaged { .. }) {
            return Err(error.into());
        }
        self.kept.note.done.damaged += 1;
        self.kept.note.after = Some(uri.clone());
        self.saw(Seen::Damaged(uri, &error))
    }

    fn saw(&mut self, seen: Seen<'_>) -> Result<(), ExportError> {
        match (self.see)(seen) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ExportError::Stopped),
        }
    }
}
