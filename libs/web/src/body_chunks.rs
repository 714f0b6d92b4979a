//! The body of a response, piece by piece.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::classify;
use crate::h2_connections::StreamSlot;

/// The rest of a body. Dropped before its end, it closes the connection.
pub(crate) struct BodyChunks {
    /// Pieces that were read ahead, with the end or error behind them if known.
    ahead: VecDeque<Next>,
    rest: Rest,
}

/// A piece, the end, or why the body broke off.
type Next = Result<Option<Bytes>, String>;

enum Rest {
    /// Over the network, and its stream of an HTTP/2 connection until the end.
    Network(Incoming, Option<StreamSlot>),
    /// From a transport inside this process. The mutex is never locked: it makes the type `Sync`, so that
    /// several threads can read the response head, as with any other response.
    Inside(Mutex<BoxStream<'static, io::Result<Bytes>>>),
}

impl BodyChunks {
    pub(crate) fn network(incoming: Incoming, slot: Option<StreamSlot>) -> Self {
        Self { ahead: VecDeque::new(), rest: Rest::Network(incoming, slot) }
    }

    pub(crate) fn inside(stream: BoxStream<'static, io::Result<Bytes>>) -> Self {
        Self { ahead: VecDeque::new(), rest: Rest::Inside(Mutex::new(stream)) }
    }

    /// The next piece; none at the end.
    ///
    /// # Errors
    /// Why the body broke off, as text.
    pub(crate) async fn next(&mut self) -> Next {
        match self.ahead.pop_front() {
            Some(next) => next,
            None => self.rest.next().await,
        }
    }

    /// Reads ahead up to this many bytes, as far as they arrive in time and are still needed. Returns them,
    /// and whether they are the whole body. They are returned again as pieces.
    pub(crate) async fn look(
        &mut self,
        most: usize,
        patience: Duration,
        is_worth_more: impl Fn(&[u8]) -> bool,
    ) -> (Bytes, bool) {
        let mut prefix = BytesMut::new();
        let mut is_whole = false;
        let reading = async {
            while prefix.len() <= most && is_worth_more(&prefix) {
                let next = self.rest.next().await;
                let piece = next.as_ref().ok().and_then(Clone::clone);
                is_whole = matches!(next, Ok(None));
                self.ahead.push_back(next);
                let Some(piece) = piece else { break };
                prefix.extend_from_slice(&piece[..piece.len().min(most + 1 - prefix.len())]);
            }
        };
        // After the time limit, the bytes that arrived decide.
        let _ = tokio::time::timeout(patience, reading).await;
        prefix.truncate(most);
        (prefix.freeze(), is_whole)
    }
}

impl Rest {
    async fn next(&mut self) -> Next {
        match self {
            Self::Network(incoming, slot) => loop {
                match incoming.frame().await {
                    // A frame without data is a trailer, which is ignored.
                    Some(Ok(frame)) => {
                        if let Ok(piece) = frame.into_data() {
                            return Ok(Some(piece));
                        }
                    }
                    Some(Err(error)) => return Err(classify::root(&error)),
                    None => {
                        *slot = None;
                        return Ok(None);
                    }
                }
            },
            Self::Inside(stream) => {
                let stream = stream.get_mut().unwrap_or_else(PoisonError::into_inner);
                stream.next().await.transpose().map_err(|error| classify::root(&error))
            }
        }
    }
}
