//! Runs: each request of the operator, and its progress. Keyed by their id, which sorts by time.

use model::{Persisted, RunId, RunRecord};

use crate::keyspace::{Key, text_space};
use crate::meta::LAST_RUN;
use crate::{Batch, CatalogError, Lookups};

text_space!(
    /// `u<run>`
    Runs, Persisted::RunRecords, "run", RunId => RunRecord
);

impl Runs {
    fn name_of(text: String) -> Result<RunId, String> {
        text.parse::<RunId>().map_err(|error| error.to_string())
    }

    fn key(id: RunId) -> Key<Self> {
        Key::of(id.to_string())
    }
}

impl Lookups {
    /// A run.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn run(&self, id: RunId) -> Result<Option<RunRecord>, CatalogError> {
        self.get(&Runs::key(id)).await
    }

    /// The run that was written last: the current one, or the last one that ended.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn last_run(&self) -> Result<Option<RunRecord>, CatalogError> {
        match self.meta::<RunId>(LAST_RUN).await? {
            Some(id) => self.run(id).await,
            None => Ok(None),
        }
    }
}

impl Batch {
    /// Writes a run over an earlier record, and makes it the last run.
    pub fn put_run(&mut self, record: &RunRecord) {
        self.put(Runs::key(record.id), record);
        self.put_meta(LAST_RUN, &record.id);
    }
}
