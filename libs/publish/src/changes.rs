//! Tells the changes since the last run in Change Lists: from the records, oldest first (§12.1).

use fixity::Sha256;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use resourcesync::Change;
use tokio::time::Instant;

use crate::bytes::AT_A_TIME;
use crate::change_dump;
use crate::change_list_file::{entries_to_replace, put_list};
use crate::change_record::ChangeListRecord;
use crate::documents::{change_index, change_list, put_fixed};
use crate::open_list::{STEP, begin, is_old, put, room};
use crate::paths::CHANGES;
use crate::place::xml;
use crate::records::{BodyError, Changes, Told};
use crate::state::State;
use crate::withdraw;
use crate::work::{Work, later};
use crate::{PublishError, entry};

/// Tells all changes that the records have by now.
pub(crate) async fn tell(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    let records = work.records;
    // Before the end of the log: what comes later is held back, and noted.
    let untold = withdraw::look(work, state).await?;
    let withdrawn = match &untold {
        Some(untold) => untold.changes(work, state).await?,
        None => Vec::new(),
    };
    let end = records.next_change().await?;
    let withdrawn = stream::iter(withdrawn.into_iter().map(Ok));
    let told = withdrawn.chain(records.changes(state.next_change, end).await?);
    // The steps are large: none of them is to be a part of its caller.
    Box::pin(tell_these(work, state, told.boxed())).await?;
    if end > state.next_change {
        state.next_change = end;
        state.mark = records.mark(end).await?;
    }
    if withdraw::settle(work, state, untold).await? {
        withdraw::purge(work, state);
        if work.dumps {
            begin_dumped(work, state).await?;
        }
    }
    Ok(())
}

/// Lays down the bytes of changes, and tells them.
pub(crate) async fn tell_these(
    work: &mut Work<'_>,
    state: &mut State,
    told: Changes<'_>,
) -> Result<(), PublishError> {
    let layer = work.layer();
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
    while let Some((told, laid)) = laid.try_next().await? {
        let Some(Told { uri, kind, at, stored, links }) = as_laid(work, state, told, laid)? else { continue };
        let list = room(work, state, &mut open).await?;
        if let Some(stored) = &stored {
            list.keep_bytes(work, &uri, stored).await?;
        }
        let at = later(state.last, STEP).max(crate::work::micros(at));
        let told = match stored {
            Some(stored) => work.entry(&uri, &stored),
            None => entry::deleted(work.records.url(work.base, &uri), links),
        };
        list.entries.push(&entry::changed(told, kind, at))?;
        state.last = at;
        state.changes += 1;
        state.changes_since_dump += u64::from(state.dump.is_some());
        work.done.changes += 1;
    }
    match open {
        Some(list) => put(work, state, list, None).await,
        None => Ok(()),
    }
}

/// A change as it is told, with what came of laying down its bytes. None if it is not told.
fn as_laid(
    work: &mut Work<'_>,
    state: &mut State,
    mut told: Told,
    laid: Result<Option<u64>, BodyError>,
) -> Result<Option<Told>, PublishError> {
    if told.kind == Change::Deleted && state.takedown.contains(&told.uri) {
        // It was told as deleted when it was withdrawn.
        return Ok(None);
    }
    let was_missing = state.missing.contains(&told.uri);
    let Some(stored) = &told.stored else {
        state.note_missing(&told.uri, false)?;
        return Ok(Some(told));
    };
    let is_damaged = laid.as_ref().is_err_and(BodyError::is_damage);
    if work.count(state, &told.uri, laid)? {
        if was_missing {
            // Readers were told that it is gone.
            told.kind = Change::Created;
        }
        return Ok(Some(told));
    }
    // A file that changes again is told by the next scan.
    if was_missing || !is_damaged {
        return Ok(None);
    }
    Ok(Some(Told { kind: Change::Deleted, links: stored.vias(), stored: None, ..told }))
}

/// Tells all changes that there are by now, as far as readers find them.
pub(crate) async fn tell_now(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    let begun = Instant::now();
    Box::pin(tell(work, state)).await?;
    complete(work, state, begun).await
}

/// Notes all changes as told, so that readers find them.
pub(crate) async fn complete(
    work: &mut Work<'_>,
    state: &mut State,
    begun: Instant,
) -> Result<(), PublishError> {
    state.save(work.place).await?;
    settle(work, state).await?;
    work.note_told(begun);
    Ok(())
}

/// The same in the middle of something long, if it is time and there are changes, or withdrawals. It may be between any
/// two steps: each mix of a Resource List and Change Lists is sound.
pub(crate) async fn tell_meanwhile(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    if !work.is_time_to_tell() {
        return Ok(());
    }
    let begun = Instant::now();
    if work.records.next_change().await? == state.next_change && !withdraw::is_due(work, state) {
        work.note_told(begun);
        return Ok(());
    }
    Box::pin(tell_now(work, state)).await
}

/// The same of the publication of which this is a part.
pub(crate) async fn tell_beside(work: &mut Work<'_>) -> Result<(), PublishError> {
    if work.beside.is_time_to_tell() {
        work.beside.tell().await?;
    }
    Ok(())
}

/// Closes the open list if it is old, so that the Change Dump gets its package though no further change comes.
pub(crate) async fn close_old(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    let open = state.lists.last().filter(|list| list.until.is_none() && list.dumped);
    if open.is_some_and(|open| is_old(work, state.lists.len(), open)) {
        cut(work, state).await?;
    }
    Ok(())
}

/// Begins a list for the Change Dump: the bytes of changes that were told before are not kept.
pub(crate) async fn begin_dumped(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    match state.lists.last_mut() {
        Some(open) if open.until.is_none() && !open.dumped => {
            if open.changes > 0 {
                return cut(work, state).await;
            }
            open.dumped = true;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Closes the open list, and begins the next.
async fn cut(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    let until = later(state.last, STEP / 2);
    // The next Resource Dump is of this time, so that no moment is between it and the next list.
    state.last = until;
    if let Some(open) = state.lists.last_mut() {
        open.until = Some(until);
    }
    let next = begin(work, until)?;
    put(work, state, next, None).await
}

/// The first Change List of a publication: it begins with the `at` of the Resource List.
pub(crate) async fn put_first(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    let list = begin(work, state.last)?;
    put(work, state, list, None).await
}

/// Writes the index, then closes the lists that the index shows as closed, and then makes their packages. Done again
/// after a crash.
pub(crate) async fn settle(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    close(work, state).await?;
    Box::pin(change_dump::settle(work, state)).await
}

async fn close(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    let index = change_index(work.base, &state.lists)?;
    let is_known = state.fixed.get(CHANGES) == Some(&Sha256::of(&index));
    if state.lists.is_empty() || is_known && state.lists.iter().all(ChangeListRecord::is_settled) {
        return Ok(());
    }
    work.place.flush().await?;
    work.done.documents += put_fixed(work.place, &mut state.fixed, CHANGES, index, &xml()).await?;
    for at in 0..state.lists.len() {
        if state.lists[at].is_settled() {
            continue;
        }
        let mut record = state.lists[at].clone();
        let (entries, version) = entries_to_replace(work, state, &record).await?;
        let document = entries.finish()?.document(work.place, &change_list(work.base, &record))?;
        put_list(work, state, &mut record, document, version).await?;
        state.lists[at] = ChangeListRecord { closed: true, tag: None, ..record };
    }
    Ok(())
}
