//! Takes the requests that wait at the place of the publication: each is verified, then removed.

use std::collections::{HashMap, HashSet};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use publish::{PublishError, WaitingRequest};
use websub::SubscriptionRequest;

use super::front::{MOST_WAITING, host_mark};
use super::{FleetFront, Hub};

/// Requests that are verified at the same time, and those of one host.
const AT_A_TIME: usize = 32;
const AT_A_TIME_PER_HOST: usize = 4;
/// The pause after a failure.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(10);

impl Hub {
    /// Takes the requests that wait now, and those that come, until it is dropped.
    pub(crate) async fn take_waiting(&self, front: &FleetFront) {
        loop {
            match self.take_those_that_wait().await {
                Ok(0) => front.called().await,
                Ok(_) => {}
                Err(error) => {
                    let pause_seconds = PAUSE.as_secs();
                    tracing::error!(%error, pause_seconds, "requests to a hub cannot be taken now");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Takes some of the requests that wait, the oldest first. Returns how many.
    async fn take_those_that_wait(&self) -> Result<usize, PublishError> {
        let publication = self.0.shared.publication();
        let mut taken = Vec::new();
        let (mut callbacks, mut hosts) = (HashSet::new(), HashMap::new());
        for name in publication.waiting_requests(MOST_WAITING).await? {
            // Another process may have been faster.
            let Some(waiting) = publication.waiting_request(&name).await? else { continue };
            let WaitingRequest { form, admitted_by } = waiting;
            let request = read(&form).map(|request| (request, admitted_by));
            if let Some((request, _)) = &request {
                let of_host: &mut usize = hosts.entry(host_mark(&request.callback)).or_default();
                // A later request of the same subscriber waits for this one.
                if *of_host >= AT_A_TIME_PER_HOST || !callbacks.insert(request.callback.clone()) {
                    continue;
                }
                *of_host += 1;
            }
            taken.push((name, request));
            if taken.len() == AT_A_TIME {
                break;
            }
        }
        let count = taken.len();
        let verified = stream::iter(taken).map(Ok::<_, PublishError>);
        let verified = verified.try_for_each_concurrent(AT_A_TIME, |(name, request)| async move {
            if let Some((request, admitted_by)) = request {
                // The semaphore is never closed.
                let _turn = self.0.room.verifying().acquire().await;
                self.verified(request, admitted_by).await?;
            }
            publication.remove_waiting_request(&name).await
        });
        verified.await?;
        Ok(count)
    }
}

/// The request in a form; none if it cannot be read.
fn read(form: &str) -> Option<SubscriptionRequest> {
    let request = SubscriptionRequest::parse(form);
    request.inspect_err(|error| tracing::error!(%error, "a request to a hub cannot be read")).ok()
}
