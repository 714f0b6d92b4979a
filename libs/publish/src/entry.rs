//! The entries of resources, in Resource Lists and Change Lists.

use jiff::{Timestamp, Unit};
use model::{Bitstream, ResourceRecord, ResourceUri};
use resourcesync::{Change, Entry, Link, Metadata, relation};

use crate::base::Base;
use crate::names::PublishedPath;

/// The entry of a stored resource. Its times are ours: those of the Source are in the `via` link (§14.8).
pub(crate) fn stored(
    base: &Base,
    uri: &ResourceUri,
    record: &ResourceRecord,
    bitstream: &Bitstream,
) -> Entry {
    Entry {
        lastmod: Some(last_modified(bitstream).into()),
        metadata: Metadata {
            hash: Some(hash_of(bitstream)),
            length: Some(bitstream.computed.length()),
            media_type: media_type(record, bitstream),
            encoding: bitstream.encoding.clone(),
            ..Metadata::default()
        },
        links: vec![first_source(uri, record, bitstream)],
        ..located(base, uri)
    }
}

/// The entry of a deleted resource.
pub(crate) fn deleted(base: &Base, uri: &ResourceUri) -> Entry {
    Entry { links: vec![Link::new(relation::VIA, href(uri))], ..located(base, uri) }
}

/// The same entry, as a change at this time.
pub(crate) fn changed(mut entry: Entry, change: Change, at: Timestamp) -> Entry {
    entry.metadata.change = Some(change);
    entry.metadata.datetime = Some(at.into());
    entry
}

/// The Last-Modified with which the bytes are served: when they were stored here, in whole seconds as in HTTP.
pub fn last_modified(bitstream: &Bitstream) -> Timestamp {
    let whole = Timestamp::from_second(bitstream.stored_at.as_second());
    whole.or_else(|_| bitstream.stored_at.round(Unit::Second)).unwrap_or(bitstream.stored_at)
}

/// The media type that the Source sent, else the one it declared.
pub fn media_type(record: &ResourceRecord, bitstream: &Bitstream) -> Option<String> {
    let told = bitstream.media_type.as_deref().or(record.declaration.media_type.as_deref())?;
    // Anything else can stand neither in a header nor in a document.
    told.bytes().all(|byte| matches!(byte, b' '..=b'~')).then(|| told.to_owned())
}

/// The link to the first Source of a resource (§14.8): the `via` link with which it came, unchanged; of several the first
/// counts. Without one, the Source it was harvested from is the first, with what that one declared.
fn first_source(uri: &ResourceUri, record: &ResourceRecord, bitstream: &Bitstream) -> Link {
    let links = record.listing.links.as_ref().map(model::Links::to_vec).unwrap_or_default();
    if let Some(first) = links.into_iter().find(|link| link.rel == relation::VIA) {
        return first;
    }
    let declared = &record.declaration;
    let proved = declared.digests.iter().filter(|digest| bitstream.computed.digests().contains(digest));
    let hash = proved.map(ToString::to_string).collect::<Vec<_>>().join(" ");
    Link {
        modified: declared.lastmod.map(Into::into),
        hash: (!hash.is_empty()).then_some(hash),
        length: declared.length.filter(|length| *length == bitstream.computed.length()),
        media_type: declared.media_type.clone().filter(|told| told.bytes().all(|b| matches!(b, b' '..=b'~'))),
        ..Link::new(relation::VIA, href(uri))
    }
}

fn located(base: &Base, uri: &ResourceUri) -> Entry {
    Entry::new(base.url(PublishedPath::of(uri).as_str()))
}

/// A URI as its Source writes it; as it is requested where that is no URI, with a blank or an umlaut in it.
fn href(uri: &ResourceUri) -> String {
    if uri.as_str().bytes().all(|byte| byte.is_ascii_graphic()) {
        uri.to_string()
    } else {
        uri.to_url().into()
    }
}

/// The `hash` attribute: each digest that was computed of the stored bytes, SHA-256 among them.
fn hash_of(bitstream: &Bitstream) -> String {
    bitstream.computed.digests().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
