//! The records of a resource, as a row of a table.

use jiff::Timestamp;
use model::{Assurance, Bitstream, Method, ResourceRecord, ResourceUri};
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
}

impl Row {
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
        }
    }
}

fn assurance(bitstream: &Bitstream) -> &'static str {
    match bitstream.assurance {
        Assurance::Digest => "digest",
        Assurance::Length => "length",
        Assurance::None => "none",
    }
}
