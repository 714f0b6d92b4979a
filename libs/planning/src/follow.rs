//! Which links of entries lead to resources that are fetched too, though no list names them. Pure.
//!
//! Each link that the operator's rules select becomes an entry of the same document, with the mark
//! [`Linked`]. From there on it is planned, fetched, found absent and deleted like any entry. A resource
//! that a list names is only listed. Links of linked resources are not known, so this is one step deep.

mod merge;
mod rules;
mod target;

pub use merge::{Merged, beside_target, merge_links};
pub use rules::FollowRules;

use model::{Linked, Listing, ResourceUri, UriError};
use resourcesync::Link;

use crate::entry::ListedEntry;

/// What the links of an entry lead to.
#[derive(Debug, Default)]
pub struct Followed {
    /// One entry per target, in the order of the links.
    pub entries: Vec<ListedEntry>,
    /// Targets beyond the limit.
    pub beyond: Vec<ResourceUri>,
    /// Targets that the operator's filter leaves out.
    pub left_out: Vec<ResourceUri>,
    /// The first link that cannot be followed, and why.
    pub unfit: Option<(Link, UriError)>,
    /// Whether one of the entries is fetched in place of the resource that has the link.
    pub instead: bool,
}

/// An entry of a link, beside what is known of its target.
#[derive(Debug)]
pub enum BesideTarget {
    /// A list names the target: the link asks for nothing.
    Listed {
        /// Whether the link declares another digest or length than the target's own entry.
        contradicts: bool,
    },
    /// An entry of another link has planned it. The plan gets this mark.
    Planned(Box<Linked>),
    /// To be decided.
    Open(Box<ListedEntry>),
}

/// What a change of a resource means for the targets of its links.
#[derive(Debug, Default)]
pub struct AfterChange {
    /// Targets to look at again: the change did not repeat the links.
    pub again: Vec<ListedEntry>,
    /// Targets that it does not link to any more.
    pub ended: Vec<EndedLink>,
}

/// A target that a resource does not link to any more.
#[derive(Debug)]
pub struct EndedLink {
    /// The target.
    pub uri: ResourceUri,
    /// The entry of the resource that linked to it, with its former link.
    pub listing: Listing,
    /// Whether that resource was deleted.
    pub is_deleted: bool,
}

impl Followed {
    /// All targets.
    pub fn targets(self) -> impl Iterator<Item = ResourceUri> {
        self.entries.into_iter().map(|entry| entry.uri).chain(self.beyond).chain(self.left_out)
    }
}

impl AfterChange {
    /// Whether it means nothing.
    pub fn is_empty(&self) -> bool {
        self.again.is_empty() && self.ended.is_empty()
    }

    /// Adds what another change means.
    pub fn extend(&mut self, other: Self) {
        self.again.extend(other.again);
        self.ended.extend(other.ended);
    }

    /// Leaves out some targets.
    pub fn retain(&mut self, is_kept: impl Fn(&ResourceUri) -> bool) {
        self.again.retain(|entry| is_kept(&entry.uri));
        self.ended.retain(|ended| is_kept(&ended.uri));
    }
}

#[cfg(test)]
mod tests;
