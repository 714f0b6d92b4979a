//! Tells the changes since the last run in Change Lists: from the records, oldest first (§12.1).

use std::fs::File;
use std::io::BufReader;

use fixity::Sha256;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use resourcesync::{Item, Options, Reader};

use crate::bytes::AT_A_TIME;
use crate::documents::{change_index, change_list, put_fixed};
use crate::entries::Entries;
use crate::paths::{CHANGE_PARTS, CHANGES, name_of};
use crate::place::xml;
use crate::records::Told;
use crate::state::{ChangeListRecord, State};
use crate::work::{Work, before, later};
use crate::{PublishError, entry};

/// Microseconds between two changes, at least: lists are cut between them, never at one.
const STEP: i64 = 2;

/// The open Change List, and its entries.
struct Open {
    record: ChangeListRecord,
    entries: Entries,
}

/// Tells all changes that the records have by now.
pub(crate) async fn tell(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    let records = work.records;
    let layer = work.layer();
    let end = records.next_change().await?;
    let told = records.changes(state.next_change, end).await?;
    let laid = told.map(|told| async move {
        let told = told?;
        let laid = match &told.stored {
            Some(stored) => layer.lay(&told.uri, stored).await?,
            None => Ok(None),
        };
        Ok::<_, PublishError>((told, laid))
    });
    let mut laid = laid.buffered(AT_A_TIME);
    let mut open = None;
    while let Some((Told { uri, kind, at, stored }, laid)) = laid.try_next().await? {
        if stored.is_none() {
            state.note_missing(&uri, false)?;
        }
        if !work.count(state, &uri, laid)? {
            continue;
        }
        let list = room(work, state, &mut open).await?;
        let at = later(state.last, STEP).max(crate::work::micros(at));
        let url = records.url(work.base, &uri);
        let told = match stored {
            Some(stored) => entry::stored(url, &stored),
            None => entry::deleted(url, records.links_of_deleted(&uri)),
        };
        list.entries.push(&entry::changed(told, kind, at))?;
        state.last = at;
        state.changes += 1;
        state.changes_since_dump += u64::from(state.dump.is_some());
        work.done.changes += 1;
    }
    state.next_change = state.next_change.max(end);
    if let Some(list) = open {
        put(work, state, list, None).await?;
    }
    Ok(())
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
    let found = work.place.copy(path).await?;
    found.ok_or_else(|| PublishError::changed(path, "it is not there"))
}
