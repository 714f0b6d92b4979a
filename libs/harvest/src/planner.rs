//! Planning: reads the documents of a run, and turns their entries into pending records.

use discovery::SeenPage;
use documents::Prefetched;
use planning::{GuardReport, Latencies, ManyAbsent, ReadBudget};

pub(crate) mod absences;
pub(crate) mod admission;
pub(crate) mod apply;
mod archived;
pub(crate) mod change_notifications;
pub(crate) mod discovery_cache;
pub(crate) mod document;
mod document_failures;
pub(crate) mod edition;
pub(crate) mod entries;
pub(crate) mod follow;
pub(crate) mod gaps;
pub(crate) mod kept_names;
pub(crate) mod missed_notifications;
pub(crate) mod pages;
pub(crate) mod planned;
pub(crate) mod reading;
pub(crate) mod reconcile;
mod reconciler;
mod requeue;
mod rescan;

use std::collections::{HashMap, HashSet};

use model::{ResourceUri, SetId};
use tokio_util::task::AbortOnDropHandle;

use crate::planner::reconciler::Reconciler;

/// State of the planning of a run.
#[derive(Default)]
pub(crate) struct Planner {
    pub(crate) discovery: DiscoveryState,
    pub(crate) reading: ReadingState,
    pub(crate) reconciler: Reconciler,
    /// Problems requeued at the start, by the document that listed them.
    pub(crate) requeued: HashMap<String, u64>,
    /// Task that measures which delay the origin of a first list wants between two requests. Returns the requests it
    /// made.
    pub(crate) spacing: Option<AbortOnDropHandle<u32>>,
    /// Set if more resources would have been deleted than allowed.
    pub(crate) guard: Option<GuardReport>,
    /// Lists that omit many stored resources.
    pub(crate) many_absent: Vec<ManyAbsent>,
}

/// What the run did of discovery.
#[derive(Default)]
pub(crate) struct DiscoveryState {
    /// Whether this run has already run discovery, so that another one is pointless.
    pub(crate) is_fresh: bool,
    /// Whether the Source's documents were queued for the run.
    pub(crate) has_begun: bool,
    /// Sets that get a full rescan although their changes are followed.
    pub(crate) rescans: HashSet<SetId>,
    /// The list that discovery has begun to read. Dropped before the next request.
    pub(crate) prefetched: Option<Prefetched>,
    /// The landing page that discovery has read.
    pub(crate) page: Option<Box<SeenPage>>,
}

/// What this process read of the run's documents.
#[derive(Default)]
pub(crate) struct ReadingState {
    /// Consumption of the run's limits.
    pub(crate) budget: ReadBudget,
    /// Documents that were read from the first entry to the end.
    pub(crate) whole: HashSet<String>,
    /// Documents that were not modified.
    pub(crate) unmodified: HashSet<String>,
    /// Documents that another URL answered for.
    pub(crate) redirected: HashSet<String>,
    /// Indexes of the edition that was read, although their parts state a later time.
    pub(crate) current_indexes: HashSet<String>,
    /// Stored records of OAI-PMH repositories that the list of one set showed as deleted: they are asked for.
    pub(crate) shown_deleted: HashSet<ResourceUri>,
    /// Whether the run's limit of followed links was met, and that is a problem already.
    pub(crate) has_met_links: bool,
    /// Records that are being settled and whose landing pages are still to be asked: what these named before is
    /// followed when they were.
    pub(crate) unasked: HashSet<ResourceUri>,
    /// Whether landing pages of records may wait.
    pub(crate) has_pages: bool,
    /// Response times of the Source.
    pub(crate) latencies: Latencies,
}
