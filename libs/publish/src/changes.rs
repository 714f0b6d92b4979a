//! Tells the changes since the last run in Change Lists: from the change log, oldest first (§12.1).

use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom, Write as _};

use fixity::Sha256;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use model::{ChangeEvent, ChangeLogEntry, ResourceRecord};
use resourcesync::{Change, Item, Options, Reader};

use crate::bytes::{AT_A_TIME, Layer};
use crate::documents::{change_index, change_list, put_fixed};
use crate::entries::Entries;
use crate::paths::{CHANGE_PARTS, CHANGES, name_of};
use crate::place::xml;
use crate::state::{ChangeListRecord, State};
use crate::work::{Work, before, later};
use crate::{PublishError, entry};

/// Entries of the change log whose records are read together.
const TOGETHER: usize = 1_000;
/// Microseconds between two changes, at least: lists are cut between them, never at one.
const STEP: i64 = 2;

/// The open Change List, and its entries.
struct Open {
    record: ChangeListRecord,
    entries: Entries,
}

/// Tells all changes that the catalog has by now.
pub(crate) async fn tell(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    let mut log = work.catalog.scan_changes(state.next_change).await?.chunks(TOGETHER);
    let layer = &Layer::new(work.store, work.place, work.with_bytes);
    let mut open = None;
    while let Some(chunk) = log.next().await {
        let chunk: Vec<(u64, ChangeLogEntry)> = chunk.into_iter().collect::<Result<_, _>>()?;
        let Some((last_number, _)) = chunk.last() else { continue };
        let next_change = last_number + 1;
        let uris: Vec<_> = chunk.iter().map(|(_, change)| change.uri.clone()).collect();
        let records = work.catalog.resources_many(&uris).await?;
        let told = chunk.into_iter().zip(records).filter_map(|((_, change), record)| {
            let kind = kind(&change.event, record.as_ref())?;
            Some((change, kind, record))
        });
        let laid = stream::iter(told).map(|(change, kind, record)| async move {
            let bitstream = record.as_ref().and_then(|record| record.bitstream.as_ref());
            let laid = match (kind, &record, bitstream) {
                (Change::Created | Change::Updated, Some(record), Some(bitstream)) => {
                    layer.lay(&change.uri, record, bitstream).await?
                }
                _ => Ok(None),
            };
            Ok::<_, PublishError>((change, kind, record, laid))
        });
        let laid: Vec<_> = laid.buffered(AT_A_TIME).try_collect().await?;
        for (change, kind, record, laid) in laid {
            if !work.count(state, &change.uri, laid)? {
                continue;
            }
            let list = room(work, state, &mut open).await?;
            let at = later(state.last, STEP).max(crate::work::micros(change.at));
            let stored = record.as_ref().and_then(|record| Some((record, record.bitstream.as_ref()?)));
            let told = match stored {
                Some((record, bitstream)) => entry::stored(work.base, &change.uri, record, bitstream),
                None => entry::deleted(work.base, &change.uri),
            };
            list.entries.push(&entry::changed(told, kind, at))?;
            state.last = at;
            state.changes += 1;
            work.done.changes += 1;
        }
        state.next_change = next_change;
    }
    if let Some(list) = open {
        put(work, state, list, None).await?;
    }
    Ok(())
}

/// What an event means for readers. None for one that changes nothing, and for one that a later event replaced: that
/// one is told in its turn.
fn kind(event: &ChangeEvent, record: Option<&ResourceRecord>) -> Option<Change> {
    let stored = record.and_then(|record| record.bitstream.as_ref()).map(|stored| stored.computed.sha256());
    let (kind, sha256) = match event {
        ChangeEvent::Created { sha256 } | ChangeEvent::Restored { sha256 } => {
            (Change::Created, Some(*sha256))
        }
        ChangeEvent::Updated { sha256, .. } => (Change::Updated, Some(*sha256)),
        ChangeEvent::Healed { sha256, before } if sha256 != before => (Change::Updated, Some(*sha256)),
        ChangeEvent::Deleted { .. } => (Change::Deleted, None),
        _ => return None,
    };
    (sha256 == stored).then_some(kind)
}

/// The open Change List, with room for one more change.
async fn room<'o>(
    work: &mut Work<'_>,
    state: &mut State,
    open: &'o mut Option<Open>,
) -> Result<&'o mut Open, PublishError> {
    let list = match open.take() {
        Some(list) => list,
        None => match state.lists.last().filter(|list| list.until.is_none()).cloned() {
            Some(record) => Open { entries: read(work, &record).await?, record },
            None => {
                let from = state.lists.last().and_then(|list| list.until);
                begin(work, from.unwrap_or(state.last))?
            }
        },
    };
    let policy = work.policy;
    let is_old = list.record.from < before(work.now, policy.change_list_age);
    let is_full = list.entries.count() >= policy.most_entries || list.entries.bytes() >= policy.most_bytes;
    let list = if is_full || is_old && list.entries.count() > 0 {
        let until = later(state.last, STEP / 2);
        put(work, state, list, Some(until)).await?;
        begin(work, until)?
    } else {
        list
    };
    Ok(open.insert(list))
}

