//! A package of a dump, received part by part in as many jobs as it takes.

use std::sync::Arc;

use bus::worker::RequestTimer;
use fixity::Algorithm;
use model::{Disposition, PackageJob, PackageOutcome, PackageResult};
use store::{PackageUpload, StoreError};
use tokio::time::Instant;

mod answer;
mod parallel_ranges;
mod piece;
mod receive;
pub(crate) mod version;

use receive::{End, Receiving};
use version::condition;

use crate::fetcher::Fetcher;
use crate::progress::{PROGRESS, too_slow};
use crate::range_permits::RangePermits;

impl Fetcher {
    /// Fetches a package into the store, without applying its terms, or continues where an earlier job stopped. It
    /// ends after the time of a package's job, or when the service stops, if the server lets another job continue.
    ///
    /// # Errors
    /// Only when the store fails, or another worker has this package: then the job must be repeated.
    pub async fn fetch_package(&self, job: PackageJob) -> Result<PackageOutcome, StoreError> {
        let start = Instant::now();
        // It keeps its slot for a minute, also at a quick origin.
        let _timer = self.time_request(&job.origin).map(RequestTimer::unmeasured);
        let algorithms: Vec<Algorithm> =
            job.declaration.digests.iter().map(|digest| digest.algorithm()).collect();
        let largest = self.config.max_package_bytes;
        let upload = self.store.package_upload(&job.source, job.seq, &algorithms, largest).await?;
        let before = upload.received();
        let beside = self.config.max_package_ranges.saturating_sub(1);
        let company = RangePermits::new(Arc::clone(&self.bus), job.origin.clone(), beside);
        let mut receiving = Receiving::new(self, &job, upload, company, start + self.config.package_time());
        let end = receiving.receive().await?;
        let is_slow = receiving.is_slow();
        let (upload, requests) = receiving.into_parts();
        let has_progress = upload.received() >= before + PROGRESS;
        let result = match end {
            End::Whole => PackageResult::Stored(upload.finish().await?),
            End::NotModified => {
                upload.abandon().await?;
                PackageResult::NotModified
            }
            End::OutOfTime => {
                let received = put_away(upload).await?;
                if is_slow && !has_progress {
                    PackageResult::Failed(too_slow(&job.uri, self.config.max_package_seconds))
                } else {
                    PackageResult::Deferred { received }
                }
            }
            // It makes progress, if slowly: this does not count as a failure.
            End::Broken(_) if has_progress && condition(&upload.head().validators).is_some() => {
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
        let PackageJob { id, source, run, origin, uri, seq, .. } = job;
        Ok(PackageOutcome { id, source, run, origin, uri, seq, requests, elapsed_ms, result })
    }
}

/// Keeps the received bytes, if a later job can continue.
async fn put_away(upload: PackageUpload) -> Result<u64, StoreError> {
    if condition(&upload.head().validators).is_some() {
        return upload.keep().await;
    }
    upload.abandon().await?;
    Ok(0)
}
