//! The bytes of exported resources; small ones are read ahead.

use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use model::{Bitstream, ResourceRecord, ResourceUri};
use store::{ByteStream, Store, StoreError};

use crate::ExportError;
use crate::work::Work;

/// Bitstreams up to this size are held in memory and read ahead.
const SMALL_BYTES: u64 = 1024 * 1024;
/// This many of them at a time.
const AHEAD: usize = 16;

/// A stored resource, and its bytes.
pub(crate) struct StoredResource {
    pub(crate) uri: ResourceUri,
    pub(crate) record: ResourceRecord,
    pub(crate) bitstream: Bitstream,
    pub(crate) body: Body,
}

/// Bytes that are verified again.
pub(crate) enum Body {
    /// All of them.
    Small(Result<Bytes, StoreError>),
    /// As a stream; its verdict is known after the last byte.
    Large(ByteStream),
}

impl Work<'_> {
    /// The stored and selected resources that are still to come, with their bytes.
    pub(crate) async fn held(
        &self,
    ) -> Result<impl Stream<Item = Result<StoredResource, ExportError>> + use<>, ExportError> {
        let rest = self.rest().await?;
        let present = rest.try_filter_map(|(uri, record)| async move {
            Ok(record.bitstream.clone().map(|bitstream| (uri, record, bitstream)))
        });
        let store = self.store.clone();
        Ok(present
            .map(move |found| {
                let store = store.clone();
                async move {
                    let (uri, record, bitstream) = found?;
                    let body = body(&store, &bitstream).await;
                    Ok(StoredResource { uri, record, bitstream, body })
                }
            })
            .buffered(AHEAD))
    }
}

async fn body(store: &Store, bitstream: &Bitstream) -> Body {
    if bitstream.computed.length() <= SMALL_BYTES {
        return Body::Small(store.read_verified(bitstream).await);
    }
    match store.open_verified(bitstream).await {
        Ok(bytes) => Body::Large(bytes),
        Err(error) => Body::Small(Err(error)),
    }
}

impl Body {
    /// As a stream of pieces, in either case.
    pub(crate) fn pieces(self) -> ByteStream {
        match self {
            Self::Small(bytes) => futures::stream::iter([bytes]).boxed(),
            Self::Large(pieces) => pieces,
        }
    }
}
