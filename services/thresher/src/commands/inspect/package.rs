//! A package as JSON lines: its kind, its manifest entry by entry with the member of each, and the unlisted
//! members.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use packages::zip::{self, Directory, MemberReader};
use packages::{
    Compression, Kind, Limits, ManifestFinder, PackageError, Packaging, ReadAhead, ReadAt, SNIFF_BYTES,
    sniff, tar,
};
use resourcesync::{Entry, Item, Options, Reader};
use serde::Serialize;
use tokio_util::io::SyncIoBridge;

use super::Lines;
use crate::exit::{CommandResult, Failed};
use crate::terminal::note;

/// The first line.
#[derive(Serialize)]
struct PackageLine<'a> {
    package: String,
    name: &'a str,
    length: u64,
    members: u64,
    manifest: &'a str,
    /// Whether its manifest is not at the specified path (RS-33).
    odd_place: bool,
}

/// A member of a package.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Member {
    name: String,
    length: u64,
    /// In a ZIP: the stored length in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_length: Option<u64>,
    /// In a ZIP: the number of its compression method.
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<u16>,
}

impl Member {
    fn of_zip(member: &zip::Member<'_>) -> Self {
        Self {
            name: member.name().into_owned(),
            length: member.size,
            stored_length: Some(member.compressed_size),
            method: Some(member.method),
        }
    }
}

/// A member without an entry.
#[derive(Serialize)]
struct UnlistedLine<'a> {
    unlisted: &'a Member,
}

/// A local file, read as a package.
#[derive(Debug, Clone)]
struct LocalFile {
    file: Arc<File>,
    length: u64,
}

#[async_trait]
impl ReadAt for LocalFile {
    fn len(&self) -> u64 {
        self.length
    }

    async fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let file = Arc::clone(&self.file);
        let read = move || {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, offset).map(|()| bytes.into())
        };
        tokio::task::spawn_blocking(read).await?
    }
}

/// The kind of a package, if a file is one. A compressed document looks like a compressed tar, so there its
/// name decides.
pub(super) fn packaging(path: &Path) -> io::Result<Option<Packaging>> {
    let mut first = Vec::with_capacity(SNIFF_BYTES);
    File::open(path)?.take(SNIFF_BYTES as u64).read_to_end(&mut first)?;
    Ok(match sniff(&first) {
        Ok(found @ (Packaging::Zip | Packaging::Tar(Compression::Plain))) => Some(found),
        Ok(found) if is_named_like_a_package(path) => Some(found),
        _ => None,
    })
}

fn is_named_like_a_package(path: &Path) -> bool {
    let name = path.to_string_lossy();
    Entry::new(name.as_ref()).names_package() || name.ends_with(".tar.zst")
}

/// Prints a package.
pub(super) async fn run(path: &Path, name: &str, packaging: Packaging, options: Options) -> CommandResult {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let file = LocalFile { file: Arc::new(file), length };
    match packaging {
        Packaging::Zip => of_zip(file, name, options).await,
        Packaging::Tar(_) => of_tar(file, name, options).await,
    }
}

async fn of_zip(file: LocalFile, name: &str, options: Options) -> CommandResult {
    let directory = Directory::open(&file, &Limits::default()).await?;
    let (member, manifest) = directory.manifest()?;
    let mut out = Lines::new(name);
    out.line(&PackageLine {
        package: Packaging::Zip.to_string(),
        name,
        length: file.length,
        members: directory.len().into(),
        manifest: &manifest.name,
        odd_place: manifest.odd.is_some(),
    })?;
    let index = member.index;
    let place = member.place();
    let data = directory.locate(&file, &member).await?;
    let reader = MemberReader::new(file, data, ReadAhead::default()).of(place);
    let bridge = SyncIoBridge::new(reader.into_async_read());
    let mut listed = vec![false; directory.len() as usize];
    listed[index as usize] = true;
    // The document parser pulls, so it works on this thread while the runtime reads ahead.
    tokio::task::block_in_place(|| {
        entries(&mut out, bridge, options, |path| {
            let (found, _) = directory.find_path(path)?;
            listed[found.index as usize] = true;
            Some(Member::of_zip(&found))
        })
    })?;
    let is_unlisted =
        |member: &zip::Member<'_>| member.kind != Kind::Folder && !listed[member.index as usize];
    for member in directory.members().filter(is_unlisted) {
        out.line(&UnlistedLine { unlisted: &Member::of_zip(&member) })?;
    }
    out.finish()
}

/// A tar has no directory: it is read once to learn its members, and once more for the manifest, which may be
/// long.
async fn of_tar(file: LocalFile, name: &str, options: Options) -> CommandResult {
    let length = file.length;
    let open = async || {
        let source = packages::range_reader(file.clone(), 0..length, ReadAhead::default());
        tar::Entries::open(source, &Limits::default()).await
    };
    let mut passing = open().await?;
    let package = passing.packaging().to_string();
    let mut members: HashMap<String, Option<Member>> = HashMap::new();
    let mut finder = ManifestFinder::default();
    let mut count = 0;
    while let Some(item) = passing.next().await? {
        count += 1;
        match item {
            tar::Item::Refused(error) => note!("{name}: a member that is not read: {error}"),
            tar::Item::Member(member) => {
                let name = member.name().into_owned();
                finder.see_at(member.index, &name);
                let found =
                    Member { name: name.clone(), length: member.size, stored_length: None, method: None };
                members.insert(name, Some(found));
            }
        }
    }
    let manifest = finder.finish()?;
    let mut passing = open().await?;
    loop {
        match passing.next().await? {
            Some(tar::Item::Member(member)) if member.index == manifest.index => break,
            Some(_) => {}
            // The file was replaced meanwhile.
            None => return Err(PackageError::NoManifest { members: count }.into()),
        }
    }
    let mut out = Lines::new(name);
    out.line(&PackageLine {
        package,
        name,
        length,
        members: count,
        manifest: &manifest.name,
        odd_place: manifest.odd.is_some(),
    })?;
    members.remove(&manifest.name);
    let bridge = SyncIoBridge::new(Box::pin(passing.reader()));
    tokio::task::block_in_place(|| {
        entries(&mut out, bridge, options, |path| {
            let candidates = packages::path_candidates(path);
            candidates.iter().find_map(|(name, _)| members.get_mut(name.as_ref())?.take())
        })
    })?;
    let mut unlisted: Vec<Member> = members.into_values().flatten().collect();
    unlisted.sort_by(|a, b| a.name.cmp(&b.name));
    for member in &unlisted {
        out.line(&UnlistedLine { unlisted: member })?;
    }
    out.finish()
}

/// The manifest's lines, each entry with the member that `find` returns for its path.
fn entries(
    out: &mut Lines<'_>,
    manifest: impl Read,
    options: Options,
    mut find: impl FnMut(&str) -> Option<Member>,
) -> Result<(), Failed> {
    let mut reader = Reader::new(manifest, options)?;
    out.header(reader.header()?)?;
    while let Some(item) = reader.next()? {
        let member = match &item {
            Item::Entry(entry) => entry.metadata.path.as_deref().map(&mut find),
            Item::Bad(_) => None,
        };
        out.item(&item, member)?;
    }
    out.summary(reader.summary())
}
