//! `thresher export`: what is held, as a Resource Dump that any Destination can read.

mod documents;
mod package;

use std::path::{Path, PathBuf};

use catalog::CatalogReader;
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{Bitstream, ResourceRecord, ResourceUri};
use store::{SourceNote, Store, StoreError};
use url::Url;

use crate::cli::{ExportArgs, ExportFormat};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use package::{Described, PackageWriter};

/// Entries of one package (a list has 50,000 at most, as a Sitemap does).
const ENTRIES: u64 = 50_000;
/// A package is closed once it has so many bytes.
const PACKAGE_BYTES: u64 = 1024 * 1024 * 1024;

/// What was exported.
#[derive(Debug, Default)]
struct Exported {
    resources: u64,
    bytes: u64,
    /// Resources that the catalog names and the store has not as they were judged.
    damaged: u64,
    packages: Vec<package::Closed>,
}

/// Runs the command.
pub(crate) async fn run(args: ExportArgs) -> CommandResult {
    let ExportFormat::Resourcedump = args.format;
    let harvested = target::open_for_reading(&args.harvest.into).await?;
    let catalog = one_of(&harvested.sources, args.source.as_deref())?;
    let directory = empty_directory(&args.directory)?;
    let base = base_of(args.base)?;
    let at = Timestamp::now();
    let exported = packages(&harvested.store, catalog, &directory, at, args.prefix.as_deref()).await?;
    // Last of all: a dump that is not whole has no document that names it.
    let written = documents::write(&directory, &base, at, &exported.packages);
    written.map_err(|error| {
        usage(format!("cannot write the dump's documents in {}: {error}", directory.display()))
    })?;
    println!(
        "{} resources, {} bytes, in {} packages: {}",
        exported.resources,
        exported.bytes,
        exported.packages.len(),
        directory.join(documents::DUMP).display()
    );
    if exported.damaged == 0 {
        return Ok(Exit::Good);
    }
    eprintln!("left out, as said above: {} of the resources that are held", exported.damaged);
    Ok(Exit::Problems)
}

/// The Source to be exported: the only one, or the one that was named.
fn one_of<'a>(
    sources: &'a [(SourceNote, CatalogReader)],
    wanted: Option<&str>,
) -> Result<&'a CatalogReader, Failed> {
    let is_wanted =
        |note: &SourceNote| wanted.is_none_or(|wanted| note.source.as_str() == wanted || note.url == wanted);
    let mut found = sources.iter().filter(|(note, _)| is_wanted(note));
    match (found.next(), found.next()) {
        (Some((_, catalog)), None) => Ok(catalog),
        (None, _) => Err(usage(format!("no Source {} lies here", wanted.unwrap_or_default()))),
        (Some(_), Some(_)) => {
            let names: Vec<String> = sources.iter().map(|(note, _)| note.source.to_string()).collect();
            Err(usage(format!("several Sources lie here; say which one with --source: {}", names.join(", "))))
        }
    }
}

/// A dump is made where nothing is yet, so that nothing is overwritten and nothing old is mistaken for a part of it.
fn empty_directory(directory: &Path) -> Result<PathBuf, Failed> {
    fs_err::create_dir_all(directory)?;
    if fs_err::read_dir(directory)?.next().is_some() {
        return Err(usage(format!("{} is not empty; give a new directory", directory.display())));
    }
    Ok(directory.to_owned())
}

/// The URL under which the directory will be served, with a slash at its end.
fn base_of(mut base: Url) -> Result<Url, Failed> {
    if !matches!(base.scheme(), "http" | "https") {
        return Err(usage(format!(
            "{base} is no http or https URL; give the one under which the directory will be served"
        )));
    }
    if !base.path().ends_with('/') {
        base.set_path(&format!("{}/", base.path()));
    }
    Ok(base)
}

async fn packages(
    store: &Store,
    catalog: &CatalogReader,
    directory: &Path,
    at: Timestamp,
    prefix: Option<&str>,
) -> Result<Exported, Failed> {
    let mut exported = Exported::default();
    let mut open: Option<PackageWriter> = None;
    let mut resources = catalog.scan_resources(prefix, None).await?;
    while let Some((uri, record)) = resources.try_next().await? {
        let Some(bitstream) = &record.bitstream else { continue };
        if open
            .as_ref()
            .is_some_and(|package| package.entries() >= ENTRIES || package.bytes() >= PACKAGE_BYTES)
            && let Some(full) = open.take()
        {
            exported.packages.push(full.close().await?);
        }
        let package = match &mut open {
            Some(package) => package,
            none => none.insert(PackageWriter::create(directory, exported.packages.len(), at)?),
        };
        match add(store, package, &uri, &record, bitstream).await? {
            None => {
                exported.resources += 1;
                exported.bytes += bitstream.computed.length();
            }
            Some(damage) => {
                exported.damaged += 1;
                eprintln!("{uri} is left out: {damage}");
            }
        }
    }
    if let Some(last) = open {
        exported.packages.push(last.close().await?);
    }
    Ok(exported)
}

/// Adds a resource, judged once more as its bytes pass. Gives what is wrong with what lies in the store; then nothing of it
/// is in the package.
async fn add(
    store: &Store,
    package: &mut PackageWriter,
    uri: &ResourceUri,
    record: &ResourceRecord,
    bitstream: &Bitstream,
) -> Result<Option<StoreError>, Failed> {
    let mut bytes = match store.open_verified(bitstream).await {
        Ok(bytes) => bytes,
        Err(error @ (StoreError::NotFound { .. } | StoreError::Damaged { .. })) => return Ok(Some(error)),
        Err(error) => return Err(error.into()),
    };
    package.begin(Described::of(uri, record, bitstream)).await?;
    loop {
        match bytes.try_next().await {
            Ok(Some(chunk)) => package.write(chunk).await?,
            Ok(None) => break,
            Err(error @ (StoreError::NotFound { .. } | StoreError::Damaged { .. })) => {
                package.give_up().await?;
                return Ok(Some(error));
            }
            Err(error) => return Err(error.into()),
        }
    }
    package.end().await?;
    Ok(None)
}
