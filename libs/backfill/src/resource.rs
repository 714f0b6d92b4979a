//! A stored resource, and the links to its versions.

use std::sync::Arc;

use jiff::Timestamp;
use model::{Bitstream, Declaration, Links, ResourceRecord, ResourceUri, SetId, moment};
use resourcesync::{Link, relation};
use url::Url;

use crate::candidate::Candidate;

/// A stored resource with versions that are named: by links of its entry, or by Archives.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) uri: ResourceUri,
    pub(crate) url: Url,
    pub(crate) set: SetId,
    /// The stored version.
    pub(crate) bitstream: Bitstream,
    document: Arc<str>,
    /// Since when the Source has the stored version.
    pub(crate) present: Timestamp,
    links: Vec<Link>,
}

impl Resource {
    /// A stored resource, if its entry links to versions, or Archives have some. A deleted one has no present version
    /// that they precede.
    pub(crate) fn of(uri: ResourceUri, record: ResourceRecord, is_archived: bool) -> Option<Self> {
        let bitstream = record.bitstream?;
        let may_have = |links: &&Links| {
            [relation::TIMEMAP, relation::MEMENTO].iter().any(|rel| links.as_str().contains(rel))
        };
        let links = record.listing.links.as_ref().filter(may_have).map(Links::to_vec).unwrap_or_default();
        let present = moment::source_time(&record.listing, &record.declaration);
        let resource = Self {
            url: uri.to_url(),
            uri,
            set: record.listing.set,
            document: record.listing.document,
            present: present.unwrap_or(bitstream.stored_at),
            bitstream,
            links,
        };
        let has = |rel| resource.links_of(rel).next().is_some();
        (is_archived || has(relation::TIMEMAP) || has(relation::MEMENTO)).then_some(resource)
    }

    pub(crate) fn links_of<'a>(&'a self, rel: &'a str) -> impl Iterator<Item = &'a Link> {
        self.links.iter().filter(move |link| link.rel.eq_ignore_ascii_case(rel))
    }

    /// The version that a `memento` link names. One without a time has no place in the history.
    pub(crate) fn candidate(&self, link: &Link) -> Option<Candidate> {
        let url = Some(place(&link.href)?);
        let hashes = link.hash.as_deref().map(fixity::parse_hashes).unwrap_or_default();
        let declared = Declaration {
            digests: hashes.known,
            unjudged: hashes.unjudged,
            length: link.length,
            media_type: link.media_type.clone(),
            encoding: link.encoding.clone(),
            lastmod: None,
        };
        let time = link.modified.as_ref()?.instant();
        Some(Candidate {
            time,
            url,
            member: None,
            declared,
            named_by: Arc::clone(&self.document),
            is_dated: true,
        })
    }
}

/// A URL from which bytes are fetched; none of another scheme than HTTP.
pub(crate) fn place(href: &str) -> Option<Url> {
    Url::parse(href).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}
