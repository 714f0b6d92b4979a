//! What a link says of the resource at its other end. Claims are sorted on the disk, by that resource.

mod sorter;

use std::io;

use resourcesync::{Link, relation};

pub(crate) use self::sorter::{ClaimSorter, SortedClaims};

/// There is no room for temporary files.
#[derive(Debug, thiserror::Error)]
#[error("links cannot be sorted in the temporary folder: {0}; make room, or set TMPDIR to another folder")]
pub struct SpoolError(#[from] io::Error);

/// What a resource's link says of another resource. Ordered by the other resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claim {
    /// The resource that something is said of.
    pub(crate) about: String,
    pub(crate) kind: Kind,
    /// The resource that has the link.
    pub(crate) by: String,
    /// The link's relation.
    pub(crate) rel: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// It is a member of the work of the resource that has the link.
    IsMember,
    /// The resource that has the link is a member of its work.
    HasMember,
}

/// What a relation makes of the target of its links: a member of the work, or its head.
pub(crate) fn kind(rel: &str) -> Option<Kind> {
    match rel {
        relation::ITEM | relation::DESCRIBED_BY | relation::ALTERNATE => Some(Kind::IsMember),
        relation::DESCRIBES | relation::CANONICAL | relation::COLLECTION => Some(Kind::HasMember),
        _ => None,
    }
}

/// Whether members with this relation are metadata.
pub(crate) fn is_metadata(rel: &str) -> bool {
    matches!(rel, relation::DESCRIBED_BY | relation::DESCRIBES)
}

/// The resource that a link leads to. A fragment is a part of it.
pub(crate) fn target(link: &Link) -> &str {
    link.href.split('#').next().unwrap_or_default()
}

/// What the links of a resource say of others.
pub(crate) fn claims_of<'a>(by: &'a str, links: &'a [Link]) -> impl Iterator<Item = Claim> + use<'a> {
    links.iter().filter_map(move |link| {
        let kind = kind(&link.rel)?;
        let about = target(link);
        (about != by).then(|| Claim {
            about: about.to_owned(),
            kind,
            by: by.to_owned(),
            rel: link.rel.clone(),
        })
    })
}
