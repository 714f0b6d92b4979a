//! Rows and bytes of files as streams.

use std::io::{Error, Read as _};

use bytes::{Bytes, BytesMut};
use fixity::{Hasher, Sha256};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::beneath::OpenFile;
use super::row::Row;
use super::rows::{FILES, RowReader};
use crate::PublishError;
use crate::records::{FileError, Pieces};

/// Rows that are read together.
const TOGETHER: usize = 1_000;
/// How much of a file is read at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// Rows, some at a time.
pub(super) fn rows(reader: RowReader) -> BoxStream<'static, Result<Row, PublishError>> {
    let chunks = stream::try_unfold(reader, |mut reader| async move {
        let read = tokio::task::spawn_blocking(move || {
            let mut rows = Vec::with_capacity(TOGETHER);
            while rows.len() < TOGETHER
                && let Some(row) = reader.next()?
            {
                rows.push(row);
            }
            Ok::<_, PublishError>((rows, reader))
        });
        let (rows, reader) = read.await.map_err(|error| PublishError::place(FILES, error))??;
        Ok::<_, PublishError>((!rows.is_empty()).then(|| (stream::iter(rows.into_iter().map(Ok)), reader)))
    });
    chunks.try_flatten().boxed()
}

/// The bytes of a file; an error at their end if they have another digest.
pub(super) fn pieces(open: OpenFile, sha256: Sha256) -> Pieces {
    let begin = (open.file, Hasher::new([]));
    stream::try_unfold(begin, move |(mut file, mut hasher)| async move {
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = BytesMut::zeroed(PIECE_BYTES);
            let count = file.read(&mut piece)?;
            piece.truncate(count);
            hasher.update(&piece);
            Ok::<_, Error>((piece.freeze(), file, hasher))
        });
        let (piece, file, hasher): (Bytes, _, _) =
            read.await.map_err(Error::other).flatten().map_err(FileError::from)?;
        if !piece.is_empty() {
            return Ok(Some((piece, (file, hasher))));
        }
        if hasher.finish().sha256() == sha256 { Ok(None) } else { Err(FileError::Changed.into()) }
    })
    .boxed()
}
