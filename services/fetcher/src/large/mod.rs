//! A large resource: received part by part into the store, so that another job, or another fetcher, continues after the
//! last byte; and in several ranges at a time, if the server and its origin's limit allow it.

use std::sync::Arc;

use fixity::Algorithm;
use model::{Disposition, FetchItem, FetchJob, FetchedResult, Location, Validators, VerifyJob};
use store::{PackageUpload, StoreError};
use tokio::time::Instant;
use web::Response;

mod ahead;
mod piece;
mod ranges;
mod receive;

use receive::{End, Receiving};

use crate::FetcherConfig;
use crate::fetcher::Fetcher;
use crate::package::version::condition;
use crate::progress::{PROGRESS, too_slow};

/// What became of a large resource.
#[expect(clippy::large_enum_variant, reason = "there is one for each large resource, and it is gone at once")]
pub(crate) enum Large {
    /// Its result.
    Done {
        /// Requests made, redirects included.
        requests: u64,
        /// The result.
        result: FetchedResult,
    },
    /// It is received as any other, because the server does not support ranges, or sends something else.
    Ordinary {
        /// Requests made, without those of the response.
        requests: u64,
        /// The response to the whole, if it came already.
        response: Option<Response>,
    },
}

impl Fetcher {
    /// Whether a resource is received in parts. A mirror's versions are not those of the resource.
    pub(crate) fn is_large(&self, item: &FetchItem) -> bool {
        let FetcherConfig { large_body_bytes, max_body_bytes, max_package_bytes, .. } = *self.config;
        let sizes = large_body_bytes.max(1)..=max_body_bytes.min(max_package_bytes);
        item.from.is_none() && item.declaration.length.is_some_and(|length| sizes.contains(&length))
    }

    /// Receives a large resource, or goes on with it. Ends after the time of a package's job, or when the service
    /// stops, as deferred.
    ///
    /// # Errors
    /// Only when the store fails, or another worker has this resource: then the job must be repeated.
    pub(crate) async fn fetch_large(&self, job: &FetchJob, item: &FetchItem) -> Result<Large, StoreError> {
        let algorithms: Vec<Algorithm> =
            item.declaration.digests.iter().map(|digest| digest.algorithm()).collect();
        let largest = self.config.max_package_bytes;
        let upload = self.store.package_upload(&job.source, item.seq, &algorithms, largest).await?;
        let before = upload.received();
        let deadline = Instant::now() + self.config.package_time();
        let mut receiving = Receiving::new(self, job, item, upload, deadline);
        let end = receiving.receive().await?;
        let is_slow = receiving.is_slow();
        let (upload, requests) = receiving.into_parts();
        let has_progress = upload.received() >= before + PROGRESS;
        let result = match end {
            End::Whole => FetchedResult::Stored(Arc::new(upload.finish_as_bitstream().await?)),
            End::NotModified => {
                upload.abandon().await?;
                FetchedResult::NotModified
            }
            End::OutOfTime => {
                put_away(item, upload).await?;
                if is_slow && !has_progress {
                    FetchedResult::Failed(too_slow(&item.uri, self.config.max_package_seconds))
                } else {
                    FetchedResult::Deferred
                }
            }
            // It makes progress, if slowly: this does not count as a failure.
            End::Broken(_) if has_progress && condition_of(item, &upload.head().validators).is_some() => {
                upload.keep().await?;
                FetchedResult::Deferred
            }
            End::Failed(failure) if failure.disposition == Disposition::Refuse => {
                upload.abandon().await?;
                FetchedResult::Failed(failure)
            }
            // The next attempt has the same plan, and continues.
            End::Broken(failure) | End::Failed(failure) => {
                put_away(item, upload).await?;
                FetchedResult::Failed(failure)
            }
            End::Ordinary(response) => {
                upload.abandon().await?;
                return Ok(Large::Ordinary { requests, response });
            }
        };
        Ok(Large::Done { requests, result })
    }

    /// Removes the notes of uploads whose result was sent. If that fails, gc removes them.
    pub(crate) async fn forget_uploads(&self, done: &VerifyJob) {
        for item in &done.items {
            let FetchedResult::Stored(stored) = &item.result else { continue };
            if matches!(stored.location, Location::Package { .. })
                && let Err(error) = self.store.forget_upload(&done.source, item.seq).await
            {
                tracing::debug!(uri = %item.uri, %error, "the note of an upload that is stored stays behind");
            }
        }
    }
}

/// Keeps the received bytes, if a later job can continue.
async fn put_away(item: &FetchItem, upload: PackageUpload) -> Result<(), StoreError> {
    if condition_of(item, &upload.head().validators).is_some() {
        upload.keep().await.map(drop)
    } else {
        upload.abandon().await
    }
}

/// Whether a declared digest judges the whole.
fn is_judged(item: &FetchItem) -> bool {
    !item.declaration.digests.is_empty()
}

/// `If-Range` value by which parts of a resource are requested. A time is one only if a declared digest judges the whole:
/// two versions of one second can have the same time and the same length (RFC 9110, 8.8.2.2).
fn condition_of(item: &FetchItem, validators: &Validators) -> Option<String> {
    condition(validators).filter(|_| is_judged(item) || validators.etag.is_some())
}
