//! Archives of dumps (§11, §13): ZIP files with the bytes of some resources, and their manifest.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};

use fixity::{Hasher, Sha256};
use futures::TryStreamExt as _;
use jiff::Timestamp;
use model::ResourceUri;
use tempfile::NamedTempFile;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use crate::PublishError;
use crate::paths::name_with;
use crate::place::{About, Place, xml};
use crate::records::{BodyError, Stored};
use crate::work::Work;

/// The manifest inside a package.
const MANIFEST: &str = "manifest.xml";
/// How much of a package is read at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// An archive in the making, in a temporary file.
pub(crate) struct Archive {
    zip: ZipWriter<BufWriter<NamedTempFile>>,
}

/// The files of a package, as they were written.
pub(crate) struct PackageFiles {
    /// The path of the package.
    pub(crate) path: String,
    /// The path of the copy of its manifest.
    pub(crate) contents: String,
    /// Its digest.
    pub(crate) sha256: Sha256,
    /// Its length.
    pub(crate) length: u64,
}

/// The name of a member, by its number.
pub(crate) fn member(number: u64) -> String {
    format!("resources/{number:05}")
}

/// What is told of an archive.
pub(crate) fn zip() -> About {
    About { media_type: Some("application/zip".to_owned()), ..About::default() }
}

impl Archive {
    pub(crate) fn begin(place: &Place) -> Result<Self, PublishError> {
        Ok(Self { zip: ZipWriter::new(BufWriter::new(place.temporary()?)) })
    }

    /// Adds a resource. The inner error is that of its bytes; then nothing of it is in the archive.
    pub(crate) async fn add(
        &mut self,
        work: &Work<'_>,
        name: &str,
        uri: &ResourceUri,
        told: &Stored,
    ) -> Result<Result<(), BodyError>, PublishError> {
        let mut pieces = match work.records.open(uri, told).await {
            Ok(pieces) => pieces,
            Err(error) => return error.of_resource(),
        };
        self.zip.start_file(name, stored(told.length > u64::from(u32::MAX))).map_err(failed)?;
        loop {
            match pieces.try_next().await {
                Ok(Some(piece)) => self.zip.write_all(&piece)?,
                Ok(None) => return Ok(Ok(())),
                Err(error) => {
                    self.zip.abort_file().map_err(failed)?;
                    return error.of_resource();
                }
            }
        }
    }

    /// Adds all members of another archive. Returns their names. It copies without leaving its thread, so it has one of
    /// its own: a server answers meanwhile.
    pub(crate) async fn join(mut self, other: File) -> Result<(Self, Vec<String>), PublishError> {
        let joined = tokio::task::spawn_blocking(move || {
            let archive = ZipArchive::new(BufReader::new(other))?;
            let names = archive.file_names().map(|name| Ok(name?.into_owned()));
            let names = names.collect::<Result<_, ZipError>>()?;
            self.zip.merge_archive(archive)?;
            Ok((self, names))
        });
        joined.await.map_err(|error| PublishError::place("a package", error))?.map_err(failed)
    }

    /// All of it, as a temporary file.
    pub(crate) fn finish(self) -> Result<NamedTempFile, PublishError> {
        inner(self.zip.finish().map_err(failed)?)
    }

    /// Adds the manifest, and writes the package and the copy of its manifest into a folder.
    pub(crate) async fn package(
        mut self,
        work: &Work<'_>,
        manifest: BufWriter<NamedTempFile>,
        folder: &str,
        at: Timestamp,
        number: usize,
    ) -> Result<PackageFiles, PublishError> {
        let manifest = inner(manifest)?;
        self.zip.start_file(MANIFEST, stored(true)).map_err(failed)?;
        io::copy(&mut BufReader::new(manifest.reopen()?), &mut self.zip)?;
        let file = self.finish()?;
        let (length, sha256) = measured(&file).await?;
        // A run that was killed replaces no package that a dump names already.
        let short = short(&sha256);
        let contents = name_with(folder, at, number, &format!("-{short}.xml"));
        let path = name_with(folder, at, number, &format!("-{short}.zip"));
        work.place.put_file(&path, file, &zip()).await?;
        work.place.put_file(&contents, manifest, &xml()).await?;
        Ok(PackageFiles { path, contents, sha256, length })
    }
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

/// The length and the digest of a finished archive.
pub(crate) async fn measured(file: &NamedTempFile) -> Result<(u64, Sha256), PublishError> {
    let whole = file.reopen()?;
    let computed = tokio::task::spawn_blocking(move || computed(whole)).await;
    Ok(computed.map_err(|error| PublishError::place("a package", error))??)
}

/// What the name of an archive has of its digest: so none is written over another one.
pub(crate) fn short(sha256: &Sha256) -> String {
    sha256.to_string().chars().take(12).collect()
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

fn failed(error: ZipError) -> PublishError {
    PublishError::place("a package", error)
}
