//! What is merged next: the database's own choice. It also tells when nothing is left to merge, or when the merging has
//! written much: a merge that fails is begun again each time that the parts of the database look for each other's
//! files.

use std::sync::OnceLock;

use slatedb::compactor::{
    CompactionRequest, CompactionScheduler, CompactionSchedulerSupplier, CompactionSpec, CompactorStateView,
    SizeTieredCompactionSchedulerSupplier,
};
use slatedb::config::CompactorOptions;
use tokio_util::sync::CancellationToken;

/// How often the state of the merging is written at most. A merge takes six to eight writes, and one that fails two for
/// each attempt.
const MOST_WRITES: u64 = 20;

/// Makes the schedule of a merging.
#[derive(Debug, Clone)]
pub(crate) struct MergeSchedule {
    /// Cancelled when nothing is merged and nothing is to be, or when the merging has written much.
    pub(crate) idle: CancellationToken,
}

struct Telling {
    inner: Box<dyn CompactionScheduler + Send + Sync>,
    idle: CancellationToken,
    /// The number of the first state that was seen. Each write has the next number.
    first: OnceLock<u64>,
}

impl Telling {
    /// Whether there is no reason to go on with quick looks.
    fn is_over(&self, state: &CompactorStateView, proposed: &[CompactionSpec]) -> bool {
        let Some(merges) = state.compactions() else { return proposed.is_empty() };
        let first = *self.first.get_or_init(|| merges.id());
        let is_idle = proposed.is_empty() && !merges.recent_compactions().any(|one| one.active());
        is_idle || merges.id().saturating_sub(first) >= MOST_WRITES
    }
}

impl CompactionSchedulerSupplier for MergeSchedule {
    fn compaction_scheduler(&self, options: &CompactorOptions) -> Box<dyn CompactionScheduler + Send + Sync> {
        let inner = SizeTieredCompactionSchedulerSupplier::new().compaction_scheduler(options);
        Box::new(Telling { inner, idle: self.idle.clone(), first: OnceLock::new() })
    }
}

// No default method is inherited: the inner schedule may have its own.
#[deny(clippy::missing_trait_methods)]
impl CompactionScheduler for Telling {
    fn propose(&self, state: &CompactorStateView) -> Vec<CompactionSpec> {
        let proposed = self.inner.propose(state);
        if self.is_over(state, &proposed) {
            self.idle.cancel();
        }
        proposed
    }

    fn validate(&self, state: &CompactorStateView, spec: &CompactionSpec) -> Result<(), slatedb::Error> {
        self.inner.validate(state, spec)
    }

    fn generate(
        &self,
        state: &CompactorStateView,
        request: &CompactionRequest,
    ) -> Result<Vec<CompactionSpec>, slatedb::Error> {
        self.inner.generate(state, request)
    }
}
