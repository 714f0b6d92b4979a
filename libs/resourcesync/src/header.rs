use serde::{Deserialize, Serialize};

use crate::capability::{Capability, Root};
use crate::datetime::Datetime;
use crate::link::Link;

/// A document's own metadata: its root element, and the `rs:md` and `rs:ln` directly under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The root element.
    pub root: Root,
    /// Its capability; absent in a plain sitemap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// When the snapshot began; it includes every change until then (RS-4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Datetime>,
    /// When the snapshot was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Datetime>,
    /// The start of the interval of changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Datetime>,
    /// The end of the interval; absent while the document is still open (RS-5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Datetime>,
    /// The document's own links (RS-23).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
}

impl Header {
    /// A header without times and links.
    pub fn new(root: Root, capability: Option<Capability>) -> Self {
        Self { root, capability, at: None, completed: None, from: None, until: None, links: Vec::new() }
    }

    /// The first link of a relation.
    pub fn link(&self, rel: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.rel == rel)
    }

    /// Whether the document is an index by its root element (RS-1).
    pub fn is_index(&self) -> bool {
        self.root == Root::SitemapIndex
    }
}
