//! Counters of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Counters of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Counters {
    /// Entries read from lists.
    pub listed: u64,
    /// Resources stored and verified.
    pub stored: u64,
    /// Those among them that replaced a damaged version, or one that differed from its record.
    #[serde(skip_serializing_if = "is_zero")]
    pub repaired: u64,
    /// Those among them whose bytes a mirror gave.
    #[serde(skip_serializing_if = "is_zero")]
    pub mirrored: u64,
    /// Those among them that patches made from the version before.
    #[serde(skip_serializing_if = "is_zero")]
    pub patched: u64,
    /// Resources whose patches were not applied: they were requested themselves.
    #[serde(skip_serializing_if = "is_zero")]
    pub patches_unused: u64,
    /// Bytes of resources that were not received, because patches made them.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_saved: u64,
    /// Resources that were already stored.
    pub unchanged: u64,
    /// Resources deleted.
    pub deleted: u64,
    /// Resources that ended as problems.
    pub failed: u64,
    /// Listed resources that were skipped, because the operator ignores their problems.
    pub ignored: u64,
    /// Entries that needed no work: a later entry superseded them, or they delete a resource that is not stored.
    #[serde(skip_serializing_if = "is_zero")]
    pub superseded: u64,
    /// Bytes of resources received.
    pub bytes: u64,
    /// Requests sent, including those for documents.
    pub requests: u64,
    /// Pending records written.
    pub planned: u64,
    /// Records of an OAI-PMH repository that were asked for as a sample, although nothing says that they changed.
    #[serde(skip_serializing_if = "is_zero")]
    pub sampled: u64,
    /// Listed entries of other sites than the Source's entry.
    #[serde(skip_serializing_if = "is_zero")]
    pub foreign: u64,
    /// Entries of other sites that were left out, because the spec accepts only the Source's own site.
    #[serde(skip_serializing_if = "is_zero")]
    pub foreign_left_out: u64,
    /// Entries that were left out, because they do not meet the conditions of `only` in the spec.
    #[serde(skip_serializing_if = "is_zero")]
    pub out_of_scope: u64,
    /// Resources that were not fetched, because a rule of `follow_rules` fetches what they link to instead.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_rule: u64,
    /// Entries that were left out, because their first Source (`via`) is a publication of this fleet's store.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub loops: u64,
    /// Links that were followed, by `follow_links` and `follow_rules` of the spec. Each is an entry of a resource that no list need name.
    #[serde(skip_serializing_if = "is_zero")]
    pub linked: u64,
    /// Resources that a list omits, and that are kept for now.
    pub absent: u64,
    /// Change documents that left a gap after what was synchronized.
    pub gaps: u64,
    /// Documents that were not read to their end.
    pub documents_failed: u64,
    /// Quirks found, by name.
    pub quirks: BTreeMap<String, u64>,
    /// The result of an audit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub audit: Option<AuditCounts>,
}

/// Counts of an audit. Each resource counts once; documents and gaps are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct AuditCounts {
    /// Resources stored.
    pub held: u64,
    /// Stored and matching: digest and length are as declared.
    pub matching: u64,
    /// Stored and listed without contradiction, but without a declared digest that could be compared.
    pub unverifiable: u64,
    /// The catalog is newer than the documents: the resource was stored, or deleted, since.
    pub newer: u64,
    /// Listed and not stored.
    pub missing: u64,
    /// Stored in an earlier version than the listed one.
    pub outdated: u64,
    /// Stored, but the stored version contradicts the declaration of this very version, or its own record.
    pub mismatched: u64,
    /// Stored, but no longer listed, or deleted by the Source.
    pub extra: u64,
    /// Those of the extra whose absence was recorded before: they are kept until a later list confirms it.
    pub extra_noted: u64,
    /// Stored and not listed, but a list was not read to its end, so that this proves nothing.
    pub not_compared: u64,
    /// Documents that were not read to their end, and sets without a complete list.
    pub unread: u64,
    /// Intervals that no Change List covers, between a list and the changes that follow it.
    pub gaps: u64,
    /// Resources that differ from the Source, but whose problem the operator ignores. They count nowhere else.
    pub ignored: u64,
    /// Differences that were queued for repair.
    pub queued: u64,
}

impl AuditCounts {
    /// The number of resources that differ.
    pub fn differences(&self) -> u64 {
        self.missing + self.outdated + self.mismatched + self.extra
    }
}

impl From<&model::Counters> for Counters {
    fn from(counters: &model::Counters) -> Self {
        // Without `..`: a counter that is new must be told, or left out on purpose.
        let model::Counters {
            listed,
            stored,
            healed: repaired,
            mirrored,
            patched,
            patches_unused,
            bytes_saved,
            unchanged,
            deleted,
            failed,
            ignored,
            superseded,
            bytes,
            requests,
            planned,
            sampled,
            foreign,
            foreign_left_out,
            out_of_scope,
            by_rule,
            loops,
            linked,
            absent,
            gaps,
            documents_failed,
            quirks,
            audit,
        } = counters.clone();
        Self {
            listed,
            stored,
            repaired,
            mirrored,
            patched,
            patches_unused,
            bytes_saved,
            unchanged,
            deleted,
            failed,
            ignored,
            superseded,
            bytes,
            requests,
            planned,
            sampled,
            foreign,
            foreign_left_out,
            out_of_scope,
            by_rule,
            loops,
            linked,
            absent,
            gaps,
            documents_failed,
            quirks,
            audit: audit.map(AuditCounts::from),
        }
    }
}

impl From<model::AuditCounts> for AuditCounts {
    fn from(counts: model::AuditCounts) -> Self {
        let model::AuditCounts {
            held,
            agreeing: matching,
            without_fixity: unverifiable,
            newer,
            missing,
            stale: outdated,
            differing: mismatched,
            extra,
            extra_noted,
            unjudged: not_compared,
            unread,
            gaps,
            ignored,
            queued,
        } = counts;
        Self {
            held,
            matching,
            unverifiable,
            newer,
            missing,
            outdated,
            mismatched,
            extra,
            extra_noted,
            not_compared,
            unread,
            gaps,
            ignored,
            queued,
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
