//! Permits for requests outside of jobs, counted together with the jobs in flight.
//!
//! The server limits jobs: the consumer of an origin delivers at most `max_ack_pending` of them. A permit is a key that
//! the server expires when its holder is silent, and each permit lowers the consumer's limit by one. A process that
//! changes a consumer holds the lock of the origin queue and counts the permits anew, so that no late change undoes
//! another. A permit becomes valid when the jobs in flight do not exceed the lowered limit.

use std::sync::Arc;
use std::time::Duration;

use async_nats::datetime::DateTime;
use async_nats::jetstream::consumer;
use futures::future::try_join_all;
use model::Origin;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout_at};

use super::Shared;
use super::connection::Failure;
use super::consumers::spec_of;
use super::keys;
use crate::backoff::Backoff;
use crate::permit::{MOST_PERMITS, OriginPermit, PermitGuard, permits_within, spare_within};
use crate::{BusError, ConsumerSpec, Filter};

/// The silence after which a permit is free again: the same as for the fetcher of a job.
pub(super) const PERMIT_TTL: Duration = Duration::from_secs(if cfg!(test) { 6 } else { 15 });
/// The interval of renewals.
const RENEW: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 4 });
/// How long a change of a consumer may take. After that, the lock expires and another change may begin.
const LOCK_TTL: Duration = Duration::from_secs(6);
/// The time limit of a change, so that it never overlaps with the next one.
const CHANGE: Duration = Duration::from_secs(3);
/// The first wait for a lock or permit of another process. It doubles up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_millis(250);
/// The delay until a paused consumer resumes. It is long enough for the change to reach the server before.
const MOMENT: Duration = Duration::from_millis(100);
/// The interval of checks for consumers that a dead holder has left lowered.
pub(super) const MEND: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });

/// A permit that this process holds.
#[derive(Debug)]
struct PermitKey {
    shared: Arc<Shared>,
    origin: Origin,
    key: Arc<Mutex<Option<keys::OwnedKey>>>,
    renewer: AbortHandle,
}

impl PermitGuard for PermitKey {}

impl Shared {
    pub(super) async fn acquire_permit(
        self: &Arc<Self>,
        origin: &Origin,
        limit: usize,
    ) -> Result<OriginPermit, BusError> {
        let held = self.take_permit(origin, limit).await?;
        let permit = self.permit(origin, held);
        self.settle(origin, None).await?;
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        while !self.has_room(origin).await? {
            backoff.pause().await;
        }
        Ok(OriginPermit::new(permit))
    }

    pub(super) async fn try_acquire_spare(
        self: &Arc<Self>,
        origin: &Origin,
    ) -> Result<Option<OriginPermit>, BusError> {
        let filter = Filter::Fetch(origin.clone());
        let Some(info) = self.info(&filter).await? else { return Ok(None) };
        if info.num_pending > 0 || info.num_ack_pending >= handed_out(&info) {
            return Ok(None);
        }
        let limit = spec_of(&filter, &info.config).max_in_flight();
        // The first permit is reserved for callers of `acquire_permit`.
        for number in 1..=spare_within(limit) {
            let Some(held) = self.take_key(&key(origin, number), PERMIT_TTL).await? else { continue };
            let permit = self.permit(origin, held);
            self.settle(origin, None).await?;
            // A job may have been delivered meanwhile.
            return Ok(self.has_room(origin).await?.then(|| OriginPermit::new(permit)));
        }
        Ok(None)
    }

    /// Wraps an acquired key. From here on it is returned on every path.
    fn permit(self: &Arc<Self>, origin: &Origin, held: keys::OwnedKey) -> PermitKey {
        let key = Arc::new(Mutex::new(Some(held)));
        let renewer = tokio::spawn(renew(Arc::clone(self), origin.clone(), Arc::clone(&key))).abort_handle();
        PermitKey { shared: Arc::clone(self), origin: origin.clone(), key, renewer }
    }

    /// Acquires one of the permits, as soon as one is free.
    async fn take_permit(&self, origin: &Origin, limit: usize) -> Result<keys::OwnedKey, BusError> {
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        loop {
            for number in 0..permits_within(limit) {
                if let Some(held) = self.take_key(&key(origin, number), PERMIT_TTL).await? {
                    return Ok(held);
                }
            }
            backoff.pause().await;
        }
    }

    async fn take_key(&self, key: &str, ttl: Duration) -> Result<Option<keys::OwnedKey>, BusError> {
        let holder = self.link.client.new_inbox();
        let take = || async { self.keys.take(key, holder.clone().into(), ttl).await };
        self.link.with_retries(|| format!("take {key}"), take).await
    }

    /// Whether the jobs in flight do not exceed what the consumer delivers now. Without a consumer, there are none.
    async fn has_room(&self, origin: &Origin) -> Result<bool, BusError> {
        let info = self.info(&Filter::Fetch(origin.clone())).await?;
        Ok(info.is_none_or(|info| info.num_ack_pending <= handed_out(&info)))
    }

    /// Sets the limit of the consumer according to the acquired permits. With a `spec`, a missing consumer is created.
    pub(super) async fn settle(&self, origin: &Origin, spec: Option<&ConsumerSpec>) -> Result<(), BusError> {
        let action = || format!("change the limit of origin {origin}");
        let locked = format!("{}.lock", origin.token());
        let begin = Instant::now();
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        loop {
            if let Some(lock) = self.take_key(&locked, LOCK_TTL).await? {
                let changed = timeout_at(Instant::now() + CHANGE, self.change(origin, spec)).await;
                lock.give_back().await;
                match changed {
                    Ok(changed) => return changed,
                    Err(late) if begin.elapsed() > self.config.patience() => {
                        return Err(BusError::Unavailable { action: action(), source: late.into() });
                    }
                    Err(_late) => {}
                }
            }
            backoff.pause().await;
        }
    }

