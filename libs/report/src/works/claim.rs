//! What a link says of the resource at its other end.

use model::Links;
use resourcesync::{Link, relation};

/// What a resource's link says of another resource. Ordered by the other resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claim {
    /// The resource that something is said of.
    pub(super) about: String,
    pub(super) kind: Kind,
    /// The resource that has the link.
    pub(super) by: String,
    /// The link's relation.
    pub(super) rel: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// It is a member of the work of the resource that has the link.
    IsMember,
    /// The resource that has the link is a member of its work.
    HasMember,
}

/// What a relation makes of the target of its links: a member of the work, or its head.
pub(super) fn kind(rel: &str) -> Option<Kind> {
    match rel {
        relation::ITEM | relation::DESCRIBED_BY | relation::ALTERNATE => Some(Kind::IsMember),
        relation::DESCRIBES | relation::CANONICAL | relation::COLLECTION => Some(Kind::HasMember),
        _ => None,
    }
}

/// Whether members with this relation are metadata.
pub(super) fn is_metadata(rel: &str) -> bool {
    matches!(rel, relation::DESCRIBED_BY | relation::DESCRIBES)
}

/// The resource that a link leads to. A fragment is a part of it.
pub(super) fn target(link: &Link) -> &str {
    link.href.split('#').next().unwrap_or_default()
}

/// What the links of a resource say of others.
pub(super) fn claims_of<'a>(by: &'a str, links: &Links) -> impl Iterator<Item = Claim> + use<'a> {
    links.to_vec().into_iter().filter_map(move |link| {
        let kind = kind(&link.rel)?;
        let about = target(&link);
        (about != by).then(|| Claim {
            about: about.to_owned(),
            kind,
            by: by.to_owned(),
            rel: link.rel.clone(),
        })
    })
}
