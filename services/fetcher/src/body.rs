//! Receives a body: in memory while it is small, then in a spool file. Digests are computed while the bytes arrive.

use bytes::{Bytes, BytesMut};
use fixity::{Algorithm, Computed, Hasher};
use model::{Disposition, Evidence, Failure, ProblemReason};
use store::{Spool, Spooled, Store, StoreError};
use web::Response;

/// The failure of a response that ended before the length of its body.
pub(crate) fn ended_early(response: &Response, received: u64, length: u64) -> Failure {
    let url = secrets::redacted(response.final_url());
    Failure {
        reason: ProblemReason::Interrupted,
        message: format!(
            "{url} ended its answer after byte {received} of {length}; try again, and if it always ends there, tell the Source's operator"
        ),
        disposition: Disposition::Retry { after: None },
        evidence: Evidence::default(),
    }
}

/// The failure of a body with more bytes than are taken.
pub(crate) fn too_large(response: &Response, limit: u64) -> Failure {
    Failure {
        reason: ProblemReason::TooLarge,
        message: format!(
            "{} has more than {limit} bytes, the largest body taken; raise the limit to have it",
            secrets::redacted(response.final_url())
        ),
        disposition: Disposition::Refuse,
        evidence: Evidence {
            final_url: Some(secrets::redacted(response.final_url())),
            expected: Some(format!("{limit} bytes at most")),
            ..response.evidence()
        },
    }
}

/// A complete body.
#[derive(Debug)]
pub(crate) enum Body {
    /// Small enough for a pack.
    Small {
        /// The bytes.
        bytes: Bytes,
        /// Their length and digests.
        computed: Computed,
    },
    /// On the disk.
    Large(Spooled),
}

impl Body {
    /// Its length and digests.
    pub(crate) fn computed(&self) -> &Computed {
        match self {
            Self::Small { computed, .. } => computed,
            Self::Large(spooled) => spooled.computed(),
        }
    }
}

/// A body that is being received.
pub(crate) struct Receiving<'a> {
    store: &'a Store,
    algorithms: Vec<Algorithm>,
    pack_threshold_bytes: usize,
    state: State,
}

enum State {
    Memory { bytes: BytesMut, hasher: Hasher },
    Disk(Spool),
}

impl<'a> Receiving<'a> {
    pub(crate) fn new(store: &'a Store, algorithms: Vec<Algorithm>, pack_threshold_bytes: usize) -> Self {
        let hasher = Hasher::new(algorithms.iter().copied());
        Self {
            store,
            algorithms,
            pack_threshold_bytes,
            state: State::Memory { bytes: BytesMut::new(), hasher },
        }
    }

    /// Appends the next chunk.
    pub(crate) async fn append(&mut self, piece: Bytes) -> Result<(), StoreError> {
        match &mut self.state {
            State::Memory { bytes, hasher } if bytes.len() + piece.len() <= self.pack_threshold_bytes => {
                hasher.update(&piece);
                bytes.extend_from_slice(&piece);
                Ok(())
            }
            State::Memory { bytes, .. } => {
                let begun = std::mem::take(bytes).freeze();
                let mut spool = self.store.spool(self.hasher()).await?;
                spool.append(begun).await?;
                spool.append(piece).await?;
                self.state = State::Disk(spool);
                Ok(())
            }
            State::Disk(spool) => spool.append(piece).await,
        }
    }

    /// Number of bytes received.
    pub(crate) fn len(&self) -> u64 {
        match &self.state {
            State::Memory { bytes, .. } => bytes.len() as u64,
            State::Disk(spool) => spool.len(),
        }
    }

    /// Discards the received bytes: the server starts again.
    pub(crate) async fn restart(&mut self) -> Result<(), StoreError> {
        let hasher = self.hasher();
        match &mut self.state {
            State::Memory { bytes, hasher: old } => {
                bytes.clear();
                *old = hasher;
                Ok(())
            }
            State::Disk(spool) => spool.restart(hasher).await,
        }
    }

    /// Completes the body.
    pub(crate) async fn finish(self) -> Result<Body, StoreError> {
        match self.state {
            State::Memory { bytes, hasher } => {
                Ok(Body::Small { bytes: bytes.freeze(), computed: hasher.finish() })
            }
            State::Disk(spool) => spool.finish().await.map(Body::Large),
        }
    }

    fn hasher(&self) -> Hasher {
        Hasher::new(self.algorithms.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn received(pack_threshold_bytes: usize, pieces: &[&'static [u8]]) -> Body {
        let store = Store::in_memory();
        let mut body = Receiving::new(&store, vec![Algorithm::Md5], pack_threshold_bytes);
        for piece in pieces {
            body.append(Bytes::from_static(piece)).await.unwrap();
        }
        body.finish().await.unwrap()
    }

    #[tokio::test]
    async fn a_body_up_to_the_limit_stays_in_memory() {
        match received(6, &[b"abc", b"def"]).await {
            Body::Small { bytes, computed } => {
                assert_eq!(bytes, "abcdef");
                assert_eq!(computed.sha256(), Computed::of(b"abcdef").sha256());
                assert!(computed.get(Algorithm::Md5).is_some());
            }
            Body::Large(_) => panic!("6 bytes are within the limit"),
        }
    }

    #[tokio::test]
    async fn a_longer_one_goes_to_disk_with_all_its_bytes() {
        match received(5, &[b"abc", b"def", b"ghi"]).await {
            Body::Large(spooled) => {
                assert_eq!(spooled.computed().sha256(), Computed::of(b"abcdefghi").sha256());
                assert_eq!(spooled.computed().length(), 9);
            }
            Body::Small { .. } => panic!("9 bytes are beyond the limit"),
        }
    }

    #[tokio::test]
    async fn a_restart_forgets_what_came_before() {
        let store = Store::in_memory();
        let mut body = Receiving::new(&store, vec![], 2);
        for piece in ["wrong", "x"] {
            body.append(piece.into()).await.unwrap();
            body.restart().await.unwrap();
            assert_eq!(body.len(), 0);
        }
        body.append("right".into()).await.unwrap();
        match body.finish().await.unwrap() {
            Body::Large(spooled) => assert_eq!(spooled.computed().sha256(), Computed::of(b"right").sha256()),
            Body::Small { .. } => panic!("once on disk, it stays there"),
        }
    }
}
