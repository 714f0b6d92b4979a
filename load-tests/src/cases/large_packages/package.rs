//! The package: generated from a seed, member by member, with only its directory in memory.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use data_encoding::HEXLOWER;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest as _, Sha256};
use simulated_source::Expected;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::content::{Content, Vocabulary};

/// One of this many members is a deflated text; the others are stored.
const TEXT_EVERY: u64 = 5;
/// The level of archivers that prefer speed.
const LEVEL: i64 = 1;
const BUFFER: usize = 1 << 20;
/// The last change of everything.
const AT: &str = "2025-12-01T00:00:00Z";
/// The declared base URL of the resources. No server listens there: a resource that the package lacks is a
/// problem.
const RESOURCES: &str = "http://127.0.0.1:9/resources";
const NAMESPACES: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
    xmlns:rs=\"http://www.openarchives.org/rs/terms/\"";

/// The profile of a package's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Profile {
    /// Of 4,000 to 53,000 bytes each.
    Small,
    /// Of 250,000,000 bytes each.
    Large,
}

/// A written package.
#[derive(Debug)]
pub(super) struct Package {
    /// Its members, without the manifest.
    pub(super) members: Vec<Expected>,
    /// Bytes of the archive.
    pub(super) bytes: u64,
    /// Of the archive, in lower-case hex.
    pub(super) sha256: String,
    /// Inflated bytes of all members.
    pub(super) content: u64,
    /// Whether its members, or its bytes, need ZIP64.
    pub(super) is_zip64: bool,
}

impl Profile {
    /// The bytes of a member.
    fn length(self, member: u64) -> u64 {
        match self {
            Self::Small => 4_000 + u64::from(ChaCha8Rng::seed_from_u64(!member).next_u32() % 49_001),
            Self::Large => 250_000_000,
        }
    }
}

/// Writes a package of this many members to `path`. A copy of the first `sample` bytes of their content goes
/// into a file of its own.
pub(super) fn write(
    path: &Path,
    profile: Profile,
    members: u64,
    sample: (&Path, u64),
) -> anyhow::Result<Package> {
    let manifest_path = path.with_extension("manifest");
    let mut manifest = BufWriter::new(File::create(&manifest_path)?);
    writeln!(manifest, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset {NAMESPACES}>")?;
    writeln!(manifest, "  <rs:md capability=\"resourcedump-manifest\" at=\"{AT}\"/>")?;
    let mut copy = BufWriter::new(File::create(sample.0)?);
    let mut copied = 0;
    let mut archive = ZipWriter::new(BufWriter::with_capacity(BUFFER, File::create(path)?));
    let vocabulary = Vocabulary::new();
    let mut expected = Vec::new();
    let mut content = 0;
    for member in 0..members {
        let is_text = member % TEXT_EVERY == TEXT_EVERY - 1;
        let length = profile.length(member);
        let name = name(member);
        archive.start_file(&name, options(is_text))?;
        let mut digest = Sha256::new();
        let mut pieces = Content::new(member, length, is_text.then_some(&vocabulary));
        while let Some(piece) = pieces.next() {
            digest.update(piece);
            archive.write_all(piece)?;
            let wanted = (sample.1 - copied).min(piece.len() as u64);
            copy.write_all(&piece[..wanted as usize])?;
            copied += wanted;
        }
        let uri = format!("{RESOURCES}/{name}");
        let sha256 = HEXLOWER.encode(&digest.finalize());
        writeln!(
            manifest,
            "  <url><loc>{uri}</loc><lastmod>{AT}</lastmod>\
             <rs:md hash=\"sha-256:{sha256}\" length=\"{length}\" path=\"/{name}\"/></url>"
        )?;
        expected.push(Expected { uri, length, sha256 });
        content += length;
    }
    writeln!(manifest, "</urlset>")?;
    manifest.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    copy.flush()?;
    // It is known only now, so it comes last, as in any program that writes its packages in one pass.
    archive.start_file("manifest.xml", options(true))?;
    io::copy(&mut BufReader::new(File::open(&manifest_path)?), &mut archive)?;
    archive.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::remove_file(manifest_path)?;
    let (bytes, sha256) = digest(path)?;
    Ok(Package { members: expected, bytes, sha256, content, is_zip64: is_zip64(path)? })
}

/// The length of a file, and its sha-256 in lower-case hex.
fn digest(path: &Path) -> io::Result<(u64, String)> {
    let mut file = BufReader::with_capacity(BUFFER, File::open(path)?);
    let mut bytes = 0;
    let mut digest = Sha256::new();
    loop {
        let piece = file.fill_buf()?;
        let length = piece.len();
        if length == 0 {
            return Ok((bytes, HEXLOWER.encode(&digest.finalize())));
        }
        digest.update(piece);
        bytes += length as u64;
        file.consume(length);
    }
}

/// Whether a ZIP64 locator is before the 22 bytes of the end (APPNOTE 4.3.15).
fn is_zip64(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-42))?;
    let mut signature = [0; 4];
    file.read_exact(&mut signature)?;
    Ok(signature == *b"PK\x06\x07")
}

