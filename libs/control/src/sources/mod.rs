//! The specs of the Sources.

mod check;
mod spec;

use model::SourceId;

use crate::error::{ControlError, unless_changed};
use crate::kept::Kept as _;
use crate::table::Table;
use crate::versioned::{Revision, Versioned};
use crate::watch_cache::WatchCache;

pub use spec::{CredentialName, CredentialNameError, SourceSpec, Spec};

/// The Sources that the fleet harvests.
pub type Sources = Table<SourceSpec>;

impl Table<SourceSpec> {
    /// Adds a Source.
    ///
    /// # Errors
    /// [`ControlError::Invalid`]; [`ControlError::Exists`] when it was added before.
    pub async fn create(&self, spec: &SourceSpec) -> Result<Revision, ControlError> {
        spec.check()?;
        let (found, revision) = self.slot(&spec.id).await?;
        let written = match found {
            Some(_) => None,
            None => unless_changed(self.write(&spec.id, spec, Some(revision), None).await)?,
        };
        written.ok_or_else(|| ControlError::Exists { what: SourceSpec::describe(&spec.id) })
    }

    /// Changes the spec of a Source that was read at revision `read`.
    ///
    /// # Errors
    /// [`ControlError::Invalid`]; [`ControlError::Conflict`] when another client changed or deleted it meanwhile.
    pub async fn update(&self, spec: &SourceSpec, read: Revision) -> Result<Revision, ControlError> {
        spec.check()?;
        self.write(&spec.id, spec, Some(read), None).await
    }

    /// Deletes a Source that was read at revision `read`. Its stored resources stay. Cancel its current run first.
    ///
    /// # Errors
    /// [`ControlError::Conflict`] when another client changed or deleted it meanwhile.
    pub async fn delete(&self, id: &SourceId, read: Revision) -> Result<(), ControlError> {
        self.delete_at(id, Some(read)).await
    }

    /// The spec of a Source.
    ///
    /// # Errors
    /// [`ControlError::Absent`]; [`ControlError::Unreadable`].
    pub async fn get(&self, id: &SourceId) -> Result<Versioned<SourceSpec>, ControlError> {
        self.existing(id).await
    }

    /// All Sources, by ID, as they are now. [`WatchCache::unreadable`] reports those that cannot be read.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn list(&self) -> Result<Vec<Versioned<SourceSpec>>, ControlError> {
        Ok(self.view().await?.all())
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
}
