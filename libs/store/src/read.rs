//! Reading, and never handing out what is not what was stored.

use std::collections::HashMap;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use fixity::Sha256;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use model::{Bitstream, Location, Method, Span};
use object_store::{
    Attributes, Extensions, GetOptions, GetRange, GetResult, GetResultPayload, ObjectStore, ObjectStoreExt,
};

use crate::inflate;
use crate::spool::blocking;
use crate::verified::{self, Expected};
use crate::{Key, Store, StoreError, TroubleKind};

/// Bytes that pass, a bounded piece at a time.
pub type ByteStream = BoxStream<'static, Result<Bytes, StoreError>>;

/// Bitstreams up to this size are judged before their first byte is handed out.
const JUDGED_FIRST_BYTES: u64 = 1024 * 1024;
/// How much of a local file is read at once.
const PIECE_BYTES: usize = 256 * 1024;

impl Store {
    /// The bytes of a judged bitstream, judged again as they pass: up to 1 MiB before the first of them is handed out, beyond
    /// that before the last.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], here or as the stream's last item, when they are not what was stored.
    pub async fn open_verified(&self, bitstream: &Bitstream) -> Result<ByteStream, StoreError> {
        if bitstream.computed.length() <= JUDGED_FIRST_BYTES {
            let bytes = self.read_verified(bitstream).await?;
            return Ok(stream::iter([Ok(bytes)]).boxed());
        }
        self.pass(&bitstream.location, Expected::of(bitstream)).await
    }

    /// The whole of a judged bitstream, judged again. It is held in memory: for small ones.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when it is not what was stored.
    pub async fn read_verified(&self, bitstream: &Bitstream) -> Result<Bytes, StoreError> {
        let expected = Expected::of(bitstream);
        let bytes = self.whole(&bitstream.location, &expected).await?;
        expected.judge(&bytes)?;
        Ok(bytes)
    }

    /// Judged bitstreams, judged again, in their order: members of one pack or package that lie close together come with one
    /// read. All are held in memory, so the caller bounds their number; a pack's worth is right.
    pub async fn read_batch(&self, bitstreams: &[&Bitstream]) -> Vec<Result<Bytes, StoreError>> {
        let mut results: Vec<_> = bitstreams.iter().map(|_| None).collect();
        let mut packs: HashMap<Key, Vec<usize>> = HashMap::new();
        for (n, bitstream) in bitstreams.iter().enumerate() {
            match bitstream.location.span() {
                // An empty range is no range to a server.
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
                    // A store that does not answer is not asked again for each of them.
                    Some(Err(error)) if TroubleKind::of(error) == Some(TroubleKind::Unavailable) => {
                        let at = format!("{}/{key}", self.root());
                        Err(StoreError::Unavailable { at, message: error.to_string() })
                    }
                    // One by one, each says for itself what is wrong.
                    _ => self.read_verified(bitstreams[n]).await,
                });
            }
        }
        results.into_iter().flatten().collect()
    }

    /// The bytes at a location that nobody judged yet. An object of its own is compared with the digest it is named by
    /// before its last piece is handed out; a member of a pack or package only by its length, as its digest stands elsewhere.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], here or as the stream's last item, when they are not what was stored.
    pub async fn read(&self, location: &Location, length: u64) -> Result<ByteStream, StoreError> {
        self.pass(location, Expected::at(location, length)).await
    }

    /// Some bytes of a bitstream, counted from its beginning; they are held in memory. A part cannot be compared with the digest of
    /// the whole. What is stored deflated is inflated from its beginning.
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

    /// What is wanted, in memory, neither counted nor compared.
    async fn whole(&self, location: &Location, expected: &Expected) -> Result<Bytes, StoreError> {
        let found = self.get(location, expected).await?;
        match expected.method() {
            Method::Stored => found.bytes().await.map_err(|e| self.failed(location, e)),
            Method::Deflated => gathered(self.pieces(found, location, expected), expected).await,
        }
    }

    /// What was found at the location, in pieces, neither counted nor compared.
    pub(crate) fn pieces(&self, found: GetResult, location: &Location, expected: &Expected) -> ByteStream {
        let pieces = self.pieces_of(found, Key::of(location));
        match expected.method() {
            Method::Stored => pieces,
            Method::Deflated => inflate::stream(pieces, expected.clone()),
        }
    }

    /// What was got, in pieces.
    pub(crate) fn pieces_of(&self, result: GetResult, key: Key) -> ByteStream {
        let (range, root) = (result.range.clone(), self.root().to_owned());
        match result.payload {
            GetResultPayload::File(file, path) => file_pieces(file, path, range),
            GetResultPayload::Stream(stream) => {
                stream.map_err(move |e| StoreError::of_object(&root, &key, e)).boxed()
            }
        }
    }

    /// What lies at the location, as a store gives it.
    pub(crate) async fn get(
        &self,
        location: &Location,
        expected: &Expected,
    ) -> Result<GetResult, StoreError> {
        let range = match location.span() {
            Some(Span { stored_length: 1.., .. }) => Some(GetRange::Bounded(expected.range()?)),
            Some(_) => return self.get_nothing(location).await,
            // All of it, so that an object that has grown is noticed.
            None => None,
        };
        self.get_with(location, expected, GetOptions::new().with_range(range)).await
    }

    /// An empty range is no range to a server: that the object is there is all there is to ask.
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
        let (path, wanted) = (Key::of(location).path(), options.range.clone());
        let result = match self.objects().get_opts(&path, options).await {
            Ok(result) => result,
            Err(error) => {
                // A range behind the end is refused in each store's own words; the length tells.
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

/// A bitstream whose stored bytes are there.
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

/// The pieces as one. A part that ends early is damaged; of a whole, who judges it sees that.
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
                .map_err(|e| StoreError::of_file("read", &path, e))?;
            // A file that ends early ends the stream, and what counts the bytes tells.
            let next = if piece.is_empty() { end } else { at + piece.len() as u64 };
            Ok(Some((Bytes::from(piece), (file, path, next, end))))
        })
        .await
    })
    .boxed()
}

/// The digest an object is named by.
pub(crate) fn named_digest(location: &Location) -> Option<Sha256> {
    match location {
        Location::Object { sha256 } => Some(*sha256),
        Location::Pack { .. } | Location::Package { .. } => None,
    }
}
