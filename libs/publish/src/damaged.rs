//! Resources whose bytes a server finds damaged or missing: they are told as deleted, and tried again later.

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use model::ResourceUri;
use resourcesync::Change;
use tokio::time::Instant;

use crate::PublishError;
use crate::bytes::AT_A_TIME;
use crate::changes::{complete, tell, tell_these};
use crate::place::{OWN, Place};
use crate::records::{BodyError, Records, Stored, Told};
use crate::state::State;
use crate::work::{Seen, Work, before};

/// The most notes that wait.
pub(crate) const MOST_NOTES: usize = 1_000;
/// The most resources that are told as deleted for their damage: the state has them, and is written with each
/// publication.
const MOST_TOLD: usize = 10_000;
/// Resources of a set by rule that are looked up together.
const TOGETHER: usize = 1_000;

/// How a publication of documents knows what is damaged.
#[derive(Clone, Copy)]
pub(crate) enum Damage<'a> {
    /// It reads what servers noted, and after some time what was damaged before.
    Noted,
    /// It is a part of a publication, for which these are.
    Known(&'a BTreeSet<ResourceUri>),
}

/// A resource, and whether its bytes are damaged.
struct Judged {
    uri: ResourceUri,
    stored: Stored,
    is_damaged: bool,
}

/// The folder of the notes.
pub(crate) fn folder() -> String {
    format!("{OWN}/damaged")
}

/// Tells as deleted what is damaged, and as created what can be read again.
pub(crate) async fn tell_damage(
    work: &mut Work<'_>,
    state: &mut State,
    damage: Damage<'_>,
) -> Result<(), PublishError> {
    match damage {
        Damage::Noted => tell_noted(work, state).await,
        Damage::Known(all) => {
            let differ: Vec<ResourceUri> = all.symmetric_difference(&state.missing).cloned().collect();
            for some in differ.chunks(TOGETHER) {
                let found = work.records.find(some).await?.into_iter().zip(some);
                let judged = found.filter_map(|(stored, uri)| {
                    Some(Judged { uri: uri.clone(), stored: stored?, is_damaged: all.contains(uri) })
                });
                let judged = judged.collect();
                tell_judged(work, state, judged).await?;
            }
            Ok(())
        }
    }
}

async fn tell_noted(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    let room = MOST_TOLD.saturating_sub(state.missing.len());
    let notes = work.place.list(&folder(), room.min(MOST_NOTES)).await?;
    let mut uris = noted(work.place, &notes).await?;
    // What was told before is tried in its time, and not with each note.
    uris.retain(|uri| !state.missing.contains(uri));
    let until = before(work.now, work.policy.retry_damaged);
    let was_whole = state.missing.is_empty();
    let is_due = !was_whole && state.tried.is_none_or(|tried| tried <= until);
    if is_due {
        uris.extend(state.missing.iter().cloned());
    }
    let uris: Vec<ResourceUri> = uris.into_iter().collect();
    for some in uris.chunks(AT_A_TIME) {
        let judged = judge(work, state, some).await?;
        tell_judged(work, state, judged).await?;
    }
    if is_due || was_whole && !state.missing.is_empty() {
        state.tried = Some(work.now);
    }
    for note in notes {
        work.place.remove(&note).await?;
    }
    Ok(())
}

/// The resources of some notes. A file that is no note is none.
async fn noted(place: &Place, notes: &[String]) -> Result<BTreeSet<ResourceUri>, PublishError> {
    let mut uris = BTreeSet::new();
    for note in notes {
        let text = place.read(note).await?;
        let uri: Option<ResourceUri> =
            text.as_deref().and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        uris.extend(uri);
    }
    Ok(uris)
}

/// Reads the bytes of some resources.
async fn judge(
    work: &mut Work<'_>,
    state: &State,
    uris: &[ResourceUri],
) -> Result<Vec<Judged>, PublishError> {
    let records = work.records;
    let found = records.find(uris).await?.into_iter().zip(uris.to_vec());
    let found: Vec<(ResourceUri, Stored)> = found.filter_map(|(stored, uri)| Some((uri, stored?))).collect();
    let read = stream::iter(found).map(|(uri, stored)| async move {
        let read = read(records, &uri, &stored).await?;
        Ok::<_, PublishError>((uri, stored, read))
    });
    let read: Vec<_> = read.buffered(AT_A_TIME).try_collect().await?;
    let mut judged = Vec::with_capacity(read.len());
    for (uri, stored, read) in read {
        if let Err(error) = &read {
            work.done.damaged += 1;
            if !state.missing.contains(&uri) {
                (work.see)(Seen::Damaged(&uri, error));
            }
        }
        judged.push(Judged { uri, stored, is_damaged: read.is_err() });
    }
    Ok(judged)
}

/// Reads the bytes of a resource, which are compared with their digest. The inner error is that of damaged bytes.
async fn read(
    records: &dyn Records,
    uri: &ResourceUri,
    stored: &Stored,
) -> Result<Result<(), BodyError>, PublishError> {
    let mut pieces = match records.open(uri, stored).await {
        Ok(pieces) => pieces,
        Err(error) => return error.of_resource(),
    };
    loop {
        match pieces.try_next().await {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(Ok(())),
            Err(error) => return error.of_resource(),
        }
    }
}

/// Tells what is damaged and was not, and what was and is not any more.
async fn tell_judged(
    work: &mut Work<'_>,
    state: &mut State,
    judged: Vec<Judged>,
) -> Result<(), PublishError> {
    if judged.iter().all(|judged| judged.is_damaged == state.missing.contains(&judged.uri)) {
        return Ok(());
    }
    let begun = Instant::now();
    // First all changes by now: that of a version comes before its damage.
    Box::pin(tell(work, state)).await?;
    let uris: Vec<ResourceUri> = judged.iter().map(|judged| judged.uri.clone()).collect();
    let found = work.records.find(&uris).await?;
    let (mut told, mut lost) = (Vec::new(), Vec::new());
    for (Judged { uri, stored: read, is_damaged }, stored) in judged.into_iter().zip(found) {
        // Of another version, which came meanwhile, nothing is known.
        let Some(stored) = stored.filter(|stored| stored.hash == read.hash) else { continue };
        let at = work.now;
        match (state.missing.contains(&uri), is_damaged) {
            (false, true) => {
                lost.push(uri.clone());
                let links = stored.vias();
                told.push(Told { uri, kind: Change::Deleted, at, stored: None, links });
            }
            (true, false) => {
                let stored = Some(stored);
                told.push(Told { uri, kind: Change::Created, at, stored, links: Vec::new() });
            }
            _ => {}
        }
    }
    let told = stream::iter(told.into_iter().map(Ok));
    Box::pin(tell_these(work, state, told.boxed())).await?;
    for uri in lost {
        state.note_missing(&uri, true)?;
    }
    complete(work, state, begun).await
}
