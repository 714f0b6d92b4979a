//! The copy of a catalog that a moved Source begins with.

use catalog::{Batch, Catalog};
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{Phase, SourceId};
use store::{SourceMarker, SourceMove, Store};
use url::Url;

use crate::exit::{Failed, usage};
use crate::target;

/// Records removed per batch.
const BATCH: usize = 1_000;

/// Refuses to move a Source whose last run is not finished: its pending work is of the former URL.
pub(super) async fn may_move(store: &Store, left: &SourceMarker, into: &str) -> Result<(), Failed> {
    let catalog = target::read_catalog(store, &left.source).await?;
    let last = catalog.last_run().await?;
    catalog.close().await.ok();
    match last {
        Some(run) if run.phase == Phase::Finished => Ok(()),
        _ => Err(usage(format!(
            "{} has a run that is not finished; finish it first, with `thresher sync {} --into {into}`",
            left.source, left.url
        ))),
    }
}

/// Copies the catalog, and removes from the copy what is of the former URL alone.
pub(super) async fn copy(store: &Store, left: SourceMarker, to: &Url) -> Result<SourceMove, Failed> {
    let new = SourceId::of_entry(to);
    let mut moved = SourceMove {
        source: left.source,
        url: left.url,
        to: new.clone(),
        to_url: to.to_string(),
        at: Timestamp::now(),
        is_whole: false,
    };
    store.note_move(&moved).await?;
    // Opened and closed: no other process writes to it any more, and all that it has is in its files.
    target::open_catalog(store, &moved.source).await?.close().await?;
    store.copy_catalog(&moved.source, &new).await?;
    let catalog = target::open_catalog(store, &new).await?;
    forget_the_former(&catalog).await?;
    index_digests(&catalog).await?;
    catalog.close().await?;
    store.note_source(&SourceMarker { source: new, url: moved.to_url.clone() }).await?;
    moved.is_whole = true;
    store.note_move(&moved).await?;
    Ok(moved)
}

/// Removes sets, documents, packages and problems. Resources, their versions and the change log stay. Resources stay
/// members of sets that are not known any more, which counts for nothing.
async fn forget_the_former(catalog: &Catalog) -> Result<(), Failed> {
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
    let mut problems = catalog.scan_problems().await?;
    while let Some((subject, _)) = problems.try_next().await? {
        batch.delete_problem(&subject);
        commit_many(catalog, &mut batch).await?;
    }
    Ok(catalog.commit(batch).await?)
}

/// Records which digests are stored, so that the run that follows finds bytes which the new lists name by another URI.
async fn index_digests(catalog: &Catalog) -> Result<(), Failed> {
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

async fn commit_many(catalog: &Catalog, batch: &mut Batch) -> Result<(), Failed> {
    if batch.len() >= BATCH {
        catalog.commit(std::mem::take(batch)).await?;
    }
    Ok(())
}
