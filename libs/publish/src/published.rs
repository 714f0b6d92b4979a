//! Reads documents that were published before.

use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;

use resourcesync::{Item, Options, Reader};

use crate::PublishError;
use crate::change_record::ChangeListRecord;
use crate::entries::Entries;
use crate::work::Work;

/// The entries of a published Change List, as far as the state knows them: a run that was killed may have written
/// more.
pub(crate) async fn entries_of(work: &Work<'_>, record: &ChangeListRecord) -> Result<Entries, PublishError> {
    let mut entries = Entries::begin(work.place)?;
    let file = copy(work, &record.path).await?;
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
            let why = format!("it has {} changes of {most}", entries.count());
            return Err(PublishError::changed(&path, why));
        }
        Ok(entries)
    });
    task.await.map_err(|error| PublishError::place(&record.path, error))?
}

/// Reads the entries of a published document, until `each` breaks off.
pub(crate) fn each_entry(
    path: &str,
    file: File,
    mut each: impl FnMut(resourcesync::Entry) -> Result<ControlFlow<()>, PublishError>,
) -> Result<(), PublishError> {
    let unreadable = |error| PublishError::unreadable(path, &error);
    let mut reader = Reader::new(BufReader::new(file), Options::default()).map_err(unreadable)?;
    while let Some(item) = reader.next().map_err(unreadable)? {
        match item {
            Item::Entry(entry) => {
                if each(*entry)?.is_break() {
                    break;
                }
            }
            Item::Bad(bad) => return Err(PublishError::changed(path, bad.reason)),
        }
    }
    Ok(())
}

/// A published document as a temporary file.
pub(crate) async fn copy(work: &Work<'_>, path: &str) -> Result<File, PublishError> {
    let found = work.place.copy(path).await?;
    found.ok_or_else(|| PublishError::changed(path, "it is not there"))
}
