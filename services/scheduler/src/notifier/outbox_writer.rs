//! Records the receivers of a run's changes in the outbox, before the run ends.

use std::sync::Arc;

use async_trait::async_trait;
use control::{Change, Control, SourceSpec, WatchCache};
use harvest::{ObserverError, RunObserver};
use model::{Clock, RunRecord, SourceId};

use crate::context::SchedulerContext;

/// Observes the runs of one Source, and writes their receivers into the outbox.
pub(crate) struct OutboxWriter {
    source: SourceId,
    sources: WatchCache<SourceSpec>,
    control: Control,
    clock: Arc<dyn Clock>,
}

impl OutboxWriter {
    pub(crate) fn of(context: &SchedulerContext, source: &SourceId) -> Self {
        Self {
            source: source.clone(),
            sources: context.sources.clone(),
            control: context.control.clone(),
            clock: Arc::clone(&context.clock),
        }
    }
}

#[async_trait]
impl RunObserver for OutboxWriter {
    async fn observe(&self, run: &RunRecord) -> Result<(), ObserverError> {
        let now = self.clock.now();
        let stored = run.counters.stored;
        let deleted = run.counters.deleted;
        let change = Change { run: run.id, from: run.started_at, until: now, stored, deleted };
        if !change.is_one() {
            return Ok(());
        }
        // According to the current spec, not the spec at the start of the run.
        let targets = self.sources.get(&self.source).map(|source| source.notify.clone()).unwrap_or_default();
        for target in &targets {
            let told = self.control.outbox().tell(&self.source, target, &change, now).await;
            told.map_err(|error| ObserverError { is_temporary: error.is_temporary(), source: error.into() })?;
        }
        Ok(())
    }
}
