//! Pending records: work that is not done yet.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    Declaration, Listing, MementoStep, Mirror, MirrorPlan, Origin, PatchPlan, Provenance, Seq,
    StoredBitstream,
};

/// The pending work of a resource. Keyed by its URI, so a later change overwrites an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Read")]
pub struct PendingRecord {
    /// The plan's number: an outcome of an earlier plan does not settle this one.
    pub seq: Seq,
    /// The action.
    #[serde(flatten)]
    pub action: Action,
    /// What the Source declared.
    pub declaration: Declaration,
    /// The entry that caused it.
    pub listing: Listing,
    /// Attempts in this run.
    pub attempts: u32,
    /// The earliest time of the next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// A candidate that was received earlier and did not match then. If it matches the present declaration,
    /// it is verified instead of being fetched again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Box<StoredBitstream>>,
    /// The stored bytes are not to be relied on: the received ones replace them, even if they are equal.
    #[serde(rename = "mend", skip_serializing_if = "std::ops::Not::not")]
    pub repair: bool,
    /// How far its mirrors were tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<Box<MirrorPlan>>,
    /// How it may be made from the stored version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Box<PatchPlan>>,
    /// Why it is planned, and the failed attempts of this run.
    #[serde(skip_serializing_if = "Provenance::is_empty")]
    pub account: Provenance,
}

impl PendingRecord {
    /// A plan that was not attempted yet.
    pub fn new(
        seq: Seq,
        action: Action,
        declaration: Declaration,
        listing: Listing,
        account: Provenance,
    ) -> Self {
        Self {
            seq,
            action,
            declaration,
            listing,
            attempts: 0,
            next_attempt_at: None,
            candidate: None,
            repair: false,
            mirror: None,
            patch: None,
            account,
        }
    }
}

impl PendingRecord {
    /// The mirror, or the memento, that is to be requested in place of the resource's own URI.
    pub fn at_mirror(&self) -> Option<&Mirror> {
        self.mirror.as_ref()?.at.as_ref()
    }

    /// Whether the place to request is the memento of the listed version.
    pub fn is_at_memento(&self) -> bool {
        self.mirror.as_ref().is_some_and(|plan| plan.memento == MementoStep::Asked)
    }
}

/// The action for a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "action")]
pub enum Action {
    /// Fetch and verify it.
    Fetch {
        /// Its origin.
        #[serde(rename = "lane")]
        origin: Origin,
    },
    /// Remove it, as the Source did.
    Delete,
}

/// The decoded form of a record, with all fields at one level. Serde's own decoder of an enum's fields beside
/// those of a struct would first buffer everything and then decode it again, and millions of these records
/// are read.
#[derive(Deserialize)]
struct Read {
    seq: Seq,
    action: ActionName,
    #[serde(rename = "lane")]
    origin: Option<Origin>,
    #[serde(default)]
    declaration: Declaration,
    listing: Listing,
    #[serde(default)]
    attempts: u32,
    next_attempt_at: Option<Timestamp>,
    candidate: Option<Box<StoredBitstream>>,
    #[serde(rename = "mend", default)]
    repair: bool,
    mirror: Option<Box<MirrorPlan>>,
    patch: Option<Box<PatchPlan>>,
    #[serde(default)]
    account: Provenance,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ActionName {
    Fetch,
    Delete,
}

impl TryFrom<Read> for PendingRecord {
    type Error = &'static str;

    fn try_from(read: Read) -> Result<Self, Self::Error> {
        let Read { seq, action, origin, declaration, listing, attempts, .. } = read;
        let Read { next_attempt_at, candidate, repair, mirror, patch, account, .. } = read;
        let action = match (action, origin) {
            (ActionName::Fetch, Some(origin)) => Action::Fetch { origin },
            (ActionName::Fetch, None) => return Err("missing field `lane` of what is to be fetched"),
            (ActionName::Delete, _) => Action::Delete,
        };
        Ok(Self {
            seq,
            action,
            declaration,
            listing,
            attempts,
            next_attempt_at,
            candidate,
            repair,
            mirror,
            patch,
            account,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FETCH: &str = r#"{"seq":7,"action":"fetch","lane":"http://example.org:80","declaration":{"length":3},"listing":{"document":"http://example.org/l.xml","set":"http://example.org/c.xml"},"attempts":2,"mend":true}"#;

    #[test]
    fn a_record_is_read_as_it_is_written() {
        for text in [
            FETCH.to_owned(),
            FETCH.replace(r#""action":"fetch","lane":"http://example.org:80""#, r#""action":"delete""#),
        ] {
            let record: PendingRecord = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&record).unwrap(), text);
        }
    }

    #[test]
    fn a_plan_without_a_memento_is_that_of_before() {
        let plan = r#"{"begun":1}"#;
        let text = FETCH.replace(r#""mend":true"#, &format!(r#""mend":true,"mirror":{plan}"#));
        let record: PendingRecord = serde_json::from_str(&text).unwrap();
        assert!(!record.is_at_memento());
        assert_eq!(serde_json::to_string(&record).unwrap(), text);
        let asked = text.replace(plan, r#"{"begun":1,"memento":"asked"}"#);
        let record: PendingRecord = serde_json::from_str(&asked).unwrap();
        assert!(record.is_at_memento());
        assert_eq!(serde_json::to_string(&record).unwrap(), asked);
    }

    #[test]
    fn what_is_left_out_is_what_it_was_without() {
        let bare = r#"{"listing":{"document":"d","set":"s"},"seq":1,"action":"delete"}"#;
        let record: PendingRecord = serde_json::from_str(bare).unwrap();
        assert_eq!((record.attempts, record.repair, record.action), (0, false, Action::Delete));
    }

    #[test]
    fn a_fetch_without_its_origin_is_no_record() {
        let text = FETCH.replace(r#""lane":"http://example.org:80","#, "");
        let error = serde_json::from_str::<PendingRecord>(&text).unwrap_err();
        assert!(error.to_string().contains("lane"), "{error}");
    }
}
