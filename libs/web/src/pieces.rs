//! The body of an answer, as it comes.

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

/// The pieces of a body that is still to come. Dropped before its end, it closes the connection.
pub(crate) struct Pieces {
    /// What was looked at already, and how the body went on if that is known.
    ahead: VecDeque<Next>,
    rest: Rest,
}

/// A piece, the end, or why nothing more comes.
type Next = Result<Option<Bytes>, String>;

enum Rest {
    /// Over the network.
    Network(Incoming),
    /// From a transport inside this process. Nobody locks it: it stands there so that what the head says can be read from several
    /// threads, as that of any other answer can.
    Inside(Mutex<BoxStream<'static, io::Result<Bytes>>>),
}

impl Pieces {
    pub(crate) fn network(incoming: Incoming) -> Self {
        Self { ahead: VecDeque::new(), rest: Rest::Network(incoming) }
    }

    pub(crate) fn inside(stream: BoxStream<'static, io::Result<Bytes>>) -> Self {
        Self { ahead: VecDeque::new(), rest: Rest::Inside(Mutex::new(stream)) }
    }

    /// The next piece; none at the end.
    ///
    /// # Errors
    /// In words, why nothing more comes.
    pub(crate) async fn next(&mut self) -> Next {
        match self.ahead.pop_front() {
            Some(next) => next,
            None => self.rest.next().await,
        }
    }

    /// The first bytes, at most so many, as far as they come in time and while those that came are worth more; and whether nothing
    /// follows them. They come again as pieces.
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
        // What has not come by then is judged by what has.
        let _ = tokio::time::timeout(patience, reading).await;
        prefix.truncate(most);
        (prefix.freeze(), is_whole)
    }
}

impl Rest {
    async fn next(&mut self) -> Next {
        match self {
            Self::Network(incoming) => loop {
                match incoming.frame().await {
                    // What is no data is a trailer, of which nothing is made.
                    Some(Ok(frame)) => {
                        if let Ok(piece) = frame.into_data() {
                            return Ok(Some(piece));
                        }
                    }
                    Some(Err(error)) => return Err(classify::root(&error)),
                    None => return Ok(None),
                }
            },
            Self::Inside(stream) => {
                let stream = stream.get_mut().unwrap_or_else(PoisonError::into_inner);
                stream.next().await.transpose().map_err(|error| classify::root(&error))
            }
        }
    }
}
