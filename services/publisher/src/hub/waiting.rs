//! Takes the requests that wait at the place of the publication: each is verified, then removed.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use publish::{PublishError, Requester, WaitingRequest};
use websub::SubscriptionRequest;

use super::front::MOST_WAITING;
use super::{FleetFront, Hub};

/// Requests of strangers that are verified at the same time, those of one host, and as many of subscribers.
const AT_A_TIME: usize = 32;
const AT_A_TIME_PER_HOST: usize = 4;
/// The pause after a failure.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(10);

impl Hub {
    /// Takes the requests that wait now, and those that come, until it is dropped. Those of subscribers do not wait for
    /// strangers, who may let each request take its full time.
    pub(crate) async fn take_waiting(&self, front: &FleetFront) {
        let strangers = self.take_waiting_of(Requester::Stranger, front);
        tokio::join!(strangers, self.take_waiting_of(Requester::Subscriber, front));
    }

    async fn take_waiting_of(&self, from: Requester, front: &FleetFront) {
        let mut calls = front.calls();
        loop {
            calls.mark_unchanged();
            self.0.taking.fetch_add(1, Ordering::Relaxed);
            let taken = self.take_those_that_wait(from).await;
            self.0.taking.fetch_sub(1, Ordering::Relaxed);
            match taken {
                // The front stays as long as its hub.
                Ok(0) => calls.changed().await.unwrap_or_default(),
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
    async fn take_those_that_wait(&self, from: Requester) -> Result<usize, PublishError> {
        let publication = self.0.shared.publication();
        let names = chosen(publication.waiting_requests(Some(from), MOST_WAITING).await?);
        let count = names.len();
        let taken = stream::iter(names).map(Ok::<_, PublishError>);
        let take = async |name: String| self.take_one(from, &name).await;
        taken.try_for_each_concurrent(AT_A_TIME, take).await?;
        Ok(count)
    }

    /// Takes one request. It is read in its turn: so many are in memory, of all hubs.
    async fn take_one(&self, from: Requester, name: &str) -> Result<(), PublishError> {
        let publication = self.0.shared.publication();
        // The semaphore is never closed.
        let _turn = self.0.room.verifying(from).acquire().await;
        let WaitingRequest { form, admission } = match publication.waiting_request(name).await {
            Ok(Some(waiting)) => waiting,
            // Another process was faster.
            Ok(None) => return Ok(()),
            Err(error @ PublishError::Waiting { .. }) => {
                tracing::error!(%error, "a request to a hub cannot be read");
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if let Some(request) = read(&form) {
            drop(form);
            self.verified(request, admission).await?;
        }
        publication.remove_waiting_request(name).await
    }
}

/// Those that are verified at the same time: the oldest, a few of each host. A later request of the same subscriber
/// waits for its earlier one.
fn chosen(names: Vec<String>) -> Vec<String> {
    let (mut subscribers, mut hosts) = (HashSet::new(), HashMap::new());
    let mut chosen = Vec::new();
    for name in names {
        // A time, then the marks of the callback and of its host. Earlier versions gave that of the host alone.
        let (_, subscriber) = name.split_once('-').unwrap_or_default();
        let host = subscriber.rsplit('-').next().unwrap_or_default();
        let of_host: &mut usize = hosts.entry(host.to_owned()).or_default();
        if *of_host >= AT_A_TIME_PER_HOST || !subscribers.insert(subscriber.to_owned()) {
            continue;
        }
        *of_host += 1;
        chosen.push(name);
        if chosen.len() == AT_A_TIME {
            break;
        }
    }
    chosen
}

/// The request in a form; none if it cannot be read.
fn read(form: &str) -> Option<SubscriptionRequest> {
    let request = SubscriptionRequest::parse(form);
    request.inspect_err(|error| tracing::error!(%error, "a request to a hub cannot be read")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::testing::Case;

    #[tokio::test]
    async fn a_request_that_cannot_be_read_holds_up_no_other() {
        let case = Case::new().await;
        let publication = case.shared().publication();
        let (bad, good) = ("001-c1-h1", "002-c2-h2");
        case.put_object(&format!(".thresher/waiting/{bad}.json"), "no request").await;
        let left =
            WaitingRequest { form: "hub.mode=none".to_owned(), admission: publish::Admission::default() };
        publication.put_waiting_request(Requester::Stranger, good, &left).await.unwrap();
        assert_eq!(case.hub.take_those_that_wait(Requester::Stranger).await.unwrap(), 2);
        assert!(publication.waiting_requests(None, 9).await.unwrap().is_empty());
    }

    #[test]
    fn requests_are_chosen_by_their_names_a_few_of_each_host_and_one_of_each_subscriber() {
        let name = |time: usize, callback: usize, host: usize| format!("{time:03}-c{callback}-h{host}");
        let mut names: Vec<String> = (0..10).map(|time| name(time, time, 0)).collect();
        names.extend([
            name(10, 50, 1),
            name(11, 50, 1),
            name(12, 51, 1),
            "013-h2".to_owned(),
            "014-h2".to_owned(),
        ]);
        let first: Vec<String> = (0..4).map(|time| name(time, time, 0)).collect();
        let rest = [name(10, 50, 1), name(12, 51, 1), "013-h2".to_owned()];
        assert_eq!(chosen(names), [first, rest.to_vec()].concat());
        let many = (0..100).map(|time| name(time, time, time)).collect();
        assert_eq!(chosen(many).len(), AT_A_TIME);
    }
}
