//! Which Resource List is made next: the first one, one that was begun, or one that is due.

use jiff::Timestamp;

use crate::change_record::ChangeListRecord;
use crate::state::{Draft, Dump, LeftBehind, Retired, State};
use crate::work::{Work, before, later, micros};
use crate::{PublishError, changes, dump, withdraw};

/// The draft of the first Resource List; a draft that was begun before goes on. The first Change List is there before
/// it.
pub(crate) async fn first_draft(work: &mut Work<'_>, state: &mut State) -> Result<Draft, PublishError> {
    // Before what is withdrawn: what comes later is held back, and noted.
    let next_change = work.records.next_change().await?;
    let was_published = !state.fixed.is_empty();
    if let Some(untold) = withdraw::look(work, state).await? {
        let is_of_other = state.draft.is_some() && untold.is_news(state);
        let is_fresh = withdraw::settle(work, state, Some(untold)).await?;
        // The parts of a draft are of other resources, so it begins again. Where the records were made anew, bytes of
        // what is withdrawn are at the place.
        if is_fresh && was_published || is_of_other {
            withdraw::purge(work, state);
        }
    }
    let draft = match state.draft.clone() {
        Some(draft) => draft,
        None => {
            let at = work.records.last_change().await?.unwrap_or(work.now);
            let at = micros(at).max(later(state.last, 2));
            state.last = at;
            state.next_change = next_change;
            state.mark = work.records.mark(next_change).await?;
            let packages = work.dumps.then(Vec::new);
            Draft { at, changes: 0, is_first: true, after: None, parts: Vec::new(), packages }
        }
    };
    if state.lists.is_empty() {
        // Before anything else is at the place, so that it is known as a publication.
        state.draft = Some(draft.clone());
        state.save(work.place).await?;
        changes::put_first(work, state).await?;
        state.save(work.place).await?;
        changes::settle(work, state).await?;
    }
    Ok(draft)
}

/// The draft of the next Resource List, if one was begun or is due.
pub(crate) fn next_draft(work: &Work<'_>, state: &State) -> Option<Draft> {
    let edition = state.edition.as_ref()?;
    if state.draft.is_some() {
        return state.draft.clone();
    }
    let policy = &work.policy;
    let is_old = |age| edition.completed <= before(work.now, age);
    let many = state.changes.saturating_mul(100) > policy.changed_percent.saturating_mul(edition.resources);
    let is_due = edition.resources <= policy.small
        || many && is_old(policy.edition_pause)
        || is_old(policy.edition_age);
    let packages = dump::is_due(work, state).then(Vec::new);
    let is_wanted = work.dumps && (state.dump.is_none() || state.purge)
        || state.changes > 0 && (is_due || packages.is_some());
    is_wanted.then(|| Draft {
        at: state.last,
        changes: state.changes,
        is_first: false,
        after: None,
        parts: Vec::new(),
        packages,
    })
}

/// The records were made anew: their changes do not continue the published ones. Everything is published again.
pub(crate) fn start_over(state: &mut State, now: Timestamp) {
    let parts = state.edition.take().into_iter().flat_map(|edition| edition.parts).map(|part| part.path);
    let lists = state.lists.drain(..).flat_map(ChangeListRecord::into_files);
    let old = parts.filter(|path| path != crate::paths::RESOURCES).chain(lists);
    state.retired.extend(old.map(|path| Retired { path, since: now }));
    let dump = state.dump.take();
    let old = dump.iter().flat_map(Dump::paths);
    // A run may have been killed before it removed those with bytes of what was withdrawn.
    let since = if std::mem::take(&mut state.purge) { Timestamp::MIN } else { now };
    state.retired.extend(old.map(|path| Retired { path: path.to_owned(), since }));
    state.changes_since_dump = 0;
    state.draft = None;
    state.changes = 0;
    state.replaced.clear();
    // Other records may have other resources of the same list.
    state.takedown_list = None;
    state.forget_missing();
    // The Change Lists that are gone tell no deletions of what these records lack.
    state.left_behind = state.with_bytes.then_some(LeftBehind::Possible);
}
