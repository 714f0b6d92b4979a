//! What we say ourselves: that something has changed.

use jiff::Timestamp;
use serde_json::{Value, json};
use url::Url;

use crate::Activity;
use crate::terms::AS_CONTEXT;

/// The announcement of a change, as Activity Streams 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Its own name, such as `urn:uuid:…` or `urn:ulid:…`: the same whenever it is sent again.
    pub id: String,
    /// Who says so.
    pub actor: Url,
    /// What has changed.
    pub object: Url,
    /// For whom it is.
    pub target: Url,
    /// What is to be said of it to people.
    pub summary: String,
    /// When it was said.
    pub published: Timestamp,
}

impl Announcement {
    /// As JSON-LD: `Announce` of an `Update`.
    pub fn to_json(&self) -> Value {
        json!({
            "@context": AS_CONTEXT,
            "id": self.id,
            "type": Activity::Announce.name(),
            "actor": {"id": self.actor.as_str(), "type": "Service"},
            "origin": {"id": self.actor.as_str(), "type": "Service"},
            "target": {"id": self.target.as_str()},
            "object": {"type": Activity::Update.name(), "object": self.object.as_str()},
            "summary": self.summary,
            "published": self.published.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Notification};

    #[test]
    fn what_is_announced_is_read_back() {
        let url = |text: &str| Url::parse(text).unwrap();
        let said = Announcement {
            id: "urn:ulid:01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned(),
            actor: url("https://harvester.example.org/"),
            object: url("https://repo.example.org/.well-known/resourcesync"),
            target: url("https://index.example.com/"),
            summary: "12 resources stored, 1 deleted".to_owned(),
            published: "2026-03-01T12:00:00Z".parse().unwrap(),
        };
        let read = Notification::read(said.to_json().to_string().as_bytes(), &Limits::default()).unwrap();
        assert_eq!((read.id, read.activity), (Some(said.id.clone()), Some(Activity::Announce)));
        assert_eq!((read.objects, read.target), (vec![said.object.clone()], Some(said.target.to_string())));
        assert_eq!(read.origin, Some(said.actor.to_string()));
    }
}
