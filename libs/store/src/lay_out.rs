//! Laying out what is held as files of a view.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use model::{Bitstream, Method, ResourceUri};
use object_store::{GetResult, GetResultPayload};
use tempfile::NamedTempFile;

use crate::spool::blocking;
use crate::verified::{self, Expected, Judging};
use crate::{Store, StoreError, View, share};

/// How much is copied at a time: little enough that it stays in the processor's own memory.
const PIECE_BYTES: usize = 256 * 1024;
/// How much is copied before the thread is given back: who stops does not wait for the whole of a file.
const TURN_BYTES: u64 = 4 * 1024 * 1024;
const ACTION: &str = "write into the view";

impl Store {
    /// Writes the file of a resource from a judged bitstream, over the one that is there. The bytes are judged again as they pass, and nothing changes
    /// unless they are right. An object on the same disk is not written a second time where the file system lets files share what they hold until one of
    /// them is changed (XFS, Btrfs).
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when they are not what was stored, else as [`View::place`].
    pub async fn lay_out(
        &self,
        bitstream: &Bitstream,
        view: &View,
        uri: ResourceUri,
    ) -> Result<(), StoreError> {
        let (location, expected) = (&bitstream.location, Expected::of(bitstream));
        let found = self.get(location, &expected).await?;
        let (range, is_whole) = (found.range.clone(), location.span().is_none());
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

/// A copy of a file, or of a part of one, on its way.
struct Copying {
    from: File,
    path: PathBuf,
    /// What is not read yet.
    range: Range<u64>,
    to: NamedTempFile,
    /// The other file has it all already.
    is_shared: bool,
    judging: Judging,
    piece: Vec<u8>,
}

impl Copying {
    /// The whole copy, when it is right.
    async fn run(mut self, is_whole: bool) -> Result<NamedTempFile, StoreError> {
        let mut copy = blocking(ACTION, move || {
            self.is_shared = is_whole && share::content(&self.from, self.to.as_file());
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
                read => read.map_err(|e| StoreError::of_file("read", &self.path, e))?,
            };
            if read == 0 {
                // A file that ends early ends the copy, and who counts the bytes tells.
                self.range.start = self.range.end;
                break;
            }
            let piece = &self.piece[..read];
            self.judging.take(piece)?;
            if !self.is_shared {
                let written = self.to.as_file_mut().write_all(piece);
                written.map_err(|e| StoreError::of_file("write", self.to.path(), e))?;
            }
            self.range.start += read as u64;
        }
        Ok(self)
    }
}
