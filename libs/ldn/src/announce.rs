//! What we say ourselves: that something has changed (LDN-3).

use jiff::Timestamp;
use serde_json::{Value, json};
use url::Url;

use crate::Activity;
use crate::terms::AS_CONTEXT;

/// The announcement of a change, as Activity Streams 2. The same change is the same text, whenever it is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Its own name, such as `urn:uuid:…`: the same whenever it is sent again.
    pub id: String,
    /// Who says so, where that has a name.
    pub actor: Option<Url>,
    /// What has changed.
    pub object: Url,
    /// For whom it is.
    pub target: Url,
    /// How many of its parts were created or changed.
    pub stored: u64,
    /// How many of its parts were deleted.
    pub deleted: u64,
    /// When the change began.
    pub from: Timestamp,
    /// When it was over; that is when it is said.
    pub until: Timestamp,
}

impl Announcement {
    /// As JSON-LD: `Announce` of an `Update`, whose results are two collections of so many things that nobody has to fetch.
    pub fn to_json(&self) -> Value {
        let (stored, deleted) = (self.stored, self.deleted);
        let mut said = json!({
            "@context": AS_CONTEXT,
            "id": self.id,
            "type": Activity::Announce.name(),
            "target": {"id": self.target.as_str()},
            "object": {
                "type": Activity::Update.name(),
                "object": self.object.as_str(),
                "startTime": self.from.to_string(),
                "endTime": self.until.to_string(),
                "result": [
                    {"type": "Collection", "name": "stored", "totalItems": stored},
                    {"type": "Collection", "name": "deleted", "totalItems": deleted},
                ],
            },
            "summary": format!("{stored} stored, {deleted} deleted"),
            "published": self.until.to_string(),
        });
        if let Some(actor) = &self.actor {
            let actor = json!({"id": actor.as_str(), "type": "Service"});
            // Receivers of COAR Notify look there.
            said["origin"] = actor.clone();
            said["actor"] = actor;
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Notification};

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn said(actor: Option<Url>) -> Announcement {
        Announcement {
            id: "urn:uuid:6ba7b810-9dad-81d1-80b4-00c04fd430c8".to_owned(),
            actor,
            object: url("https://repo.example.org/.well-known/resourcesync"),
            target: url("https://index.example.com/"),
            stored: 12,
            deleted: 1,
            from: "2026-03-01T12:00:00Z".parse().unwrap(),
            until: "2026-03-01T12:00:05Z".parse().unwrap(),
        }
    }

    fn read(said: &Announcement) -> Notification {
        Notification::read(said.to_json().to_string().as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn what_is_announced_is_read_back() {
        let said = said(Some(url("https://harvester.example.org/")));
        let read = read(&said);
        assert_eq!((read.id.as_ref(), read.activity), (Some(&said.id), Some(Activity::Announce)));
        // What came of the activity is nothing that it is about.
        assert_eq!(
            (&read.objects, &read.target),
            (&vec![said.object.clone()], &Some(said.target.to_string()))
        );
        assert_eq!(
            (read.actor.clone(), read.origin.clone()),
            (read.origin.clone(), said.actor.as_ref().map(Url::to_string))
        );
        assert!(read.is_about(&url("https://repo.example.org/")));
    }

    #[test]
    fn who_has_no_name_says_so_without_one() {
        let read = read(&said(None));
        assert_eq!((read.actor.as_ref(), read.origin.as_ref(), read.speaks_from()), (None, None, None));
        assert_eq!(read.activity, Some(Activity::Announce));
    }

    #[test]
    fn counts_and_times_are_those_of_activity_streams() {
        let body = said(None).to_json();
        let update = &body["object"];
        assert_eq!(
            (&update["startTime"], &update["endTime"]),
            (&json!("2026-03-01T12:00:00Z"), &json!("2026-03-01T12:00:05Z"))
        );
        let counts: Vec<_> = update["result"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| (&part["name"], &part["totalItems"]))
            .collect();
        assert_eq!(counts, [(&json!("stored"), &json!(12)), (&json!("deleted"), &json!(1))]);
        assert_eq!(body["published"], update["endTime"]);
    }
}
