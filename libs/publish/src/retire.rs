//! Removes what nothing names any more, after the time for which it was promised.

use std::ops::ControlFlow;

use jiff::Timestamp;
use model::Archive;
use resourcesync::Change;

use crate::bytes::spelled;
use crate::change_record::ChangeListRecord;
use crate::names::Named;
use crate::published::{copy, each_entry};
use crate::state::{Retired, State};
use crate::work::{Work, before, later};
use crate::{PublishError, orphans, past, paths};

/// Takes old Change Lists from the index, and removes files whose time is over.
pub(crate) async fn retire(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    retire_lists(work, state);
    past::settle(work, state).await?;
    let over = before(work.now, work.policy.keep_replaced);
    if let Some(until) = state.told.by(over) {
        // Readers of an older list were told long ago.
        sweep(work, state, later(until, 1)).await?;
    }
    orphans::retire(work, state).await?;
    let is_due = |file: &Retired| file.since <= over;
    if !state.retired.iter().any(is_due) {
        return Ok(());
    }
    // One that another process has overtaken stops here, before it removes what that one names.
    state.save(work.place).await?;
    let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut state.retired).into_iter().partition(is_due);
    state.retired = kept;
    let named = state.named();
    // One that was written again meanwhile, under the same name, stays.
    for file in gone.iter().filter(|file| !named.contains(file.path.as_str())) {
        work.place.remove(&file.path).await?;
        work.done.removed += 1;
    }
    Ok(())
}

/// Changes are told for the time of the policy, and back to the oldest `at` of the Resource List.
fn retire_lists(work: &Work<'_>, state: &mut State) {
    let Some(edition) = &state.edition else { return };
    let parts = edition.parts.iter().map(|part| part.at);
    let packages =
        state.dump.iter().flat_map(|dump| dump.packages.iter().map(|package| package.at).chain([dump.at]));
    let oldest = parts.chain(packages).chain([edition.at]).min().unwrap_or(edition.at);
    let until = before(work.now, work.policy.keep_changes).min(oldest);
    // Swept lists only: later ones still name files to be removed.
    let until =
        until.min(if state.with_bytes { state.swept_to.unwrap_or(Timestamp::MIN) } else { Timestamp::MAX });
    let is_over = |list: &ChangeListRecord| list.closed && list.until.is_some_and(|end| end <= until);
    let count = state.lists.iter().take_while(|list| is_over(list)).count();
    let gone: Vec<ChangeListRecord> = state.lists.drain(..count).collect();
    if work.policy.archive != Archive::Off {
        state.past.take_lists(&gone);
    }
    let gone = gone.into_iter().flat_map(ChangeListRecord::into_files);
    state.retired.extend(gone.map(|path| Retired { path, since: work.now }));
}

/// Removes the files of resources whose deletion has a time before `over`, and that are not back. That moves on about
/// once an hour, so Change Lists are not read more often.
async fn sweep(work: &mut Work<'_>, state: &mut State, over: Timestamp) -> Result<(), PublishError> {
    let from = state.swept_to.unwrap_or(Timestamp::MIN);
    if !state.with_bytes || over <= from {
        return Ok(());
    }
    let end = state.last;
    let is_due = |list: &&ChangeListRecord| list.from < over && list.until.unwrap_or(end) >= from;
    let due: Vec<String> = state.lists.iter().filter(is_due).map(|list| list.path.clone()).collect();
    if due.is_empty() {
        return Ok(());
    }
    // As above: before anything is removed.
    state.save(work.place).await?;
    for list in due {
        let mut gone: Vec<String> = Vec::new();
        each_entry(&list, copy(work, &list).await?, |entry| {
            let at = entry.metadata.datetime.map(|at| at.instant());
            let is_due = at.is_some_and(|at| at >= from && at < over);
            if is_due && entry.metadata.change == Some(Change::Deleted) {
                gone.push(entry.loc);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for url in gone {
            remove_if_gone(work, state, &url, over).await?;
        }
    }
    state.swept_to = Some(over);
    Ok(())
}

async fn remove_if_gone(
    work: &mut Work<'_>,
    state: &State,
    url: &str,
    over: Timestamp,
) -> Result<(), PublishError> {
    let uri = match work.records.named(work.base, url) {
        Some(Named::Resource(uri)) => uri,
        Some(Named::Long(sha256)) => match work.place.read(&spelled(sha256)).await? {
            Some(text) => match std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()) {
                Some(uri) => uri,
                None => return Err(PublishError::changed(&spelled(sha256), "it is no URI")),
            },
            None => return Ok(()),
        },
        None => return Err(PublishError::changed(url, "it is not the URL of a resource")),
    };
    let path = work.records.path(&uri);
    debug_assert!(!paths::is_document(path.as_str()));
    // The file of a damaged one is of an earlier version. Who has the list before its damage may ask for it.
    if state.is_missing_before(&uri, over) || !work.records.is_present(&uri).await? {
        work.place.remove(path.as_str()).await?;
        work.done.removed += 1;
    }
    Ok(())
}
