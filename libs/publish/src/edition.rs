//! Makes a Resource List: one pass over the records, in parts that are complete one after the other.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use fixity::Sha256;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use model::ResourceUri;
use tokio::time::{Instant, interval_at};

use crate::bytes::AT_A_TIME;
use crate::documents::{put_fixed, resource_index, resource_list};
use crate::entries::{Entries, FinishedEntries};
use crate::package::Packager;
use crate::paths::{RESOURCE_PARTS, RESOURCES, name_with};
use crate::place::xml;
use crate::state::{Draft, Dump, Edition, Part, Retired, State};
use crate::work::{Seen, Work, before, is_chosen, micros};
use crate::{Policy, PublishError, changes, dump, past, withdraw};

/// The shortest time after which it is looked whether changes are to be told, while the records give nothing.
const LEAST_LOOK: Duration = Duration::from_millis(100);

/// A part whose document is not written yet: its header depends on whether it is the only one.
struct Held {
    entries: FinishedEntries,
    last: ResourceUri,
}

/// Makes the Resource List of a draft, and switches to it. A run that was killed repeats one part.
pub(crate) async fn make(
    work: &mut Work<'_>,
    state: &mut State,
    mut draft: Draft,
) -> Result<(), PublishError> {
    let known = known_parts(work, state);
    let layer = work.layer();
    let is_first = draft.is_first;
    let present = work.records.resources(draft.after.as_ref()).await?;
    let laid = present.map(|found| async move {
        let (uri, stored) = found?;
        let laid = if is_first { layer.lay(&uri, &stored).await? } else { Ok(None) };
        Ok::<_, PublishError>((uri, stored, laid))
    });
    let mut laid = laid.buffered(AT_A_TIME);
    let mut packager = Packager::begin(work, state, draft.at);
    let mut held: Option<Held> = None;
    let mut entries = Entries::begin(work.place)?;
    // The records may pass over many resources that are not in a set.
    let every = work.policy.tell_every.max(LEAST_LOOK);
    let mut looks = interval_at(Instant::now() + every, every);
    loop {
        let found = tokio::select! {
            biased;
            found = laid.try_next() => Some(found?),
            _ = looks.tick() => None,
        };
        // Readers of the present lists do not wait for the next one.
        changes::tell_beside(work).await?;
        if !is_first {
            changes::tell_meanwhile(work, state).await?;
            leave_out_withdrawn(work, state, &mut draft).await?;
        }
        let Some(found) = found else { continue };
        let Some((uri, stored, laid)) = found else { break };
        // What was left out before was tried again at the beginning of the run.
        let is_missing = !is_first && state.missing.contains(&uri);
        if is_missing || !work.count(state, &uri, laid)? {
            continue;
        }
        if let Some(Held { entries, last }) = held.take() {
            put_part(work, &mut draft, &known, entries).await?;
            draft.after = Some(last);
            state.draft = Some(draft.clone());
            state.save(work.place).await?;
            (work.see)(Seen::Part(resources(&draft.parts)));
        }
        entries.push(&work.entry(&uri, &stored))?;
        let is_end = is_end(&work.policy, &entries, &uri);
        if let Some(packages) = &mut draft.packages {
            // A package ends with its part, so that a run that was killed continues with both.
            if packager.push(&work.policy, &uri, &stored) || is_end {
                packager.close(work, packages).await?;
            }
        }
        if is_end {
            let full = std::mem::replace(&mut entries, Entries::begin(work.place)?);
            held = Some(Held { entries: full.finish()?, last: uri });
        }
    }
    // If the last part is complete, nothing came behind it.
    let last = match held {
        Some(held) => held.entries,
        None => entries.finish()?,
    };
    if let Some(packages) = &mut draft.packages {
        packager.close(work, packages).await?;
    }
    // Whatever changed during the pass is told, and its bytes are there, before the list names it.
    Box::pin(changes::tell_now(work, state)).await?;
    leave_out_withdrawn(work, state, &mut draft).await?;
    past::keep_edition(work, state).await?;
    let completed = by_now(work, &draft);
    if draft.parts.is_empty() {
        put_only(work, &mut draft, last, completed).await?;
    } else if last.count > 0 {
        put_part(work, &mut draft, &known, last).await?;
    }
    switch(work, state, draft, completed).await
}

/// The time by now, in the precision of published ones. A pass may take hours. It is not before the `at` of the draft.
fn by_now(work: &Work<'_>, draft: &Draft) -> Timestamp {
    micros(work.time()).max(draft.at)
}

