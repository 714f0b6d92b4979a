//! Streams a bitstream; the last chunk waits for the digest. For a range, the digest of the whole bitstream counts.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use fixity::Sha256;
use futures::{StreamExt, TryStreamExt, stream};
use model::{Bitstream, Location, Method};
use store::{ByteStream, Key, Store, StoreError};
use tokio::time::Instant;

/// Bitstreams up to this size are verified as a whole before the first byte is sent.
const SMALL_BYTES: u64 = 1024 * 1024;
/// How much of a verified bitstream one read returns.
const PIECE_BYTES: u64 = 1024 * 1024;
/// How long a verified bitstream counts as verified for its ranges. Stored bytes never change, but they may get
/// damaged.
const COUNTS_FOR: Duration = Duration::from_secs(600);
/// The most bitstreams to remember.
const KNOWN: usize = 4096;

/// The bitstreams that this process verified lately. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Judged(Arc<Mutex<HashMap<(String, Sha256), Instant>>>);

impl Judged {
    /// Streams all bytes of a bitstream, or those of a range, which is not empty.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the bitstream is not what was stored. It comes from this function, or as the last
    /// item of the stream, before the last bytes.
    pub(crate) async fn open(
        &self,
        store: &Store,
        bitstream: &Bitstream,
        range: Option<Range<u64>>,
    ) -> Result<ByteStream, StoreError> {
        let length = bitstream.computed.length();
        let range = range.unwrap_or(0..length);
        if length <= SMALL_BYTES {
            let bytes = store.read_verified(bitstream).await?;
            // The conversion is safe, because the range lies within a small bitstream.
            return Ok(stream::iter([Ok(bytes.slice(range.start as usize..range.end as usize))]).boxed());
        }
        let is_part = range != (0..length);
        if is_part && is_stored(&bitstream.location) && self.knows(bitstream) {
            return Ok(pieces(store.clone(), bitstream.location.clone(), range));
        }
        let (judged, name) = (self.clone(), name(bitstream));
        let whole = store.open_verified(bitstream).await?;
        Ok(part(whole, range, move || judged.note(name)))
    }

    fn knows(&self, bitstream: &Bitstream) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&name(bitstream)).is_some_and(|at| at.elapsed() < COUNTS_FOR)
    }

    fn note(&self, name: (String, Sha256)) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN {
            known.retain(|_, at| at.elapsed() < COUNTS_FOR);
        }
        if known.len() < KNOWN {
            known.insert(name, Instant::now());
        }
    }
}

/// The key of a verified bitstream: its location and its digest.
fn name(bitstream: &Bitstream) -> (String, Sha256) {
    let offset = bitstream.location.span().map_or(0, |span| span.offset);
    (format!("{} {offset}", Key::of(&bitstream.location)), bitstream.computed.sha256())
}

fn is_stored(location: &Location) -> bool {
    location.span().is_none_or(|span| span.method == Method::Stored)
}

/// The chunks of a range of a verified bitstream, one read each.
fn pieces(store: Store, location: Location, range: Range<u64>) -> ByteStream {
    let begin = (store, location, range);
    stream::try_unfold(begin, |(store, location, range)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let end = range.end.min(range.start + PIECE_BYTES);
        let piece = store.read_range(&location, range.start..end).await?;
        Ok(Some((piece, (store, location, end..range.end))))
    })
    .boxed()
}

/// The bytes of `whole` that lie in `range`. The last chunk waits until the whole bitstream has been read, because its
/// digest is checked then.
fn part(whole: ByteStream, range: Range<u64>, ended: impl FnOnce() + Send + 'static) -> ByteStream {
    struct Passing<F> {
        whole: ByteStream,
        at: u64,
        range: Range<u64>,
        held: Option<Bytes>,
        ended: Option<F>,
    }
    let begin = Passing { whole, at: 0, range, held: None, ended: Some(ended) };
    stream::try_unfold(begin, |mut passing| async move {
        while let Some(piece) = passing.whole.try_next().await? {
            let (start, end) = (passing.at, passing.at + piece.len() as u64);
            passing.at = end;
            let (from, to) = (passing.range.start.max(start), passing.range.end.min(end));
            if from >= to {
                continue;
            }
            // Both offsets lie within the chunk.
            let wanted = piece.slice((from - start) as usize..(to - start) as usize);
            if let Some(before) = passing.held.replace(wanted) {
                return Ok(Some((before, passing)));
            }
        }
        if let Some(ended) = passing.ended.take() {
            ended();
        }
        Ok(passing.held.take().map(|last| (last, passing)))
    })
    .boxed()
}

#[cfg(test)]
mod tests;
