//! A package of a dump: received part by part, in as many jobs as it takes.

use std::future::Future;

use bytes::Bytes;
use fixity::Algorithm;
use model::{Disposition, Failure, PackageJob, PackageOutcome, PackageResult, ProblemReason, Validators};
use store::{PackageHead, PackageUpload, StoreError};
use tokio::time::Instant;
use web::{ErrorKind, GetRequest, Range, Response, WebError};

use crate::{Fetcher, modified, resource};

/// A package that is being received by a job.
struct Receiving<'a> {
    fetcher: &'a Fetcher,
    job: &'a PackageJob,
    upload: PackageUpload,
    deadline: Instant,
    /// Whether the job may end in the middle: only where another can go on.
    limited: bool,
    requests: u64,
    resumes: u32,
}

/// How receiving ended.
enum End {
    /// All has come.
    Whole,
    /// The job's time is over, or the service is to stop.
    OutOfTime,
    /// The known version is the current one.
    NotModified,
    /// The body broke off.
    Broken(Failure),
    /// No answer of use.
    Failed(Failure),
}

impl Fetcher {
    /// Fetches a package into the store, without regard to its terms, or goes on with it where an earlier job stopped. It ends after the time of a package's
    /// job, or when the service is to stop, if the server lets another job go on.
    ///
    /// # Errors
    /// Only when the store fails, or another worker has this package in hand: then the job is to be done again.
    pub async fn fetch_package(&self, job: PackageJob) -> Result<PackageOutcome, StoreError> {
        let start = Instant::now();
        let algorithms: Vec<Algorithm> =
            job.declaration.digests.iter().map(|digest| digest.algorithm()).collect();
        let largest = self.config.largest_package_bytes;
        let upload = self.store.package_upload(&job.source, job.seq, &algorithms, largest).await?;
        let before = upload.received();
        let mut receiving = Receiving {
            fetcher: self,
            job: &job,
            upload,
            deadline: start + self.config.package_time(),
            limited: true,
            requests: 0,
            resumes: self.config.resumes,
        };
        let end = receiving.receive().await?;
        let Receiving { upload, requests, .. } = receiving;
        let has_come = upload.received() > before;
        let result = match end {
            End::Whole => PackageResult::Stored(upload.finish().await?),
            End::NotModified => {
                upload.abandon().await?;
                PackageResult::NotModified
            }
            End::OutOfTime => PackageResult::Deferred { received: put_away(upload).await? },
            // It goes forward, if slowly: no failure that would count.
            End::Broken(_) if has_come && condition(&upload.head().validators).is_some() => {
                PackageResult::Deferred { received: put_away(upload).await? }
            }
            End::Failed(failure) if failure.disposition == Disposition::Refuse => {
                upload.abandon().await?;
                PackageResult::Failed(failure)
            }
            End::Broken(failure) | End::Failed(failure) => {
                put_away(upload).await?;
                PackageResult::Failed(failure)
            }
        };
        let elapsed_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let PackageJob { id, source, run, lane, uri, seq, .. } = job;
        Ok(PackageOutcome { id, source, run, lane, uri, seq, requests, elapsed_ms, result })
    }
}

/// Keeps what came, if anybody can go on with it.
async fn put_away(upload: PackageUpload) -> Result<u64, StoreError> {
    if condition(&upload.head().validators).is_some() {
        return upload.keep().await;
    }
    upload.abandon().await?;
    Ok(0)
}

impl Receiving<'_> {
    async fn receive(&mut self) -> Result<End, StoreError> {
        loop {
            let received = self.upload.received();
            if self.upload.is_whole() || (received > 0 && self.upload.head().length == Some(received)) {
                return Ok(End::Whole);
            }
            let request = self.request();
            let has_range = request.range.is_some();
            let mut response = match self.in_time(self.fetcher.client.get(request)).await {
                None => return Ok(End::OutOfTime),
                Some(Ok(response)) => response,
                Some(Err(error)) => {
                    self.requests += u64::from(error.requests());
                    if has_range && is_no_such_range(&error) {
                        // From the beginning, without a range: this cannot come twice.
                        self.upload.begin(PackageHead::default()).await?;
                        continue;
                    }
                    return Ok(End::Failed(error.into_failure()));
                }
            };
            self.requests += u64::from(response.requests());
            match response.status() {
                304 => return Ok(End::NotModified),
                206 if !is_same(&response, self.upload.head()) => {
                    tracing::debug!(uri = %self.job.uri, "another version came for the rest of a package; it is begun anew");
                    self.upload.begin(PackageHead::default()).await?;
                    continue;
                }
                206 => {}
                _ => self.begin(&response, has_range).await?,
            }
            let failure = match self.body(&mut response).await? {
                End::Broken(failure) => failure,
                end => return Ok(end),
            };
            if self.resumes == 0 || condition(&self.upload.head().validators).is_none() {
                return Ok(End::Broken(failure));
            }
            self.resumes -= 1;
        }
    }

    /// Asks for the rest, if the server can tell whether it is one of the same bytes, and for the whole otherwise.
    fn request(&self) -> GetRequest {
        let url = self.job.uri.to_url();
        let (from, if_range) = (self.upload.received(), condition(&self.upload.head().validators));
        match if_range.filter(|_| from > 0) {
            Some(if_range) => GetRequest { range: Some(Range { from, if_range }), ..GetRequest::new(url) },
            None => GetRequest { validators: self.job.held.clone(), ..GetRequest::new(url) },
        }
    }

    /// The whole is sent, perhaps another version: what came before is not part of it.
    async fn begin(&mut self, response: &Response, had_range: bool) -> Result<(), StoreError> {
        let url = self.job.uri.to_url();
        let head = PackageHead {
            length: response.content_length(),
            validators: response.validators(),
            media_type: response.media_type(),
            modified: modified::believed(&response.validators(), self.fetcher.clock.now()),
            final_url: (*response.final_url() != url).then(|| web::redacted(response.final_url())),
        };
        let ignored = had_range && head.validators == self.upload.head().validators;
        self.limited = can_go_on(&head.validators, response.header("accept-ranges"), ignored);
        self.upload.begin(head).await
    }

    async fn body(&mut self, response: &mut Response) -> Result<End, StoreError> {
        let limit = self.fetcher.config.largest_package_bytes;
        loop {
            if self.upload.received().max(self.upload.head().length.unwrap_or(0)) > limit {
                return Ok(End::Failed(resource::too_large(response, limit)));
            }
            let chunk: Bytes = match self.in_time(response.chunk()).await {
                None => return Ok(End::OutOfTime),
                Some(Ok(Some(chunk))) => chunk,
                Some(Ok(None)) => return Ok(End::Whole),
                Some(Err(error)) => return Ok(End::Broken(error.into_failure())),
            };
            self.upload.append(chunk).await?;
        }
    }

    /// What comes of `work`, unless the job is over before.
    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let over = async {
            match self.limited {
                true => tokio::time::sleep_until(self.deadline).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.fetcher.stop.cancelled() => None,
            () = over => None,
            done = work => Some(done),
        }
    }
}

