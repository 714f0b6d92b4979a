//! Withdraws resources: they are told as deleted, and their bytes go at once.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use model::ResourceUri;
use resourcesync::Change;

use crate::change_record::ChangeListRecord;
use crate::paths::{RESOURCES, is_package};
use crate::records::Told;
use crate::state::{Draft, Retired, State};
use crate::takedown::TakedownList;
use crate::work::Work;
use crate::{PublishError, orphans, packed, retire};

/// A list of what is withdrawn that was not told yet.
pub(crate) struct Untold {
    list: Arc<TakedownList>,
    /// What it has of this publication: what the records have, or had. Of a server or a fleet, each Source has few.
    own: BTreeSet<ResourceUri>,
}

/// Whether the list of what is withdrawn is another one than that which was told.
pub(crate) fn is_due(work: &Work<'_>, state: &State) -> bool {
    !is_told(&work.takedown.now(), state)
}

fn is_told(list: &TakedownList, state: &State) -> bool {
    // An earlier version noted no digest.
    state.takedown_list == list.sha256() && (!list.is_empty() || state.takedown.is_empty())
}

/// Looks what is withdrawn by now. From here on, the records are without it. None if that is told.
pub(crate) async fn look(work: &Work<'_>, state: &State) -> Result<Option<Untold>, PublishError> {
    let list = work.takedown.now();
    work.withheld.hold_back(Arc::clone(&list));
    if is_told(&list, state) {
        return Ok(None);
    }
    let uris: Vec<ResourceUri> = list.uris().iter().cloned().collect();
    let known = work.withheld.records.know(&uris).await?;
    // Records that were made anew do not know what there was before.
    let is_all = state.was_made_anew && work.records.are_copies();
    let own = uris.into_iter().zip(known).filter(|(_, is_known)| *is_known || is_all);
    let own = own.map(|(uri, _)| uri).collect();
    Ok(Some(Untold { list, own }))
}

impl Untold {
    /// Whether it is news to this publication.
    pub(crate) fn is_news(&self, state: &State) -> bool {
        self.own != state.takedown
    }

    /// What is to be told of resources that were withdrawn since the last run, or are published again.
    pub(crate) async fn changes(&self, work: &Work<'_>, state: &State) -> Result<Vec<Told>, PublishError> {
        let uris: Vec<ResourceUri> = self.own.symmetric_difference(&state.takedown).cloned().collect();
        if uris.is_empty() {
            return Ok(Vec::new());
        }
        let found = work.withheld.records.find(&uris).await?;
        let told = uris.into_iter().zip(found).filter_map(|(uri, stored)| {
            // One that is not stored any more is told as deleted by the records.
            let stored = stored?;
            let is_withdrawn = self.own.contains(&uri);
            let kind = if is_withdrawn { Change::Deleted } else { Change::Created };
            // The original is still there, and so the link to it is that of the entry before.
            let links = if is_withdrawn { stored.vias() } else { Vec::new() };
            let stored = Some(stored).filter(|_| !is_withdrawn);
            Some(Told { uri, kind, at: work.time(), stored, links })
        });
        Ok(told.collect())
    }
}

/// Notes what is withdrawn by now: what was untold, and what came since and was held back. Returns whether anything was
/// withdrawn that may have been published; then its bytes are removed from the place.
pub(crate) async fn settle(
    work: &mut Work<'_>,
    state: &mut State,
    untold: Option<Untold>,
) -> Result<bool, PublishError> {
    let held_back = work.withheld.take_held_back();
    let mut fresh = Vec::new();
    if let Some(Untold { list, own }) = untold {
        fresh.extend(own.difference(&state.takedown).cloned());
        state.takedown = own;
        state.takedown_list = list.sha256();
    }
    // Its bytes were never published.
    state.takedown.extend(held_back);
    if state.with_bytes {
        for uri in &fresh {
            work.place.remove(work.records.path(uri).as_str()).await?;
            work.done.removed += 1;
        }
    }
    Ok(!fresh.is_empty())
}

/// Gives up the packages that may have the bytes of what was withdrawn. No document names those of changes any more; of
/// the Resource Dump, a new one is made.
pub(crate) fn purge(work: &mut Work<'_>, state: &mut State) {
    let gone: Vec<String> = state.lists.iter_mut().flat_map(ChangeListRecord::give_up_package).collect();
    if let Some(mut draft) = state.draft.take() {
        give_up_packages(state, &mut draft);
        let known: BTreeSet<&str> =
            state.edition.iter().flat_map(|edition| &edition.parts).map(|part| part.path.as_str()).collect();
        let parts = draft.parts.into_iter().map(|part| part.path);
        let parts = parts.filter(|path| path != RESOURCES && !known.contains(path.as_str()));
        let parts: Vec<_> = parts.map(|path| Retired { path, since: work.time() }).collect();
        state.retired.extend(parts);
    }
    for file in state.retired.iter_mut().filter(|file| is_package(&file.path)) {
        file.since = Timestamp::MIN;
    }
    state.retired.extend(gone.into_iter().map(|path| Retired { path, since: Timestamp::MIN }));
    orphans::look_now(state);
    // The packages that the next dump does not keep go with it.
    state.purge = state.dump.is_some();
    work.is_to_purge = true;
}

/// Gives up the packages of a draft: they may have bytes of what was withdrawn. The list goes on without a dump, and
/// the next run makes one.
pub(crate) fn give_up_packages(state: &mut State, draft: &mut Draft) {
    let kept: BTreeSet<&str> = state.dump.iter().flat_map(|dump| dump.paths()).collect();
    let packages = draft.packages.take().into_iter().flatten();
    let packages = packages.flat_map(|package| [package.path, package.contents]);
    let gone: Vec<_> = packages
        .filter(|path| !kept.contains(path.as_str()))
        .map(|path| Retired { path, since: Timestamp::MIN })
        .collect();
    state.retired.extend(gone);
}

/// Whether a run was killed between a withdrawal and the removal of packages, or the dump that follows.
pub(crate) fn is_unfinished(state: &State) -> bool {
    state.purge || orphans::is_now(state) || state.retired.iter().any(|file| file.since == Timestamp::MIN)
}

/// Removes the packages that have bytes of what was withdrawn, if that is to be done. A dump is made of all bytes, and
/// that may take hours, so they are removed before: readers of the old dump find all other packages.
pub(crate) async fn remove_packages(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    if !std::mem::take(&mut work.is_to_purge) {
        return Ok(());
    }
    orphans::retire(work, state).await?;
    let records = work.records;
    let urls: HashSet<String> = state.takedown.iter().map(|uri| records.url(work.base, uri)).collect();
    let mut gone = Vec::new();
    if let Some(dump) = &mut state.dump {
        let manifests: Vec<String> = dump.packages.iter().map(|package| package.contents.clone()).collect();
        for at in packed::with_any(work.place, manifests, Arc::new(urls)).await? {
            let package = &mut dump.packages[at];
            // No later dump keeps it, also if all of it is published again.
            package.entries = None;
            gone.extend([package.path.clone(), package.contents.clone()]);
        }
    }
    // One that another process has overtaken stops here, before it removes what that one names.
    state.save(work.place).await?;
    for path in &gone {
        work.place.remove(path).await?;
        work.done.removed += 1;
    }
    retire::remove_retired(work, state, Timestamp::MIN).await
}
