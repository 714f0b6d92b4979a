//! Verified reads: a damaged bitstream is never returned as intact.

use std::collections::HashMap;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures::stream;
use futures::{StreamExt, TryStreamExt};
use model::{Bitstream, Location, Method, Span};
use object_store::{
    Attributes, Extensions, GetOptions, GetRange, GetResult, GetResultPayload, ObjectStore, ObjectStoreExt,
};

use crate::error::AtFile;
use crate::files::blocking;
use crate::inflate;
use crate::verified::{self, ByteStream, Expected};
use crate::{FailureKind, Key, Store, StoreError};

/// Bitstreams up to this size are verified before their first byte is returned.
const JUDGED_FIRST_BYTES: u64 = 1024 * 1024;
/// Bytes of a local file that are read at once.
const PIECE_BYTES: usize = 256 * 1024;

impl Store {
    /// Streams a verified bitstream and verifies it again: up to 1 MiB before the first byte is returned,
    /// larger ones before the last.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], here or as the stream's last item, when the bytes do not match.
    pub async fn open_verified(&self, bitstream: &Bitstream) -> Result<ByteStream, StoreError> {
        if bitstream.computed.length() <= JUDGED_FIRST_BYTES {
            let bytes = self.read_verified(bitstream).await?;
            return Ok(stream::iter([Ok(bytes)]).boxed());
        }
        self.pass(&bitstream.location, Expected::of(bitstream)).await
    }

    /// Reads a whole bitstream into memory and verifies it again: for small ones.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the bytes do not match.
    pub async fn read_verified(&self, bitstream: &Bitstream) -> Result<Bytes, StoreError> {
        let expected = Expected::of(bitstream);
        let bytes = self.whole(&bitstream.location, &expected).await?;
        expected.judge(&bytes)?;
        Ok(bytes)
    }

    /// Reads bitstreams and verifies them again, in their order. Members of one pack or package that are
    /// close together are read with one request. All are held in memory, so the caller bounds their number; a
    /// pack's worth is right.
    pub async fn read_batch(&self, bitstreams: &[&Bitstream]) -> Vec<Result<Bytes, StoreError>> {
        let mut results: Vec<_> = bitstreams.iter().map(|_| None).collect();
        let mut packs: HashMap<Key, Vec<usize>> = HashMap::new();
        for (n, bitstream) in bitstreams.iter().enumerate() {
            match bitstream.location.span() {
                // Servers refuse an empty range.
                Some(Span { stored_length: 1.., .. }) => {
                    packs.entry(Key::of(&bitstream.location)).or_default().push(n);
                }
                _ => results[n] = Some(self.read_verified(bitstream).await),
            }
        }
        for (key, members) in packs {
            let ranges: Vec<_> = members.iter().map(|&n| Expected::of(bitstreams[n]).range()).collect();
            let read = match ranges.into_iter().collect::<Result<Vec<_>, _>>() {
                Ok(ranges) => Some(self.objects().get_ranges(&key.path(), &ranges).await),
                Err(_) => None,
            };
            for (i, &n) in members.iter().enumerate() {
                results[n] = Some(match &read {
                    Some(Ok(read)) if i < read.len() => judged(&read[i], Expected::of(bitstreams[n])).await,
                    // A store that does not answer gets no further request for the others.
                    Some(Err(error)) if FailureKind::of(error) == Some(FailureKind::Unavailable) => {
                        let at = format!("{}/{key}", self.root());
                        Err(StoreError::Unavailable { at, message: error.to_string() })
                    }
                    // Read one by one, each reports its own error.
                    _ => self.read_verified(bitstreams[n]).await,
                });
            }
        }
        results.into_iter().flatten().collect()
    }

    /// The unverified bytes at a location. An object of its own is compared with the digest in its name
    /// before its last piece is returned. A member of a pack or package is checked by length only, because
    /// its digest is recorded elsewhere.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], here or as the stream's last item, when the bytes are not those that were
    /// stored.
    pub async fn read(&self, location: &Location, length: u64) -> Result<ByteStream, StoreError> {
        self.pass(location, Expected::at(location, length)).await
    }

    /// Reads some bytes of a bitstream, counted from its start, into memory. A part cannot be compared with
    /// the digest of the whole. A deflated member is inflated from its start.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when less is stored.
    pub async fn read_range(&self, location: &Location, range: Range<u64>) -> Result<Bytes, StoreError> {
        let expected = Expected::part(location, range)?;
        if expected.length() == 0 {
            return Ok(Bytes::new());
        }
        if expected.method() == Method::Deflated {
            return self.whole(location, &expected).await;
        }
        let options = GetOptions::new().with_range(Some(GetRange::Bounded(expected.range()?)));
        let result = self.get_with(location, &expected, options).await?;
        result.bytes().await.map_err(|e| self.failed(location, e))
    }

    async fn pass(&self, location: &Location, expected: Expected) -> Result<ByteStream, StoreError> {
        let found = self.get(location, &expected).await?;
        Ok(verified::stream(self.pieces(found, location, &expected), expected))
    }

