//! What an export is asked to be, and the way all kinds of it go.

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

use crate::note::{Asked, Kept};
use crate::selection::Taken;
use crate::{ExportError, Selection, dump, note, parts, table, tar, tree};

/// What an export is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "format")]
pub enum Format {
    /// A Resource Dump that any Destination can harvest (RS-33).
    ResourceDump {
        /// The URL under which its directory will be served, with a slash at its end.
        base: Url,
    },
    /// Files under readable names, as in a view.
    Tree,
    /// A tar of these files.
    Tar,
    /// What is known of each resource, tombstones included: one line of JSON each.
    JsonLines,
    /// The same as tables of Apache Parquet.
    Parquet,
}

/// Where an export goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A file, or a directory for what consists of several.
    Path(PathBuf),
    /// Standard output: for a tar, or lines. It cannot be gone on with.
    Stdout,
}

/// An export.
#[derive(Debug, Clone)]
pub struct Export {
    /// What it is.
    pub format: Format,
    /// Where it goes.
    pub to: Destination,
    /// Which resources.
    pub selection: Selection,
    /// How large its pieces are.
    pub sizes: Sizes,
}

/// How large the pieces of an export are: what is done once more when it is gone on with is less than one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Entries of one package (a list has 50,000 at most, as a Sitemap does).
    pub package_entries: u64,
    /// A package is closed once it has so many bytes.
    pub package_bytes: u64,
    /// Rows of one table.
    pub table_rows: u64,
    /// Files of a tree, members of a tar, or lines, before it is written down how far they have come.
    pub kept_every: u64,
    /// Bytes of a tar before the same.
    pub kept_bytes: u64,
}

/// What is in an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Resources.
    pub resources: u64,
    /// Their bytes; none where only their records are exported.
    pub bytes: u64,
    /// Resources left out, since the store has not what was judged.
    pub damaged: u64,
}

/// What whoever watches an export is told of.
#[derive(Debug)]
pub enum Seen<'a> {
    /// An export that was begun earlier is gone on with; so much of it was there.
    Resumed(Summary),
    /// A resource is in it.
    Taken(&'a ResourceUri),
    /// A resource is left out, and why.
    Damaged(&'a ResourceUri, &'a StoreError),
}

/// What a kind of export has at hand.
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
    /// Makes it, or goes on with one that was interrupted, from what a Source's catalog knows. Whoever watches may stop it after any resource; asked for
    /// again it goes on, and what comes of both is one export. Bytes are judged again as they pass; what is not what was judged is left out.
    ///
    /// What changes in the catalog between two goes may or may not be in it.
    ///
    /// # Errors
    /// [`ExportError::Refused`] when something else lies there; all others leave something that can be gone on with.
    pub async fn run(
        &self,
        store: &Store,
        catalog: &CatalogReader,
        source: &SourceId,
        now: Timestamp,
        see: &mut dyn FnMut(Seen<'_>) -> ControlFlow<()>,
    ) -> Result<Summary, ExportError> {
        let Self { format, to, selection, sizes } = self;
        let asked = Asked { format: format.clone(), source: source.clone(), selection: selection.clone() };
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

    /// Makes the place ready, and tells where the note of it lies. Nothing that is there is overwritten.
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

/// Where a directory keeps what is no part of the export, as long as it is not whole.
pub(crate) const DATA: &str = ".thresher";

/// Whether a directory holds nothing, or only what an export leaves that was cut off before its first note.
fn is_untouched(directory: &Path) -> io::Result<bool> {
    let data = directory.join(DATA);
    Ok(has_only(directory, |name| name == DATA)?
        && (!data.exists() || has_only(&data, |name| name.starts_with(note::TEMPORARY))?))
}

/// Whether all that lies in a directory has such a name.
fn has_only(directory: &Path, ours: fn(&str) -> bool) -> io::Result<bool> {
    for entry in fs_err::read_dir(directory)? {
        if !entry?.file_name().to_str().is_some_and(ours) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Work<'_> {
    /// The file of an export that is one, to be written behind what is safely there.
    pub(crate) fn file(&self, path: &Path) -> Result<BufWriter<File>, ExportError> {
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        let (kept, there) = (self.kept.note.bytes, file.metadata()?.len());
        if there < kept {
            return Err(note::changed(path, &format!("has {there} bytes of {kept} that were written")));
        }
        file.set_len(kept)?;
        file.seek(SeekFrom::End(0))?;
        Ok(BufWriter::new(file))
    }

    /// Resources that are selected and still to come, in the catalog's order.
    pub(crate) async fn rest(
        &self,
    ) -> Result<impl futures::Stream<Item = Result<Taken, ExportError>> + use<>, ExportError> {
        let note = &self.kept.note;
        let selection = note.asked.selection.clone();
        let scan = self.catalog.scan_resources(selection.prefix.as_deref(), note.after.as_ref()).await?;
        let taken = scan.try_filter(move |(_, record)| std::future::ready(selection.takes(record)));
        Ok(taken.map_err(ExportError::from))
    }

    /// A resource is written, though perhaps not yet on the disk.
    pub(crate) fn took(&mut self, uri: &ResourceUri, bytes: u64) -> Result<(), ExportError> {
        self.kept.note.done.resources += 1;
        self.kept.note.done.bytes += bytes;
        self.kept.note.after = Some(uri.clone());
        self.saw(Seen::Taken(uri))
    }

    /// A resource cannot be had. Any other trouble with the store ends the export.
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
