//! The documents of a run, in reading order. The queue is in the catalog, so a crash loses nothing.

use std::collections::HashMap;

use catalog::Catalog;
use futures::TryStreamExt;
use model::{DocumentRecord, DocumentState, RunId, SetId};
use resourcesync::Capability;

use crate::error::HarvestError;
use crate::run::natural_order::natural_order;

/// The documents to read next, without those that are read and not planned yet. Lists come before changes, changes in
/// chronological order, whatever order an index has. Call it again when these are read, because an index queues more.
pub(crate) async fn next_documents(
    catalog: &Catalog,
    run: RunId,
    is_read: impl Fn(&str) -> bool,
) -> Result<Vec<(String, DocumentRecord)>, HarvestError> {
    let mut lists = Vec::new();
    let mut changes = Vec::new();
    let mut documents = catalog.scan_documents().await?;
    while let Some((uri, record)) = documents.try_next().await? {
        let waiting = matches!(record.state, DocumentState::Queued | DocumentState::Reading { .. });
        // A hub delivery is redelivered by the bus, and cannot be requested.
        if record.run == run && waiting && !is_notification(&record) && !is_read(&uri) {
            let queue = if record.tells_changes() { &mut changes } else { &mut lists };
            queue.push((uri, record));
        }
    }
    let mut next = if lists.is_empty() { changes } else { lists };
    // The parts of a list are mostly in the order of their numbers, and so are the resources in them. Then entries come
    // after all that is planned, and need no lookup.
    next.sort_by(|(a, x), (b, y)| {
        x.from.cmp(&y.from).then_with(|| natural_order(a, b)).then_with(|| a.cmp(b))
    });
    Ok(next)
}

/// Number of queued documents of a run. Hub deliveries are not queued.
pub(crate) async fn count(catalog: &Catalog, run: RunId) -> Result<u64, HarvestError> {
    let mut documents = catalog.scan_documents().await?;
    let mut queued = 0;
    while let Some((_, record)) = documents.try_next().await? {
        queued += u64::from(record.run == run && !is_notification(&record));
    }
    Ok(queued)
}

/// All known documents, by URI.
pub(crate) async fn documents(catalog: &Catalog) -> Result<Vec<(String, DocumentRecord)>, HarvestError> {
    Ok(catalog.scan_documents().await?.try_collect().await?)
}

/// The documents of each set.
pub(crate) type BySet = HashMap<SetId, Vec<DocumentRecord>>;

/// The known documents of each set.
pub(crate) async fn by_set(catalog: &Catalog) -> Result<BySet, HarvestError> {
    Ok(by_set_with_notices(catalog).await?.0)
}

/// The same, plus what came by channels, by URI.
pub(crate) async fn by_set_with_notices(
    catalog: &Catalog,
) -> Result<(BySet, Vec<(String, DocumentRecord)>), HarvestError> {
    let mut sets = BySet::new();
    let mut notices = Vec::new();
    let mut documents = catalog.scan_documents().await?;
    while let Some((uri, record)) = documents.try_next().await? {
        if is_notification(&record) {
            notices.push((uri, record.clone()));
        }
        sets.entry(record.set.clone()).or_default().push(record);
    }
    Ok((sets, notices))
}

/// Documents that came by channels.
pub(crate) async fn notices(catalog: &Catalog) -> Result<Vec<DocumentRecord>, HarvestError> {
    let mut notices = Vec::new();
    let mut documents = catalog.scan_documents().await?;
    while let Some((_, record)) = documents.try_next().await? {
        notices.extend(Some(record).filter(is_notification));
    }
    Ok(notices)
}

/// The documents that an index listed when it was last read.
pub(crate) async fn children(
    catalog: &Catalog,
    index: &str,
) -> Result<Vec<(String, DocumentRecord)>, HarvestError> {
    let mut found = Vec::new();
    let mut documents = catalog.scan_documents().await?;
    while let Some((uri, record)) = documents.try_next().await? {
        if record.parent.as_deref() == Some(index) {
            found.push((uri, record));
        }
    }
    Ok(found)
}

/// Whether a document came by a channel, so that it cannot be requested.
pub(crate) fn is_notification(record: &DocumentRecord) -> bool {
    record.capability == Capability::ChangeNotification
}
