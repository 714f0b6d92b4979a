//! Receives a body: in memory while it is small, then in a spool file.

use bytes::{Bytes, BytesMut};
use fixity::{Algorithm, Computed, Hasher};
use store::{Spool, Spooled, Store, StoreError};
use web::{Response, WebError};

/// Larger bodies are objects of their own; smaller ones go into packs.
const PACK_THRESHOLD_BYTES: usize = 256 * 1024;

/// A complete body.
#[derive(Debug)]
pub(crate) enum Body {
    /// Small enough for a pack.
    Small(Bytes, Computed),
    /// On the disk.
    Large(Spooled),
}

impl Body {
    pub(crate) fn computed(&self) -> &Computed {
        match self {
            Self::Small(_, computed) => computed,
            Self::Large(spooled) => spooled.computed(),
        }
    }
}

/// Receives the body of a response, and computes its digests. The server's failure is the inner result.
pub(crate) async fn receive(
    response: &mut Response,
    store: &Store,
    algorithms: Vec<Algorithm>,
) -> Result<Result<Body, WebError>, StoreError> {
    let mut hasher = Hasher::new(algorithms.iter().copied());
    let mut begun = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(Some(piece)) if begun.len() + piece.len() <= PACK_THRESHOLD_BYTES => {
                hasher.update(&piece);
                begun.extend_from_slice(&piece);
            }
            Ok(Some(piece)) => {
                let mut spool = store.spool(Hasher::new(algorithms)).await?;
                spool.append(begun.freeze()).await?;
                spool.append(piece).await?;
                return rest(response, spool).await;
            }
            Ok(None) => return Ok(Ok(Body::Small(begun.freeze(), hasher.finish()))),
            Err(error) => return Ok(Err(error)),
        }
    }
}

async fn rest(response: &mut Response, mut spool: Spool) -> Result<Result<Body, WebError>, StoreError> {
    loop {
        match response.chunk().await {
            Ok(Some(piece)) => spool.append(piece).await?,
            Ok(None) => return Ok(Ok(Body::Large(spool.finish().await?))),
            Err(error) => return Ok(Err(error)),
        }
    }
}
