//! Who is to be told of what a run has changed: written down before the run is over.

use std::sync::Arc;

use async_trait::async_trait;
use control::{Change, Control, SourceSpec, View};
use model::{Clock, RunRecord, SourceId};

use super::Crew;
use crate::{HarvestError, Witness};

/// Hears of the runs of one Source, and writes into the outbox whom to tell.
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
        // As it is wanted now, and not as it was when the run began.
        let targets = self.sources.get(&self.source).map(|source| source.notify.clone()).unwrap_or_default();
        for target in &targets {
            self.control.outbox().tell(&self.source, target, &change, now).await?;
        }
        Ok(())
    }
}
