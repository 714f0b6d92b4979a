//! The documents above the packages: the Resource Dump, the Capability List that lists it, and the Source
//! Description above both.

use std::fs::Permissions;
use std::io::BufWriter;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use jiff::Timestamp;
use resourcesync::{Capability, Entry, Header, Link, Metadata, Root, Writer};
use tempfile::NamedTempFile;
use url::Url;

use super::hash_of;
use crate::checkpoint::Closed;

/// The Resource Dump's name.
const DUMP: &str = "resourcedump.xml";
const CAPABILITIES: &str = "capabilitylist.xml";
/// The Source Description, if the base is that of a whole host.
const WELL_KNOWN: &str = ".well-known/resourcesync";
/// The Source Description, if the base has a path: the well-known URL belongs to a host (RS-20).
const DESCRIPTION: &str = "resourcesync_description.xml";

/// The URL of the Capability List: the `up` link of every document below it.
pub(super) fn capability_list(base: &Url) -> anyhow::Result<Url> {
    Ok(base.join(CAPABILITIES)?)
}

/// Writes them, the topmost one last.
pub(super) fn write(directory: &Path, base: &Url, at: Timestamp, packages: &[Closed]) -> anyhow::Result<()> {
    let dump = Header {
        at: Some(at.into()),
        completed: Some(Timestamp::now().into()),
        links: vec![Link::new("up", capability_list(base)?)],
        ..Header::new(Root::UrlSet, Some(Capability::ResourceDump))
    };
    let entries = packages.iter().map(|package| {
        let metadata = Metadata {
            at: Some(at.into()),
            hash: Some(hash_of(&package.computed)),
            length: Some(package.computed.length()),
            media_type: Some("application/zip".to_owned()),
            ..Metadata::default()
        };
        Ok(Entry { metadata, ..Entry::new(base.join(&package.name)?) })
    });
    document(&directory.join(DUMP), &dump, entries)?;

    let description = if base.path() == "/" { WELL_KNOWN } else { DESCRIPTION };
    let capabilities = Header {
        links: vec![Link::new("up", base.join(description)?)],
        ..Header::new(Root::UrlSet, Some(Capability::CapabilityList))
    };
    document(&directory.join(CAPABILITIES), &capabilities, [leads_to(base, DUMP, Capability::ResourceDump)])?;

    let place = directory.join(description);
    if let Some(parent) = place.parent() {
        fs_err::create_dir_all(parent)?;
    }
    let header = Header::new(Root::UrlSet, Some(Capability::Description));
    document(&place, &header, [leads_to(base, CAPABILITIES, Capability::CapabilityList)])
}

fn leads_to(base: &Url, name: &str, capability: Capability) -> anyhow::Result<Entry> {
    let metadata = Metadata { capability: Some(capability), ..Metadata::default() };
    Ok(Entry { metadata, ..Entry::new(base.join(name)?) })
}

fn document(
    path: &Path,
    header: &Header,
    entries: impl IntoIterator<Item = anyhow::Result<Entry>>,
) -> anyhow::Result<()> {
    // Renamed into place, so that no reader sees half of it.
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut writer = Writer::new(BufWriter::new(NamedTempFile::new_in(directory)?), header)?;
    for entry in entries {
        writer.write(&entry?)?;
    }
    let file = writer.finish()?.into_inner()?;
    file.as_file().sync_all()?;
    // A temporary file is private to its owner; a dump is meant to be served.
    file.as_file().set_permissions(Permissions::from_mode(0o644))?;
    file.persist(path)?;
    Ok(())
}
