//! The entries of resources, in Resource Lists and Change Lists.

use jiff::{Timestamp, Unit};
use model::{Bitstream, ResourceRecord, ResourceUri};
use resourcesync::{Change, Entry, Link, Metadata};

use crate::Base;
use crate::records::{Records, Stored};

/// The entry of a resource that is there.
pub(crate) fn stored(records: &dyn Records, base: &Base, uri: &ResourceUri, stored: &Stored) -> Entry {
    let links = stored.links.iter().map(|passed| match &passed.published {
        Some(target) => Link { href: records.url(base, target), ..passed.link.clone() },
        None => passed.link.clone(),
    });
    Entry {
        lastmod: Some(stored.lastmod.into()),
        metadata: Metadata {
            hash: Some(stored.hash.clone()),
            length: Some(stored.length),
            media_type: stored.media_type.clone(),
            encoding: stored.encoding.clone(),
            ..Metadata::default()
        },
        links: links.collect(),
        ..Entry::new(records.url(base, uri))
    }
}

/// The entry of a deleted resource.
pub(crate) fn deleted(url: String, links: Vec<Link>) -> Entry {
    Entry { links, ..Entry::new(url) }
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

/// A URI as its Source writes it; as it is requested where that is no URI, with a blank or an umlaut in it.
pub(crate) fn href(uri: &ResourceUri) -> String {
    if uri.as_str().bytes().all(|byte| byte.is_ascii_graphic()) {
        uri.to_string()
    } else {
        uri.to_url().into()
    }
}

/// The `hash` attribute: each digest that was computed of the stored bytes, SHA-256 among them.
pub(crate) fn hash_of(bitstream: &Bitstream) -> String {
    bitstream.computed.digests().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
