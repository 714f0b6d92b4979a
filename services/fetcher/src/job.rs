//! A fetch job: resources of one origin, one after the other.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bus::worker::RequestTimer;
use bus::{HandlerResult, Payload, Queue};
use model::{
    Disposition, Failure, FetchItem, FetchJob, Fetched, FetchedResult, Message as _, PackageJob,
    PackageOutcome, PackageResult, PatchUse, ProblemReason, VerifyJob, WireError,
};
use store::StoreError;
use tokio::time::Instant;

use crate::fetcher::Fetcher;
use crate::large::Large;
use crate::manner::Manner;
use crate::resource;
use crate::result_room::ResultRoom;
use crate::sink::{Sink, Stored};

/// Consecutive requests without any answer after which the rest of a job is deferred.
const UNANSWERED: u32 = 3;

impl Fetcher {
    /// Processes one message: reads the job, fetches, stores, sends the result on. The returned value says whether it
    /// may be acknowledged.
    pub async fn work(&self, payload: Payload) -> HandlerResult {
        HandlerResult::from_result(self.try_work(&payload).await)
    }

    /// Returns a message unprocessed, because its Source already uses its share of this process. Its resources come
    /// back as deferred, and the permit of the origin is free for other Sources.
    pub async fn give_back(&self, payload: Payload) -> HandlerResult {
        HandlerResult::from_result(self.try_give_back(&payload).await)
    }

    async fn try_give_back(&self, payload: &Payload) -> Result<(), HandlerResult> {
        match payload.read::<FetchJob>() {
            Err(WireError::Unexpected { found, .. }) if found == PackageJob::KIND => {
                let job = payload.read::<PackageJob>().map_err(HandlerResult::poison)?;
                let PackageJob { id, source, run, origin, uri, seq, .. } = Arc::unwrap_or_clone(job);
                // The next job reads how much earlier ones have received.
                let result = PackageResult::Deferred { received: 0 };
                let queue = Queue::Outcomes { source: source.clone() };
                let done =
                    PackageOutcome { id, source, run, origin, uri, seq, requests: 0, elapsed_ms: 0, result };
                bus::send(&*self.bus, queue, id, Arc::new(done)).await.map_err(HandlerResult::later)?;
                Ok(())
            }
            job => {
                let FetchJob { id, source, run, origin, items, .. } =
                    Arc::unwrap_or_clone(job.map_err(HandlerResult::poison)?);
                let items = items.iter().map(|item| fetched(item, FetchedResult::Deferred, None)).collect();
                let queue = Queue::Verify { source: source.clone() };
                let (requests, elapsed_ms, put) = (0, 0, Vec::new());
                let done = VerifyJob { id, source, run, origin, items, requests, elapsed_ms, put };
                bus::send(&*self.bus, queue, id, Arc::new(done)).await.map_err(HandlerResult::later)?;
                Ok(())
            }
        }
    }

    async fn try_work(&self, payload: &Payload) -> Result<(), HandlerResult> {
        let job = match payload.read::<FetchJob>() {
            Err(WireError::Unexpected { found, .. }) if found == PackageJob::KIND => {
                // Boxed: package jobs are few and their future is large, so jobs of resources need not have room for
                // it.
                return Box::pin(self.try_package(payload)).await;
            }
            job => job.map_err(HandlerResult::poison)?,
        };
        let _in_hand = self.metrics.begin();
        // A missing credential may exist after a restart of this service, or in another one.
        let fetcher = self.on(&job.terms).map_err(HandlerResult::later)?;
        let done = Arc::new(fetcher.fetch(&job).await.map_err(HandlerResult::later)?);
        let queue = Queue::Verify { source: done.source.clone() };
        bus::send(&*self.bus, queue, done.id, Arc::clone(&done)).await.map_err(HandlerResult::later)?;
        self.forget_uploads(&done).await;
        self.metrics.count(&done);
        Ok(())
    }

    async fn try_package(&self, payload: &Payload) -> Result<(), HandlerResult> {
        let job = payload.read::<PackageJob>().map_err(HandlerResult::poison)?;
        let _in_hand = self.metrics.begin();
        let fetcher = self.on(&job.terms).map_err(HandlerResult::later)?;
        let done = fetcher.fetch_package(Arc::unwrap_or_clone(job)).await.map_err(HandlerResult::later)?;
        let done = Arc::new(done);
        let queue = Queue::Outcomes { source: done.source.clone() };
        bus::send(&*self.bus, queue, done.id, Arc::clone(&done)).await.map_err(HandlerResult::later)?;
        self.metrics.count_package(&done);
        Ok(())
    }

