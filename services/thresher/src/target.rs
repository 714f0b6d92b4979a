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

impl OpenHarvest {
    /// Only the named Source, by its name or its URL; all of them without a name.
    pub(crate) fn only(mut self, named: Option<&str>) -> Result<Self, Failed> {
        if let Some(named) = named {
            let id = source_id(named)?;
            self.sources.retain(|(note, _)| note.source == id);
            if self.sources.is_empty() {
                let place = place(&self.store);
                return Err(usage(format!("{place} has no Source {named}; leave out --source to see all")));
            }
        }
        Ok(self)
    }

    /// The named Source, by its ID or its URL; without a name, the only one.
    pub(crate) fn one(&self, named: Option<&str>) -> Result<&(SourceMarker, CatalogReader), Failed> {
        let id = named.map(source_id).transpose()?;
        let is_meant = |marker: &SourceMarker| id.as_ref().is_none_or(|id| marker.source == *id);
        let mut meant = self.sources.iter().filter(|(marker, _)| is_meant(marker));
        if let (Some(one), None) = (meant.next(), meant.next()) {
            return Ok(one);
        }
        let place = place(&self.store);
        let ids: Vec<_> = self.sources.iter().map(|(marker, _)| marker.source.as_str()).collect();
        let ids = ids.join(", ");
        Err(usage(match named {
            Some(named) => format!("{place} has no Source {named}; name one of: {ids}"),
            None => format!("{place} has {} Sources; name one by its URL or ID: {ids}", self.sources.len()),
        }))
    }
}

/// Opens a harvest for reading. Creates nothing if there is none.
pub(crate) async fn open_for_reading(into: &str) -> Result<OpenHarvest, Failed> {
    let target = parse(into)?;
    must_hold_a_harvest(&target)?;
    let store = open_store_read_only(&target).await?;
    let mut sources = Vec::new();
    for mut note in store.sources().await? {
        note.url = shown_url(&note.url);
        let reader = read_catalog(&store, &note.source).await?;
        sources.push((note, reader));
    }
    if sources.is_empty() {
        return Err(usage(format!(
            "{} has no harvest; run `thresher sync <url> --into …` first",
            store.root()
        )));
    }
    Ok(OpenHarvest { store, sources })
}
