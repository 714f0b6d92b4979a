//! The records of a resource, as a row of a table.

use jiff::Timestamp;
use model::{Assurance, Bitstream, Links, Method, ResourceRecord, ResourceUri};
use resourcesync::Link;
use serde::Serialize;
use store::Key;

use crate::selection::media_type;

/// A row. Its fields are the columns of all tables, in this order; the crate's README documents them.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) uri: String,
    /// `present` or `deleted`.
    pub(crate) state: &'static str,
    pub(crate) length: Option<u64>,
    pub(crate) sha256: Option<String>,
    pub(crate) assurance: Option<&'static str>,
    pub(crate) media_type: Option<String>,
    pub(crate) encoding: Option<String>,
    pub(crate) declared_digests: Vec<String>,
    pub(crate) declared_length: Option<u64>,
    pub(crate) lastmod: Option<Timestamp>,
    pub(crate) change_time: Option<Timestamp>,
    pub(crate) stored_at: Option<Timestamp>,
    pub(crate) settled_at: Timestamp,
    pub(crate) document: String,
    pub(crate) sets: Vec<String>,
    pub(crate) final_url: Option<String>,
    pub(crate) etag: Option<String>,
    /// The key of the object in the store; offset, stored length and method if it is a part of that.
    pub(crate) object: Option<String>,
    pub(crate) offset: Option<u64>,
    pub(crate) stored_length: Option<u64>,
    pub(crate) method: Option<&'static str>,
    pub(crate) links: Vec<LinkRow>,
    /// The resource whose link led to it, if no list names it.
    pub(crate) linked_from: Option<String>,
    /// That link's relation.
    pub(crate) linked_as: Option<String>,
}

/// A link of a resource. Each row has all fields, so that every table has the same columns.
#[derive(Debug, Serialize)]
pub(crate) struct LinkRow {
    pub(crate) rel: String,
    pub(crate) href: String,
    #[serde(rename = "type")]
    pub(crate) media_type: Option<String>,
    pub(crate) hash: Option<String>,
    pub(crate) length: Option<u64>,
    pub(crate) encoding: Option<String>,
    /// As the Source writes it, so that a date stays a date.
    pub(crate) modified: Option<String>,
    pub(crate) pri: Option<u64>,
    pub(crate) path: Option<String>,
    pub(crate) profile: Option<String>,
    /// Attributes of other vocabularies, as a JSON object.
    pub(crate) other: Option<String>,
}

impl Row {
    /// Bytes that its links take in memory, roughly.
    pub(crate) fn link_bytes(&self) -> usize {
        self.links.iter().map(LinkRow::size).sum()
    }

    pub(crate) fn of(uri: &ResourceUri, record: ResourceRecord) -> Self {
        let state = if record.is_present() { "present" } else { "deleted" };
        let bitstream = record.bitstream.as_ref().or(record.deleted.as_ref());
        let media_type = media_type(&record, bitstream).map(str::to_owned);
        let span = bitstream.and_then(|bitstream| bitstream.location.span());
        let ResourceRecord { declaration, listing, sets, settled_at, .. } = &record;
        Self {
            uri: uri.to_string(),
            state,
            length: bitstream.map(|bitstream| bitstream.computed.length()),
            sha256: bitstream.map(|bitstream| bitstream.computed.sha256().to_string()),
            assurance: bitstream.map(assurance),
            media_type,
            encoding: bitstream.and_then(|bitstream| bitstream.encoding.clone()),
            declared_digests: declaration.digests.iter().map(ToString::to_string).collect(),
            declared_length: declaration.length,
            lastmod: declaration.lastmod,
            change_time: listing.change_time,
            stored_at: bitstream.map(|bitstream| bitstream.stored_at),
            settled_at: *settled_at,
            document: listing.document.as_ref().to_owned(),
            sets: sets.iter().map(ToString::to_string).collect(),
            final_url: bitstream.and_then(|bitstream| bitstream.final_url.clone()),
            etag: bitstream.and_then(|bitstream| bitstream.validators.etag.clone()),
            object: bitstream.map(|bitstream| Key::of(&bitstream.location).to_string()),
            offset: span.map(|span| span.offset),
            stored_length: span.map(|span| span.stored_length),
            method: span.map(|span| match span.method {
                Method::Stored => "stored",
                Method::Deflated => "deflated",
            }),
            links: listing.links.iter().flat_map(Links::to_vec).map(LinkRow::of).collect(),
            linked_from: listing.linked.as_ref().map(|linked| linked.from.to_string()),
            linked_as: listing.linked.as_ref().map(|linked| linked.rel.clone()),
        }
    }
}

impl LinkRow {
    fn of(link: Link) -> Self {
        let Link { rel, href, hash, length, media_type, encoding, modified, path, pri, mut other } = link;
        let profile = other.remove("profile");
        let modified = modified.map(|time| time.to_string());
        let other = serde_json::to_string(&other).ok().filter(|_| !other.is_empty());
        let pri = pri.map(u64::from);
        Self { rel, href, media_type, hash, length, encoding, modified, pri, path, profile, other }
    }

    /// Bytes that it takes in memory, roughly.
    fn size(&self) -> usize {
        let Self { media_type, hash, encoding, modified, path, profile, other, .. } = self;
        let texts = [media_type, hash, encoding, modified, path, profile, other];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        size_of::<Self>() + self.rel.len() + self.href.len() + texts
    }
}

fn assurance(bitstream: &Bitstream) -> &'static str {
    match bitstream.assurance {
        Assurance::Digest => "digest",
        Assurance::Length => "length",
        Assurance::None => "none",
    }
}
