//! Subscribers of the publisher's own hub (WebSub), each in a small file at the place.

use fixity::Sha256;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use secrets::Secret;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

use crate::place::{About, OWN, lasting};
use crate::{Admission, Publication, PublishError};

/// A subscriber, and how far it was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscriber {
    /// Where it takes deliveries.
    pub callback: Url,
    /// The secret that signs them.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "expose",
        deserialize_with = "hide"
    )]
    pub secret: Option<Secret>,
    /// The end of its lease.
    pub lease_until: Timestamp,
    /// Until when it was told of changes.
    pub told: Timestamp,
    /// Since when each delivery failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    /// What it was admitted by.
    #[serde(flatten)]
    pub admission: Admission,
}

/// Subscribers that are read at the same time.
const AT_A_TIME: usize = 32;

/// The subscribers of a publication.
#[derive(Debug, Default)]
pub struct Subscribers {
    /// Those that can be read.
    pub known: Vec<Subscriber>,
    /// What is wrong with the files of the others ([`PublishError::Subscriber`]).
    pub unreadable: Vec<PublishError>,
}

impl Publication {
    /// At most so many subscribers. A file that is not as it was written keeps no other from being read.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn subscribers(&self, most: usize) -> Result<Subscribers, PublishError> {
        let paths = self.place.list(&folder(), most).await?;
        let read = async |path: String| {
            let bytes = self.place.read(&path).await?;
            Ok::<_, PublishError>(bytes.map(|bytes| parse(&path, &bytes)))
        };
        let mut files = stream::iter(paths).map(read).buffer_unordered(AT_A_TIME);
        let mut all = Subscribers::default();
        while let Some(file) = files.try_next().await? {
            match file {
                Some(Ok(subscriber)) => all.known.push(subscriber),
                Some(Err(error)) => all.unreadable.push(error),
                // It has ended meanwhile.
                None => {}
            }
        }
        Ok(all)
    }

    /// Whether there is any subscriber.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn has_subscribers(&self) -> Result<bool, PublishError> {
        Ok(!self.place.list(&folder(), 1).await?.is_empty())
    }

    /// Whether a callback is that of a subscriber. It takes one request.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn is_subscriber(&self, callback: &Url) -> Result<bool, PublishError> {
        Ok(self.place.head(&path(callback)).await?.is_some())
    }

    /// Writes a subscriber.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn put_subscriber(&self, subscriber: &Subscriber) -> Result<(), PublishError> {
        let path = path(&subscriber.callback);
        let json = serde_json::to_vec(subscriber).map_err(|error| PublishError::place(&path, error))?;
        let about = About { is_private: true, ..lasting() };
        self.place.put(&path, json.into(), &about).await
    }

    /// Removes the subscriber with this callback; a missing one is no error.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn remove_subscriber(&self, callback: &Url) -> Result<(), PublishError> {
        self.place.remove(&path(callback)).await
    }
}

fn parse(path: &str, bytes: &[u8]) -> Result<Subscriber, PublishError> {
    // The message of the parser could quote a secret.
    serde_json::from_slice(bytes).map_err(|error| PublishError::Subscriber {
        at: path.to_owned(),
        line: error.line(),
        column: error.column(),
    })
}

fn folder() -> String {
    format!("{OWN}/subscribers")
}

fn path(callback: &Url) -> String {
    format!("{}/{}.json", folder(), Sha256::of(callback.as_str().as_bytes()))
}

/// The file is for the publisher alone.
fn expose<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(serializer)
}

