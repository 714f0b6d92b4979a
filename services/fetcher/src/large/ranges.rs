//! Parallel ranges of a large resource. Each is received into a file; their bytes are added to the upload in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use store::{Spooled, StoreError};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use web::Response;

use super::piece::{Asking, Come};
use super::receive::Receiving;
use crate::range_permits::LONGEST_SPACE;
use crate::resource;

/// Minimum size of a range, in bytes: the cost of a request is small compared with it.
const SMALLEST: u64 = 1024 * 1024;
/// Ranges that are open or wait on the disk for those before them, per range that may be open.
const AHEAD: usize = 2;
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
    /// A range did not bring what was requested: the rest is received in one.
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
        left >= 2 * self.span()
            && (self.upload.received() == 0 || self.condition(&head.validators).is_some())
            // After a redirect to another origin, the job has no permits there.
            && head.final_url.is_none()
            && Instant::now() < self.deadline
            && !self.fetcher.loners.contains(&self.job.origin)
    }

    /// Bytes of a range. With the default, at 240 ms and 10 MB/s, its round trip is a fourteenth of its time.
    pub(super) fn span(&self) -> u64 {
        self.fetcher.config.range_bytes.max(SMALLEST)
    }

    async fn is_unspaced(&self) -> bool {
        let Some((space, requests)) = self.in_time(self.fetcher.client.space_between(&self.job.origin)).await
        else {
            return false;
        };
        self.count(requests);
        space <= LONGEST_SPACE
    }

    /// Receives the rest in several ranges; `first` is the response to the first of them, and the byte before which it
    /// ends, if it came already. Nothing is lost when the time is over: ranges that are open are received first.
    pub(super) async fn ranges(&mut self, first: Option<(Response, u64)>) -> Result<Spread, StoreError> {
        let Some(asking) = self.asking() else { return Ok(Spread::Alone) };
        let length = self.length();
        let mut next = self.upload.received();
        let mut open: JoinSet<Come> = JoinSet::new();
        let mut come: BTreeMap<u64, Spooled> = BTreeMap::new();
        if let Some((response, to)) = first {
            open.spawn(asking.clone().take(response, next, to));
            next = to;
        }
        loop {
            let is_over = Instant::now() >= self.deadline;
            let most = if is_over { 0 } else { self.most_open(open.len()).await };
            while open.len() < most && open.len() + come.len() < most * AHEAD && next < length {
                let to = (next + self.span()).min(length);
                open.spawn(asking.clone().ask(next, to));
                next = to;
            }
            if let Some(piece) = come.remove(&self.upload.received()) {
                self.take(&piece).await?;
                continue;
            }
            if self.upload.received() == length {
                return Ok(Spread::Whole);
            }
            if open.is_empty() {
                return Ok(Spread::OutOfTime);
            }
            // Permits may be free before a range ends.
            let (from, piece) = match self.in_more_time(timeout(TURN, open.join_next())).await {
                None => return Ok(Spread::OutOfTime),
                Some(Ok(Some(Ok(come)))) => come,
                Some(Ok(Some(Err(error)))) => (length, Err(error.to_string())),
                Some(Ok(None) | Err(_)) => continue,
            };
            match piece {
                Ok(piece) => {
                    come.insert(from, piece);
                }
                Err(why) => {
                    open.shutdown().await;
                    while let Some(piece) = come.remove(&self.upload.received()) {
                        self.take(&piece).await?;
                    }
                    self.go_alone(&why, 1 + come.len() as u64);
                    return Ok(Spread::Alone);
                }
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

    /// From now on there is one request at a time, which also finds out whether the resource has changed.
    fn go_alone(&mut self, why: &str, dropped: u64) {
        tracing::info!(
            uri = %self.item.uri, origin = %self.job.origin, why,
            "a range beside others did not bring what was asked for; bodies of this origin are received in one for a while"
        );
        self.fetcher.loners.add(&self.job.origin);
        self.fetcher.metrics.count_range("dropped", dropped);
        self.permits.part();
    }

    fn asking(&self) -> Option<Asking> {
        let head = self.upload.head();
        Some(Asking {
            client: self.fetcher.client.clone(),
            store: self.fetcher.store.clone(),
            request: resource::ask(self.item, self.item.uri.to_url()),
            if_range: self.condition(&head.validators)?,
            head: Arc::new(head.clone()),
            requests: Arc::clone(&self.requests),
        })
    }
}
