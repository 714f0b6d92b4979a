//! Verifies that a subscriber wants what was requested in its name (WebSub, 5.3).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use publish::{Admission, PublishError};
use tokio::time::timeout;
use ulid::Ulid;
use url::Url;
use web::{GetRequest, WebError};
use websub::{Mode, SubscriptionRequest, denial, grant, verification};

use super::Hub;

/// Verifications under way, and those of one host. Further requests are refused meanwhile.
const AT_A_TIME: usize = 64;
const AT_A_TIME_PER_HOST: usize = 8;
/// How long it may take to ask a callback, with the wait for its origin: others wait for the same place.
const LONGEST_ASKED: Duration = Duration::from_secs(60);
/// The longest answer that is read.
const LONGEST_ANSWER: u64 = 1_024;

/// Verifications under way, by host.
#[derive(Debug, Clone, Default)]
pub(super) struct Verifications(Arc<Mutex<HashMap<String, usize>>>);

/// Held by one verification under way.
pub(super) struct Verifying {
    all: Verifications,
    host: String,
}

impl Verifications {
    /// A permit to verify a callback. None while too many are under way.
    pub(super) fn begin(&self, callback: &Url) -> Option<Verifying> {
        let host = callback.host_str().unwrap_or_default().to_owned();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = open.get(&host).copied().unwrap_or_default();
        if open.values().sum::<usize>() >= AT_A_TIME || same >= AT_A_TIME_PER_HOST {
            return None;
        }
        open.insert(host.clone(), same + 1);
        Some(Verifying { all: self.clone(), host })
    }
}

impl Drop for Verifying {
    fn drop(&mut self) {
        let mut open = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = open.get(&self.host).copied().unwrap_or_default().saturating_sub(1);
        if left == 0 {
            open.remove(&self.host);
        } else {
            open.insert(std::mem::take(&mut self.host), left);
        }
    }
}

impl Hub {
    /// Verifies a request on a task of its own, and does what it wants. `admission` is what its sender was admitted by.
    pub(super) fn verify(&self, request: SubscriptionRequest, permit: Verifying, admission: Admission) {
        let hub = self.clone();
        self.0.tasks.spawn(async move {
            tokio::select! {
                verified = hub.verified(request, admission) => if let Err(error) = verified {
                    tracing::error!(%error, "a confirmed request cannot be noted now");
                },
                () = hub.0.stop.cancelled() => {}
            }
            drop(permit);
        });
    }

    /// Verifies a request, and does what it wants. `admission` is what its sender was admitted by. If the publication
    /// has other readers by now, the subscription ends at once, and the callback is told why.
    ///
    /// # Errors
    /// When it is confirmed, and cannot be noted.
    pub(super) async fn verified(
        &self,
        request: SubscriptionRequest,
        admission: Admission,
    ) -> Result<(), PublishError> {
        let limits = self.0.room.limits();
        let lease = grant(request.lease, limits.least_lease, limits.longest_lease);
        let host = request.callback.host_str().unwrap_or_default();
        let mode = request.mode.as_str();
        let asks = self.ask(&request, (request.mode == Mode::Subscribe).then_some(lease));
        let asked = timeout(LONGEST_ASKED, asks).await;
        let is_meant = matches!(asked, Ok(Ok(true)));
        self.0.metrics.verified(is_meant);
        match asked {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => {
                tracing::info!(host, mode, "a subscriber does not confirm a request");
                return Ok(());
            }
            Ok(Err(error)) => {
                tracing::info!(host, mode, %error, "a subscriber cannot be asked to confirm a request");
                return Ok(());
            }
            Err(_) => {
                tracing::info!(host, mode, "a subscriber takes too long to confirm a request");
                return Ok(());
            }
        }
        let done = match request.mode {
            Mode::Subscribe => self.subscribe(&request, lease, admission).await?,
            Mode::Unsubscribe => self.unsubscribe(&request.callback).await.map(Ok)?,
        };
        match done {
            Ok(()) => tracing::info!(host, mode, "a subscriber has confirmed a request"),
            Err(full) => {
                self.0.metrics.no_room();
                let url = denial(&request.callback, &request.topic, &full.to_string());
                // The subscriber is told once. If it cannot be reached, it has no subscription all the same.
                let _ = timeout(LONGEST_ASKED, self.0.room.client().get(GetRequest::new(url))).await;
            }
        }
        Ok(())
    }

    /// Whether the callback returns the challenge.
    async fn ask(&self, request: &SubscriptionRequest, lease: Option<Duration>) -> Result<bool, WebError> {
        // 160 random bits, used once: only the server of the callback learns it.
        let challenge = format!("{:020x}{:020x}", Ulid::new().random(), Ulid::new().random());
        let url = verification(&request.callback, request.mode, &request.topic, &challenge, lease);
        let mut get = GetRequest::new(url);
        get.largest = Some(LONGEST_ANSWER);
        let mut response = self.0.room.client().get(get).await?;
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await? {
            body.extend_from_slice(&piece);
        }
        Ok(body == challenge.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verifications_are_bounded_for_each_host_and_for_all() {
        let all = Verifications::default();
        let url = |host: usize| format!("http://h{host}.test/").parse::<Url>().unwrap();
        let first: Vec<_> = (0..AT_A_TIME_PER_HOST).map(|_| all.begin(&url(0)).unwrap()).collect();
        assert!(all.begin(&url(0)).is_none());
        let rest: Vec<_> = (first.len()..AT_A_TIME).map(|host| all.begin(&url(host)).unwrap()).collect();
        assert!(all.begin(&url(1_000)).is_none());
        drop((first, rest));
        assert!(all.begin(&url(0)).is_some());
        assert!(all.0.lock().unwrap().is_empty());
    }
}
