//! The steps that all formats share.

use std::io::{BufWriter, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

use catalog::CatalogReader;
use fs_err::{File, OpenOptions};
use futures::{Stream, TryStreamExt as _};
use model::{ResourceRecord, ResourceUri};
use store::{Store, StoreError};

use crate::ExportError;
use crate::checkpoint::Checkpoint;
use crate::request::{Observer, Seen, Sizes};

/// State that all formats share.
pub(crate) struct Work<'a> {
    pub(crate) store: &'a Store,
    pub(crate) catalog: &'a CatalogReader,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) sizes: Sizes,
    pub(crate) observer: Observer<'a>,
}

impl Work<'_> {
    /// The file of a single-file export, opened for writing behind its checkpoint.
    pub(crate) fn file(&self, path: &Path) -> Result<BufWriter<File>, ExportError> {
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        let kept = self.checkpoint.bytes;
        let there = file.metadata()?.len();
        if there < kept {
            let how = format!("it has {there} bytes, and {kept} were written");
            return Err(self.checkpoint.changed(path, &how));
        }
        file.set_len(kept)?;
        file.seek(SeekFrom::End(0))?;
        Ok(BufWriter::new(file))
    }

    /// Selected resources that are still to come, in the catalog's order.
    pub(crate) async fn rest(
        &self,
    ) -> Result<impl Stream<Item = Result<(ResourceUri, ResourceRecord), ExportError>> + use<>, ExportError>
    {
        let Checkpoint { asked, after, .. } = &self.checkpoint;
        let selection = asked.selection.clone();
        let scan = self.catalog.scan_resources(selection.prefix.as_deref(), after.as_ref()).await?;
        let taken = scan.try_filter(move |(_, record)| std::future::ready(selection.takes(record)));
        Ok(taken.map_err(ExportError::from))
    }

    /// Records that a resource was written, though perhaps not yet to the disk.
    pub(crate) fn took(&mut self, uri: &ResourceUri, bytes: u64) -> Result<(), ExportError> {
        self.checkpoint.done.resources += 1;
        self.checkpoint.done.bytes += bytes;
        self.checkpoint.after = Some(uri.clone());
        self.saw(Seen::Taken(uri))
    }

    /// Reports a resource that cannot be read. Any other failure of the store ends the export.
    pub(crate) fn missed(&mut self, uri: &ResourceUri, error: StoreError) -> Result<(), ExportError> {
        if !matches!(error, StoreError::NotFound { .. } | StoreError::Damaged { .. }) {
            return Err(error.into());
        }
        self.checkpoint.done.damaged += 1;
        self.checkpoint.after = Some(uri.clone());
        self.saw(Seen::Damaged(uri, &error))
    }

    pub(crate) fn saw(&mut self, seen: Seen<'_>) -> Result<(), ExportError> {
        match (self.observer)(seen) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ExportError::Stopped),
        }
    }
}