/// What tells the server which version the rest is wanted of: a strong `ETag`, or a `Last-Modified` that no two versions can share
/// (RFC 9110, 13.1.5).
fn condition(validators: &Validators) -> Option<String> {
    match &validators.etag {
        Some(etag) if !etag.starts_with("W/") => Some(etag.clone()),
        // A weak one says that the server itself does not tell bytes apart.
        Some(_) => None,
        None => validators.last_modified.clone(),
    }
}

/// Whether another job can go on with what came. Where it cannot, a job that ended in time would begin anew again and again, and
/// never be done.
fn can_go_on(validators: &Validators, accept_ranges: Option<&str>, ignored_range: bool) -> bool {
    let accepts = accept_ranges.is_some_and(|units| units.trim().eq_ignore_ascii_case("bytes"));
    accepts && !ignored_range && condition(validators).is_some()
}

/// Whether the server cannot give the range that was asked for: there is no such one (any more), or it gives another.
fn is_no_such_range(error: &WebError) -> bool {
    matches!(error.kind(), ErrorKind::Status(416) | ErrorKind::Unasked(206))
}

/// Whether a 206 is of the version that came so far, as far as it says. It should be by `If-Range`, which not every server heeds.
fn is_same(response: &Response, head: &PackageHead) -> bool {
    let agree = |a: Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == *b;
    let total = response.header("content-range").and_then(total);
    agree(response.validators().etag, &head.validators.etag)
        && (total.is_none() || head.length.is_none() || total == head.length)
}

/// The length of the whole that a `Content-Range` header tells (RFC 9110, 14.4).
fn total(content_range: &str) -> Option<u64> {
    content_range.rsplit_once('/')?.1.trim().parse().ok()
}

/// What a package's result is called in metrics.
pub(crate) fn label(result: &PackageResult) -> &'static str {
    match result {
        PackageResult::Stored(_) => "stored",
        PackageResult::NotModified => "not-modified",
        PackageResult::Deferred { .. } => "deferred",
        PackageResult::Failed(failure) => failure.reason.as_str(),
        // Nothing that a fetcher says.
        PackageResult::Opened(_) | PackageResult::Slice { .. } => ProblemReason::WrongKind.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validators(etag: Option<&str>, last_modified: Option<&str>) -> Validators {
        Validators { etag: etag.map(Into::into), last_modified: last_modified.map(Into::into) }
    }

    #[test]
    fn only_what_tells_bytes_apart_is_a_condition() {
        let day = "Fri, 02 Jan 2026 03:04:05 GMT";
        assert_eq!(condition(&validators(Some("\"a\""), Some(day))).as_deref(), Some("\"a\""));
        assert_eq!(condition(&validators(None, Some(day))).as_deref(), Some(day));
        assert_eq!(condition(&validators(Some("W/\"a\""), Some(day))), None);
        assert_eq!(condition(&validators(None, None)), None);
    }

    #[test]
    fn a_job_ends_in_the_middle_only_where_another_can_go_on() {
        let strong = validators(Some("\"a\""), None);
        assert!(can_go_on(&strong, Some("bytes"), false));
        assert!(!can_go_on(&strong, Some("bytes"), true), "it says so, and does not do it");
        assert!(!can_go_on(&strong, Some("none"), false));
        assert!(!can_go_on(&strong, None, false));
        assert!(!can_go_on(&validators(Some("W/\"a\""), None), Some("bytes"), false));
    }

    #[test]
    fn the_length_of_the_whole_is_read_where_it_is_told() {
        assert_eq!(total("bytes 7-99/100"), Some(100));
        assert_eq!((total("bytes 7-99/*"), total("bytes 7-99")), (None, None));
    }
}
