//! Who owns a Source: one process at a time, for as long as it says so.

mod keeper;
mod record;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use model::SourceId;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bucket::WriteError;
use crate::members::MemberId;
use crate::runs::Tenure;
use crate::table::Table;
use crate::view::View;
use crate::{ControlError, Revised};
use keeper::{Keeper, Timing};

pub use record::LeaseRecord;

/// The leases of all Sources.
#[derive(Debug, Clone)]
pub struct Leases {
    table: Table<LeaseRecord>,
    timing: Timing,
}

/// What came of asking for a lease.
#[derive(Debug)]
pub enum Claim {
    /// It is ours.
    Taken(Lease),
    /// Somebody has it.
    Held(Revised<LeaseRecord>),
}

/// The ownership of a Source. It is renewed in the background, and given back when this is dropped: stop the work
/// first. When it cannot be renewed, [`lost`](Self::lost) says so before anybody else can have it.
///
/// It keeps two owners from working side by side; what guards the catalog against an owner that sleeps through its own
/// end is the catalog's fence.
#[derive(Debug)]
pub struct Lease {
    source: SourceId,
    tenure: Tenure,
    deadline: Arc<Mutex<Instant>>,
    lost: CancellationToken,
    released: CancellationToken,
    keeper: Option<JoinHandle<()>>,
}

impl Leases {
    pub(crate) fn new(table: Table<LeaseRecord>, ttl: Duration) -> Self {
        Self { table, timing: Timing { ttl } }
    }

    /// Asks for the lease of a Source.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`]; then it may yet turn out to be held by `holder`, until its time is over.
    pub async fn acquire(
        &self,
        source: &SourceId,
        holder: &MemberId,
        now: Timestamp,
    ) -> Result<Claim, ControlError> {
        let record = LeaseRecord { holder: holder.clone(), epoch: None, since: now };
        loop {
            let (found, revision) = self.table.slot(source).await?;
            if let Some(found) = found {
                return Ok(Claim::Held(found));
            }
            let asked = Instant::now();
            match self.table.put(source, &record, Some(revision), Some(self.timing.ttl)).await {
                Ok(revision) => {
                    let tenure = Tenure::new(holder.clone(), revision);
                    return Ok(Claim::Taken(self.keep(source, record, tenure, asked)));
                }
                // Somebody was quicker, or the trace of the last lease has gone just now: look again.
                Err(WriteError::Conflict) => {}
                Err(error) => return Err(error.of(|| format!("lease of {source}"))),
            }
        }
    }

    /// A live copy of all leases.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<View<LeaseRecord>, ControlError> {
        self.table.view().await
    }

    fn keep(&self, source: &SourceId, record: LeaseRecord, tenure: Tenure, asked: Instant) -> Lease {
        let (lost, released) = (CancellationToken::new(), CancellationToken::new());
        let deadline = Arc::new(Mutex::new(self.timing.deadline(asked)));
        let keeper = Keeper {
            table: self.table.clone(),
            source: source.clone(),
            record: LeaseRecord { epoch: Some(tenure.epoch), ..record },
            tenure: tenure.clone(),
            timing: self.timing,
            revision: tenure.epoch,
            deadline: Arc::clone(&deadline),
            lost: lost.clone(),
            released: released.clone(),
        };
        let keeper = Some(tokio::spawn(keeper.keep(asked)));
        Lease { source: source.clone(), tenure, deadline, lost, released, keeper }
    }
}

impl Lease {
    /// What is owned.
    pub fn source(&self) -> &SourceId {
        &self.source
    }

    /// Which ownership this is.
    pub fn tenure(&self) -> Tenure {
        self.tenure.clone()
    }

    /// Is cancelled when the lease is lost, a fifth of its time before anybody else can have it: stop what writes.
    pub fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// Whether it is held right now, by the clock: also where the runtime had no time to say that it is lost.
    pub fn is_held(&self) -> bool {
        let deadline = *self.deadline.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        !self.lost.is_cancelled() && Instant::now() < deadline
    }

    /// Gives it back, and returns when others can have it, or when that could not be said and its time will run out.
    pub async fn release(mut self) {
        self.released.cancel();
        if let Some(keeper) = self.keeper.take() {
            // It ends by itself; a panic in it has been reported.
            let _ = keeper.await;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.released.cancel();
    }
}
