//! The body of one response, as far as it is wanted and the job has time.

use std::future::Future;

use bytes::Bytes;
use model::Disposition;
use store::StoreError;
use tokio::time::Instant;
use web::Response;

use super::piece::Piece;
use super::receive::{End, Receiving};
use crate::body::{ended_early, too_large};

/// How the body of a response ended.
#[expect(clippy::large_enum_variant, reason = "there is one for each answer, and it is gone at once")]
pub(super) enum Ended {
    /// All wanted bytes were received.
    Come,
    /// Receiving ended too.
    With(End),
}

impl Receiving<'_> {
    /// Receives the body, up to the byte `to` if only that was requested, or up to the pieces that others receive.
    pub(super) async fn body(
        &mut self,
        response: &mut Response,
        to: Option<u64>,
    ) -> Result<Ended, StoreError> {
        let limit = self.fetcher.config.max_package_bytes;
        let mut rest = Bytes::new();
        loop {
            let received = self.upload.received();
            if received.max(self.upload.head().length.unwrap_or(0)) > limit {
                return Ok(Ended::With(End::Failed(too_large(response, limit))));
            }
            let end = to.or(self.pieces.front().map(|piece| piece.from));
            if end.is_some_and(|end| received >= end) {
                // A response that can continue is not given up for a piece that never arrives.
                if to.is_none()
                    && let Some(begun) = self.pieces.front_mut().and_then(Piece::begun)
                {
                    match self.in_more_time(begun).await {
                        None => return Ok(Ended::With(End::OutOfTime)),
                        Some(Ok(())) => {}
                        Some(Err(_will_not)) => {
                            self.give_up_pieces().await;
                            continue;
                        }
                    }
                }
                return Ok(Ended::Come);
            }
            let mut chunk = match std::mem::take(&mut rest) {
                kept if !kept.is_empty() => kept,
                _ => match self.in_time(response.chunk()).await {
                    None => return Ok(Ended::With(End::OutOfTime)),
                    Some(Ok(Some(chunk))) => chunk,
                    Some(Ok(None)) => return Ok(Ended::With(self.end_of_answer(response))),
                    Some(Err(error)) if error.disposition() == Disposition::Refuse => {
                        return Ok(Ended::With(End::Failed(error.into_failure())));
                    }
                    Some(Err(error)) => return Ok(Ended::With(End::Broken(error.into_failure()))),
                },
            };
            if let Some(end) = end {
                let wanted = usize::try_from(end - received).unwrap_or(usize::MAX).min(chunk.len());
                // Needed if the next piece is given up.
                rest = chunk.split_off(wanted);
            }
            let part = received / self.upload.part_bytes();
            self.upload.append(chunk).await?;
            if self.upload.received() / self.upload.part_bytes() > part {
                self.spread(None).await;
            }
        }
    }

    /// A response that ends at its announced end, or before: a 206 may have announced no more.
    fn end_of_answer(&self, response: &Response) -> End {
        let received = self.upload.received();
        let Some(length) = self.upload.head().length.filter(|length| received < *length) else {
            return End::Whole;
        };
        End::Broken(ended_early(response, received, length))
    }

    /// The result of `work`, unless the job's time ends first.
    pub(super) async fn in_time<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        if self.pieces.is_empty() {
            self.within(self.deadline, work).await
        } else {
            self.in_more_time(work).await
        }
    }

    /// The same for a part with several ranges, with the same time again: bytes received out of order would be lost.
    pub(super) async fn in_more_time<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.within(self.deadline + self.fetcher.config.package_time(), work).await
    }

    async fn within<T>(&self, deadline: Instant, work: impl Future<Output = T>) -> Option<T> {
        let over = async {
            if self.limited { tokio::time::sleep_until(deadline).await } else { std::future::pending().await }
        };
        tokio::select! {
            biased;
            () = self.fetcher.stop.cancelled() => None,
            () = over => None,
            done = work => Some(done),
        }
    }
}