fn hide<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.map(Secret::new))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use object_store::ObjectStore;
    use object_store::memory::InMemory;
    use object_store::throttle::{ThrottleConfig, ThrottledStore};
    use store::SourceMarker;
    use tokio::time::Instant;

    use super::*;
    use crate::{Base, Place};

    fn publication(objects: Arc<dyn ObjectStore>) -> Publication {
        Publication::of_documents(
            Place::bucket("memory", objects),
            Base::new("http://mirror.example/".parse().unwrap()).unwrap(),
            SourceMarker::new("one".parse().unwrap(), "http://one.example/"),
        )
    }

    fn numbered(number: usize) -> Subscriber {
        Subscriber {
            callback: format!("http://c.test/{number}").parse().unwrap(),
            secret: Some(Secret::new("hunter2")),
            lease_until: Timestamp::MAX,
            told: Timestamp::UNIX_EPOCH,
            failing_since: None,
            admission: Admission::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_subscribers_are_read_at_the_same_time() {
        let latency = Duration::from_millis(20);
        let config = ThrottleConfig { wait_get_per_call: latency, ..ThrottleConfig::default() };
        let publication = publication(Arc::new(ThrottledStore::new(InMemory::new(), config)));
        for number in 0..320 {
            publication.put_subscriber(&numbered(number)).await.unwrap();
        }
        let begun = Instant::now();
        assert_eq!(publication.subscribers(1_000).await.unwrap().known.len(), 320);
        // Ten waves, and a part of one more for those that end late.
        assert!(begun.elapsed() <= 11 * latency, "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn a_bad_file_is_named_without_its_content_and_leaves_the_others() {
        let publication = publication(Arc::new(InMemory::new()));
        for number in 0..3 {
            publication.put_subscriber(&numbered(number)).await.unwrap();
        }
        let bad = path(&numbered(1).callback);
        publication.place.put(&bad, "{\"secret\":hunter2".into(), &About::default()).await.unwrap();
        let all = publication.subscribers(1_000).await.unwrap();
        assert_eq!(all.known.len(), 2);
        let [error] = &all.unreadable[..] else { panic!("{:?}", all.unreadable) };
        let said = error.to_string();
        assert!(said.contains(&bad) && !said.contains("hunter2"), "{said}");
    }

    #[tokio::test]
    async fn a_callback_is_known_from_its_file() {
        let publication = publication(Arc::new(InMemory::new()));
        publication.put_subscriber(&numbered(1)).await.unwrap();
        assert!(publication.is_subscriber(&numbered(1).callback).await.unwrap());
        assert!(!publication.is_subscriber(&numbered(2).callback).await.unwrap());
        publication.remove_subscriber(&numbered(1).callback).await.unwrap();
        assert!(!publication.is_subscriber(&numbered(1).callback).await.unwrap());
    }

    #[test]
    fn a_subscriber_is_read_as_it_was_written_and_shows_no_secret() {
        let subscriber = Subscriber {
            callback: "http://c.test/x?a=1".parse().unwrap(),
            secret: Some(Secret::new("hunter2")),
            lease_until: "2026-01-05T08:00:00Z".parse().unwrap(),
            told: "2026-01-04T08:00:00.000002Z".parse().unwrap(),
            failing_since: None,
            admission: Admission::default(),
        };
        assert!(!format!("{subscriber:?}").contains("hunter2"));
        let json = serde_json::to_string(&subscriber).unwrap();
        assert_eq!(
            json,
            r#"{"callback":"http://c.test/x?a=1","secret":"hunter2","lease_until":"2026-01-05T08:00:00Z","told":"2026-01-04T08:00:00.000002Z"}"#
        );
        assert_eq!(serde_json::from_str::<Subscriber>(&json).unwrap(), subscriber);
        let bare = Subscriber { secret: None, ..subscriber };
        let json = serde_json::to_string(&bare).unwrap();
        assert!(!json.contains("secret"));
        assert_eq!(serde_json::from_str::<Subscriber>(&json).unwrap(), bare);
        let admission = Admission { readers: "tokens".to_owned(), token: "0a1b".to_owned() };
        let admitted = Subscriber { admission, ..bare };
        let json = serde_json::to_string(&admitted).unwrap();
        assert!(json.ends_with(r#","admitted_by":"tokens","token":"0a1b"}"#), "{json}");
        assert_eq!(serde_json::from_str::<Subscriber>(&json).unwrap(), admitted);
    }
}
