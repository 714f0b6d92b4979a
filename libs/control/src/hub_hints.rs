//! Hints that requests wait for the hub of a publication. The requests themselves are in the store.

use std::time::Duration;

use jiff::Timestamp;
use model::{Message, Persisted, SourceId};
use serde::{Deserialize, Serialize};

use crate::error::ControlError;
use crate::kept::Kept;
use crate::table::Table;

/// How long a hint stays. Who opens a hub looks for requests without one.
const KEPT: Duration = Duration::from_secs(600);

/// Requests wait for the hub of a publication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubHint {
    /// The Source that is published.
    pub source: SourceId,
    /// When the latest request came.
    pub given_at: Timestamp,
}

/// The hints of the fleet, one for each publication.
pub type HubHints = Table<HubHint>;

impl Table<HubHint> {
    /// Gives a hint, in place of an earlier one. Each is a change that the process with the hub sees.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn give(&self, source: &SourceId, now: Timestamp) -> Result<(), ControlError> {
        let hint = HubHint { source: source.clone(), given_at: now };
        self.write(source, &hint, None, Some(KEPT)).await.map(drop)
    }
}

impl Message for HubHint {
    const KIND: &'static str = "hub-hint";
    const VERSION: u16 = Persisted::HubHints.version();
}

impl Kept for HubHint {
    type Id = SourceId;

    fn key(source: &SourceId) -> String {
        source.to_string()
    }
}