    /// The requested bytes in memory, unverified.
    async fn whole(&self, location: &Location, expected: &Expected) -> Result<Bytes, StoreError> {
        let found = self.get(location, expected).await?;
        match expected.method() {
            Method::Stored => found.bytes().await.map_err(|e| self.failed(location, e)),
            Method::Deflated => gathered(self.pieces(found, location, expected), expected).await,
        }
    }

    /// The bytes found at the location, in pieces, unverified.
    pub(crate) fn pieces(&self, found: GetResult, location: &Location, expected: &Expected) -> ByteStream {
        let pieces = self.pieces_of(found, Key::of(location));
        match expected.method() {
            Method::Stored => pieces,
            Method::Deflated => inflate::stream(pieces, expected.clone()),
        }
    }

    /// The bytes of a response, in pieces.
    pub(crate) fn pieces_of(&self, result: GetResult, key: Key) -> ByteStream {
        let range = result.range.clone();
        let root = self.root().to_owned();
        match result.payload {
            GetResultPayload::File(file, path) => file_pieces(file, path, range),
            GetResultPayload::Stream(stream) => {
                stream.map_err(move |e| StoreError::of_object(&root, &key, e)).boxed()
            }
        }
    }

    /// Requests the bytes at the location.
    pub(crate) async fn get(
        &self,
        location: &Location,
        expected: &Expected,
    ) -> Result<GetResult, StoreError> {
        let range = match location.span() {
            Some(Span { stored_length: 1.., .. }) => Some(GetRange::Bounded(expected.range()?)),
            Some(_) => return self.get_nothing(location).await,
            // All of it, so that a grown object is noticed.
            None => None,
        };
        self.get_with(location, expected, GetOptions::new().with_range(range)).await
    }

    /// For an empty bitstream, checks only that the object exists: servers refuse an empty range.
    async fn get_nothing(&self, location: &Location) -> Result<GetResult, StoreError> {
        let meta = self.objects().head(&Key::of(location).path()).await;
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::empty().boxed()),
            meta: meta.map_err(|e| self.failed(location, e))?,
            range: 0..0,
            attributes: Attributes::default(),
            extensions: Extensions::default(),
        })
    }

    async fn get_with(
        &self,
        location: &Location,
        expected: &Expected,
        options: GetOptions,
    ) -> Result<GetResult, StoreError> {
        let path = Key::of(location).path();
        let wanted = options.range.clone();
        let result = match self.objects().get_opts(&path, options).await {
            Ok(result) => result,
            Err(error) => {
                // Each store words a range behind the end differently; the object's length decides.
                if let (Some(GetRange::Bounded(range)), Ok(meta)) = (wanted, self.objects().head(&path).await)
                    && meta.size < range.end
                {
                    return Err(expected.cut_short(meta.size));
                }
                return Err(self.failed(location, error));
            }
        };
        match wanted {
            Some(GetRange::Bounded(range)) if result.range != range => {
                Err(expected.cut_short(result.meta.size))
            }
            None if result.meta.size != expected.length() => Err(expected.wrong_length(result.meta.size)),
            _ => Ok(result),
        }
    }

    fn failed(&self, location: &Location, error: object_store::Error) -> StoreError {
        StoreError::of_object(self.root(), &Key::of(location), error)
    }
}

/// Verifies a bitstream whose stored bytes were read.
async fn judged(stored: &Bytes, expected: Expected) -> Result<Bytes, StoreError> {
    let bytes = match expected.method() {
        Method::Stored => stored.clone(),
        Method::Deflated => {
            let stored = stream::iter([Ok(stored.clone())]).boxed();
            gathered(inflate::stream(stored, expected.clone()), &expected).await?
        }
    };
    expected.judge(&bytes).map(|()| bytes)
}

/// Joins the pieces. A part that ends early is damaged; for a whole bitstream, verification finds that.
async fn gathered(mut pieces: ByteStream, expected: &Expected) -> Result<Bytes, StoreError> {
    let mut bytes = BytesMut::new();
    while let Some(piece) = pieces.try_next().await? {
        bytes.extend_from_slice(&piece);
    }
    if bytes.len() as u64 >= expected.length() {
        Ok(bytes.freeze())
    } else {
        Err(expected.wrong_length(bytes.len() as u64))
    }
}

/// A range of a local file, in pieces large enough to be worth a thread.
fn file_pieces(file: std::fs::File, path: std::path::PathBuf, range: Range<u64>) -> ByteStream {
    use std::io::{Read, Seek, SeekFrom};
    let begin = (file, path, range.start, range.end);
    stream::try_unfold(begin, |(mut file, path, at, end)| async move {
        if at == end {
            return Ok(None);
        }
        blocking("read a bitstream", move || {
            let wanted = (end - at).min(PIECE_BYTES as u64);
            let mut piece = Vec::with_capacity(PIECE_BYTES.min(wanted as usize));
            file.seek(SeekFrom::Start(at))
                .and_then(|_| (&mut file).take(wanted).read_to_end(&mut piece))
                .at_file("read", &path)?;
            // A file that ends early ends the stream; the length check reports it.
            let next = if piece.is_empty() { end } else { at + piece.len() as u64 };
            Ok(Some((Bytes::from(piece), (file, path, next, end))))
        })
        .await
    })
    .boxed()
}
