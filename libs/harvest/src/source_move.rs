//! A move of a Source to another entry URL (docs/adr/0067): the copy of the catalog that the new Source begins with, and
//! how it is taken back.

use catalog::{Batch, Catalog, CatalogConfig, CatalogReader};
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{Bitstream, Phase, SourceId};
use store::{Key, SourceMarker, SourceMove, Store, View};
use url::Url;

use crate::error::HarvestError;

/// Records removed per batch.
const BATCH: usize = 1_000;

/// Whether the last run of a Source is finished. If not, its pending work is of the former URL.
///
/// # Errors
/// Those of the catalog and its store.
pub async fn may_move(store: &Store, source: &SourceId, config: CatalogConfig) -> Result<bool, HarvestError> {
    let catalog = read_catalog(store, source, config).await?;
    let last = catalog.last_run().await?;
    catalog.close().await.ok();
    Ok(last.is_some_and(|run| run.phase == Phase::Finished))
}

/// Copies the catalog of a Source for the Source of another entry URL, and removes from the copy what is of the former
/// URL alone. No other process may write to either catalog. A copy that was interrupted is made anew.
///
/// # Errors
/// Those of the catalogs and their store. Then the copy is not whole, and is to be made again.
pub async fn move_source(
    store: &Store,
    left: SourceMarker,
    to: &Url,
    now: Timestamp,
    config: CatalogConfig,
) -> Result<SourceMove, HarvestError> {
    let new = SourceId::of_entry(to);
    let mut moved = SourceMove {
        source: left.source,
        url: left.url,
        to: new.clone(),
        to_url: to.to_string(),
        at: now,
        is_whole: false,
    };
    store.note_move(&moved).await?;
    // Opened and closed: no other process writes to it any more, and all that it has is in its files.
    open_catalog(store, &moved.source, config.clone()).await?.close().await?;
    store.copy_catalog(&moved.source, &new).await?;
    let catalog = open_catalog(store, &new, config).await?;
    forget_the_former(&catalog).await?;
    index_digests(&catalog).await?;
    catalog.close().await?;
    // The Source keeps its labels, whatever its URL is.
    let labels = store.source(&moved.source).await?.map(|left| left.labels).unwrap_or_default();
    store.note_source(&SourceMarker { labels, ..SourceMarker::new(new, moved.to_url.as_str()) }).await?;
    moved.is_whole = true;
    store.note_move(&moved).await?;
    Ok(moved)
}

/// Removes the Source that another one was moved to, and makes the files of the view those of the former one, whose
/// catalog was not changed. [`Store::forget_move`] completes this. It may be repeated.
///
/// # Errors
/// Those of the catalogs and their store.
pub async fn take_move_back(
    store: &Store,
    moved: &SourceMove,
    config: CatalogConfig,
) -> Result<(), HarvestError> {
    let path = Key::Catalog(moved.to.clone()).to_string();
    if moved.is_whole && Catalog::exists(&store.object_store(), &path).await? {
        // From now on no other process writes to it.
        let new = open_catalog(store, &moved.to, config.clone()).await?;
        if let Some(view) = view_of(store, &new).await? {
            let former = read_catalog(store, &moved.source, config).await?;
            put_files_back(store, &view, &former, &new).await?;
            former.close().await.ok();
        }
        new.close().await?;
    }
    // A catalog that is removed in part is not opened again.
    store.note_move(&SourceMove { is_whole: false, ..moved.clone() }).await?;
    Ok(store.remove_source(&moved.to).await?)
}

async fn open_catalog(
    store: &Store,
    source: &SourceId,
    config: CatalogConfig,
) -> Result<Catalog, HarvestError> {
    let path = Key::Catalog(source.clone()).to_string();
    Ok(Box::pin(Catalog::open(store.object_store(), &path, config)).await?)
}

async fn read_catalog(
    store: &Store,
    source: &SourceId,
    config: CatalogConfig,
) -> Result<CatalogReader, HarvestError> {
    let path = Key::Catalog(source.clone()).to_string();
    Ok(Box::pin(CatalogReader::open(store.object_store(), &path, config)).await?)
}

/// Removes sets, documents, packages and problems. Resources, their versions and the change log stay. Resources stay
/// members of sets that are not known any more, which counts for nothing.
async fn forget_the_former(catalog: &Catalog) -> Result<(), HarvestError> {
    let mut batch = Batch::new();
    for (set, _) in catalog.sets().await? {
        batch.delete_set(&set);
    }
    let mut documents = catalog.scan_documents().await?;
    while let Some((uri, _)) = documents.try_next().await? {
        batch.delete_document(&uri);
        commit_many(catalog, &mut batch).await?;
    }
    let mut packages = catalog.scan_packages().await?;
    while let Some((uri, _)) = packages.try_next().await? {
        batch.delete_package(&uri);
        commit_many(catalog, &mut batch).await?;
    }
    let mut names = catalog.scan_package_names().await?;
    while let Some(((uri, first), _)) = names.try_next().await? {
        batch.delete_package_names(&uri, first);
        commit_many(catalog, &mut batch).await?;
    }
    let mut problems = catalog.scan_problems().await?;
    while let Some((subject, _)) = problems.try_next().await? {
        batch.delete_problem(&subject);
        commit_many(catalog, &mut batch).await?;
    }
    Ok(catalog.commit(batch).await?)
}

/// Records which digests are stored, so that the run that follows finds bytes which the new lists name by another URI.
async fn index_digests(catalog: &Catalog) -> Result<(), HarvestError> {
    let mut batch = Batch::new();
    let mut resources = catalog.scan_resources(None, None).await?;
    while let Some((uri, record)) = resources.try_next().await? {
        for digest in record.bitstream.iter().flat_map(|bitstream| bitstream.computed.digests()) {
            batch.put_held_digest(&digest.to_string(), &uri);
        }
        commit_many(catalog, &mut batch).await?;
    }
    batch.put_adopts(true);
    Ok(catalog.commit(batch).await?)
}

async fn commit_many(catalog: &Catalog, batch: &mut Batch) -> Result<(), HarvestError> {
    if batch.len() >= BATCH {
        catalog.commit(std::mem::take(batch)).await?;
    }
    Ok(())
}

/// The view, if the moved Source writes one.
async fn view_of(store: &Store, new: &Catalog) -> Result<Option<View>, HarvestError> {
    let writes = new.last_run().await?.is_some_and(|run| run.view);
    Ok(store.view().filter(|_| writes))
}

/// Makes the files those of the former catalog.
async fn put_files_back(
    store: &Store,
    view: &View,
    former: &CatalogReader,
    new: &Catalog,
) -> Result<(), HarvestError> {
    let mut resources = new.scan_resources(None, None).await?;
    while let Some((uri, record)) = resources.try_next().await? {
        let was_present = former.resource(&uri).await?.is_some_and(|before| before.is_present());
        if record.is_present() && !was_present {
            view.remove(uri).await?;
        }
    }
    let mut resources = former.scan_resources(None, None).await?;
    while let Some((uri, record)) = resources.try_next().await? {
        let Some(bitstream) = record.bitstream else { continue };
        let now = new.resource(&uri).await?.and_then(|record| record.bitstream);
        if now.is_none_or(|now| !is_same(&now, &bitstream)) {
            store.write_view(&bitstream, view, uri).await?;
        }
    }
    Ok(())
}

fn is_same(one: &Bitstream, other: &Bitstream) -> bool {
    one.computed.sha256() == other.computed.sha256()
}
