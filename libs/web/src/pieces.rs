//! The body of an answer, as it comes.

use std::io;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::classify;

/// The pieces of a body that is still to come. Dropped before its end, it closes the connection.
pub(crate) enum Pieces {
    /// Over the network.
    Network(Incoming),
    /// From a transport inside this process. Nobody locks it: it stands there so that what the head says can be read from several
    /// threads, as that of any other answer can.
    Inside(Mutex<BoxStream<'static, io::Result<Bytes>>>),
}

impl Pieces {
    /// The next piece; none at the end.
    ///
    /// # Errors
    /// In words, why nothing more comes.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, String> {
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
