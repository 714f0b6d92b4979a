//! The leading range of a package: its bytes follow those received before.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::{Failure, PackageJob};
use store::{PackageHead, PackageUpload, StoreError};
use tokio::time::Instant;
use web::{Client, ErrorKind, GetRequest, Range, Response, WebError};

use super::answer::Ended;
use super::piece::Piece;
use super::version::{Known, accepts_ranges, can_go_on, condition, is_no_such_range, is_same};
use crate::fetcher::Fetcher;
use crate::range_permits::RangePermits;
use crate::{modified, page};

/// A package that a job is receiving.
pub(super) struct Receiving<'a> {
    pub(super) fetcher: &'a Fetcher,
    /// It counts the requests of this job.
    pub(super) client: Client,
    pub(super) job: &'a PackageJob,
    pub(super) upload: PackageUpload,
    pub(super) deadline: Instant,
    /// Whether the job may end in the middle: only if another can continue.
    pub(super) limited: bool,
    pub(super) company: RangePermits,
    /// Pieces of the current part that are received in parallel with its front, in order and without gaps.
    pub(super) pieces: VecDeque<Piece>,
    /// Whether parts are requested one by one, so that no response is longer than needed.
    pub(super) by_parts: bool,
    /// Whether the server's ranges do not fit together, so that the whole is requested at once.
    pub(super) is_plain: bool,
    pub(super) requests: Arc<AtomicU64>,
    resumes: u32,
    /// Whether the server was asked, and answered or refused.
    was_asked: bool,
}

/// How receiving ended.
pub(super) enum End {
    /// All bytes were received.
    Whole,
    /// The job's time is over, or the service stops.
    OutOfTime,
    /// The known version is the current one.
    NotModified,
    /// The body broke off.
    Broken(Failure),
    /// No usable response.
    Failed(Failure),
}

impl<'a> Receiving<'a> {
    pub(super) fn new(
        fetcher: &'a Fetcher,
        job: &'a PackageJob,
        upload: PackageUpload,
        company: RangePermits,
        deadline: Instant,
    ) -> Self {
        Self {
            fetcher,
            client: fetcher.client.counting(),
            job,
            upload,
            deadline,
            limited: true,
            company,
            pieces: VecDeque::new(),
            by_parts: false,
            is_plain: false,
            requests: Arc::default(),
            resumes: fetcher.config.max_resumes,
            was_asked: false,
        }
    }

    /// Whether the server is slow, if the time is over before enough bytes came: it was not the wait for a turn.
    pub(super) fn is_slow(&self) -> bool {
        self.client.own_requests() > 0 && !self.fetcher.stop.is_cancelled()
    }

    /// The upload, and the number of its requests. Unused pieces end here.
    pub(super) fn into_parts(self) -> (PackageUpload, u64) {
        (self.upload, self.requests.load(Ordering::Relaxed))
    }

    pub(super) async fn receive(&mut self) -> Result<End, StoreError> {
        loop {
            let received = self.upload.received();
            if self.upload.is_whole() || (received > 0 && self.upload.head().length == Some(received)) {
                return Ok(End::Whole);
            }
            if let Some(mut piece) = self.next_piece() {
                match self.in_more_time(piece.come()).await {
                    None => return Ok(End::OutOfTime),
                    Some(Ok(bytes)) => self.take_piece(bytes).await?,
                    Some(Err(why)) => {
                        if self.lose_piece(&why).await.is_none() {
                            return Ok(End::OutOfTime);
                        }
                    }
                }
                continue;
            }
            self.spread(None).await;
            let request = self.request();
            let range = request.range.clone();
            let mut response = match self.ask(request).await {
                None => return Ok(End::OutOfTime),
                Some(Ok(response)) => response,
                Some(Err(error)) => {
                    self.count(error.requests());
                    if range.as_ref().is_some_and(|range| is_about_range(&error, range)) {
                        // From the beginning, without a range: this cannot happen twice.
                        self.is_plain = true;
                        self.begin(PackageHead::default()).await?;
                        continue;
                    }
                    if self.has_open_pieces() {
                        // It may have been one request too many, which says nothing about the package yet.
                        match self.go_alone(&error.to_string()).await {
                            None => return Ok(End::OutOfTime),
                            Some(()) => continue,
                        }
                    }
                    return Ok(End::Failed(error.into_failure()));
                }
            };
            self.count(response.requests());
            // An archive never begins like a page.
            if response.is_html() {
                let expected = self.job.declaration.media_type.as_deref().unwrap_or("an archive");
                return Ok(End::Failed(page::unexpected(&response, expected, &self.fetcher.client)));
            }
            let is_first = range.as_ref().is_some_and(|range| range.if_range.is_none());
            match response.status() {
                304 => return Ok(End::NotModified),
                206 if is_first => {
                    if !self.is_use(&response) {
                        self.is_plain = true;
                        continue;
                    }
                    self.begin_with(&response, false).await?;
                }
                206 if !is_same(&response, self.known()) => {
                    tracing::debug!(uri = %self.job.uri, "another version came for the rest of a package; it is begun anew");
                    self.is_plain = true;
                    self.begin(PackageHead::default()).await?;
                    continue;
                }
                206 => {}
                _ => {
                    // If the next response is of another version again, it must be received whole.
                    self.is_plain |= range.is_some();
                    self.begin_with(&response, range.is_some()).await?;
                }
            }
            // A server that sends the whole after all sends it at once.
            let to = range.and_then(|range| range.to).filter(|_| response.status() == 206);
            if is_first || to.is_none() {
                self.spread(to).await;
            }
            let failure = match self.body(&mut response, to).await? {
                Ended::Come => continue,
                Ended::With(End::Broken(failure)) => failure,
                Ended::With(end) => return Ok(end),
            };
            if self.resumes == 0 || condition(&self.upload.head().validators).is_none() {
                return Ok(End::Broken(failure));
            }
            self.resumes -= 1;
        }
    }

