//! The specs of the Sources.

mod check;
mod claim;
mod digest;
mod label;
mod name;
mod selector;
mod spec;

use model::SourceId;

use crate::error::ControlError;
use crate::kept::Kept as _;
use crate::table::{TRIES, Table};
use crate::versioned::{Revision, Versioned};
use crate::watch_cache::WatchCache;

pub use claim::NameClaim;
pub use digest::SpecDigest;
pub use label::{LabelError, LabelKey, LabelValue};
pub use name::{NameOrId, SourceName, SourceNameError};
pub use selector::{Selector, SelectorError};
pub use spec::{CredentialName, CredentialNameError, SourceSpec, Spec};

/// The Sources that the fleet harvests, and the claims of their names.
#[derive(Debug, Clone)]
pub struct Sources {
    specs: Table<SourceSpec>,
    names: Table<NameClaim>,
}

impl Sources {
    pub(crate) fn new(specs: Table<SourceSpec>, names: Table<NameClaim>) -> Self {
        Self { specs, names }
    }

    /// Adds a Source.
    ///
    /// # Errors
    /// [`ControlError::Invalid`]; [`ControlError::Exists`] when it was added before; [`ControlError::NameTaken`].
    pub async fn create(&self, spec: &SourceSpec) -> Result<Revision, ControlError> {
        spec.check()?;
        for _ in 0..TRIES {
            let (found, revision) = self.specs.slot(&spec.id).await?;
            if found.is_some() {
                break;
            }
            match self.write(spec, revision).await {
                // Another process has added it meanwhile, or has taken over the claim of its name.
                Err(ControlError::Conflict { .. }) => {}
                written => return written,
            }
        }
        Err(ControlError::Exists { what: SourceSpec::describe(&spec.id) })
    }

    /// Changes the spec of a Source that was read at revision `read`.
    ///
    /// # Errors
    /// [`ControlError::Invalid`]; [`ControlError::Conflict`] when another client changed or deleted it meanwhile;
    /// [`ControlError::NameTaken`].
    pub async fn update(&self, spec: &SourceSpec, read: Revision) -> Result<Revision, ControlError> {
        spec.check()?;
        let (found, revision) = self.specs.slot(&spec.id).await?;
        if revision != read {
            return Err(ControlError::Conflict { what: SourceSpec::describe(&spec.id) });
        }
        let before = found.and_then(|found| found.name.clone());
        if before == spec.name {
            return self.specs.write(&spec.id, spec, Some(read), None).await;
        }
        let written = self.write(spec, read).await?;
        if let Some(before) = before {
            self.release(&before, &spec.id).await;
        }
        Ok(written)
    }

    /// Writes a spec with a name that the Source has not borne before.
    async fn write(&self, spec: &SourceSpec, read: Revision) -> Result<Revision, ControlError> {
        let Some(name) = &spec.name else {
            return self.specs.write(&spec.id, spec, Some(read), None).await;
        };
        self.claim(name, &spec.id, read).await?;
        let written = self.specs.write(&spec.id, spec, Some(read), None).await;
        if written.is_err() {
            self.release(name, &spec.id).await;
        }
        written
    }

    /// Deletes a Source that was read at revision `read`. Its stored resources stay. Cancel its current run first.
    ///
    /// # Errors
    /// [`ControlError::Conflict`] when another client changed or deleted it meanwhile.
    pub async fn delete(&self, id: &SourceId, read: Revision) -> Result<(), ControlError> {
        let (found, _) = self.specs.slot(id).await?;
        self.specs.delete_at(id, Some(read)).await?;
        if let Some(name) = found.and_then(|found| found.name.clone()) {
            self.release(&name, id).await;
        }
        Ok(())
    }

    /// The spec of a Source.
    ///
    /// # Errors
    /// [`ControlError::Absent`]; [`ControlError::Unreadable`].
    pub async fn get(&self, id: &SourceId) -> Result<Versioned<SourceSpec>, ControlError> {
        self.specs.existing(id).await
    }

    /// The Source that bears a name now.
    ///
    /// # Errors
    /// [`ControlError::Absent`]; [`ControlError::Unreadable`].
    pub async fn named(&self, name: &SourceName) -> Result<Versioned<SourceSpec>, ControlError> {
        let found = match self.names.find(name).await? {
            Some(claim) => self.specs.find(&claim.source).await?,
            None => None,
        };
        let found = found.filter(|found| found.name.as_ref() == Some(name));
        found.ok_or_else(|| ControlError::Absent { what: format!("source named {name}") })
    }

    /// Checks that a spec could be written now as far as its name is concerned.
    ///
    /// # Errors
    /// [`ControlError::NameTaken`].
    pub async fn check_name(&self, spec: &SourceSpec) -> Result<(), ControlError> {
        let Some(name) = &spec.name else { return Ok(()) };
        match self.named(name).await {
            Ok(bearer) if bearer.id != spec.id => Err(ControlError::NameTaken { name: name.to_string() }),
            Ok(_) | Err(ControlError::Absent { .. }) => Ok(()),
            Err(error) => Err(error),
        }
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
        self.specs.view().await
    }

    /// Checks that the specs can be read.
    pub(crate) async fn probe(&self) -> Result<(), ControlError> {
        self.specs.probe().await
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
