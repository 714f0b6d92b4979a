//! Reads documents that were published before.

use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;

use resourcesync::{Item, Options, Reader};

use crate::PublishError;
use crate::work::Work;

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
