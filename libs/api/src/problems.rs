//! Open and ignored problems of a Source.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use jiff::Timestamp;
use model::{Evidence, Ignored, ProblemReason, ProblemRecord, Subject};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema::{kind, reason};

/// A recorded failure.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SourceProblem {
    /// The kind of subject.
    #[schema(schema_with = kind)]
    pub kind: Cow<'static, str>,
    /// The URI of the subject. For an entry, its position in the document; for a message, its ID.
    pub uri: String,
    /// The reason of the failure.
    #[schema(schema_with = reason)]
    pub reason: ProblemReason,
    /// What happened and what to do, in words.
    pub message: String,
    /// When the problem was first seen.
    pub first_seen: Timestamp,
    /// When the problem was last seen.
    pub last_seen: Timestamp,
    /// Attempts made, in all runs together.
    pub attempts: u32,
    /// Whether another attempt may succeed.
    pub retryable: bool,
    /// No retry happens before this time, because the server asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub next_attempt_at: Option<Timestamp>,
    /// The operator's action to ignore the problem, with `note` and `at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, String>, required = false)]
    pub ignored: Option<Ignored>,
    /// The evidence that was recorded.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub evidence: Evidence,
}

/// All problems of one reason and one kind of subject.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProblemGroup {
    /// The reason of the failures.
    #[schema(schema_with = reason)]
    pub reason: ProblemReason,
    /// The kind of subject.
    #[schema(schema_with = kind)]
    pub kind: Cow<'static, str>,
    /// How many problems there are.
    pub count: u64,
    /// When the earliest problem was first seen.
    pub first_seen: Timestamp,
    /// When the latest problem was last seen.
    pub last_seen: Timestamp,
    /// The URI of one of the problems.
    pub example: String,
}

impl SourceProblem {
    /// Builds the API form of a recorded problem.
    pub fn new(subject: &Subject, record: ProblemRecord) -> Self {
        Self {
            kind: subject.kind().into(),
            uri: subject.uri().to_owned(),
            reason: record.reason,
            message: record.message,
            first_seen: record.first_seen,
            last_seen: record.last_seen,
            attempts: record.attempts,
            retryable: record.retry,
            next_attempt_at: record.next_attempt_at,
            ignored: record.ignored,
            evidence: record.evidence,
        }
    }
}

/// Problems counted by reason and kind of subject. The number of groups stays small, however many problems there are.
#[derive(Debug, Clone, Default)]
pub struct ProblemGroups(BTreeMap<(ProblemReason, Cow<'static, str>), ProblemGroup>);

impl ProblemGroups {
    /// Counts a recorded problem.
    pub fn count(&mut self, subject: &Subject, record: &ProblemRecord) {
        self.add(ProblemGroup {
            reason: record.reason,
            kind: subject.kind().into(),
            count: 1,
            first_seen: record.first_seen,
            last_seen: record.last_seen,
            example: subject.uri().to_owned(),
        });
    }

    /// Adds a group that was counted elsewhere, for example for another Source. The first example of a group stays.
    pub fn add(&mut self, more: ProblemGroup) {
        match self.0.entry((more.reason, more.kind.clone())) {
            Entry::Vacant(place) => {
                place.insert(more);
            }
            Entry::Occupied(mut group) => {
                let group = group.get_mut();
                group.count += more.count;
                group.first_seen = group.first_seen.min(more.first_seen);
                group.last_seen = group.last_seen.max(more.last_seen);
            }
        }
    }

    /// The groups, ordered by reason, then by kind.
    pub fn into_vec(self) -> Vec<ProblemGroup> {
        self.0.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(reason: ProblemReason, second: i64) -> ProblemRecord {
        let at = Timestamp::from_second(1_700_000_000 + second).unwrap();
        ProblemRecord {
            reason,
            message: "no answer in time".to_owned(),
            first_seen: at,
            last_seen: at,
            attempts: 1,
            retry: true,
            next_attempt_at: None,
            ignored: None,
            evidence: Evidence::default(),
            declaration: None,
            listing: None,
            repair: false,
        }
    }

    #[test]
    fn problems_of_one_reason_about_one_kind_are_one_group_wherever_they_were_counted() {
        let mut here = ProblemGroups::default();
        let mut there = ProblemGroups::default();
        let (resource, document) =
            (Subject::Resource("http://h/a".to_owned()), Subject::Document("http://h/list.xml".to_owned()));
        here.count(&resource, &problem(ProblemReason::Timeout, 5));
        here.count(&document, &problem(ProblemReason::Timeout, 6));
        here.count(&resource, &problem(ProblemReason::Dns, 7));
        there.count(&Subject::Resource("http://h/b".to_owned()), &problem(ProblemReason::Timeout, 3));
        there.count(&Subject::Resource("http://h/c".to_owned()), &problem(ProblemReason::Timeout, 9));
        for group in there.into_vec() {
            here.add(group);
        }
        let groups = here.into_vec();
        let told = groups.iter().map(|group| {
            let second = |at: Timestamp| at.as_second() - 1_700_000_000;
            let seen = (second(group.first_seen), second(group.last_seen));
            (group.reason, &*group.kind, group.count, seen, &*group.example)
        });
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                (ProblemReason::Dns, "resource", 1, (7, 7), "http://h/a"),
                (ProblemReason::Timeout, "document", 1, (6, 6), "http://h/list.xml"),
                (ProblemReason::Timeout, "resource", 3, (3, 9), "http://h/a"),
            ]
        );
    }
}
