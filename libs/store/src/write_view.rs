//! Writes stored bitstreams as files of the view.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use model::{Bitstream, Method, ResourceUri};
use object_store::{GetResult, GetResultPayload};
use tempfile::NamedTempFile;

use crate::error::AtFile;
use crate::files::blocking;
use crate::verified::{self, Expected, Judging};
use crate::{Store, StoreError, View, reflink};

/// Bytes copied at a time: few enough to stay in the processor's cache.
const PIECE_BYTES: usize = 256 * 1024;
/// Bytes copied before the thread is released, so that cancelling does not wait for the whole file.
const TURN_BYTES: u64 = 4 * 1024 * 1024;
const ACTION: &str = "write into the view";

impl Store {
    /// Writes the file of a resource from a verified bitstream, over an existing one. The bytes are verified
    /// again, and the file changes only if they match. On the same disk the object is not copied where the
    /// file system has reflinks (XFS, Btrfs).
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the bytes do not match, otherwise as [`View::place`].
    pub async fn write_view(
        &self,
        bitstream: &Bitstream,
        view: &View,
        uri: ResourceUri,
    ) -> Result<(), StoreError> {
        let location = &bitstream.location;
        let expected = Expected::of(bitstream);
        let found = self.get(location, &expected).await?;
        let range = found.range.clone();
        let is_whole = location.span().is_none();
        match (found.payload, expected.method()) {
            (GetResultPayload::File(from, path), Method::Stored) => {
                let to = view.temporary().await?;
                let judging = Judging::new(expected);
                let piece = vec![0; PIECE_BYTES];
                let copy = Copying { from, path, range, to, is_shared: false, judging, piece };
                view.publish(copy.run(is_whole).await?, uri).await
            }
            (payload, _) => {
                let pieces = self.pieces(GetResult { payload, ..found }, location, &expected);
                view.place_stream(uri, verified::stream(pieces, expected)).await
            }
        }
    }
}

/// A copy of a file, or of a part of one, in progress.
struct Copying {
    from: File,
    path: PathBuf,
    /// The unread range.
    range: Range<u64>,
    to: NamedTempFile,
    /// The target is a reflink and already complete.
    is_shared: bool,
    judging: Judging,
    piece: Vec<u8>,
}

impl Copying {
    /// Runs the copy to its end, and returns the file if it matches.
    async fn run(mut self, is_whole: bool) -> Result<NamedTempFile, StoreError> {
        let mut copy = blocking(ACTION, move || {
            self.is_shared = is_whole && reflink::content(&self.from, self.to.as_file());
            Ok(self)
        })
        .await?;
        while !copy.range.is_empty() {
            copy = blocking(ACTION, move || copy.turn()).await?;
        }
        copy.judging.finish()?;
        Ok(copy.to)
    }

    fn turn(mut self) -> Result<Self, StoreError> {
        let end = self.range.end.min(self.range.start.saturating_add(TURN_BYTES));
        while self.range.start < end {
            let wanted = self.piece.len().min(usize::try_from(end - self.range.start).unwrap_or(usize::MAX));
            let read = match self.from.read_at(&mut self.piece[..wanted], self.range.start) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.at_file("read", &self.path)?,
            };
            if read == 0 {
                // A file that ends early ends the copy; the length check reports it.
                self.range.start = self.range.end;
                break;
            }
            let piece = &self.piece[..read];
            self.judging.take(piece)?;
            if !self.is_shared {
                self.to.as_file_mut().write_all(piece).at_file("write", self.to.path())?;
            }
            self.range.start += read as u64;
        }
        Ok(self)
    }
}
