//! Withdraws resources: they are told as deleted, and their bytes go at once.

use std::collections::BTreeSet;

use jiff::Timestamp;
use model::ResourceUri;
use resourcesync::Change;

use crate::change_record::ChangeListRecord;
use crate::paths::{RESOURCES, is_package};
use crate::records::Told;
use crate::state::{Retired, State};
use crate::work::Work;
use crate::{PublishError, orphans};

/// What is to be told of resources that were withdrawn since the last run, or are published again.
pub(crate) async fn changes(work: &Work<'_>, state: &State) -> Result<Vec<Told>, PublishError> {
    let now = work.takedown.all();
    let uris: Vec<ResourceUri> = now.symmetric_difference(&state.takedown).cloned().collect();
    if uris.is_empty() {
        return Ok(Vec::new());
    }
    let found = work.all.find(&uris).await?;
    let told = uris.into_iter().zip(found).filter_map(|(uri, stored)| {
        // One that is not stored any more is told as deleted by the records.
        let stored = stored?;
        let is_withdrawn = now.contains(&uri);
        let kind = if is_withdrawn { Change::Deleted } else { Change::Created };
        // The original is still there, and so the link to it is that of the entry before.
        let links = if is_withdrawn { stored.vias() } else { Vec::new() };
        let stored = Some(stored).filter(|_| !is_withdrawn);
        Some(Told { uri, kind, at: work.now, stored, links })
    });
    Ok(told.collect())
}

/// Notes what is withdrawn now. Returns whether anything was withdrawn since the last run; then its bytes are removed
/// from the place.
pub(crate) async fn settle(work: &mut Work<'_>, state: &mut State) -> Result<bool, PublishError> {
    let now = work.takedown.all();
    let fresh: Vec<ResourceUri> = now.difference(&state.takedown).cloned().collect();
    if state.with_bytes {
        for uri in &fresh {
            work.place.remove(work.records.path(uri).as_str()).await?;
            work.done.removed += 1;
        }
    }
    state.takedown = now.clone();
    Ok(!fresh.is_empty())
}

/// Gives up the packages that may have the bytes of what was withdrawn. They are removed when no document names them:
/// at the end of this run.
pub(crate) fn purge(work: &Work<'_>, state: &mut State) {
    let mut gone: Vec<String> = state.lists.iter_mut().flat_map(ChangeListRecord::give_up_package).collect();
    if let Some(draft) = state.draft.take() {
        let kept: BTreeSet<&str> = state.dump.iter().flat_map(|dump| dump.paths()).collect();
        let packages = draft.packages.into_iter().flatten();
        let packages = packages.flat_map(|package| [package.path, package.contents]);
        gone.extend(packages.filter(|path| !kept.contains(path.as_str())));
        let known: BTreeSet<&str> =
            state.edition.iter().flat_map(|edition| &edition.parts).map(|part| part.path.as_str()).collect();
        let parts = draft.parts.into_iter().map(|part| part.path);
        let parts = parts.filter(|path| path != RESOURCES && !known.contains(path.as_str()));
        let parts: Vec<_> = parts.map(|path| Retired { path, since: work.now }).collect();
        state.retired.extend(parts);
    }
    for file in state.retired.iter_mut().filter(|file| is_package(&file.path)) {
        file.since = Timestamp::MIN;
    }
    state.retired.extend(gone.into_iter().map(|path| Retired { path, since: Timestamp::MIN }));
    orphans::look_now(state);
    // The next dump is made in this run, and the packages that it does not keep go with it.
    state.purge = state.dump.is_some();
}
