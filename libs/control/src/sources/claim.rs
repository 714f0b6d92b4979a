//! Claims of names: which Source may bear a name. A claim is written before the spec that bears the name, and deleted
//! after the last one that does.

use std::time::Duration;

use model::{Message, Persisted, SourceId};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use tracing::warn;

use super::Sources;
use super::name::SourceName;
use crate::error::ControlError;
use crate::kept::Kept;
use crate::table::TRIES;
use crate::versioned::Revision;

/// How long a claimant is waited for before its claim is taken over: many times what its write takes.
const GRACE: Duration = Duration::from_secs(1);

/// The claim of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameClaim {
    /// The Source that bears the name, or is about to.
    pub source: SourceId,
    /// The revision of the Source that the claimant has read. Its write succeeds only over this revision. So the claim
    /// is void when the Source has another revision and does not bear the name.
    pub read: Revision,
}

/// What a claim is worth.
enum Standing {
    /// Its Source bears the name.
    Borne,
    /// Its Source does not bear the name, but may soon: the claimant is about to write, or has crashed.
    Pending,
    /// Its Source does not bear the name, and cannot come to bear it by this claim.
    Void,
}

impl Sources {
    /// Claims a name for a Source that was read at revision `read`, and is written next.
    ///
    /// # Errors
    /// [`ControlError::NameTaken`]; [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub(super) async fn claim(
        &self,
        name: &SourceName,
        source: &SourceId,
        read: Revision,
    ) -> Result<(), ControlError> {
        let mut waited_for = None;
        for _ in 0..TRIES {
            let (found, revision) = self.names.slot(name).await?;
            if let Some(other) = found.filter(|found| found.source != *source) {
                match self.standing(name, &other).await? {
                    Standing::Borne => return Err(ControlError::NameTaken { name: name.to_string() }),
                    Standing::Pending if waited_for != Some(revision) => {
                        waited_for = Some(revision);
                        sleep(GRACE).await;
                        continue;
                    }
                    Standing::Pending => {
                        // With another revision of its Source, the write of the claimant fails.
                        self.specs.touch(&other.source, other.read).await?;
                        continue;
                    }
                    Standing::Void => {}
                }
            }
            let claim = NameClaim { source: source.clone(), read };
            match self.names.write(name, &claim, Some(revision), None).await {
                // Another process has claimed it meanwhile.
                Err(ControlError::Conflict { .. }) => {}
                Err(error) => return Err(error),
                Ok(_) => return Ok(()),
            }
        }
        Err(ControlError::Conflict { what: NameClaim::describe(name) })
    }

    async fn standing(&self, name: &SourceName, claim: &NameClaim) -> Result<Standing, ControlError> {
        let (holder, revision) = self.specs.slot(&claim.source).await?;
        Ok(match holder {
            Some(holder) if holder.name.as_ref() == Some(name) => Standing::Borne,
            _ if revision == claim.read => Standing::Pending,
            _ => Standing::Void,
        })
    }

    /// Deletes the claim of a name that a Source does not bear any more. A failure is only logged: others take over a
    /// claim whose Source does not bear the name.
    pub(super) async fn release(&self, name: &SourceName, source: &SourceId) {
        if let Err(error) = self.try_release(name, source).await {
            warn!(source.id = %source, %name, %error, "the claim of a name stays until another Source takes the name");
        }
    }

    async fn try_release(&self, name: &SourceName, source: &SourceId) -> Result<(), ControlError> {
        let (found, revision) = self.names.slot(name).await?;
        let Some(claim) = found.filter(|found| found.source == *source) else { return Ok(()) };
        match self.standing(name, &claim).await? {
            Standing::Borne | Standing::Pending => return Ok(()),
            Standing::Void => {}
        }
        match self.names.delete_at(name, Some(revision)).await {
            // Another process has claimed it meanwhile.
            Err(ControlError::Conflict { .. }) => Ok(()),
            deleted => deleted,
        }
    }
}

impl Message for NameClaim {
    const KIND: &'static str = "source-name";
    const VERSION: u16 = Persisted::SourceNames.version();
}

impl Kept for NameClaim {
    type Id = SourceName;

    fn key(name: &SourceName) -> String {
        // A key has no two dots in a row. No name contains `=`.
        name.as_str().replace('.', "=")
    }

    fn describe(name: &SourceName) -> String {
        format!("the name {name}")
    }
}
