//! The specs of the Sources.

mod check;
mod spec;

use model::SourceId;

use crate::table::Table;
use crate::watch_cache::WatchCache;
use crate::{ControlError, Revision, Versioned};

pub use check::InvalidSource;
pub use spec::{CredentialName, CredentialNameError, SourceSpec};

/// The Sources that the fleet harvests.
#[derive(Debug, Clone)]
pub struct Sources {
    table: Table<SourceSpec>,
}

impl Sources {
    pub(crate) fn new(table: Table<SourceSpec>) -> Self {
        Self { table }
    }

    /// Adds a Source.
    ///
    /// # Errors
    /// [`ControlError::Invalid`]; [`ControlError::Exists`] when it was added before.
    pub async fn create(&self, spec: &SourceSpec) -> Result<Revision, ControlError> {
        spec.check()?;
        let (found, revision) = self.table.slot(&spec.id).await?;
        let exists = || ControlError::Exists { what: format!("source {}", spec.id) };
        if found.is_some() {
            return Err(exists());
        }
        match self.table.put(&spec.id, spec, Some(revision), None).await {
            Err(crate::bucket::WriteError::Conflict) => Err(exists()),
            other => other.map_err(|error| error.of(|| format!("source {}", spec.id))),
        }
    }

    /// Changes the spec of a Source that was read at revision `read`.
    ///
    /// # Errors
    /// [`ControlError::Invalid`]; [`ControlError::Conflict`] when another client changed or deleted it meanwhile.
    pub async fn update(&self, spec: &SourceSpec, read: Revision) -> Result<Revision, ControlError> {
        spec.check()?;
        let written = self.table.put(&spec.id, spec, Some(read), None).await;
        written.map_err(|error| error.of(|| format!("source {}", spec.id)))
    }

    /// Deletes a Source that was read at revision `read`. Its stored resources stay. Cancel its current run first.
    ///
    /// # Errors
    /// [`ControlError::Conflict`] when another client changed or deleted it meanwhile.
    pub async fn delete(&self, id: &SourceId, read: Revision) -> Result<(), ControlError> {
        self.table.remove(id, Some(read)).await.map_err(|error| error.of(|| format!("source {id}")))
    }

    /// The spec of a Source.
    ///
    /// # Errors
    /// [`ControlError::Absent`]; [`ControlError::Unreadable`].
    pub async fn get(&self, id: &SourceId) -> Result<Versioned<SourceSpec>, ControlError> {
        let found = self.table.get(id).await?;
        found.ok_or_else(|| ControlError::Absent { what: format!("source {id}") })
    }

    /// All Sources, by ID, as they are now. [`WatchCache::unreadable`] reports those that cannot be read.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn list(&self) -> Result<Vec<Versioned<SourceSpec>>, ControlError> {
        Ok(self.view().await?.all())
    }

    /// A view of all Sources.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<WatchCache<SourceSpec>, ControlError> {
        self.table.view().await
    }

    /// Whether the Source exists now. If the view has it, that is enough. If not, the view may lag, so the control
    /// store decides.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn is_there(&self, id: &SourceId, view: &WatchCache<SourceSpec>) -> Result<bool, ControlError> {
        if view.get(id).is_some() {
            return Ok(true);
        }
        match self.get(id).await {
            // A Source in the format of a later version exists, too.
            Ok(_) | Err(ControlError::Unreadable { .. }) => Ok(true),
            Err(ControlError::Absent { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Checks that the bucket can be read.
    pub(crate) async fn probe(&self) -> Result<(), ControlError> {
        self.table.probe().await
    }
}
