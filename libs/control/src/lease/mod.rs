//! Leases: the ownership of a Source by one process at a time, while the process renews it.

mod keeper;
mod record;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use model::SourceId;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::ControlError;
use crate::members::MemberId;
use crate::table::Table;
use crate::versioned::Versioned;
use crate::watch_cache::WatchCache;
use keeper::{Keeper, Timing};

pub use record::{LeaseRecord, LeaseTerm};

/// The leases of all Sources.
#[derive(Debug, Clone)]
pub struct Leases {
    table: Table<LeaseRecord>,
    timing: Timing,
}

/// The result of a request for a lease.
#[derive(Debug)]
pub enum Claim {
    /// This process has acquired the lease.
    Taken(Lease),
    /// Another process holds the lease.
    Held(Versioned<LeaseRecord>),
}

/// The ownership of a Source. It is renewed in the background, and returned when this is dropped, so stop the work
/// first. When it cannot be renewed, [`lost`](Self::lost) fires before another process can acquire it.
///
/// The lease keeps two owners from working at the same time. If an owner is suspended past its end, the fence of the
/// catalog protects the catalog.
#[derive(Debug)]
pub struct Lease {
    source: SourceId,
    term: LeaseTerm,
    deadline: Arc<Mutex<Instant>>,
    lost: CancellationToken,
    released: CancellationToken,
    keeper: Option<JoinHandle<()>>,
}

impl Leases {
    pub(crate) fn new(table: Table<LeaseRecord>, ttl: Duration) -> Self {
        Self { table, timing: Timing { ttl } }
    }

    /// Requests the lease of a Source.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`]; in that case `holder` may have acquired it, until it expires.
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
            match self.table.write(source, &record, Some(revision), Some(self.timing.ttl)).await {
                Ok(revision) => {
                    let term = LeaseTerm { owner: holder.clone(), epoch: revision };
                    return Ok(Claim::Taken(self.keep(source, record, term, asked)));
                }
                // Another process was faster, or the delete marker of the last lease is just gone: read again.
                Err(ControlError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A view of all leases.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<WatchCache<LeaseRecord>, ControlError> {
        self.table.view().await
    }

    fn keep(&self, source: &SourceId, record: LeaseRecord, term: LeaseTerm, asked: Instant) -> Lease {
        let lost = CancellationToken::new();
        let released = CancellationToken::new();
        let deadline = Arc::new(Mutex::new(self.timing.deadline(asked)));
        let keeper = Keeper {
            table: self.table.clone(),
            source: source.clone(),
            record: LeaseRecord { epoch: Some(term.epoch), ..record },
            term: term.clone(),
            timing: self.timing,
            revision: term.epoch,
            deadline: Arc::clone(&deadline),
            lost: lost.clone(),
            released: released.clone(),
        };
        let keeper = Some(tokio::spawn(keeper.keep(asked)));
        Lease { source: source.clone(), term, deadline, lost, released, keeper }
    }
}

impl Lease {
    /// The Source.
    pub fn source(&self) -> &SourceId {
        &self.source
    }

    /// The term of this ownership.
    pub fn term(&self) -> LeaseTerm {
        self.term.clone()
    }

    /// Cancelled when the lease is lost, a fifth of its duration before another process can acquire it. Stop all
    /// writers then.
    pub fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// Whether the lease is held right now by the clock, even if the runtime had no time to report its loss.
    pub fn is_held(&self) -> bool {
        let deadline = *self.deadline.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        !self.lost.is_cancelled() && Instant::now() < deadline
    }

    /// Releases the lease. Returns when others can acquire it, or when the release failed and the lease will expire.
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
