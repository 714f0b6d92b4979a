//! The end of a catalog's log: whether anything was committed, by one request to the store.

use std::sync::Arc;

use futures::TryStreamExt;
use object_store::ObjectStore;
use object_store::path::Path;

use crate::CatalogError;
use crate::reader::unlisted;

/// The newest file of the log. Each commit makes a later one, so the same end means that nothing was committed. A new
/// owner makes one too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogEnd(Path);

impl LogEnd {
    /// The end of the log of the catalog at `path` of a store; none if it has no file. An open reader asks for more
    /// than that each second. `before` is an earlier end: files up to it are not listed, so the answer is short.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn of(
        store: &Arc<dyn ObjectStore>,
        path: &str,
        before: Option<&Self>,
    ) -> Result<Option<Self>, CatalogError> {
        // The names of the files are their numbers, all of one length.
        let log = Path::from(format!("{path}/wal"));
        let files = match before {
            Some(before) => store.list_with_offset(Some(&log), &before.0),
            None => store.list(Some(&log)),
        };
        let mut files = files.map_err(|error| unlisted(path, error));
        let mut end = before.cloned();
        while let Some(file) = files.try_next().await? {
            end = end.max(Some(Self(file.location)));
        }
        Ok(end)
    }
}
