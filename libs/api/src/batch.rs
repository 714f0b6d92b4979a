//! Many at once: what is sent, and what became of each.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::{Problem, Run, Submit, Wanted};

/// The most items of one batch.
pub const MOST_IN_A_BATCH: usize = 1_000;

/// Sources that are wanted, with what is wanted of each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceBatch {
    /// The Sources.
    #[serde(deserialize_with = "bounded")]
    #[schema(max_items = 1000)]
    pub sources: Vec<SourceInBatch>,
}

/// A Source that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceInBatch {
    /// What is wanted of it. It is added, or changed to this.
    pub wanted: Wanted,
    /// The revision that was read; 0: that there is no such Source. Where it is another by now, the Source is left as it is. Without, whatever is
    /// there is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub revision: Option<u64>,
}

/// What became of a Source of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceResult {
    /// Its name.
    pub source: String,
    /// What became of it.
    pub done: SourceDone,
    /// Which writing of it there is now. Absent where nothing was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub revision: Option<u64>,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub problem: Option<Problem>,
}

/// What became of a Source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceDone {
    /// It was added, or would be.
    Created,
    /// It was changed, or would be.
    Changed,
    /// It was so already.
    Unchanged,
    /// It was left as it is.
    Refused,
}

/// Sources of which a run is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunBatch {
    /// The names of the Sources.
    #[serde(deserialize_with = "bounded")]
    #[schema(max_items = 1000)]
    pub sources: Vec<String>,
    /// What is asked for, of each the same.
    #[serde(default)]
    pub submit: Submit,
}

/// Whether a run of a Source of a batch is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunResult {
    /// The name of the Source.
    pub source: String,
    /// The run that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub run: Option<Run>,
    /// Why none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub problem: Option<Problem>,
}

/// Reads no more items than a batch may have: what is beyond takes no memory.
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
    fn a_source_of_a_batch_is_wanted_as_one_by_itself() {
        let batch = json!({"sources": [{"wanted": {"entry": "https://example.org/"}, "revision": 0}]});
        let read: SourceBatch = serde_json::from_value(batch).unwrap();
        assert_eq!((read.sources[0].revision, read.sources[0].wanted.enabled), (Some(0), true));
        let misspelt = json!({"sources": [{"wanted": {"entry": "https://example.org/"}, "revison": 0}]});
        assert!(serde_json::from_value::<SourceBatch>(misspelt).is_err());
    }
}