    /// Sends a request, and waits for its response head. None if the time is over before.
    async fn ask(&mut self, request: GetRequest) -> Option<Result<Response, WebError>> {
        let response = self.client.get(request);
        if self.was_asked {
            return self.in_time(response).await;
        }
        // Long enough for the wait for a turn, too.
        let answer = self.in_more_time(response).await?;
        // The time counts from the first answer: the wait for a turn is not the server's.
        self.was_asked = true;
        self.deadline = Instant::now() + self.fetcher.config.package_time();
        Some(answer)
    }

    /// Requests the rest if the server can tell whether it belongs to the same bytes, otherwise the whole. In
    /// parallel with other pieces, requests only the bytes before them.
    fn request(&self) -> GetRequest {
        let url = self.job.uri.to_url();
        let from = self.upload.received();
        let if_range = condition(&self.upload.head().validators);
        let held = self.job.held.clone();
        let range = match if_range.filter(|_| from > 0) {
            Some(if_range) => Some(Range { from, to: self.leading_end(), if_range: Some(if_range) }),
            None if self.is_plain => None,
            None => self.first_end().map(|to| Range { from: 0, to: Some(to), if_range: None }),
        };
        let largest = Some(self.fetcher.config.max_package_bytes);
        match range {
            Some(range) if range.if_range.is_some() => {
                GetRequest { range: Some(range), largest, ..GetRequest::new(url) }
            }
            range => GetRequest { range, validators: held, largest, ..GetRequest::new(url) },
        }
    }

    /// Whether a declared digest judges the whole.
    pub(super) fn is_judged(&self) -> bool {
        !self.job.declaration.digests.is_empty()
    }

    fn known(&self) -> Known<'_> {
        let head = self.upload.head();
        Known { validators: &head.validators, length: head.length, is_judged: self.is_judged() }
    }

    /// Whether the first range can be continued.
    fn is_use(&self, response: &Response) -> bool {
        let total = response.content_range().and_then(|range| range.total);
        total.is_some() && condition(&response.validators()).is_some()
    }

    /// Starts with a new response. It may contain the whole, perhaps of another version, so earlier bytes do not
    /// belong to it. Or it contains a part, and there are no earlier bytes.
    async fn begin_with(&mut self, response: &Response, had_range: bool) -> Result<(), StoreError> {
        let url = self.job.uri.to_url();
        let length = match response.status() {
            206 => response.content_range().and_then(|range| range.total),
            _ => response.content_length(),
        };
        let head = PackageHead {
            length,
            validators: response.validators(),
            media_type: response.media_type(),
            encoding: None,
            modified: modified::believed(&response.validators(), self.fetcher.clock.now()),
            final_url: (*response.final_url() != url).then(|| secrets::redacted(response.final_url())),
        };
        let known = &self.upload.head().validators;
        let ignored = had_range && (known.is_empty() || head.validators == *known);
        self.limited = can_go_on(&head.validators, accepts_ranges(response), ignored || self.is_plain);
        self.begin(head).await
    }

    /// Starts again: neither received bytes nor those in transit belong to the new response.
    async fn begin(&mut self, head: PackageHead) -> Result<(), StoreError> {
        self.pieces.clear();
        self.by_parts = false;
        self.upload.begin(head).await
    }

    pub(super) fn count(&self, requests: u32) {
        self.requests.fetch_add(u64::from(requests), Ordering::Relaxed);
    }
}

/// Whether a request failed only because of its range, and the whole is available. Some servers do not know ranges.
fn is_about_range(error: &WebError, range: &Range) -> bool {
    let is_first = range.if_range.is_none();
    is_no_such_range(error) || (is_first && matches!(error.kind(), ErrorKind::Status(400 | 501)))
}
