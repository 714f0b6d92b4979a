//! The documents of Change Lists, as they are replaced. At a guarded place, one is replaced only as it was read: so a
//! process that another one has overtaken, or a request that comes late, takes no changes out of it.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::ControlFlow;

use bytes::Bytes;
use object_store::UpdateVersion;
use tempfile::NamedTempFile;

use crate::PublishError;
use crate::change_record::ChangeListRecord;
use crate::entries::Entries;
use crate::place::{Place, tag, xml};
use crate::published::each_entry;
use crate::state::State;
use crate::work::Work;

/// The entries of a published Change List, as far as the state knows them: a run that was killed may have written
/// more. With the version of the document over which the next one is written; none where the place is not guarded.
pub(crate) async fn entries_to_replace(
    work: &Work<'_>,
    state: &mut State,
    record: &ChangeListRecord,
) -> Result<(Entries, Option<UpdateVersion>), PublishError> {
    let path = &record.path;
    let found = work.place.copy_version(path).await?;
    let (file, version) = found.ok_or_else(|| PublishError::changed(path, "it is not there"))?;
    let version = version.filter(|_| work.place.is_guarded());
    if version.as_ref().is_some_and(|version| tag(version) != record.tag) {
        // A run that was killed has written it, or another process writes it now: that one is to fail, or this one.
        state.claim(work.place).await?;
    }
    Ok((read(work.place, record, file).await?, version))
}

/// Writes the document of a Change List over the version that was read. Without one it is a new list, or the place is
/// not guarded.
///
/// # Errors
/// [`PublishError::Busy`] when another process has written it, or saved its state.
pub(crate) async fn put_list(
    work: &mut Work<'_>,
    state: &mut State,
    record: &mut ChangeListRecord,
    document: NamedTempFile,
    version: Option<UpdateVersion>,
) -> Result<(), PublishError> {
    let place = work.place;
    if !place.is_guarded() {
        return work.put_document(&record.path, document).await;
    }
    let bytes = in_memory(document).await?;
    let is_new = version.is_none();
    let mut written = place.put_over(&record.path, bytes.clone(), &xml(), version).await?;
    if is_new && written.is_none() {
        // A run that was killed may have begun the same list. Its version comes before the claim: whatever is written
        // between them is noticed by the PUT, or has claimed the state before.
        let there = place.version(&record.path).await?;
        state.claim(place).await?;
        if there.is_some() {
            written = place.put_over(&record.path, bytes, &xml(), there).await?;
        }
    }
    let Some(written) = written else { return Err(PublishError::Busy(place.name().to_owned())) };
    record.tag = tag(&written);
    work.done.documents += 1;
    Ok(())
}

/// The entries of a list that the state knows.
async fn read(place: &Place, record: &ChangeListRecord, file: File) -> Result<Entries, PublishError> {
    let mut entries = Entries::begin(place)?;
    let path = record.path.clone();
    let most = record.changes;
    let task = tokio::task::spawn_blocking(move || {
        each_entry(&path, file, |entry| {
            if entries.count() == most {
                return Ok(ControlFlow::Break(()));
            }
            entries.push(&entry)?;
            Ok(ControlFlow::Continue(()))
        })?;
        if entries.count() < most {
            return Err(PublishError::short(&path, entries.count(), most));
        }
        Ok(entries)
    });
    task.await.map_err(|error| PublishError::place(&record.path, error))?
}

/// A document that is one PUT: an upload in parts has no condition. A list is closed before it is large.
async fn in_memory(document: NamedTempFile) -> Result<Bytes, PublishError> {
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        document.reopen()?.read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(Bytes::from(bytes))
    });
    Ok(read.await.map_err(io::Error::other)??)
}
