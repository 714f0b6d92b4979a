//! The body of a response, piece by piece, within its limits.

use bytes::Bytes;
use tokio::time::Instant;

use super::Response;
use crate::body_chunks::BodyChunks;
use crate::politeness::Permit;
use crate::{ErrorKind, Exchange, WebError};

/// A body, as far as it came.
pub(super) enum Body {
    Open { pieces: BodyChunks, exchange: Option<Box<dyn Exchange>>, _permit: Permit },
    Ended,
    Broken(WebError),
}

impl Response {
    /// The next piece of the body; none at its end. After an error, the same error is returned again.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] when the body is shorter than announced, [`ErrorKind::Timeout`] when it
    /// stalls; [`ErrorKind::TooLarge`] and [`ErrorKind::TooSlow`] when it exceeds the
    /// [limits](crate::BodyLimits).
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, WebError> {
        let (pieces, exchange) = match &mut self.body {
            Body::Open { pieces, exchange, .. } => (pieces, exchange),
            Body::Ended => return Ok(None),
            Body::Broken(error) => return Err(error.clone()),
        };
        if let Err(why) = self.watch.check_size(0) {
            return Err(self.too_large(why));
        }
        let begun = Instant::now();
        let next = tokio::time::timeout(self.watch.patience(), pieces.next()).await;
        let waited = begun.elapsed();
        let error = match next {
            Ok(Ok(Some(piece))) => {
                if let Err(why) = self.watch.check_size(piece.len() as u64) {
                    return Err(self.too_large(why));
                }
                self.watch.note(piece.len() as u64, waited);
                self.received += piece.len() as u64;
                if let Some(exchange) = exchange {
                    exchange.received(piece.len() as u64);
                }
                return Ok(Some(piece));
            }
            // A 304 states the length of the body that it does not send.
            Ok(Ok(None))
                if self.status == 304 || self.content_length().is_none_or(|all| all == self.received) =>
            {
                self.body = Body::Ended;
                return Ok(None);
            }
            Ok(Ok(None)) => WebError::new(ErrorKind::Interrupted).detail(self.progress()),
            Ok(Err(why)) => {
                let detail = format!("{}, {why}", self.progress());
                WebError::new(ErrorKind::Interrupted).detail(detail)
            }
            Err(_elapsed) => {
                let (kind, how) = self.watch.fault(waited);
                WebError::new(kind).detail(format!("{}, {how}", self.progress()))
            }
        };
        Err(self.broken(error))
    }

    fn too_large(&mut self, why: String) -> WebError {
        let error = WebError::new(ErrorKind::TooLarge).detail(why).expected(self.watch.expected());
        self.broken(error)
    }

    /// Ends the body with this error, which also ends the connection.
    fn broken(&mut self, error: WebError) -> WebError {
        let error = error.on(&self.way).answered(self.status, &self.headers);
        self.body = Body::Broken(error.clone());
        error
    }

    fn progress(&self) -> String {
        match self.content_length() {
            Some(all) => format!("{} of {all} bytes came", self.received),
            None => format!("{} bytes came", self.received),
        }
    }
}
