//! Streams a bitstream; the last chunk waits for the digest. For a range, the digest of the whole bitstream counts.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use fixity::Sha256;
use futures::{StreamExt, TryStreamExt, stream};
use model::{Bitstream, Location, Method};
use moka::future::Cache;
use store::{ByteStream, Key, Store, StoreError};

/// Bitstreams up to this size are verified as a whole before the first byte is sent.
const SMALL_BYTES: u64 = 1024 * 1024;
/// How much of a verified bitstream one read returns.
const PIECE_BYTES: u64 = 1024 * 1024;
/// How long a verified bitstream counts as verified for its ranges. Stored bytes never change, but they may get
/// damaged.
const COUNTS_FOR: Duration = Duration::from_secs(600);
/// The most bitstreams to remember.
const REMEMBERED: u64 = 4096;

/// The bitstreams that this process verified lately. Clones share them.
#[derive(Debug, Clone)]
pub struct VerifiedCache(Cache<VerifiedKey, ()>);

/// The location of a verified bitstream, and its digest.
type VerifiedKey = (String, Sha256);

impl Default for VerifiedCache {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(REMEMBERED).time_to_live(COUNTS_FOR).build())
    }
}

impl VerifiedCache {
    /// Streams all bytes of a bitstream, or those of a range, which is not empty.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the bitstream is not what was stored. It comes from this function, or as the last
    /// item of the stream, before the last bytes.
    pub async fn open(
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
        if is_part && is_stored(&bitstream.location) && self.contains(bitstream) {
            return Ok(pieces(store.clone(), bitstream.location.clone(), range));
        }
        let whole = store.open_verified(bitstream).await?;
        let verified = self.0.clone();
        let key = key(bitstream);
        Ok(part(whole, range, async move { verified.insert(key, ()).await }))
    }

    fn contains(&self, bitstream: &Bitstream) -> bool {
        self.0.contains_key(&key(bitstream))
    }
}

fn key(bitstream: &Bitstream) -> VerifiedKey {
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
/// digest is checked then. `verified` runs after that.
fn part(
    whole: ByteStream,
    range: Range<u64>,
    verified: impl Future<Output = ()> + Send + 'static,
) -> ByteStream {
    struct Reading<F> {
        whole: ByteStream,
        position: u64,
        range: Range<u64>,
        held: Option<Bytes>,
        verified: Option<F>,
    }
    let begin = Reading { whole, position: 0, range, held: None, verified: Some(Box::pin(verified)) };
    stream::try_unfold(begin, |mut reading| async move {
        while let Some(chunk) = reading.whole.try_next().await? {
            let start = reading.position;
            let end = start + chunk.len() as u64;
            reading.position = end;
            let from = reading.range.start.max(start);
            let to = reading.range.end.min(end);
            if from >= to {
                continue;
            }
            // Both offsets lie within the chunk.
            let inside = chunk.slice((from - start) as usize..(to - start) as usize);
            if let Some(before) = reading.held.replace(inside) {
                return Ok(Some((before, reading)));
            }
        }
        if let Some(verified) = reading.verified.take() {
            verified.await;
        }
        Ok(reading.held.take().map(|last| (last, reading)))
    })
    .boxed()
}

#[cfg(test)]
mod tests;
