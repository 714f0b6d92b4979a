//! Documents of the past stay, listed in Archives (ResourceSync Archives): Resource Lists that were replaced, and
//! closed Change Lists that left the index.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Seek as _};

use jiff::Timestamp;
use model::Archive;
use resourcesync::{Capability, Entry, Header, Options, Reader, Root};

use crate::PublishError;
use crate::documents::{document, links, put_fixed, resource_index};
use crate::past_record::PastEdition;
use crate::paths::{CHANGES_ARCHIVE, RESOURCE_PARTS, RESOURCES, RESOURCES_ARCHIVE, name_of};
use crate::place::xml;
use crate::published::copy;
use crate::state::{Edition, Retired, State};
use crate::work::Work;

/// Keeps the present Resource List under a name of its own, before another one takes its place. It is done once: after
/// a kill there may be the next one in its place.
pub(crate) async fn keep_edition(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    let Some(edition) = state.edition.clone() else { return Ok(()) };
    let is_kept = state.past.editions.last().is_some_and(|last| last.at >= edition.at);
    if work.policy.archive == Archive::Off || is_kept {
        return Ok(());
    }
    let path = name_of(RESOURCE_PARTS, edition.at, 0);
    let parts = edition.parts.iter().map(|part| part.path.clone()).filter(|path| path != RESOURCES);
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        let mut present = copy(work, RESOURCES).await?;
        if at_of(&present)? != Some(edition.at) {
            // A run without an Archive was killed behind the next one.
            return Ok(());
        }
        present.rewind()?;
        let mut kept = work.place.temporary()?;
        io::copy(&mut present, &mut kept)?;
        work.put_document(&path, kept).await?;
    } else {
        work.place.put(&path, resource_index(work.base, &edition)?, &xml()).await?;
        work.done.documents += 1;
    }
    let Edition { at, completed, .. } = edition;
    state.past.editions.push(PastEdition { path, at, completed, replaced: work.time(), parts });
    state.save(work.place).await
}

/// The `at` of a Resource List.
fn at_of(list: &File) -> Result<Option<Timestamp>, PublishError> {
    let unreadable = |error| PublishError::unreadable(RESOURCES, &error);
    let mut reader = Reader::new(BufReader::new(list), Options::default()).map_err(unreadable)?;
    let header = reader.header().map_err(unreadable)?;
    Ok(header.at.map(|at| at.instant()))
}

/// Retires what is over, takes back from removal what is of the past, and writes the Archives.
pub(crate) async fn settle(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    let gone = state.past.expire(work.policy.archive, work.now);
    if !gone.is_empty() {
        let named = state.named();
        let gone = gone.into_iter().filter(|path| !named.contains(path.as_str()));
        let gone: Vec<Retired> = gone.map(|path| Retired { path, since: work.time() }).collect();
        state.retired.extend(gone);
    }
    let kept: HashSet<String> = state.past.paths().map(str::to_owned).collect();
    state.retired.retain(|file| !kept.contains(&file.path));
    let editions = state.past.editions.iter().map(|past| past.entry(work.base)).collect();
    put(work, state, RESOURCES_ARCHIVE, Capability::ResourceListArchive, editions).await?;
    let lists = state.past.lists.iter().map(|past| past.entry(work.base)).collect();
    put(work, state, CHANGES_ARCHIVE, Capability::ChangeListArchive, lists).await
}

/// Writes an Archive, or retires it when it lists nothing any more.
async fn put(
    work: &mut Work<'_>,
    state: &mut State,
    path: &str,
    capability: Capability,
    entries: Vec<Entry>,
) -> Result<(), PublishError> {
    if entries.is_empty() {
        if state.fixed.remove(path).is_some() {
            state.retired.push(Retired { path: path.to_owned(), since: work.time() });
        }
        return Ok(());
    }
    state.retired.retain(|file| file.path != path);
    let header = Header { links: links(work.base, None), ..Header::new(Root::UrlSet, Some(capability)) };
    work.place.flush().await?;
    work.done.documents +=
        put_fixed(work.place, &mut state.fixed, path, document(&header, entries)?, &xml()).await?;
    Ok(())
}
