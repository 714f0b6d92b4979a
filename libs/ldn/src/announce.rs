//! Our own notifications: a change of a Source (LDN-3).

use jiff::Timestamp;
use serde_json::{Value, json};
use url::Url;

use crate::Activity;
use crate::terms::AS_CONTEXT;

/// The announcement of a change, as Activity Streams 2. The same change gives the same text, whenever it is
/// sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Its id, such as `urn:uuid:…`: the same whenever it is sent again.
    pub id: String,
    /// The announcing system, if it has a name.
    pub actor: Option<Url>,
    /// The changed object.
    pub object: Url,
    /// The recipient.
    pub target: Url,
    /// Number of its parts that were created or changed.
    pub stored: u64,
    /// Number of its parts that were deleted.
    pub deleted: u64,
    /// When the change began.
    pub from: Timestamp,
    /// When it ended, which is also the time of the announcement.
    pub until: Timestamp,
}

impl Announcement {
    /// As JSON-LD: `Announce` of an `Update`, whose results are two collections with their sizes. A receiver
    /// need not fetch them.
    pub fn to_json(&self) -> Value {
        let stored = self.stored;
        let deleted = self.deleted;
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
            // Receivers of COAR Notify read this property.
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
        // The result of the activity is no object of it.
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
