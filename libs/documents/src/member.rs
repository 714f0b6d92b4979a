//! Parses a document that is a member of an archive which is being read: only the task that reads the archive has
//! its bytes.

use std::io;

use bytes::BytesMut;
use resourcesync::Options;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;

use crate::parse::parts_of;
use crate::part::Part;
use crate::stream::CHUNKS_AHEAD;

/// Bytes of a chunk.
const CHUNK: usize = 64 << 10;

/// Starts to parse the document that `source` contains. Parts arrive only while the returned future, which moves the
/// bytes, is polled. It ends after the last byte, even if the parts were dropped: the archive's own checks come last.
/// If it fails, that is the cause of the parser's error about the missing rest.
pub fn parse_member<'a>(
    source: impl AsyncRead + Send + Unpin + 'a,
    options: Options,
) -> (mpsc::Receiver<Part>, impl Future<Output = io::Result<()>> + Send + 'a) {
    let (chunks_in, chunks) = mpsc::channel(CHUNKS_AHEAD);
    let (_, parts) = parts_of(chunks, options);
    let moving = async move {
        let mut source = source;
        loop {
            let mut chunk = BytesMut::with_capacity(CHUNK);
            if source.read_buf(&mut chunk).await? == 0 {
                return Ok(());
            }
            // A parser that needs no more bytes is gone.
            let _ = chunks_in.send(Ok(chunk.freeze())).await;
        }
    };
    (parts, moving)
}
