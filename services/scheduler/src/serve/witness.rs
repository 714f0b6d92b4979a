//! Records the receivers of a run's changes in the outbox, before the run ends.

use std::sync::Arc;

use async_trait::async_trait;
use control::{Change, Control, SourceSpec, View};
use model::{Clock, RunRecord, SourceId};

use super::Crew;
use crate::{HarvestError, Witness};

/// Observes the runs of one Source, and writes their receivers into the outbox.
pub(super) struct Scribe {
    source: SourceId,
    sources: View<SourceSpec>,
    control: Control,
    clock: Arc<dyn Clock>,
}

impl Scribe {
    pub(super) fn of(crew: &Crew, source: &SourceId) -> Self {
        Self {
            source: source.clone(),
            sources: crew.sources.clone(),
            control: crew.control.clone(),
            clock: Arc::clone(&crew.clock),
        }
    }
}

#[async_trait]
impl Witness for Scribe {
    async fn hear(&self, run: &RunRecord) -> Result<(), HarvestError> {
        let now = self.clock.now();
        let (stored, deleted) = (run.counters.stored, run.counters.deleted);
        let change = Change { run: run.id, from: run.started_at, until: now, stored, deleted };
        if !change.is_one() {
            return Ok(());
        }
        // According to the current spec, not the spec at the start of the run.
        let targets = self.sources.get(&self.source).map(|source| source.notify.clone()).unwrap_or_default();
        for target in &targets {
            self.control.outbox().tell(&self.source, target, &change, now).await?;
        }
        Ok(())
    }
}
