//! Removes what nothing names any more, after the time for which it was promised.

use jiff::Timestamp;
use model::Archive;

use crate::change_record::ChangeListRecord;
use crate::state::{Dump, Retired, State};
use crate::sweep::Sweep;
use crate::work::{Work, before};
use crate::{PublishError, left_behind, orphans, past};

/// Takes old Change Lists from the index, and removes files whose time is over.
pub(crate) async fn retire(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    retire_lists(work, state);
    past::settle(work, state).await?;
    orphans::retire(work, state).await?;
    left_behind::look(work, state).await?;
    let sweep = Sweep::due(work, state);
    let over = before(work.now, work.policy.keep_replaced);
    let are_left = left_behind::are_due(state, over);
    if sweep.is_none() && !are_left && state.retired.iter().all(|file| file.since > over) {
        return Ok(());
    }
    // One save before all removals. The state at the place names none of these files any more. And one that another
    // process has overtaken stops here, before it removes what that one names. That they are gone is noted by the save
    // at the end of the run: after a kill before that, the next run removes them once more.
    state.save(work.place).await?;
    remove_retired(work, state, over).await?;
    if are_left {
        left_behind::remove(work, state).await?;
    }
    match sweep {
        Some(sweep) => sweep.remove(work, state).await,
        None => Ok(()),
    }
}

/// Removes the files that were retired by then.
pub(crate) async fn remove_retired(
    work: &mut Work<'_>,
    state: &mut State,
    over: Timestamp,
) -> Result<(), PublishError> {
    let is_due = |file: &Retired| file.since <= over;
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

/// Changes are told for the time of the policy, and back to the oldest `at` of the Resource List and Dump: of the present
/// ones, and of those that were replaced and may still be used.
fn retire_lists(work: &Work<'_>, state: &mut State) {
    let Some(edition) = &state.edition else { return };
    let over = before(work.now, work.policy.keep_replaced);
    state.replaced.retain(|replaced| replaced.since > over);
    let replaced = state.replaced.iter().map(|replaced| replaced.oldest);
    let oldest = state.dump.iter().map(Dump::oldest).chain(replaced).fold(edition.oldest(), Timestamp::min);
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
    state.retired.extend(gone.map(|path| Retired { path, since: work.time() }));
}
