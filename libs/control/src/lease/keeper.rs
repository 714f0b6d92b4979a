//! Keeps a lease: renews it in time, or reports in time that it is lost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::SourceId;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::record::{LeaseRecord, LeaseTerm};
use crate::error::ControlError;
use crate::table::Table;
use crate::versioned::Revision;

/// The times of a lease, all derived from its duration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) ttl: Duration,
}

impl Timing {
    /// The interval of renewals. Two may fail before the third is too late.
    fn renewal(self) -> Duration {
        self.ttl / 4
    }

    /// The timeout of a renewal. After that the next attempt begins.
    fn timeout(self) -> Duration {
        self.ttl / 4
    }

    /// The pause between a failed attempt and the next.
    fn again(self) -> Duration {
        self.ttl / 20
    }

    /// Until when a lease counts as held that was requested at `sent`. The server counts from a later time, and a fifth
    /// of the duration remains for stopping the work.
    pub(crate) fn deadline(self, sent: Instant) -> Instant {
        sent + self.ttl - self.ttl / 5
    }
}

/// Renews a lease until it is released or lost.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) table: Table<LeaseRecord>,
    pub(crate) source: SourceId,
    pub(crate) record: LeaseRecord,
    pub(crate) term: LeaseTerm,
    pub(crate) timing: Timing,
    pub(crate) revision: Revision,
    pub(crate) deadline: Arc<Mutex<Instant>>,
    pub(crate) lost: CancellationToken,
    pub(crate) released: CancellationToken,
}

/// The result of an attempt to renew.
enum Renewal {
    Done,
    /// Retry soon.
    Failed,
    /// This process still owns it, but at another revision than expected. Retry at once.
    Found,
    /// Another process owns it, or none does.
    Gone,
}

impl Keeper {
    /// Runs until the lease is released or lost.
    pub(crate) async fn keep(mut self, acquired: Instant) {
        let mut next = acquired + self.timing.renewal();
        let mut deadline = self.timing.deadline(acquired);
        loop {
            tokio::select! {
                biased;
                () = self.released.clone().cancelled_owned() => return self.release().await,
                () = sleep_until(deadline) => return self.lose("it could not be renewed in time"),
                () = sleep_until(next) => {}
            }
            let sent = Instant::now();
            let renewal = tokio::select! {
                biased;
                () = self.released.clone().cancelled_owned() => return self.release().await,
                () = sleep_until(deadline) => return self.lose("it could not be renewed in time"),
                renewal = self.renew() => renewal,
            };
            match renewal {
                Renewal::Done => {
                    deadline = self.timing.deadline(sent);
                    *self.deadline.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = deadline;
                    next = sent + self.timing.renewal();
                }
                Renewal::Failed => next = Instant::now() + self.timing.again(),
                Renewal::Found => next = Instant::now(),
                Renewal::Gone => return self.lose("it expired, or another process took it"),
            }
        }
    }

    async fn renew(&mut self) -> Renewal {
        let ttl = Some(self.timing.ttl);
        let put = self.table.write(&self.source, &self.record, Some(self.revision), ttl);
        match timeout(self.timing.timeout(), put).await {
            Ok(Ok(revision)) => {
                self.revision = revision;
                Renewal::Done
            }
            Ok(Err(ControlError::Conflict { .. })) => self.look().await,
            Ok(Err(error)) => {
                debug!(source = %self.source, %error, "a lease could not be renewed; trying again");
                Renewal::Failed
            }
            Err(_) => {
                debug!(source = %self.source, "no answer to the renewal of a lease; trying again");
                Renewal::Failed
            }
        }
    }

    /// Reads the owner. An earlier renewal may have been written although its response was lost.
    async fn look(&mut self) -> Renewal {
        match timeout(self.timing.timeout(), self.table.find(&self.source)).await {
            Ok(Ok(Some(found))) if found.term() == self.term => {
                self.revision = found.revision;
                Renewal::Found
            }
            Ok(Ok(_)) => Renewal::Gone,
            Ok(Err(_)) | Err(_) => Renewal::Failed,
        }
    }

    fn lose(&self, why: &str) {
        warn!(source = %self.source, holder = %self.record.holder, why, "a lease is lost");
        self.lost.cancel();
    }

    /// Releases the lease, so that others can acquire it at once. If that fails, it expires.
    async fn release(mut self) {
        self.lost.cancel();
        for _ in 0..2 {
            match self.table.delete_at(&self.source, Some(self.revision)).await {
                // A renewal was under way.
                Err(ControlError::Conflict { .. }) if matches!(self.look().await, Renewal::Found) => {}
                Ok(()) | Err(ControlError::Conflict { .. }) => return,
                Err(error) => {
                    debug!(source = %self.source, %error, "a lease could not be released; it will expire");
                    return;
                }
            }
        }
    }
}