    /// Fetches the resources of a job, without applying its terms, and stores the bodies. Resources come back as
    /// deferred if they are not reached in the job's time, if the results so far fill a message, or after the origin
    /// requested a cooldown or stopped answering.
    ///
    /// # Errors
    /// Only when the store fails: then no result of this delivery counts, and the job must be repeated.
    pub async fn fetch(&self, job: &FetchJob) -> Result<VerifyJob, StoreError> {
        let FetchJob { id, source, run, origin, terms, items } = job;
        let start = Instant::now();
        let mut sink = Sink::new(&self.store, &self.packs, source, &self.config, self.clock.now(), items);
        let mut results = Vec::with_capacity(items.len());
        let mut patches = vec![None; items.len()];
        let mut requests = 0;
        let mut unanswered = 0;
        let mut patches_in_vain = 0;
        let mut room = ResultRoom::of(items);
        let manner = Manner::of(terms, items);
        for (n, item) in items.iter().enumerate() {
            if room.is_full() || start.elapsed() >= self.config.job_time() || unanswered >= UNANSWERED {
                results.push(FetchedResult::Deferred);
                continue;
            }
            let now = self.clock.now();
            let timer = self.time_request(origin);
            if let Some(patched) = self.patch(item, patches_in_vain).await? {
                requests += patched.requests;
                patches_in_vain = patched.in_vain_after(patches_in_vain);
                if !room.fits_patch(&patched.used) {
                    results.push(FetchedResult::Deferred);
                    continue;
                }
                patches[n] = Some(Box::new(patched.used));
                if let Some(fresh) = patched.fresh {
                    if room.fits_body(source, &fresh) {
                        sink.take(n, item, fresh).await?;
                    }
                    results.push(FetchedResult::Deferred);
                    continue;
                }
            }
            let mut first = None;
            let mut timer = timer;
            if self.is_large(item) {
                // It may keep its slot for a minute, also at a quick origin.
                timer = timer.map(RequestTimer::unmeasured);
                // Boxed: few are large, so jobs of other resources need not have room for its future.
                match Box::pin(self.fetch_large(job, item)).await? {
                    Large::Done { requests: made, result } => {
                        requests += made;
                        unanswered = unanswered_after(&result, unanswered);
                        if let FetchedResult::Stored(stored) = &result {
                            sink.note_put(stored.location.clone());
                        }
                        results.push(if room.fits(&result) { result } else { FetchedResult::Deferred });
                        continue;
                    }
                    Large::Ordinary { requests: made, response } => {
                        requests += made;
                        first = response;
                    }
                }
            }
            let config = &self.config;
            let got = resource::fetch(&self.client, &self.store, config, item, manner, now, first).await?;
            drop(timer);
            requests += got.requests;
            match got.result {
                Ok(fresh) => {
                    unanswered = 0;
                    if room.fits_body(source, &fresh) {
                        sink.take(n, item, fresh).await?;
                    }
                    // Its location is known when the sink is finished.
                    results.push(FetchedResult::Deferred);
                }
                Err(result) => {
                    unanswered = unanswered_after(&result, unanswered);
                    results.push(if room.fits(&result) { result } else { FetchedResult::Deferred });
                }
            }
        }
        let Stored { items: stored, put } = sink.finish().await?;
        for (n, stored) in stored {
            results[n] = FetchedResult::Stored(Arc::new(stored));
        }
        // What became of the patches of a deferred resource counts when it is told.
        for (result, patch) in results.iter().zip(&mut patches) {
            patch.take_if(|_| *result == FetchedResult::Deferred);
        }
        let results = results.into_iter().zip(patches);
        let items =
            items.iter().zip(results).map(|(item, (result, patch))| fetched(item, result, patch)).collect();
        let elapsed_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let source = source.clone();
        let origin = origin.clone();
        Ok(VerifyJob { id: *id, source, run: *run, origin, items, requests, elapsed_ms, put })
    }
}

/// An item with its result. The job itself stays intact: it may be redelivered.
fn fetched(item: &FetchItem, result: FetchedResult, patch: Option<Box<PatchUse>>) -> Fetched {
    let FetchItem { uri, seq, declaration, listed_until, .. } = item;
    let uri = uri.clone();
    let declaration = declaration.clone();
    Fetched { uri, seq: *seq, declaration, listed_until: *listed_until, result, patch }
}

/// Consecutive requests that the origin left unanswered. An origin that requests a cooldown is left alone at once.
fn unanswered_after(result: &FetchedResult, before: u32) -> u32 {
    use ProblemReason::{Connect, Dns, Throttled, Timeout, Tls, TooSlow};
    match result {
        FetchedResult::Failed(Failure { reason: Throttled, .. }) => UNANSWERED,
        FetchedResult::Failed(Failure { disposition: Disposition::Retry { after: Some(_) }, .. }) => {
            UNANSWERED
        }
        FetchedResult::Failed(Failure { reason: Connect | Dns | Timeout | Tls | TooSlow, .. }) => before + 1,
        _ => 0,
    }
}
