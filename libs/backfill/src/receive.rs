//! Receives a body: in memory while it is small, then in a spool file.

use bytes::{Bytes, BytesMut};
use fixity::{Algorithm, Computed, Hasher};
use packages::PackageError;
use packages::zip::MemberReader;
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

/// Bytes that come in pieces.
pub(crate) trait Pieces {
    /// Why they break off.
    type Error;

    /// The next piece; none after the last one.
    fn piece(&mut self) -> impl Future<Output = Result<Option<Bytes>, Self::Error>> + Send;
}

impl Pieces for Response {
    type Error = WebError;

    async fn piece(&mut self) -> Result<Option<Bytes>, WebError> {
        self.chunk().await
    }
}

impl Pieces for MemberReader<'_> {
    type Error = PackageError;

    async fn piece(&mut self) -> Result<Option<Bytes>, PackageError> {
        self.chunk().await
    }
}

/// Receives a body, and computes its digests. The failure of its server is the inner result.
pub(crate) async fn receive<P: Pieces>(
    from: &mut P,
    store: &Store,
    algorithms: Vec<Algorithm>,
) -> Result<Result<Body, P::Error>, StoreError> {
    let mut hasher = Hasher::new(algorithms.iter().copied());
    let mut begun = BytesMut::new();
    loop {
        match from.piece().await {
            Ok(Some(piece)) if begun.len() + piece.len() <= PACK_THRESHOLD_BYTES => {
                hasher.update(&piece);
                begun.extend_from_slice(&piece);
            }
            Ok(Some(piece)) => {
                let mut spool = store.spool(Hasher::new(algorithms)).await?;
                spool.append(begun.freeze()).await?;
                spool.append(piece).await?;
                return rest(from, spool).await;
            }
            Ok(None) => return Ok(Ok(Body::Small(begun.freeze(), hasher.finish()))),
            Err(error) => return Ok(Err(error)),
        }
    }
}

async fn rest<P: Pieces>(from: &mut P, mut spool: Spool) -> Result<Result<Body, P::Error>, StoreError> {
    loop {
        match from.piece().await {
            Ok(Some(piece)) => spool.append(piece).await?,
            Ok(None) => return Ok(Ok(Body::Large(spool.finish().await?))),
            Err(error) => return Ok(Err(error)),
        }
    }
}
