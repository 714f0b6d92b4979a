//! What is wanted: the Sources.

mod check;
mod spec;

use model::SourceId;

use crate::table::Table;
use crate::view::View;
use crate::{ControlError, Revised, Revision};

pub use check::InvalidSource;
pub use spec::{
    Absent, CredentialName, CredentialNameError, Origins, Prefer, Push, Robots, RunMode, SourceSpec,
};

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

    /// Changes what is wanted of a Source that was read with `read`.
    ///
    /// # Errors
    /// [`ControlError::Invalid`]; [`ControlError::Conflict`] when somebody else changed or deleted it meanwhile.
    pub async fn update(&self, spec: &SourceSpec, read: Revision) -> Result<Revision, ControlError> {
        spec.check()?;
        let written = self.table.put(&spec.id, spec, Some(read), None).await;
        written.map_err(|error| error.of(|| format!("source {}", spec.id)))
    }

    /// Deletes a Source that was read with `read`. What is held of it stays; a run under way is to be cancelled first.
    ///
    /// # Errors
    /// [`ControlError::Conflict`] when somebody else changed or deleted it meanwhile.
    pub async fn delete(&self, id: &SourceId, read: Revision) -> Result<(), ControlError> {
        self.table.remove(id, Some(read)).await.map_err(|error| error.of(|| format!("source {id}")))
    }

    /// What is wanted of a Source.
    ///
    /// # Errors
    /// [`ControlError::Absent`]; [`ControlError::Unreadable`].
    pub async fn get(&self, id: &SourceId) -> Result<Revised<SourceSpec>, ControlError> {
        let found = self.table.get(id).await?;
        found.ok_or_else(|| ControlError::Absent { what: format!("source {id}") })
    }

    /// All Sources, by name, as they are now. What cannot be read is told by [`View::unreadable`].
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn list(&self) -> Result<Vec<Revised<SourceSpec>>, ControlError> {
        Ok(self.view().await?.all())
    }

    /// A live copy of all Sources.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<View<SourceSpec>, ControlError> {
        self.table.view().await
    }

    /// Whether there is such a Source now. A view that has it is taken at its word; one that has not may be a moment behind, and so only the store
    /// says no.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn is_there(&self, id: &SourceId, view: &View<SourceSpec>) -> Result<bool, ControlError> {
        if view.get(id).is_some() {
            return Ok(true);
        }
        match self.get(id).await {
            // What a later version has written is there, too.
            Ok(_) | Err(ControlError::Unreadable { .. }) => Ok(true),
            Err(ControlError::Absent { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the bucket can be read.
    pub(crate) async fn probe(&self) -> Result<(), ControlError> {
        self.table.probe().await
    }
}
