//! Parallel ranges of a large resource. Each is received into a file; their bytes are added to the upload in order.

use std::sync::Arc;
use std::time::Duration;

use store::{Spooled, StoreError};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use web::Response;

use super::ahead::Ahead;
use super::is_judged;
use super::piece::{Asking, Come, PieceEnd};
use super::receive::Receiving;
use crate::range_permits::LONGEST_SPACE;
use crate::resource;

/// Minimum size of a range, in bytes: the cost of a request is small compared with it.
const SMALLEST: u64 = 1024 * 1024;
/// Bytes of a range before any has shown how fast they come.
const FIRST: u64 = 2 * SMALLEST;
/// Bytes read back from a file at a time.
const CHUNK: u64 = 1024 * 1024;
/// How long a range is waited for, before permits are looked for again.
const TURN: Duration = Duration::from_secs(1);

/// How receiving in several ranges ended.
pub(super) enum Spread {
    /// All bytes were received.
    Whole,
    /// The job's time is over, or the service stops.
    OutOfTime,
    /// The rest is received in one.
    Alone,
}

impl Receiving<'_> {
    /// Acquires spare permits, if several ranges are useful and allowed; whether there are any.
    pub(super) async fn spread(&mut self) -> bool {
        if !self.may_spread() {
            // A job without parallel ranges takes no permit from others, however long it runs.
            self.permits.part();
            return false;
        }
        if self.permits.wants_more() && self.is_unspaced().await {
            self.permits.gather().await;
        }
        self.permits.len() > 0
    }

    fn may_spread(&self) -> bool {
        let head = self.upload.head();
        let left = self.length().saturating_sub(self.upload.received());
        left >= 2 * self.largest_span()
            && (self.upload.received() == 0 || self.condition(&head.validators).is_some())
            // After a redirect to another origin, the job has no permits there.
            && head.final_url.is_none()
            && Instant::now() < self.deadline
            && !self.fetcher.loners.contains(&self.job.origin)
    }

    /// Maximum bytes of a range. With the default, at 240 ms and 10 MB/s, its round trip is a fourteenth of its time.
    fn largest_span(&self) -> u64 {
        self.fetcher.config.range_bytes.max(SMALLEST)
    }

    /// Bytes of a range: as many as come in half of a job's time, as fast as those of the last one. A range that does
    /// not end in the job's time brings nothing, unless all before it came.
    pub(super) fn span(&self) -> u64 {
        span_of(self.pace, self.fetcher.config.package_time() / 2).min(self.largest_span())
    }

    async fn is_unspaced(&self) -> bool {
        let Some((space, requests)) = self.in_time(self.client.space_between(&self.job.origin)).await else {
            return false;
        };
        self.count(requests);
        space <= LONGEST_SPACE
    }

    /// Receives the rest in several ranges; `first` is the response to the first of them, and the byte before which it
    /// ends, if it came already. What came in order is kept, however it ends.
    pub(super) async fn ranges(&mut self, first: Option<(Response, u64)>) -> Result<Spread, StoreError> {
        let Some(asking) = self.asking() else { return Ok(Spread::Alone) };
        let mut ahead = Ahead::new(asking, self.upload.received());
        if let Some((response, to)) = first {
            ahead.take(response, to);
        }
        let spread = self.receive_ranges(&mut ahead).await?;
        ahead.stop().await;
        while let Some(piece) = ahead.next_piece(self.upload.received()) {
            self.take(&piece).await?;
        }
        self.was_asked |= ahead.was_asked;
        self.fetcher.metrics.count_range("dropped", ahead.waiting() as u64);
        if matches!(spread, Spread::Alone) {
            self.permits.end();
        }
        Ok(spread)
    }

    async fn receive_ranges(&mut self, ahead: &mut Ahead) -> Result<Spread, StoreError> {
        let length = self.length();
        loop {
            let is_over = Instant::now() >= self.deadline;
            let most = if is_over { 0 } else { self.most_open(ahead.open.len()).await };
            ahead.ask_again(most);
            while self.permits.may_have_any() && ahead.has_room(most) && ahead.next < length {
                ahead.ask((ahead.next + self.span()).min(length));
            }
            if let Some(piece) = ahead.next_piece(self.upload.received()) {
                self.take(&piece).await?;
                continue;
            }
            if self.upload.received() == length {
                return Ok(Spread::Whole);
            }
            // Nothing fills a gap when the time is over.
            if ahead.open.is_empty() || (is_over && ahead.is_missing(self.upload.received())) {
                return Ok(if is_over { Spread::OutOfTime } else { Spread::Alone });
            }
            // Permits may be free before a range ends.
            let piece = match self.in_more_time(timeout(TURN, ahead.open.join_next())).await {
                None => return Ok(Spread::OutOfTime),
                Some(Ok(Some(Ok(piece)))) => piece,
                Some(Ok(Some(Err(error)))) => {
                    tracing::warn!(uri = %self.item.uri, %error, "a range ended by a fault of the fetcher");
                    return Ok(Spread::Alone);
                }
                Some(Ok(None) | Err(_)) => continue,
            };
            let goes_on = self.judge(&piece);
            ahead.add(piece);
            if !goes_on {
                return Ok(Spread::Alone);
            }
        }
    }

    /// Whether others may follow, after what came of a range.
    fn judge(&mut self, piece: &Come) -> bool {
        let (item, job) = (self.item, self.job);
        if piece.length() == 0 {
            self.fetcher.metrics.count_range("dropped", 1);
        }
        match &piece.end {
            PieceEnd::Whole => {
                // A remainder says little.
                if piece.length() >= SMALLEST {
                    self.pace = Some((piece.length(), piece.took));
                }
                true
            }
            PieceEnd::Stopped => true,
            PieceEnd::Cut(why) => {
                tracing::debug!(uri = %item.uri, why, "a range broke off; the rest of it is requested again");
                self.permits.narrow() || self.resumes()
            }
            PieceEnd::Wrong(why) => {
                tracing::info!(
                    uri = %item.uri, origin = %job.origin, why,
                    "a range beside others did not bring what was asked for; bodies of this origin are received in one for a while"
                );
                self.fetcher.loners.add(&job.origin);
                false
            }
            PieceEnd::Failed(why) => {
                tracing::debug!(uri = %item.uri, why, "no range can be received now; the rest is received in one");
                false
            }
        }
    }

    /// How many ranges may be open, given how many are. Permits that were kept for long enough are released as soon as
    /// one range is left: that one has the job's own.
    async fn most_open(&mut self, open: usize) -> usize {
        if self.permits.is_over() && open > 1 {
            return 1;
        }
        if self.permits.wants_more() {
            self.permits.gather().await;
        }
        1 + self.permits.len()
    }

    /// Adds the bytes of a range to the upload, and counts it.
    async fn take(&mut self, piece: &Spooled) -> Result<(), StoreError> {
        let length = piece.computed().length();
        let mut at = 0;
        while at < length {
            let to = (at + CHUNK).min(length);
            self.upload.append(piece.read_range(at..to).await?).await?;
            at = to;
        }
        self.fetcher.metrics.count_range("accepted", 1);
        Ok(())
    }

    fn asking(&self) -> Option<Asking> {
        let head = self.upload.head();
        Some(Asking {
            client: self.client.clone(),
            store: self.fetcher.store.clone(),
            request: resource::ask(self.item, self.item.uri.to_url()),
            if_range: self.condition(&head.validators)?,
            head: Arc::new(head.clone()),
            is_judged: is_judged(self.item),
            requests: Arc::clone(&self.requests),
            stop: CancellationToken::new(),
        })
    }
}

/// Bytes that come within a time, at the pace of so many bytes in such a time; few if that is not known.
fn span_of(pace: Option<(u64, Duration)>, within: Duration) -> u64 {
    let Some((bytes, took)) = pace else { return FIRST };
    let all = u128::from(bytes) * within.as_millis() / took.as_millis().max(1);
    u64::try_from(all).unwrap_or(u64::MAX).max(SMALLEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_bytes_of_half_a_minute_at_the_pace_of_the_one_before() {
        const MINUTE: Duration = Duration::from_secs(60);
        let span = |pace| span_of(pace, MINUTE / 2);
        assert_eq!(span(None), FIRST);
        // 280 kB/s: 32 MiB would take two minutes.
        assert_eq!(span(Some((2_800_000, Duration::from_secs(10)))), 8_400_000);
        assert_eq!(span(Some((FIRST, MINUTE * 2))), SMALLEST, "however slow");
        assert_eq!(span(Some((u64::MAX, Duration::ZERO))), u64::MAX, "the configuration bounds it");
        assert_eq!(span(Some((0, Duration::ZERO))), SMALLEST);
    }
}