/// If a resource was withdrawn meanwhile, packages so far may have its bytes: they go at once. Parts stay: a Change
/// List tells what they name.
async fn leave_out_withdrawn(
    work: &mut Work<'_>,
    state: &mut State,
    draft: &mut Draft,
) -> Result<(), PublishError> {
    if !work.is_to_purge {
        return Ok(());
    }
    withdraw::give_up_packages(state, draft);
    state.draft = Some(draft.clone());
    withdraw::remove_packages(work, state).await
}

/// Whether a part ends behind this resource.
fn is_end(policy: &Policy, entries: &Entries, uri: &ResourceUri) -> bool {
    let (count, bytes) = (entries.count(), entries.bytes());
    if count >= policy.most_entries || bytes >= policy.most_bytes {
        return true;
    }
    count >= policy.least_entries && is_chosen(uri, policy.one_in)
}

/// The parts of the present edition that may be kept, by the digest of their entries. A part that is as old as the
/// oldest Change Lists is made anew, since changes are told back to its `at`.
fn known_parts(work: &Work<'_>, state: &State) -> HashMap<Sha256, Part> {
    let oldest = before(work.now, work.policy.keep_changes / 2);
    let parts = state.edition.iter().flat_map(|edition| &edition.parts);
    let parts = parts.filter(|part| part.path != RESOURCES && part.at >= oldest);
    parts.map(|part| (part.sha256, part.clone())).collect()
}

/// Writes a part, or takes the equal one of the present edition.
async fn put_part(
    work: &mut Work<'_>,
    draft: &mut Draft,
    known: &HashMap<Sha256, Part>,
    mut entries: FinishedEntries,
) -> Result<(), PublishError> {
    if let Some(part) = known.get(&entries.sha256) {
        work.done.parts_kept += 1;
        draft.parts.push(part.clone());
        return Ok(());
    }
    let completed = by_now(work, draft);
    // With a digest of what its document is made of in the name, it replaces none that an index names already. A list
    // of the same time is made again after a kill, or when dumps are switched on.
    let digest = Sha256::of(format!("{} {completed}", entries.sha256).as_bytes()).to_string();
    let ending = format!("-{}.xml", &digest[..12]);
    let path = name_with(RESOURCE_PARTS, draft.at, draft.parts.len() + 1, &ending);
    let header = resource_list(work.base, draft.at, completed, true);
    work.put_document(&path, entries.document(work.place, &header)?).await?;
    draft.parts.push(Part { path, at: draft.at, sha256: entries.sha256, resources: entries.count });
    Ok(())
}

/// Writes the Resource List that is no index.
async fn put_only(
    work: &mut Work<'_>,
    draft: &mut Draft,
    mut entries: FinishedEntries,
    completed: Timestamp,
) -> Result<(), PublishError> {
    let header = resource_list(work.base, draft.at, completed, false);
    let document = entries.document(work.place, &header)?;
    work.place.flush().await?;
    work.put_document(RESOURCES, document).await?;
    let Draft { at, .. } = *draft;
    draft.parts.push(Part {
        path: RESOURCES.to_owned(),
        at,
        sha256: entries.sha256,
        resources: entries.count,
    });
    Ok(())
}

/// Switches to the new edition by one document, and retires the parts that it does not have.
async fn switch(
    work: &mut Work<'_>,
    state: &mut State,
    draft: Draft,
    completed: Timestamp,
) -> Result<(), PublishError> {
    let Draft { at, parts, changes, packages, is_first, .. } = draft;
    if is_first && state.told.is_empty() {
        // What was deleted before was never named. Where all is published anew, readers may have an older list.
        state.told.begin(at);
    }
    if let Some(packages) = packages {
        let dump = Dump { at, completed, packages, parts: Vec::new() };
        dump::switch(work, state, dump, changes).await?;
    }
    let edition = Edition { at, completed, resources: resources(&parts), parts };
    let is_index = edition.parts.iter().any(|part| part.path != RESOURCES);
    if is_index {
        work.place.flush().await?;
        let index = resource_index(work.base, &edition)?;
        work.done.documents += put_fixed(work.place, &mut state.fixed, RESOURCES, index, &xml()).await?;
    } else {
        state.fixed.remove(RESOURCES);
    }
    let kept: HashSet<&str> = edition.parts.iter().map(|part| part.path.as_str()).collect();
    let old = state.edition.iter().flat_map(|old| &old.parts);
    let gone = old.filter(|part| part.path != RESOURCES && !kept.contains(part.path.as_str()));
    let gone = gone.map(|part| Retired { path: part.path.clone(), since: work.time() });
    state.retired.extend(gone.collect::<Vec<_>>());
    if let Some(old) = state.edition.replace(edition) {
        state.note_replaced(&work.policy, old.oldest(), work.time());
    }
    state.draft = None;
    state.changes = state.changes.saturating_sub(changes);
    state.save(work.place).await
}

fn resources(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.resources).sum()
}
