//! Why a harvest could not go on. What it had done stays done, and the same command takes it up again.

use catalog::CatalogError;
use jiff::Timestamp;
use model::{Lane, Mode, RunId, counted};
use store::{StoreError, StoreTrouble};

use crate::discover::DiscoverError;

/// Why a harvest could not go on.
#[derive(Debug, thiserror::Error)]
pub enum HarvestError {
    /// Nothing was found to harvest.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// The Source offers nothing that this version reads.
    #[error(
        "{source_url} offers {offers}; that gives nothing to do here: a baseline needs a Resource List or a Resource Dump, \
         an incremental run a Change List or a Change Dump"
    )]
    NothingUsable {
        /// The way in.
        source_url: String,
        /// What it offers.
        offers: String,
    },
    /// There is neither list nor dump to compare with.
    #[error(
        "{source_url} offers {offers}; an audit compares what is held with a Resource List or a Resource Dump, and with the changes after \
         it. Changes alone do not tell what there is: begin the harvest with a URL that leads to a list or a dump too"
    )]
    NoList {
        /// The way in.
        source_url: String,
        /// What it offers.
        offers: String,
    },
    /// Nothing was harvested that could be compared.
    #[error(
        "nothing was harvested from {source_url} here yet, so there is nothing to audit; harvest it first"
    )]
    NothingHeld {
        /// The way in.
        source_url: String,
    },
    /// A run is not finished: what it has still to do would look like differences.
    #[error(
        "the {mode} run {run} was interrupted and has still work to do; let it finish first (`thresher sync`, or in a fleet a run with mode \
         auto), then audit"
    )]
    Unfinished {
        /// What it does.
        mode: Mode,
        /// Its name.
        run: RunId,
    },
    /// There is no room for a temporary file.
    #[error(
        "a temporary file failed: {0}. Make room in the directory for temporary files (TMPDIR), and run again"
    )]
    Temporary(#[from] std::io::Error),
    /// An origin does not answer any more. Its resources stay pending.
    #[error(
        "{lane} cannot be reached any more; {} still to be fetched. \
         Nothing is lost: run the same command again when it is back",
        counted(*.pending, "resource is", "resources are")
    )]
    Unreachable {
        /// The origin.
        lane: Lane,
        /// Resources left to do.
        pending: u64,
    },
    /// The Source asks for more patience than a run has. Its resources stay pending.
    #[error(
        "{lane} asks to be left alone until {until}; {} still to be fetched. \
         Nothing is lost: run the same command again then",
        counted(*.pending, "resource is", "resources are")
    )]
    Patience {
        /// The origin.
        lane: Lane,
        /// When it may be asked again.
        until: Timestamp,
        /// Resources left to do.
        pending: u64,
    },
    /// The catalog failed.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store is in trouble that waiting does not mend: a full disk, a refused key.
    #[error("{}. Nothing that was held is lost", .0.message)]
    Trouble(StoreTrouble),
    /// The bus failed.
    #[error(transparent)]
    Bus(#[from] bus::BusError),
    /// Jobs vanish from the bus again and again.
    #[error(
        "{} vanished from the message bus, and so did what was sent instead, {} in a row; look at its servers. \
         Nothing is lost: run the same command again when they keep what they are given",
        counted(*.jobs as u64, "job", "jobs"),
        counted(u64::from(*.times), "time", "times")
    )]
    Vanishing {
        /// Jobs that were out at last.
        jobs: usize,
        /// How often in a row.
        times: u32,
    },
    /// What is to be told of the run could not be noted.
    #[error(transparent)]
    Control(Box<control::ControlError>),
    /// Somebody asked to stop.
    #[error("stopped as asked; nothing is lost: run the same command again to go on")]
    Stopped,
}

impl From<control::ControlError> for HarvestError {
    fn from(error: control::ControlError) -> Self {
        Self::Control(Box::new(error))
    }
}
