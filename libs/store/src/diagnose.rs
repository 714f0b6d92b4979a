//! Diagnosis of damaged bitstreams.

use std::ops::Range;

use fixity::Hasher;
use futures::TryStreamExt;
use model::{Bitstream, DamageFound, Method};
use object_store::{GetOptions, GetRange, ObjectStore};

use crate::error::AtObject;
use crate::verified::{ByteStream, Expected};
use crate::{Key, Store, StoreError, inflate};

impl Store {
    /// Reads the bytes at a bitstream's location, whatever they are, and returns their length and digest. For
    /// a deflated member that cannot be inflated it returns nothing. It inflates at most one byte more than
    /// expected.
    ///
    /// # Errors
    /// The error of the store; a missing or short object is no error.
    pub async fn diagnose(&self, bitstream: &Bitstream) -> Result<DamageFound, StoreError> {
        let key = Key::of(&bitstream.location);
        let Some(meta) = self.head_if_there(&key).await? else { return Ok(DamageFound::default()) };
        let (range, method) = match bitstream.location.span() {
            None => (0..meta.size, Method::Stored),
            Some(span) => {
                let end = span.offset.saturating_add(span.stored_length).min(meta.size);
                (span.offset.min(end)..end, span.method)
            }
        };
        let pieces = self.raw(key, range).await?;
        let is_plain = method == Method::Stored;
        let pieces = if is_plain { pieces } else { inflate::stream(pieces, Expected::of(bitstream)) };
        match digest(pieces).await {
            Ok((length, sha256)) => {
                Ok(DamageFound { is_there: true, length: Some(length), sha256: Some(sha256) })
            }
            // Removed meanwhile.
            Err(StoreError::NotFound { .. }) => Ok(DamageFound::default()),
            Err(StoreError::Damaged { .. }) if !is_plain => {
                Ok(DamageFound { is_there: true, length: None, sha256: None })
            }
            Err(error) => Err(error),
        }
    }

    async fn raw(&self, key: Key, range: Range<u64>) -> Result<ByteStream, StoreError> {
        if range.is_empty() {
            return Ok(Box::pin(futures::stream::empty()));
        }
        let options = GetOptions::new().with_range(Some(GetRange::Bounded(range)));
        let result = self.objects().get_opts(&key.path(), options).await.at_object(self.root(), &key)?;
        Ok(self.pieces_of(result, key))
    }
}

async fn digest(mut pieces: ByteStream) -> Result<(u64, fixity::Sha256), StoreError> {
    let mut hasher = Hasher::new([]);
    while let Some(piece) = pieces.try_next().await? {
        hasher.update(&piece);
    }
    let computed = hasher.finish();
    Ok((computed.length(), computed.sha256()))
}
