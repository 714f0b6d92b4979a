//! What is merged next: the database's own choice. It also tells when nothing is left to merge, or when a merge has
//! failed: it is begun again each time that the parts of the database look for each other's files.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use slatedb::compactor::{
    Compaction, CompactionRequest, CompactionScheduler, CompactionSchedulerSupplier, CompactionSpec,
    CompactionStatus, CompactorStateView, SizeTieredCompactionSchedulerSupplier,
};
use slatedb::config::CompactorOptions;
use tokio_util::sync::CancellationToken;

/// Makes the schedule of a merging.
#[derive(Debug, Clone)]
pub(crate) struct MergeSchedule {
    /// Cancelled when nothing is merged and nothing is to be, or when a merge has failed.
    pub(crate) idle: CancellationToken,
}

struct Telling {
    inner: Box<dyn CompactionScheduler + Send + Sync>,
    idle: CancellationToken,
    /// The merges that were seen at work.
    begun: Mutex<HashSet<u128>>,
}

impl Telling {
    /// Whether one of the merges that have not ended waits for its begin after it had begun.
    fn has_failed(&self, merges: &[&Compaction]) -> bool {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let works = |one: &Compaction| {
            matches!(one.status(), CompactionStatus::Running | CompactionStatus::Compacted)
        };
        begun.extend(merges.iter().filter(|one| works(one)).map(|one| one.id().0));
        merges.iter().any(|one| !works(one) && begun.contains(&one.id().0))
    }
}

impl CompactionSchedulerSupplier for MergeSchedule {
    fn compaction_scheduler(&self, options: &CompactorOptions) -> Box<dyn CompactionScheduler + Send + Sync> {
        let inner = SizeTieredCompactionSchedulerSupplier::new().compaction_scheduler(options);
        Box::new(Telling { inner, idle: self.idle.clone(), begun: Mutex::default() })
    }
}

// No default method is inherited: the inner schedule may have its own.
#[deny(clippy::missing_trait_methods)]
impl CompactionScheduler for Telling {
    fn propose(&self, state: &CompactorStateView) -> Vec<CompactionSpec> {
        let proposed = self.inner.propose(state);
        let merges = state.compactions().into_iter().flat_map(|all| all.recent_compactions());
        let merges: Vec<&Compaction> = merges.filter(|one| one.active()).collect();
        if (proposed.is_empty() && merges.is_empty()) || self.has_failed(&merges) {
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
