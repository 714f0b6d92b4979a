//! Packages of a Resource Dump (§11): ZIP files with the bytes of some resources, and their manifest.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};

use fixity::{Hasher, Sha256};
use futures::TryStreamExt as _;
use jiff::Timestamp;
use model::ResourceUri;
use resourcesync::{Entry, Writer};
use tempfile::NamedTempFile;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::documents::dump_manifest;
use crate::paths::{DUMP_PARTS, name_with};
use crate::place::{About, xml};
use crate::records::{BodyError, Stored};
use crate::state::{Package, State};
use crate::work::{Seen, Work, before, is_chosen};
use crate::{Policy, PublishError, entry};

/// The manifest inside a package.
const MANIFEST: &str = "manifest.xml";
/// How much of a package is read at a time.
const PIECE_BYTES: usize = 256 * 1024;

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
        let mut zip = ZipWriter::new(BufWriter::new(work.place.temporary()?));
        let header = dump_manifest(work.base, self.at);
        let mut manifest = Writer::new(BufWriter::new(work.place.temporary()?), &header)?;
        let mut resources = 0;
        for (member, (uri, stored)) in held.iter().enumerate() {
            let name = format!("resources/{member:05}");
            match add(work, &mut zip, &name, uri, stored).await? {
                Ok(()) => {
                    let mut told = entry::stored(work.records.url(work.base, uri), stored);
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
        let manifest = inner(manifest.finish()?)?;
        zip.start_file(MANIFEST, stored(true)).map_err(failed)?;
        io::copy(&mut BufReader::new(manifest.reopen()?), &mut zip)?;
        let file = inner(zip.finish().map_err(failed)?)?;
        let whole = file.reopen()?;
        let computed = tokio::task::spawn_blocking(move || computed(whole)).await;
        let (length, sha256) = computed.map_err(|error| PublishError::place("a package", error))??;
        // With its digest in the name, a run that was killed replaces no package that a dump names already.
        let short: String = sha256.to_string().chars().take(12).collect();
        let contents = name_with(DUMP_PARTS, self.at, number, &format!("-{short}.xml"));
        let path = name_with(DUMP_PARTS, self.at, number, &format!("-{short}.zip"));
        let about = About { media_type: Some("application/zip".to_owned()), ..About::default() };
        work.place.put_file(&path, file, &about).await?;
        work.place.put_file(&contents, manifest, &xml()).await?;
        work.done.packages += 1;
        // One with gaps is made again by the next dump.
        let entries = (resources == held.len() as u64).then_some(entries);
        Ok(Some(Package { path, contents, at: self.at, entries, sha256, length, resources }))
    }
}

/// Adds a resource to the archive. The inner error is that of its bytes; then nothing of it is in the archive.
async fn add(
    work: &Work<'_>,
    zip: &mut ZipWriter<BufWriter<NamedTempFile>>,
    name: &str,
    uri: &ResourceUri,
    told: &Stored,
) -> Result<Result<(), BodyError>, PublishError> {
    let mut pieces = match work.records.open(uri, told).await {
        Ok(pieces) => pieces,
        Err(error) => return error.of_resource(),
    };
    zip.start_file(name, stored(told.length > u64::from(u32::MAX))).map_err(failed)?;
    loop {
        match pieces.try_next().await {
            Ok(Some(piece)) => zip.write_all(&piece)?,
            Ok(None) => return Ok(Ok(())),
            Err(error) => {
                zip.abort_file().map_err(failed)?;
                return error.of_resource();
            }
        }
    }
}

/// The digest of the entries: equal ones have equal bytes.
fn digest(work: &Work<'_>, held: &[(ResourceUri, Stored)]) -> Result<Sha256, PublishError> {
    let mut writer = Writer::new(Vec::new(), &dump_manifest(work.base, Timestamp::UNIX_EPOCH))?;
    for (uri, stored) in held {
        let told: Entry = entry::stored(work.records.url(work.base, uri), stored);
        writer.write(&told)?;
    }
    Ok(Sha256::of(&writer.finish()?))
}

/// Uncompressed and with a constant date, so that equal members give equal packages.
fn stored(is_large: bool) -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644)
        .large_file(is_large)
}

fn inner(file: BufWriter<NamedTempFile>) -> Result<NamedTempFile, PublishError> {
    file.into_inner().map_err(|error| error.into_error().into())
}

/// Reads the archive once more: its headers were written again, so no digest could be computed on the way.
fn computed(mut file: File) -> io::Result<(u64, Sha256)> {
    let mut hasher = Hasher::new([]);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            count => hasher.update(&piece[..count]),
        }
    }
    Ok((hasher.length(), hasher.finish().sha256()))
}

fn failed(error: zip::result::ZipError) -> PublishError {
    PublishError::place("a package", error)
}
