//! Requests to the publisher's own hub that wait for the process that has it, each in a small file at the place.

use futures::TryStreamExt as _;
use serde::{Deserialize, Serialize};

use crate::place::{About, OWN, lasting};
use crate::{Admission, Publication, PublishError};

/// A request to the hub that waits.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingRequest {
    /// The body of the request (WebSub, 5.1). It has the secret of the subscriber.
    pub form: String,
    /// What the sender was admitted by.
    #[serde(flatten)]
    pub admission: Admission,
}

/// Who sent a request. Those of subscribers wait in a folder of their own, so that strangers take no place of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requester {
    /// The callback is not known.
    Stranger,
    /// The callback is that of a subscriber, who renews or ends the subscription.
    Subscriber,
}

/// How the names of requests of subscribers begin: with their folder.
const OF_SUBSCRIBERS: &str = "subscribers/";

/// Without the form, which has a secret.
impl std::fmt::Debug for WaitingRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitingRequest").field("admission", &self.admission).finish_non_exhaustive()
    }
}

impl Publication {
    /// The names of at most so many requests that wait, in order: of strangers, of subscribers, or of all.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn waiting_requests(
        &self,
        from: Option<Requester>,
        most: usize,
    ) -> Result<Vec<String>, PublishError> {
        let begin = format!("{}/", folder());
        let is_asked_for = |name: &String| {
            from.is_none_or(|from| name.starts_with(OF_SUBSCRIBERS) == (from == Requester::Subscriber))
        };
        let below = match from {
            Some(Requester::Subscriber) => format!("{}/{}", folder(), OF_SUBSCRIBERS.trim_end_matches('/')),
            Some(Requester::Stranger) | None => folder(),
        };
        let mut paths = self.place.paths(&below);
        let mut names = Vec::new();
        while names.len() < most
            && let Some(path) = paths.try_next().await?
        {
            let name =
                path.strip_prefix(&begin).and_then(|path| path.strip_suffix(".json")).map(str::to_owned);
            names.extend(name.filter(is_asked_for));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// A request that waits. None if it was removed meanwhile.
    ///
    /// # Errors
    /// When the place fails, or the file is not as it was written ([`PublishError::Waiting`]). That file is removed.
    pub async fn waiting_request(&self, name: &str) -> Result<Option<WaitingRequest>, PublishError> {
        let path = path(name);
        let Some(bytes) = self.place.read(&path).await? else { return Ok(None) };
        match serde_json::from_slice(&bytes) {
            Ok(request) => Ok(Some(request)),
            Err(error) => {
                // Read again and again, it would hold up what waits behind it.
                self.place.remove(&path).await?;
                // The message of the parser could quote a secret.
                Err(PublishError::Waiting { at: path, line: error.line(), column: error.column() })
            }
        }
    }

    /// Writes a request that waits. Those of strangers, and those of subscribers, are taken in the order of their
    /// names: letters, digits and `-`.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn put_waiting_request(
        &self,
        from: Requester,
        name: &str,
        request: &WaitingRequest,
    ) -> Result<(), PublishError> {
        let path = match from {
            Requester::Stranger => path(name),
            Requester::Subscriber => path(&format!("{OF_SUBSCRIBERS}{name}")),
        };
        let json = serde_json::to_vec(request).map_err(|error| PublishError::place(&path, error))?;
        let about = About { is_private: true, ..lasting() };
        self.place.put(&path, json.into(), &about).await
    }

    /// Removes a request that waits; a missing one is no error.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn remove_waiting_request(&self, name: &str) -> Result<(), PublishError> {
        self.place.remove(&path(name)).await
    }
}

fn folder() -> String {
    format!("{OWN}/waiting")
}

fn path(name: &str) -> String {
    format!("{}/{name}.json", folder())
}

#[cfg(test)]
mod tests {
    use store::{SourceMarker, Store};

    use super::*;
    use crate::{Base, Place};

    fn publication() -> Publication {
        let source = "one".parse().unwrap();
        Publication::of_documents(
            Place::of(Store::in_memory().publication(&source)).unwrap(),
            Base::new("http://mirror.example/".parse().unwrap()).unwrap(),
            SourceMarker::new(source, "http://one.example/"),
        )
    }

    #[tokio::test]
    async fn requests_wait_in_order_and_show_no_secret() {
        let publication = publication();
        let request =
            WaitingRequest { form: "hub.secret=hunter2".to_owned(), admission: Admission::default() };
        assert!(!format!("{request:?}").contains("hunter2"));
        for name in ["b-1", "a-2", "c-3"] {
            publication.put_waiting_request(Requester::Stranger, name, &request).await.unwrap();
        }
        let names = async |most: usize| publication.waiting_requests(None, most).await.unwrap();
        assert_eq!(names(9).await, ["a-2", "b-1", "c-3"]);
        assert_eq!(names(2).await.len(), 2);
        assert_eq!(publication.waiting_request("b-1").await.unwrap(), Some(request));
        publication.remove_waiting_request("b-1").await.unwrap();
        publication.remove_waiting_request("b-1").await.unwrap();
        assert_eq!(publication.waiting_request("b-1").await.unwrap(), None);
        assert_eq!(names(9).await, ["a-2", "c-3"]);
    }

    #[tokio::test]
    async fn requests_of_subscribers_wait_beside_those_of_strangers() {
        let publication = publication();
        let request = WaitingRequest { form: "hub.mode=none".to_owned(), admission: Admission::default() };
        for (from, name) in [
            (Requester::Subscriber, "b-1"),
            (Requester::Stranger, "a-2"),
            (Requester::Stranger, "z-4"),
            (Requester::Subscriber, "a-3"),
        ] {
            publication.put_waiting_request(from, name, &request).await.unwrap();
        }
        let names = async |from: Option<Requester>, most: usize| {
            publication.waiting_requests(from, most).await.unwrap()
        };
        let (strangers, subscribers) = (["a-2", "z-4"], ["subscribers/a-3", "subscribers/b-1"]);
        // Others take no place in the count.
        assert_eq!(names(Some(Requester::Stranger), 2).await, strangers);
        assert_eq!(names(Some(Requester::Subscriber), 2).await, subscribers);
        assert_eq!(names(None, 9).await, ["a-2", "subscribers/a-3", "subscribers/b-1", "z-4"]);
        for name in subscribers {
            assert_eq!(publication.waiting_request(name).await.unwrap().as_ref(), Some(&request));
            publication.remove_waiting_request(name).await.unwrap();
        }
        assert_eq!(names(None, 9).await, strangers);
    }

    #[tokio::test]
    async fn a_request_that_cannot_be_read_is_told_once_and_removed() {
        let publication = publication();
        let about = About { is_private: true, ..About::default() };
        publication.place.put(&path("a-1"), (&br#""hub.secret=hunter2""#[..]).into(), &about).await.unwrap();
        let error = publication.waiting_request("a-1").await.unwrap_err();
        assert!(matches!(error, PublishError::Waiting { line: 1, .. }), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert_eq!(publication.waiting_request("a-1").await.unwrap(), None);
    }
}
