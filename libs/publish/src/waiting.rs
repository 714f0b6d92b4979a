//! Requests to the publisher's own hub that wait for the process that has it, each in a small file at the place.

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

/// Without the form, which has a secret.
impl std::fmt::Debug for WaitingRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WaitingRequest").field("admission", &self.admission).finish_non_exhaustive()
    }
}

impl Publication {
    /// The names of at most so many requests that wait, in order.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn waiting_requests(&self, most: usize) -> Result<Vec<String>, PublishError> {
        let begin = format!("{}/", folder());
        let paths = self.place.list(&folder(), most).await?.into_iter();
        let name = |path: String| Some(path.strip_prefix(&begin)?.strip_suffix(".json")?.to_owned());
        let mut names: Vec<String> = paths.filter_map(name).collect();
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

    /// Writes a request that waits. Requests are taken in the order of their names: letters, digits and `-`.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn put_waiting_request(
        &self,
        name: &str,
        request: &WaitingRequest,
    ) -> Result<(), PublishError> {
        let path = path(name);
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
            publication.put_waiting_request(name, &request).await.unwrap();
        }
        assert_eq!(publication.waiting_requests(9).await.unwrap(), ["a-2", "b-1", "c-3"]);
        assert_eq!(publication.waiting_requests(2).await.unwrap().len(), 2);
        assert_eq!(publication.waiting_request("b-1").await.unwrap(), Some(request));
        publication.remove_waiting_request("b-1").await.unwrap();
        publication.remove_waiting_request("b-1").await.unwrap();
        assert_eq!(publication.waiting_request("b-1").await.unwrap(), None);
        assert_eq!(publication.waiting_requests(9).await.unwrap(), ["a-2", "c-3"]);
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
