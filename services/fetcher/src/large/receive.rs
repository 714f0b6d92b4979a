//! Receives a large resource: in several ranges, or in one response whose bytes follow those received before.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::{Disposition, Failure, FetchItem, FetchJob, Validators};
use store::{PackageHead, PackageUpload, StoreError};
use tokio::time::Instant;
use web::{Client, ErrorKind, GetRequest, Range, Response};

use super::ranges::Spread;
use super::{condition_of, is_judged};
use crate::body::ended_early;
use crate::fetcher::Fetcher;
use crate::package::version::{Known, accepts_ranges, is_no_such_range, is_same};
use crate::range_permits::RangePermits;
use crate::{modified, resource};

/// A large resource that a job is receiving.
pub(super) struct Receiving<'a> {
    pub(super) fetcher: &'a Fetcher,
    /// It counts the requests for this resource.
    pub(super) client: Client,
    pub(super) job: &'a FetchJob,
    pub(super) item: &'a FetchItem,
    pub(super) upload: PackageUpload,
    pub(super) deadline: Instant,
    pub(super) permits: RangePermits,
    pub(super) requests: Arc<AtomicU64>,
    /// Bytes of the last whole range, and the time that they took.
    pub(super) pace: Option<(u64, Duration)>,
    /// How often a request may still be repeated that broke off.
    resumes: u32,
    /// Whether the server was asked, and answered or let a range stand still.
    pub(super) was_asked: bool,
}

/// How receiving ended.
#[expect(clippy::large_enum_variant, reason = "there is one for each large resource, and it is gone at once")]
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
    /// It cannot be received in parts. The response to the whole, if it came.
    Ordinary(Option<Response>),
}

impl<'a> Receiving<'a> {
    pub(super) fn new(
        fetcher: &'a Fetcher,
        job: &'a FetchJob,
        item: &'a FetchItem,
        upload: PackageUpload,
        deadline: Instant,
    ) -> Self {
        let others = fetcher.config.max_body_ranges.saturating_sub(1);
        let permits = RangePermits::new(Arc::clone(&fetcher.bus), job.origin.clone(), others);
        Self {
            fetcher,
            client: fetcher.client.counting(),
            job,
            item,
            upload,
            deadline,
            permits,
            requests: Arc::default(),
            pace: None,
            resumes: fetcher.config.max_resumes,
            was_asked: false,
        }
    }

    /// Whether the server is slow, if the time is over before enough bytes came: it was not the wait for a turn.
    pub(super) fn is_slow(&self) -> bool {
        self.client.own_requests() > 0 && !self.fetcher.stop.is_cancelled()
    }

    /// The upload, and the number of its requests.
    pub(super) fn into_parts(self) -> (PackageUpload, u64) {
        (self.upload, self.requests.load(Ordering::Relaxed))
    }

    pub(super) async fn receive(&mut self) -> Result<End, StoreError> {
        loop {
            let received = self.upload.received();
            if self.upload.is_whole() || (received > 0 && self.upload.head().length == Some(received)) {
                return Ok(End::Whole);
            }
            let has_others = self.spread().await;
            if has_others && received > 0 {
                match self.ranges(None).await? {
                    Spread::OutOfTime => return Ok(End::OutOfTime),
                    Spread::Whole | Spread::Alone => continue,
                }
            }
            let request = self.request(has_others);
            let range = request.range.clone();
            // Long enough for the wait for a turn, too.
            let mut response = match self.in_more_time(self.client.get(request)).await {
                None => return Ok(End::OutOfTime),
                Some(Ok(response)) => response,
                Some(Err(error)) => {
                    self.count(error.requests());
                    let is_about_range = is_no_such_range(&error)
                        || (received == 0 && matches!(error.kind(), ErrorKind::Status(400 | 501)));
                    if range.is_some() && is_about_range {
                        return Ok(End::Ordinary(None));
                    }
                    return Ok(End::Failed(error.into_failure()));
                }
            };
            if !self.was_asked {
                // The time counts from the first response: the wait for a turn is not the server's.
                self.was_asked = true;
                self.deadline = Instant::now() + self.fetcher.config.package_time();
            }
            match response.status() {
                304 => {
                    self.count(response.requests());
                    return Ok(End::NotModified);
                }
                206 if !self.is_part(&response) => {
                    self.count(response.requests());
                    return Ok(End::Ordinary(None));
                }
                206 => {
                    self.count(response.requests());
                    if received == 0 {
                        self.begin(&response).await?;
                        let to = range.as_ref().and_then(|range| range.to).filter(|to| is_to(&response, *to));
                        if let Some(to) = to.filter(|_| self.permits.len() > 0)
                            && self.upload.head().final_url.is_none()
                        {
                            match self.ranges(Some((response, to))).await? {
                                Spread::OutOfTime => return Ok(End::OutOfTime),
                                Spread::Whole | Spread::Alone => continue,
                            }
                        }
                    }
                }
                // The server ignores ranges, or has another version now.
                _ if received > 0 || !self.is_whole_and_resumable(&response) => {
                    return Ok(End::Ordinary(Some(response)));
                }
                _ => {
                    self.count(response.requests());
                    self.permits.part();
                    self.begin(&response).await?;
                }
            }
            let end = self.end_of(&response);
            let asked = range.and_then(|range| range.to).unwrap_or(u64::MAX).min(self.length());
            let failure = match self.body(&mut response, end).await? {
                None if self.upload.received() >= asked => continue,
                None => ended_early(&response, self.upload.received(), self.length()),
                Some(End::Broken(failure)) => failure,
                Some(end) => return Ok(end),
            };
            if !self.resumes() {
                return Ok(End::Broken(failure));
            }
        }
    }

