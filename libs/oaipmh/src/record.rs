use resourcesync::{Datetime, Position};
use serde::{Deserialize, Serialize};

use crate::error::BadReason;

/// The header of a record (section 2.5). Identifier, prefix and datestamp together are a record's identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordHeader {
    /// The identifier, unique in its repository; compare it exactly.
    pub identifier: String,
    /// The time of the last change, in the precision that was written. `None` when it is missing or no time:
    /// then [`Quirk::UnreadableDatestamp`](crate::Quirk::UnreadableDatestamp) is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datestamp: Option<Datetime>,
    /// The sets that the record says it is in, without their ancestors, in the order written, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
    /// Whether the record is shown as deleted. It counts for this metadata prefix only.
    #[serde(default, skip_serializing_if = "Status::is_live")]
    pub status: Status,
}

/// The status in a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// No status, or one that the protocol does not know.
    #[default]
    Live,
    /// `deleted`.
    Deleted,
}

/// A record of ListRecords or GetRecord.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its header.
    pub header: RecordHeader,
    /// Its metadata; `None` exactly when it is deleted.
    pub metadata: Option<Metadata>,
    /// The child elements of `about`, each as a canonical document of its own.
    pub about: Vec<String>,
    /// Where it begins in the answer.
    pub position: Position,
}

/// The one element within `metadata`, as a standalone document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The canonical document: XML declaration, UTF-8, LF, exclusive C14N with comments, every prefix declared
    /// at the root. An unchanged record has unchanged bytes, wherever its namespaces were declared.
    pub document: String,
    /// The namespace of the root element; empty when it has none.
    pub namespace: String,
    /// The root element's name without prefix.
    pub root: String,
}

/// A set of ListSets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetItem {
    /// Names parted by `:`; a record of `a:b` is one of `a`.
    pub spec: String,
    /// The name for people; empty when the Source gives none.
    pub name: String,
}

/// A format of ListMetadataFormats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataFormat {
    /// The name in requests. It is local to its repository: know a format by its namespace.
    pub prefix: String,
    /// The URL of the XML schema; may be empty.
    pub schema: String,
    /// The namespace of the root element; may be empty.
    pub namespace: String,
}

/// A record, header, set or format that cannot be used. The list goes on behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// Where it begins in the answer.
    pub position: Position,
    /// What is wrong.
    pub reason: BadReason,
    /// Its header, if that can be read: then GetRecord can ask for it again.
    pub header: Option<RecordHeader>,
}

/// One element of an answer's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A record of ListRecords or GetRecord.
    Record(Box<Record>),
    /// A header of ListIdentifiers.
    Header(Box<RecordHeader>),
    /// A set of ListSets.
    Set(SetItem),
    /// A format of ListMetadataFormats.
    Format(MetadataFormat),
    /// An element that cannot be used.
    Bad(Box<BadRecord>),
}

impl RecordHeader {
    /// Whether it is shown as deleted.
    pub fn is_deleted(&self) -> bool {
        self.status == Status::Deleted
    }

    /// The sets with their ancestors, each once: `a:b:c` is also in `a:b` and `a`.
    pub fn all_sets(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for set in &self.sets {
            let ancestors = set.match_indices(':').map(|(at, _)| &set[..at]);
            for set in std::iter::once(set.as_str()).chain(ancestors) {
                if !set.is_empty() && !all.contains(&set) {
                    all.push(set);
                }
            }
        }
        all
    }

    /// Whether it is a member of `set`, directly or through a descendant. For a Source that ignores `set`.
    pub fn is_in(&self, set: &str) -> bool {
        self.sets
            .iter()
            .any(|own| own.strip_prefix(set).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')))
    }
}

impl Status {
    /// Whether it is live.
    pub fn is_live(&self) -> bool {
        *self == Self::Live
    }
}
