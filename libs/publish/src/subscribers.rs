//! Subscribers of the publisher's own hub (WebSub), each in a small file at the place.

use fixity::Sha256;
use jiff::Timestamp;
use secrets::Secret;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

use crate::place::{About, OWN};
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

impl Publication {
    /// At most so many subscribers.
    ///
    /// # Errors
    /// When the place fails, or a file is not as it was written.
    pub async fn subscribers(&self, most: usize) -> Result<Vec<Subscriber>, PublishError> {
        let mut all = Vec::new();
        for path in self.place.list(&folder(), most).await? {
            // It may have ended meanwhile.
            let Some(bytes) = self.place.read(&path).await? else { continue };
            all.push(serde_json::from_slice(&bytes).map_err(|error| PublishError::changed(&path, error))?);
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

    /// Writes a subscriber.
    ///
    /// # Errors
    /// When the place fails.
    pub async fn put_subscriber(&self, subscriber: &Subscriber) -> Result<(), PublishError> {
        let path = path(&subscriber.callback);
        let json = serde_json::to_vec(subscriber).map_err(|error| PublishError::place(&path, error))?;
        let about = About { is_private: true, ..About::default() };
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
    use super::*;

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
