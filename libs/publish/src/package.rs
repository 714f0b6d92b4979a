//! Packages of a Resource Dump (§11).

use std::collections::HashMap;
use std::io::BufWriter;

use fixity::Sha256;
use jiff::Timestamp;
use model::ResourceUri;
use resourcesync::{Entry, Writer};

use crate::archive::{Archive, PackageFiles, member};
use crate::dump_documents::dump_manifest;
use crate::paths::DUMP_PARTS;
use crate::records::Stored;
use crate::state::{Package, State};
use crate::work::{Seen, Work, before, is_chosen};
use crate::{Policy, PublishError, entry};

/// The package that is being filled. Its bytes are read when it is known that no earlier one has the same entries.
pub(crate) struct Packager {
    known: HashMap<Sha256, Package>,
    at: Timestamp,
    held: Vec<(ResourceUri, Stored)>,
    bytes: u64,
}

impl Packager {
    /// Begins a Resource Dump. Packages of the present one are kept where they have the same entries, and are younger
    /// than the oldest Change Lists.
    pub(crate) fn begin(work: &Work<'_>, state: &State, at: Timestamp) -> Self {
        let oldest = before(work.now, work.policy.keep_changes / 2);
        let packages =
            state.dump.iter().flat_map(|dump| &dump.packages).filter(|package| package.at >= oldest);
        let known = packages.filter_map(|package| Some((package.entries?, package.clone()))).collect();
        Self { known, at, held: Vec::new(), bytes: 0 }
    }

    /// Adds a resource. Returns whether the package is full.
    pub(crate) fn push(&mut self, policy: &Policy, uri: &ResourceUri, stored: &Stored) -> bool {
        self.held.push((uri.clone(), stored.clone()));
        self.bytes += stored.length;
        let count = self.held.len() as u64;
        count >= policy.package_entries
            || self.bytes >= policy.package_bytes
            || count >= policy.package_entries / 2 && is_chosen(uri, policy.package_entries / 4)
    }

    /// Writes the package, or takes the equal one of the present dump.
    pub(crate) async fn close(
        &mut self,
        work: &mut Work<'_>,
        packages: &mut Vec<Package>,
    ) -> Result<(), PublishError> {
        let held = std::mem::take(&mut self.held);
        self.bytes = 0;
        if held.is_empty() {
            return Ok(());
        }
        let entries = digest(work, &held)?;
        if let Some(package) = self.known.get(&entries) {
            work.done.packages_kept += 1;
            packages.push(package.clone());
            return Ok(());
        }
        let number = packages.len() + 1;
        packages.extend(self.write(work, &held, entries, number).await?);
        Ok(())
    }

    /// Writes a package. None if no resource of it could be read.
    async fn write(
        &self,
        work: &mut Work<'_>,
        held: &[(ResourceUri, Stored)],
        entries: Sha256,
        number: usize,
    ) -> Result<Option<Package>, PublishError> {
        let mut archive = Archive::begin(work.place)?;
        let header = dump_manifest(work.base, self.at);
        let mut manifest = Writer::new(BufWriter::new(work.place.temporary()?), &header)?;
        let mut resources = 0;
        for (at, (uri, stored)) in (0..).zip(held) {
            let name = member(at);
            match archive.add(work, &name, uri, stored).await? {
                Ok(()) => {
                    let mut told = entry::stored(work.records, work.base, uri, stored);
                    told.metadata.path = Some(format!("/{name}"));
                    manifest.write(&told)?;
                    resources += 1;
                }
                Err(error) => {
                    work.done.damaged += 1;
                    (work.see)(Seen::Damaged(uri, &error));
                }
            }
        }
        if resources == 0 {
            return Ok(None);
        }
        let files = archive.package(work, manifest.finish()?, DUMP_PARTS, self.at, number).await?;
        let PackageFiles { path, contents, sha256, length } = files;
        work.done.packages += 1;
        // One with gaps is made again by the next dump.
        let entries = (resources == held.len() as u64).then_some(entries);
        Ok(Some(Package { path, contents, at: self.at, entries, sha256, length, resources }))
    }
}

/// The digest of the entries: equal ones have equal bytes.
fn digest(work: &Work<'_>, held: &[(ResourceUri, Stored)]) -> Result<Sha256, PublishError> {
    let mut writer = Writer::new(Vec::new(), &dump_manifest(work.base, Timestamp::UNIX_EPOCH))?;
    for (uri, stored) in held {
        let told: Entry = entry::stored(work.records, work.base, uri, stored);
        writer.write(&told)?;
    }
    Ok(Sha256::of(&writer.finish()?))
}
