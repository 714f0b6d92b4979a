//! The resource that a link leads to, and the entry that the link makes of it.

use model::{Declaration, LinkVersion, Linked, Listing, ResourceUri, UriError};
use resourcesync::{Datetime, Link};

use crate::entry::ListedEntry;

/// The resource that a link leads to. A fragment is a part of it.
pub(super) fn target(link: &Link) -> Result<ResourceUri, UriError> {
    link.href.split('#').next().unwrap_or_default().parse()
}

/// The entry of a link: what the link declares of its target, in the document and at the time of its resource's entry.
pub(super) fn linked_entry(entry: &ListedEntry, uri: ResourceUri, link: Link) -> ListedEntry {
    let version = version(entry, &link);
    let hashes = link.hash.as_deref().map(fixity::parse_hashes).unwrap_or_default();
    let declaration = Declaration {
        digests: hashes.known,
        unjudged: hashes.unjudged,
        length: link.length,
        media_type: link.media_type,
        encoding: link.encoding,
        lastmod: link.modified.as_ref().map(Datetime::instant),
    };
    let linked = Linked { from: entry.uri.clone(), rel: link.rel, shared: false, version };
    let listing = Listing { links: None, linked: Some(Box::new(linked)), ..entry.listing.clone() };
    ListedEntry { uri, declaration, listing, moment: entry.moment }
}

/// The version that a link speaks of: its own digest or modification, or else those of the resource that has the link.
fn version(entry: &ListedEntry, link: &Link) -> Option<LinkVersion> {
    let Declaration { digests, unjudged, lastmod, length, .. } = &entry.declaration;
    let text = if link.hash.is_some() || link.modified.is_some() {
        format!("of the target {:?} {:?} {:?}", link.hash, link.modified, link.length)
    } else if !digests.is_empty() {
        let digests: Vec<String> = digests.iter().map(ToString::to_string).collect();
        format!("of the resource {digests:?} {:?}", link.length)
    } else if !unjudged.is_empty() {
        format!("of the resource {unjudged:?} {:?}", link.length)
    } else {
        format!("of the resource {} {length:?} {:?}", (*lastmod)?, link.length)
    };
    Some(LinkVersion::of(&text))
}