/// Writes a Resource Dump of this one package, which is served at `url`.
pub(super) fn write_dump(path: &Path, package: &Package, url: &str) -> io::Result<()> {
    let Package { bytes, sha256, .. } = package;
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset {NAMESPACES}>\n  \
         <rs:md capability=\"resourcedump\" at=\"{AT}\"/>\n  <url><loc>{url}</loc><lastmod>{AT}</lastmod>\
         <rs:md type=\"application/zip\" hash=\"sha-256:{sha256}\" length=\"{bytes}\"/></url>\n</urlset>\n"
    );
    fs::write(path, text)
}

/// A thousand per folder, as people would arrange them.
fn name(member: u64) -> String {
    let end = if member % TEXT_EVERY == TEXT_EVERY - 1 { "txt" } else { "bin" };
    format!("{:04}/{member:07}.{end}", member / 1000)
}

fn options(is_text: bool) -> SimpleFileOptions {
    let method = if is_text { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    // The earliest time that a ZIP can express, so that equal members give equal packages.
    SimpleFileOptions::default()
        .compression_method(method)
        .compression_level(is_text.then_some(LEVEL))
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use zip::ZipArchive;

    use super::*;
    use crate::check::sha256;

    fn written(members: u64) -> (Package, Vec<u8>, Vec<u8>) {
        let folder = TempDir::new().unwrap();
        let (path, sample) = (folder.path().join("p.zip"), folder.path().join("sample"));
        let package = write(&path, Profile::Small, members, (&sample, 100_000)).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        (package, fs::read(&path).unwrap(), fs::read(&sample).unwrap())
    }

    #[test]
    fn a_package_holds_what_its_manifest_and_its_description_say() {
        let (package, bytes, sample) = written(10);
        assert_eq!((package.bytes, &package.sha256), (bytes.len() as u64, &sha256(&bytes)));
        let mut archive = ZipArchive::new(io::Cursor::new(bytes)).unwrap();
        assert_eq!(archive.len(), 11);
        let mut manifest = String::new();
        archive.by_name("manifest.xml").unwrap().read_to_string(&mut manifest).unwrap();
        let mut methods = Vec::new();
        let mut all = Vec::new();
        for (n, expected) in package.members.iter().enumerate() {
            let mut member = archive.by_index(n).unwrap();
            methods.push(member.compression());
            let mut content = Vec::new();
            member.read_to_end(&mut content).unwrap();
            assert_eq!((content.len() as u64, sha256(&content)), (expected.length, expected.sha256.clone()));
            let Expected { uri, length, sha256 } = expected;
            let entry = format!(
                "<loc>{uri}</loc><lastmod>{AT}</lastmod><rs:md hash=\"sha-256:{sha256}\" length=\"{length}\" path=\"/{}\"/>",
                member.name().unwrap()
            );
            assert!(manifest.contains(&entry), "{entry}");
            all.extend(content);
        }
        assert_eq!((package.content, package.is_zip64), (all.len() as u64, false));
        assert_eq!(sample, all[..100_000]);
        assert_eq!(methods.iter().filter(|method| **method == CompressionMethod::Deflated).count(), 2);
    }

    #[test]
    fn the_same_members_give_the_same_package() {
        assert_eq!(written(7).1, written(7).1);
    }
}
