//! Errors that end a harvest. Finished work stays; the same command resumes.

use catalog::CatalogError;
use discovery::{DiscoverError, EstimateError};
use jiff::Timestamp;
use model::{Mode, Origin, RunId, counted};
use reconcile::{ReconcileError, SpoolError};
use store::{StoreError, StoreFailure};

use crate::run_observer::ObserverError;

/// Reason why a harvest stopped.
#[derive(Debug, thiserror::Error)]
pub enum HarvestError {
    /// Discovery found nothing to harvest.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// The Source offers no document that this version reads.
    #[error(
        "{source_url} offers {offers}; that gives nothing to do here: a baseline needs a Resource List or a Resource Dump, \
         an incremental run a Change List or a Change Dump"
    )]
    NothingUsable {
        /// The entry URL.
        source_url: String,
        /// What the Source offers.
        offers: String,
    },
    /// The Source offers no list or dump to compare with.
    #[error(
        "{source_url} offers {offers}; an audit compares what is held with a Resource List or a Resource Dump, and with the changes after \
         it. Changes alone do not tell what there is: begin the harvest with a URL that leads to a list or a dump too"
    )]
    NoList {
        /// The entry URL.
        source_url: String,
        /// What the Source offers.
        offers: String,
    },
    /// What the Source has is compared by other means.
    #[error(
        "{source_url} is a Source of landing pages (Signposting), which an audit does not read. Run `thresher sync \
         --mode baseline`: it reads all of it again, and finds what is gone"
    )]
    NoAudit {
        /// The entry URL.
        source_url: String,
    },
    /// The catalog has no harvest to compare.
    #[error(
        "{source_url}: nothing to audit, because it was never synced. Run `thresher sync {source_url}` first"
    )]
    NeverSynced {
        /// The entry URL.
        source_url: String,
    },
    /// A run is unfinished: its pending work would look like differences.
    #[error(
        "the {mode} run {run} was interrupted and has still work to do; let it finish first (`thresher sync`, or in a fleet a run with mode \
         auto), then audit"
    )]
    Unfinished {
        /// Mode of that run.
        mode: Mode,
        /// ID of that run.
        run: RunId,
    },
    /// A temporary file with spooled entries, packages or differences failed.
    #[error("{0}. Make room in the directory for temporary files (TMPDIR), and run again")]
    Spool(#[from] SpoolError),
    /// An origin stopped answering. Its resources stay pending.
    #[error(
        "{origin} cannot be reached any more; {} still to be fetched. \
         Nothing is lost: run the same command again when it is back",
        counted(*.pending, "resource is", "resources are")
    )]
    Unreachable {
        /// The origin.
        origin: Origin,
        /// Pending resources.
        pending: u64,
    },
    /// The Source requests a longer cooldown than a run waits for. Its resources stay pending.
    #[error(
        "{origin} asked for a pause until {until} (Retry-After); {} pending. Run again after that time",
        counted(*.pending, "resource is", "resources are")
    )]
    Patience {
        /// The origin.
        origin: Origin,
        /// End of the cooldown.
        until: Timestamp,
        /// Pending resources.
        pending: u64,
    },
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A store failure that waiting does not fix: a full disk, a refused key.
    #[error("{}. Stored resources are not lost", .0.message)]
    StoreFailed(StoreFailure),
    /// The bus failed.
    #[error(transparent)]
    Bus(#[from] bus::BusError),
    /// Jobs vanish from the bus repeatedly.
    #[error(
        "{} vanished from the message bus {} in a row. \
         Check the storage of NATS and its stream limits, then run again; no data is lost",
        counted(*.jobs as u64, "job", "jobs"),
        counted(u64::from(*.times), "time", "times")
    )]
    Vanishing {
        /// Jobs that were out at the end.
        jobs: usize,
        /// Consecutive times that they vanished.
        times: u32,
    },
    /// The run could not be reported to its observer. It is resumed, and reported again.
    #[error(transparent)]
    Observer(#[from] ObserverError),
    /// The operator or the service asked the harvest to stop.
    #[error("stopped as asked; nothing is lost: run the same command again to go on")]
    Stopped,
}

impl From<ReconcileError> for HarvestError {
    fn from(error: ReconcileError) -> Self {
        match error {
            ReconcileError::Spool(error) => Self::Spool(error),
            ReconcileError::Catalog(error) => Self::Catalog(error),
        }
    }
}

impl From<EstimateError> for HarvestError {
    fn from(error: EstimateError) -> Self {
        match error {
            EstimateError::Discover(error) => Self::Discover(error),
            EstimateError::Catalog(error) => Self::Catalog(error),
        }
    }
}