/// A Change List without changes.
fn begin(work: &Work<'_>, from: Timestamp) -> Result<Open, PublishError> {
    let path = name_of(CHANGE_PARTS, from, 0);
    let record = ChangeListRecord { path, from, until: None, closed: false, changes: 0 };
    Ok(Open { record, entries: Entries::begin(work.place)? })
}

/// The first Change List of a publication: it begins with the `at` of the Resource List.
pub(crate) async fn put_first(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    let list = begin(work, state.last)?;
    put(work, state, list, None).await
}

/// Writes a Change List. One that readers know as open stays open in this step: it gets its `until` when the index
/// leads to the list behind it.
async fn put(
    work: &mut Work<'_>,
    state: &mut State,
    list: Open,
    until: Option<Timestamp>,
) -> Result<(), PublishError> {
    let Open { mut record, entries } = list;
    let mut entries = entries.finish()?;
    let known = state.lists.iter().position(|known| known.path == record.path);
    record.changes = entries.count;
    record.until = until.filter(|_| known.is_none());
    let document = entries.document(work.place, &change_list(work.base, &record))?;
    work.put_document(&record.path, document).await?;
    record.until = until;
    record.closed = until.is_some() && known.is_none();
    match known {
        Some(at) => state.lists[at] = record,
        None => state.lists.push(record),
    }
    Ok(())
}

/// Writes the index, and then closes the lists that the index shows as closed. Done again after a crash.
pub(crate) async fn settle(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    let index = change_index(work.base, &state.lists)?;
    let is_known = state.fixed.get(CHANGES) == Some(&Sha256::of(&index));
    if state.lists.is_empty() || is_known && state.lists.iter().all(ChangeListRecord::is_settled) {
        return Ok(());
    }
    work.place.flush().await?;
    work.done.documents += put_fixed(work.place, state, CHANGES, index, &xml()).await?;
    for at in 0..state.lists.len() {
        let record = state.lists[at].clone();
        if record.is_settled() {
            continue;
        }
        let mut entries = read(work, &record).await?.finish()?;
        let document = entries.document(work.place, &change_list(work.base, &record))?;
        work.put_document(&record.path, document).await?;
        state.lists[at].closed = true;
    }
    Ok(())
}

/// The entries of a published Change List, as far as the state knows them: a run that was killed may have written
/// more.
async fn read(work: &Work<'_>, record: &ChangeListRecord) -> Result<Entries, PublishError> {
    let mut entries = Entries::begin(work.place)?;
    let file = copy(work, &record.path).await?;
    let path = record.path.clone();
    let most = record.changes;
    let task = tokio::task::spawn_blocking(move || {
        each_entry(&path, file, |entry| {
            if entries.count() < most {
                entries.push(&entry)?;
            }
            Ok(())
        })?;
        if entries.count() < most {
            let why = format!("it has {} changes of {most}", entries.count());
            return Err(PublishError::changed(&path, why));
        }
        Ok(entries)
    });
    task.await.map_err(|error| PublishError::place(&record.path, error))?
}

/// Reads the entries of a published document.
pub(crate) fn each_entry(
    path: &str,
    file: File,
    mut each: impl FnMut(resourcesync::Entry) -> Result<(), PublishError>,
) -> Result<(), PublishError> {
    let unreadable = |error| PublishError::unreadable(path, &error);
    let mut reader = Reader::new(BufReader::new(file), Options::default()).map_err(unreadable)?;
    while let Some(item) = reader.next().map_err(unreadable)? {
        match item {
            Item::Entry(entry) => each(*entry)?,
            Item::Bad(bad) => return Err(PublishError::changed(path, bad.reason)),
        }
    }
    Ok(())
}

/// A published document as a temporary file.
pub(crate) async fn copy(work: &Work<'_>, path: &str) -> Result<File, PublishError> {
    let found = work.place.open(path).await?;
    let found = found.ok_or_else(|| PublishError::changed(path, "it is not there"))?;
    let mut file = work.place.temporary()?.into_file();
    let mut pieces = found.into_stream();
    while let Some(piece) = pieces.try_next().await.map_err(|error| PublishError::place(path, error))? {
        file.write_all(&piece)?;
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}
