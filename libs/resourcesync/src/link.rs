use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::datetime::Datetime;

/// The relations that ResourceSync defines; all others are IANA's or URIs.
pub mod relation {
    /// To the document one level higher: the Capability List, then the Source Description.
    pub const UP: &str = "up";
    /// To the index that this document belongs to.
    pub const INDEX: &str = "index";
    /// To a description of the set of resources, or of the resource.
    pub const DESCRIBED_BY: &str = "describedby";
    /// From metadata to what it describes.
    pub const DESCRIBES: &str = "describes";
    /// To a copy of a package's manifest.
    pub const CONTENTS: &str = "contents";
    /// To a mirror of the resource (RS-40).
    pub const DUPLICATE: &str = "duplicate";
    /// To another representation (RS-41).
    pub const ALTERNATE: &str = "alternate";
    /// To the generic resource of a representation (RS-41).
    pub const CANONICAL: &str = "canonical";
    /// To the difference from the previous version (RS-42).
    pub const PATCH: &str = "http://www.openarchives.org/rs/terms/patch";
    /// To a prior version (RS-44).
    pub const MEMENTO: &str = "memento";
    /// To where prior versions are chosen by time (RS-44).
    pub const TIMEGATE: &str = "timegate";
    /// To the list of prior versions (RS-44).
    pub const TIMEMAP: &str = "timemap";
    /// To a collection that the resource belongs to (RS-45).
    pub const COLLECTION: &str = "collection";
    /// To where the resource was taken from (RS-46).
    pub const VIA: &str = "via";
    /// To the hub that pushes notifications (CN-1).
    pub const HUB: &str = "hub";
    /// To the profile that a description follows (RS-43).
    pub const PROFILE: &str = "profile";
    /// From a landing page to a file of the work.
    pub const ITEM: &str = "item";
    /// To the licence of the resource.
    pub const LICENSE: &str = "license";
    /// To the persistent identifier of the work.
    pub const CITE_AS: &str = "cite-as";
    /// To its author.
    pub const AUTHOR: &str = "author";
    /// From a version to the resource that it is a version of (RFC 7089).
    pub const ORIGINAL: &str = "original";

    /// From a list to the Archive that lists its predecessors (ResourceSync Archives).
    pub const ARCHIVES: &str = "archives";

    const KNOWN: [&str; 22] = [
        UP,
        INDEX,
        DESCRIBED_BY,
        DESCRIBES,
        CONTENTS,
        DUPLICATE,
        ALTERNATE,
        CANONICAL,
        PATCH,
        MEMENTO,
        TIMEGATE,
        TIMEMAP,
        COLLECTION,
        VIA,
        HUB,
        PROFILE,
        ITEM,
        LICENSE,
        CITE_AS,
        AUTHOR,
        ORIGINAL,
        ARCHIVES,
    ];

    /// The known relation that equals `rel` except for its case.
    pub(crate) fn miscased(rel: &str) -> Option<&'static str> {
        if !rel.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        KNOWN.into_iter().find(|known| known.eq_ignore_ascii_case(rel))
    }
}

/// A `rs:ln`: a link from a document, or from a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The relation: a registered name (see [`relation`]) or a URI.
    pub rel: String,
    /// The target's URI.
    pub href: String,
    /// The target's digests as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The target's length in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The target's media type, `type` in the documents.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The content coding that `length` and `hash` refer to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// When the target was last modified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<Datetime>,
    /// The path of the target in the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The preference among links of one relation: 1 first, 999,999 last and when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pri: Option<u32>,
    /// All other attributes, by their names as written (`profile`, `x:weight`).
    #[serde(flatten)]
    pub other: BTreeMap<String, String>,
}

/// What a link takes beside its texts, in the count of [`Link::size`]: names of fields, quotes, numbers.
const FRAME: usize = 24;

impl Link {
    /// A link with a relation and target only.
    pub fn new(rel: impl Into<String>, href: impl Into<String>) -> Self {
        Self { rel: rel.into(), href: href.into(), ..Self::default() }
    }

    /// The bytes that count for it in [`Limits::max_link_bytes`](crate::Limits::max_link_bytes).
    pub fn size(&self) -> usize {
        let texts = [&self.hash, &self.media_type, &self.encoding, &self.path];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let other: usize = self.other.iter().map(|(name, value)| name.len() + value.len()).sum();
        FRAME + self.rel.len() + self.href.len() + texts + other
    }
}
