//! The documents of dumps: the dumps themselves, and the headers of manifests (§11, §13).

use bytes::Bytes;
use fixity::Sha256;
use jiff::Timestamp;
use resourcesync::{Capability, Entry, Header, Link, Metadata, Root, relation};

use crate::change_record::{ChangeListRecord, ChangePackage};
use crate::documents::{document, links};
use crate::paths::DUMP;
use crate::state::{Dump, Package};
use crate::{Base, PublishError};

/// The header of the manifest of a package of a Resource Dump.
pub(crate) fn dump_manifest(base: &Base, at: Timestamp) -> Header {
    Header {
        at: Some(at.into()),
        links: links(base, None),
        ..Header::new(Root::UrlSet, Some(Capability::ResourceDumpManifest))
    }
}

/// The header of the manifest of the package of a closed Change List.
pub(crate) fn change_manifest(base: &Base, list: &ChangeListRecord) -> Header {
    Header {
        from: Some(list.from.into()),
        until: list.until.map(Into::into),
        links: links(base, None),
        ..Header::new(Root::UrlSet, Some(Capability::ChangeDumpManifest))
    }
}

/// The Resource Dump, or a part of it: packages, each with a copy of its manifest.
pub(crate) fn resource_dump(
    base: &Base,
    dump: &Dump,
    packages: &[Package],
    is_part: bool,
) -> Result<Bytes, PublishError> {
    let header = Header {
        at: Some(dump.at.into()),
        completed: Some(dump.completed.into()),
        links: links(base, is_part.then_some(DUMP)),
        ..Header::new(Root::UrlSet, Some(Capability::ResourceDump))
    };
    let packages = packages.iter().map(|package| {
        let told = packed(base, &package.path, &package.contents, package.sha256, package.length);
        Entry { metadata: Metadata { at: Some(package.at.into()), ..told.metadata }, ..told }
    });
    document(&header, packages)
}

/// The index of the parts of a Resource Dump.
pub(crate) fn resource_dump_index(base: &Base, dump: &Dump) -> Result<Bytes, PublishError> {
    let header = Header {
        at: Some(dump.at.into()),
        completed: Some(dump.completed.into()),
        links: links(base, None),
        ..Header::new(Root::SitemapIndex, Some(Capability::ResourceDump))
    };
    let parts = dump.parts.iter().map(|path| {
        let metadata = Metadata { at: Some(dump.at.into()), ..Metadata::default() };
        Entry { metadata, ..Entry::new(base.url(path)) }
    });
    document(&header, parts)
}

/// The Change Dump: the packages of these lists, oldest first. It has no `until`, since more will follow.
pub(crate) fn change_dump<'a>(
    base: &Base,
    from: Timestamp,
    packages: impl Iterator<Item = (&'a ChangeListRecord, &'a ChangePackage)>,
) -> Result<Bytes, PublishError> {
    let header = Header {
        from: Some(from.into()),
        links: links(base, None),
        ..Header::new(Root::UrlSet, Some(Capability::ChangeDump))
    };
    let packages = packages.map(|(list, package)| {
        let told = packed(base, &package.path, &package.contents, package.sha256, package.length);
        let (from, until) = (Some(list.from.into()), list.until.map(Into::into));
        Entry { metadata: Metadata { from, until, ..told.metadata }, ..told }
    });
    document(&header, packages)
}

/// The entry of a package.
fn packed(base: &Base, path: &str, contents: &str, sha256: Sha256, length: u64) -> Entry {
    let metadata = Metadata {
        hash: Some(format!("sha-256:{sha256}")),
        length: Some(length),
        media_type: Some("application/zip".to_owned()),
        ..Metadata::default()
    };
    let contents = Link {
        media_type: Some("application/xml".to_owned()),
        ..Link::new(relation::CONTENTS, base.url(contents))
    };
    Entry { metadata, links: vec![contents], ..Entry::new(base.url(path)) }
}
