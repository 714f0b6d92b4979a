//! The location of a harvest, and its Sources.

use std::path::PathBuf;

use catalog::{Catalog, CatalogConfig, CatalogError, CatalogReader};
use model::SourceId;
use store::{SourceMarker, Store, StoreError, StoreOptions, StoreTarget};
use url::Url;

use crate::exit::{Failed, usage};
use crate::values::source_id;

/// The default directory of a Source: its host.
pub(crate) fn default_directory(url: &Url) -> Result<String, Failed> {
    let host =
        url.host_str().ok_or_else(|| usage(format!("{url} has no host; pass an http or https URL")))?;
    // An IPv6 address in brackets is a poor file name.
    Ok(format!("./{}", host.trim_matches(['[', ']']).replace(':', "-")))
}

/// Parses `--into`.
pub(crate) fn parse(into: &str) -> Result<StoreTarget, Failed> {
    into.parse().map_err(usage)
}

/// Parses `--into` of a command that writes into catalogs. A bucket may belong to a fleet, whose schedulers own its
/// catalogs: `instead` says what else can be done.
pub(crate) fn parse_to_write(into: &str, exclusive: bool, instead: &str) -> Result<StoreTarget, Failed> {
    let target = parse(into)?;
    if matches!(target, StoreTarget::S3 { .. }) && !exclusive {
        return Err(usage(format!(
            "{into} may belong to a fleet, and only the fleet's scheduler may write to its catalogs. {instead}"
        )));
    }
    Ok(target)
}

/// The location of a harvest, in messages.
pub(crate) fn place(store: &Store) -> String {
    store.directory().map_or_else(|| store.root().to_owned(), |directory| directory.display().to_string())
}

/// The catalog of a Source, as a key prefix of the store.
pub(crate) fn catalog_path(source: &SourceId) -> String {
    store::Key::Catalog(source.clone()).to_string()
}

/// Opens a store for writing.
pub(crate) async fn open_store(target: &StoreTarget) -> Result<Store, StoreError> {
    Store::open(target, StoreOptions::default()).await
}

/// Opens a store for reading: nothing is created.
pub(crate) async fn open_store_read_only(target: &StoreTarget) -> Result<Store, StoreError> {
    Store::open(target, StoreOptions { read_only: true, ..StoreOptions::default() }).await
}

/// Opens the catalog of a Source for writing.
pub(crate) async fn open_catalog(store: &Store, source: &SourceId) -> Result<Catalog, CatalogError> {
    Catalog::open(store.object_store(), &catalog_path(source), CatalogConfig::default()).await
}

/// Whether a Source has a catalog.
pub(crate) async fn has_catalog(store: &Store, source: &SourceId) -> Result<bool, CatalogError> {
    Catalog::exists(&store.object_store(), &catalog_path(source)).await
}

/// Opens the catalog of a Source for reading.
pub(crate) async fn read_catalog(store: &Store, source: &SourceId) -> Result<CatalogReader, CatalogError> {
    CatalogReader::open(store.object_store(), &catalog_path(source), CatalogConfig::default()).await
}

/// A Source's URL for display: users and passwords, which earlier versions stored in it, are removed.
pub(crate) fn shown_url(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut parsed) if !parsed.username().is_empty() || parsed.password().is_some() => {
            // Neither fails: a URL with a user or password has a host.
            let _ = (parsed.set_username(""), parsed.set_password(None));
            parsed.into()
        }
        _ => url.to_owned(),
    }
}

/// A harvest that is opened for reading.
pub(crate) struct OpenHarvest {
    pub(crate) store: Store,
    pub(crate) sources: Vec<(SourceMarker, CatalogReader)>,
}

/// Refuses a directory without a harvest.
pub(crate) fn must_hold_a_harvest(target: &StoreTarget) -> Result<(), Failed> {
    let StoreTarget::Directory(directory) = target else { return Ok(()) };
    let data: PathBuf = directory.join(".thresher");
    if data.is_dir() {
        return Ok(());
    }
    Err(usage(format!(
        "{} is not a harvest directory: .thresher/ is missing. Pass the directory of an earlier sync with --into",
        directory.display()
    )))
}

/// Sources that an error names.
const SOURCES_SHOWN: usize = 10;

/// Opens the named Source of a harvest for reading, by its ID or its URL; all of them without a name. Creates nothing
/// if there is none.
pub(crate) async fn open_for_reading(into: &str, named: Option<&str>) -> Result<OpenHarvest, Failed> {
    let (store, notes) = find_sources(into, named).await?;
    let mut sources = Vec::with_capacity(notes.len());
    for note in notes {
        let reader = read_catalog(&store, &note.source).await?;
        sources.push((note, reader));
    }
    Ok(OpenHarvest { store, sources })
}

/// Opens the named Source of a harvest for reading; without a name, the only one.
pub(crate) async fn open_one(
    into: &str,
    named: Option<&str>,
) -> Result<(Store, SourceMarker, CatalogReader), Failed> {
    let (store, mut notes) = find_sources(into, named).await?;
    if notes.len() > 1 {
        let problem = format!("{} has {} Sources", place(&store), notes.len());
        return Err(name_one(&problem, &notes));
    }
    let note = notes.remove(0);
    let reader = read_catalog(&store, &note.source).await?;
    Ok((store, note, reader))
}

/// The Sources of a store, without those that were moved: the new Source has all that they store.
pub(crate) async fn sources_in_use(store: &Store) -> Result<Vec<SourceMarker>, StoreError> {
    let mut notes = store.sources().await?;
    let moves = store.moves().await?;
    notes.retain(|note| !moves.iter().any(|moved| moved.is_whole && moved.source == note.source));
    Ok(notes)
}

/// The Sources of a harvest, at least one. No catalog is opened: a fleet's store may have thousands.
pub(crate) async fn find_sources(
    into: &str,
    named: Option<&str>,
) -> Result<(Store, Vec<SourceMarker>), Failed> {
    let target = parse(into)?;
    must_hold_a_harvest(&target)?;
    let store = open_store_read_only(&target).await?;
    let mut notes = match named {
        Some(named) => store.source(&source_id(named)?).await?.into_iter().collect(),
        None => sources_in_use(&store).await?,
    };
    for note in &mut notes {
        note.url = shown_url(&note.url);
    }
    if !notes.is_empty() {
        return Ok((store, notes));
    }
    let Some(named) = named else {
        return Err(usage(format!(
            "{} has no harvest; run `thresher sync <url> --into …` first",
            store.root()
        )));
    };
    Err(name_one(&format!("{} has no Source {named}", place(&store)), &store.sources().await?))
}

/// The error of a command that needs one of these Sources.
pub(crate) fn name_one(problem: &str, notes: &[SourceMarker]) -> Failed {
    let shown: Vec<_> = notes.iter().take(SOURCES_SHOWN).map(|note| note.source.as_str()).collect();
    let more = match notes.len().saturating_sub(shown.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    usage(format!("{problem}; name one by its URL or ID: {}{more}", shown.join(", ")))
}
