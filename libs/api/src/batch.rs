//! Batches: many items in one request, and the result of each.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::{Problem, Run, RunRequest, Spec};

/// The largest number of items in one batch.
pub const MOST_IN_A_BATCH: usize = 1_000;

/// Source specs to create or update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceBatch {
    /// The Sources.
    #[serde(deserialize_with = "bounded")]
    #[schema(max_items = 1000)]
    pub sources: Vec<SourceInBatch>,
}

/// A Source spec in a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceInBatch {
    /// The spec. The Source is created or updated to match it.
    pub spec: Spec,
    /// The revision that the client read; 0 means that the Source must not exist. If the current revision differs, the
    /// Source stays unchanged. Without a revision, the update is unconditional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub revision: Option<u64>,
}

/// The result for one Source of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceResult {
    /// The Source ID.
    pub source: String,
    /// What the request did.
    pub done: SourceDone,
    /// The current revision. Absent where nothing was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub revision: Option<u64>,
    /// Why the Source was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub problem: Option<Problem>,
}

/// What a batch did with a Source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceDone {
    /// The Source was added, or would be in a dry run.
    Created,
    /// The Source was changed, or would be in a dry run.
    Changed,
    /// The stored spec already matches.
    Unchanged,
    /// The Source was refused and stays unchanged.
    Refused,
}

/// Sources for which to request a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunBatch {
    /// The Source IDs.
    #[serde(deserialize_with = "bounded")]
    #[schema(max_items = 1000)]
    pub sources: Vec<String>,
    /// The run request, the same for every Source.
    #[serde(default)]
    pub submit: RunRequest,
}

/// The result of a run request for one Source of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunResult {
    /// The Source ID.
    pub source: String,
    /// The requested run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub run: Option<Run>,
    /// Why no run was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub problem: Option<Problem>,
}

/// Deserializes at most as many items as a batch may have. Items beyond that take no memory.
fn bounded<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct Bounded<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MOST_IN_A_BATCH} items")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            let mut all = Vec::new();
            while let Some(item) = items.next_element()? {
                if all.len() == MOST_IN_A_BATCH {
                    let said =
                        format!("a batch has at most {MOST_IN_A_BATCH} items; send the rest in another one");
                    return Err(A::Error::custom(said));
                }
                all.push(item);
            }
            Ok(all)
        }
    }

    deserializer.deserialize_seq(Bounded(PhantomData))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_batch_has_a_bounded_number_of_items() {
        let of = |count: usize| {
            serde_json::from_value::<RunBatch>(json!({"sources": vec!["a-1"; count]}))
                .map_err(|error| error.to_string())
        };
        assert_eq!(of(MOST_IN_A_BATCH).unwrap().sources.len(), MOST_IN_A_BATCH);
        assert!(of(MOST_IN_A_BATCH + 1).unwrap_err().contains("at most 1000"));
    }

    #[test]
    fn a_source_of_a_batch_is_read_like_a_single_one() {
        let batch = json!({"sources": [{"spec": {"entry": "https://example.org/"}, "revision": 0}]});
        let read: SourceBatch = serde_json::from_value(batch).unwrap();
        assert_eq!((read.sources[0].revision, read.sources[0].spec.enabled), (Some(0), true));
        let misspelt = json!({"sources": [{"spec": {"entry": "https://example.org/"}, "revison": 0}]});
        assert!(serde_json::from_value::<SourceBatch>(misspelt).is_err());
    }
}
