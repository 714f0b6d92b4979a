//! What of a spec a run depends on.

use std::collections::BTreeMap;

use model::Publish;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::spec::Spec;

/// Bytes of a digest: few enough that every reader of JSON keeps the number exactly.
const BYTES: usize = 6;

/// Identifies what of a spec a run depends on. A Source that is renamed, labelled, paused or given another schedule
/// keeps it, so that the results of its last run still hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpecDigest(u64);

impl Spec {
    /// The digest of what a run depends on. A new field counts, unless it is named here.
    pub fn run_digest(&self) -> SpecDigest {
        let of_runs = Spec {
            name: None,
            title: None,
            labels: BTreeMap::new(),
            notes: None,
            source_contact: None,
            enabled: true,
            schedule: None,
            follow: None,
            notify: Vec::new(),
            publish: Publish::Off,
            publish_networks: Vec::new(),
            publish_archive: None,
            publish_sets: Vec::new(),
            ..self.clone()
        };
        // A spec is serialized to be stored at all; without its bytes, no two specs are the same.
        let json = serde_json::to_vec(&of_runs).unwrap_or_default();
        let digest = Sha256::digest(&json);
        SpecDigest(digest.iter().take(BYTES).fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;

    fn spec(json: serde_json::Value) -> Spec {
        let mut all = serde_json::json!({"entry": "https://example.org/"});
        all.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn names_labels_and_schedules_keep_it_and_what_a_run_does_changes_it() {
        let plain = spec(serde_json::json!({}));
        let other = Spec {
            schedule: Some(Schedule::every(60)),
            ..spec(
                serde_json::json!({"name": "zenodo", "labels": {"country": "jp"}, "enabled": false, "publish": "public", "publish_archive": "1y"}),
            )
        };
        assert_eq!(plain.run_digest(), other.run_digest());
        for change in [
            serde_json::json!({"include": "a"}),
            serde_json::json!({"entry": "https://example.org/2"}),
            serde_json::json!({"strict": true}),
            serde_json::json!({"credential": "c"}),
        ] {
            assert_ne!(plain.run_digest(), spec(change.clone()).run_digest(), "{change}");
        }
    }
}