    /// Must be called with the lock of the origin queue.
    async fn change(&self, origin: &Origin, spec: Option<&ConsumerSpec>) -> Result<(), BusError> {
        let filter = Filter::Fetch(origin.clone());
        let info = self.info(&filter).await?;
        let known = info.as_ref().map(|info| spec_of(&filter, &info.config));
        let Some(spec) = spec.or(known.as_ref()) else { return Ok(()) };
        // Counted last, and only for a consumer: most permits are taken before there is one.
        let permits = self.permits(origin).await?;
        let wanted = lowered(self.consumer_config(spec), &permits);
        let Some(info) = &info else { return self.create(&wanted, &filter).await };
        if known.as_ref() != Some(spec) {
            self.create(&wanted, &filter).await?;
        } else if info.config.max_ack_pending != wanted.max_ack_pending {
            self.update(&wanted, &filter).await?;
        }
        // Other changes keep the pause of an existing consumer.
        match (info.config.pause_until, wanted.pause_until) {
            (is, Some(until)) if is != Some(until) => self.let_rest(until, &filter).await.map(drop),
            (Some(until), None) if info.paused => self.wake(&filter, until, info.pause_remaining).await,
            _ => Ok(()),
        }
    }

    /// Ends the pause of a consumer, which would last for `left` until `until`, within a moment. When a pause is ended
    /// at once, the server forgets waiting requests; when a pause expires, the server serves them. So this shortens the
    /// pause instead.
    async fn wake(&self, filter: &Filter, until: DateTime, left: Option<Duration>) -> Result<(), BusError> {
        let asked = Instant::now();
        let mut moment = MOMENT;
        // By the server's clock, because the local one may differ.
        while !self.let_rest(until - left.unwrap_or_default() + asked.elapsed() + moment, filter).await? {
            moment *= 2;
        }
        Ok(())
    }

    /// Since when each acquired permit is held, by the server's clock.
    async fn permits(&self, origin: &Origin) -> Result<Vec<DateTime>, BusError> {
        let ask = || async {
            let keys = (0..MOST_PERMITS).map(|number| key(origin, number)).collect::<Vec<_>>();
            let since = try_join_all(keys.iter().map(|key| self.keys.since(key))).await?;
            Ok::<_, Failure>(since.into_iter().flatten().collect())
        };
        self.link.with_retries(|| format!("count the permits of origin {origin}"), ask).await
    }

    /// Raises limits again that a dead holder has left lowered, for the origin queues that this process has opened.
    pub(super) async fn mend_origins(&self) {
        let opened: Vec<Filter> = self.opened().keys().cloned().collect();
        for filter in opened {
            let Filter::Fetch(origin) = &filter else { continue };
            let mended = match self.info(&filter).await {
                Ok(Some(info)) if handed_out(&info) < spec_of(&filter, &info.config).max_in_flight() => {
                    self.settle(origin, None).await
                }
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = mended {
                tracing::debug!(%error, %origin, "cannot look at the limit of an origin queue now");
            }
        }
    }
}

impl Drop for PermitKey {
    fn drop(&mut self) {
        self.renewer.abort();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let shared = Arc::clone(&self.shared);
        let origin = self.origin.clone();
        let key = Arc::clone(&self.key);
        runtime.spawn(async move {
            let Some(held) = key.lock().await.take() else { return };
            held.give_back().await;
            if let Err(error) = shared.settle(&origin, None).await {
                tracing::warn!(%error, %origin, "cannot raise the limit of an origin queue again: that is done later");
            }
        });
    }
}

/// Renews the key of a permit until it is returned.
async fn renew(shared: Arc<Shared>, origin: Origin, key: Arc<Mutex<Option<keys::OwnedKey>>>) {
    loop {
        sleep(RENEW).await;
        {
            let mut key = key.lock().await;
            let Some(held) = key.as_mut() else { return };
            match held.renew().await {
                Ok(true) => {}
                Ok(false) => {
                    // The holder's request goes on, because it cannot be recalled.
                    tracing::warn!(%origin, key = held.key(), "the bus was away for so long that a place was lost");
                    *key = None;
                    return;
                }
                Err(error) => {
                    tracing::debug!(?error, %origin, "cannot renew a place now");
                    continue;
                }
            }
        }
        // A paused consumer stays paused until the permit would have expired.
        if let Err(error) = shared.settle(&origin, None).await {
            tracing::debug!(%error, %origin, "cannot renew the rest of an origin queue's consumer now");
        }
    }
}

fn key(origin: &Origin, number: usize) -> String {
    format!("{}.{number}", origin.token())
}

/// The number of jobs that the consumer delivers at a time.
fn handed_out(info: &consumer::Info) -> usize {
    if info.paused { 0 } else { usize::try_from(info.config.max_ack_pending).unwrap_or(usize::MAX) }
}

/// The consumer's configuration, lowered by the acquired permits. If nothing is left, the consumer is paused until the
/// last permit would have expired. The server would read a limit of 0 as its default of 1,000.
fn lowered(config: consumer::pull::Config, permits: &[DateTime]) -> consumer::pull::Config {
    let taken = i64::try_from(permits.len()).unwrap_or(i64::MAX);
    if taken < config.max_ack_pending {
        return consumer::pull::Config { max_ack_pending: config.max_ack_pending - taken, ..config };
    }
    let pause_until = permits.iter().max().map(|since| *since + PERMIT_TTL);
    consumer::pull::Config { max_ack_pending: 1, pause_until, ..config }
}