    /// Whether a request that broke off may be repeated, which then counts.
    pub(super) fn resumes(&mut self) -> bool {
        let left = self.resumes.checked_sub(1);
        self.resumes = left.unwrap_or(0);
        left.is_some()
    }

    /// The length of the whole: as the server says, or as declared.
    pub(super) fn length(&self) -> u64 {
        self.upload.head().length.or(self.item.declaration.length).unwrap_or(0)
    }

    /// `If-Range` value of a version, if its parts can be put together.
    pub(super) fn condition(&self, validators: &Validators) -> Option<String> {
        condition_of(self.item, validators)
    }

    /// Requests the rest, if bytes came before; else the first range, if others are to follow beside it, or the whole.
    fn request(&self, has_others: bool) -> GetRequest {
        let from = self.upload.received();
        let largest = Some(self.fetcher.config.max_body_bytes);
        let whole = GetRequest { largest, apart: true, ..resource::ask(self.item, self.item.uri.to_url()) };
        match self.condition(&self.upload.head().validators).filter(|_| from > 0) {
            Some(if_range) => GetRequest { range: Some(Range::rest(from, if_range)), ..whole },
            None => {
                let range = has_others.then_some(Range { from: 0, to: Some(self.span()), if_range: None });
                GetRequest { range, validators: self.item.held.clone(), ..whole }
            }
        }
    }

    /// Whether a 206 begins at the next byte, of the version received so far, or of one that can be continued.
    fn is_part(&self, response: &Response) -> bool {
        let Some(range) = response.content_range() else { return false };
        let received = self.upload.received();
        let PackageHead { validators, length, encoding, .. } = self.upload.head();
        let known = Known { validators, length: *length, is_judged: is_judged(self.item) };
        let fits = if received > 0 {
            is_same(response, known) && response.content_encoding() == *encoding
        } else {
            self.is_meant(response, range.total)
        };
        fits && range.from == received
    }

    fn is_whole_and_resumable(&self, response: &Response) -> bool {
        accepts_ranges(response) && self.is_meant(response, response.content_length())
    }

    /// Whether a response, of a whole of this length, seems to be the content, and its version can be told from others.
    fn is_meant(&self, response: &Response, length: Option<u64>) -> bool {
        length.is_some()
            && length == self.item.declaration.length
            && self.condition(&response.validators()).is_some()
            && response.wall().is_none()
            && !response.is_html()
    }

    /// Starts with a new response.
    async fn begin(&mut self, response: &Response) -> Result<(), StoreError> {
        let url = self.item.uri.to_url();
        let validators = response.validators();
        let head = PackageHead {
            length: self.item.declaration.length,
            modified: modified::believed(&validators, self.fetcher.clock.now()),
            validators,
            media_type: response.media_type(),
            encoding: response.content_encoding(),
            final_url: (*response.final_url() != url).then(|| secrets::redacted(response.final_url())),
        };
        self.upload.begin(head).await
    }

    /// The byte before which a response should end.
    fn end_of(&self, response: &Response) -> u64 {
        let part = response.content_range().filter(|_| response.status() == 206);
        part.map_or(self.length(), |part| part.to.min(self.length()))
    }

    /// Receives a body up to a byte. None at its end.
    async fn body(&mut self, response: &mut Response, end: u64) -> Result<Option<End>, StoreError> {
        loop {
            match self.in_time(response.chunk()).await {
                None => return Ok(Some(End::OutOfTime)),
                Some(Ok(Some(chunk))) if self.upload.received() + chunk.len() as u64 > end => {
                    return Ok(Some(End::Ordinary(None)));
                }
                Some(Ok(Some(chunk))) => self.upload.append(chunk).await?,
                Some(Ok(None)) => return Ok(None),
                Some(Err(error)) if error.disposition() == Disposition::Refuse => {
                    return Ok(Some(End::Failed(error.into_failure())));
                }
                Some(Err(error)) => return Ok(Some(End::Broken(error.into_failure()))),
            }
        }
    }

    /// The result of `work`, unless the job's time ends first.
    pub(super) async fn in_time<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.within(self.deadline, work).await
    }

    /// The same for ranges, with the same time again: bytes received out of order would be lost.
    pub(super) async fn in_more_time<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.within(self.deadline + self.fetcher.config.package_time(), work).await
    }

    async fn within<T>(&self, deadline: Instant, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.fetcher.stop.cancelled() => None,
            () = tokio::time::sleep_until(deadline) => None,
            done = work => Some(done),
        }
    }

    pub(super) fn count(&self, requests: u32) {
        self.requests.fetch_add(u64::from(requests), Ordering::Relaxed);
    }
}

/// Whether a 206 ends before this byte.
fn is_to(response: &Response, to: u64) -> bool {
    response.content_range().is_some_and(|range| range.to == to)
}
