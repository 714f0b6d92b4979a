//! What all stages of a run share: its dependencies, its record and sets, and the writer of its catalog.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bus::Bus;
use jiff::Timestamp;
use model::{
    ChangeEvent, ChangeLogEntry, Clock, Provenance, ResourceUri, RunRecord, SetId, SetRecord, SourceId,
};
use planning::{DeletionGuard, HarvestOptions, Selection};
use resourcesync::{Item, Mode as ReadMode, relation};
use store::Store;
use tokio_util::sync::CancellationToken;
use url::Url;
use web::Client;

use crate::error::HarvestError;
use crate::run::problems::ProblemLedger;
use crate::run::progress::ProgressReporter;
use crate::run::push_tracker::PushTracker;
use crate::run::writer::CatalogWriter;

/// What all stages of a run share. Each stage has its own state beside it.
pub(crate) struct RunContext {
    pub(crate) source: SourceId,
    /// The entry URL, as the operator gave it.
    pub(crate) entry: Url,
    pub(crate) store: Store,
    pub(crate) client: Client,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: HarvestOptions,
    /// What was read with another selection is read again.
    pub(crate) selection: Selection,
    /// Whether the Source was moved, and bytes that are stored are adopted.
    pub(crate) adopts: bool,
    /// Cancelled to stop the harvest.
    pub(crate) stop: CancellationToken,
    pub(crate) progress: ProgressReporter,
    /// The run's record, with its counters.
    pub(crate) run: RunRecord,
    pub(crate) sets: HashMap<SetId, SetRecord>,
    /// The catalog is read and written through this.
    pub(crate) writer: CatalogWriter,
    pub(crate) problems: ProblemLedger,
    pub(crate) push: PushTracker,
    /// Whether the filter knows where this store publishes.
    pub(crate) knows_publications: bool,
}

impl RunContext {
    /// # Errors
    /// [`HarvestError::Stopped`] when the operator or the service asked the harvest to stop.
    pub(crate) fn check_stop(&self) -> Result<(), HarvestError> {
        if self.stop.is_cancelled() { Err(HarvestError::Stopped) } else { Ok(()) }
    }

    /// Waits until a time, unless the harvest is stopped.
    pub(crate) async fn wait_until(&self, due: Timestamp) -> Result<(), HarvestError> {
        let wait = due.duration_since(self.clock.now());
        tokio::select! {
            () = tokio::time::sleep(Duration::try_from(wait).unwrap_or_default()) => Ok(()),
            () = self.stop.cancelled() => Err(HarvestError::Stopped),
        }
    }

    /// Reads where this store publishes, before entries are judged that may come back from there. Once a run.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn know_publications(&mut self) -> Result<(), HarvestError> {
        if !self.knows_publications {
            self.options.filter.published = self.store.publication_bases().await?;
            self.knows_publications = true;
        }
        Ok(())
    }

    /// The same, if any of these entries says where it was first published. Those of few Sources do.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn know_publications_of(&mut self, items: &[Item]) -> Result<(), HarvestError> {
        if items.iter().any(is_passed_on) { self.know_publications().await } else { Ok(()) }
    }

    /// How documents are read: whether deviations are tolerated.
    pub(crate) fn read_mode(&self) -> ReadMode {
        if self.options.strict { ReadMode::Strict } else { ReadMode::Tolerant }
    }

    /// Whether membership in a set counts: it is offered, and the options choose it.
    pub(crate) fn counts(&self, set: &SetId) -> bool {
        self.sets.get(set).is_some_and(|known| !known.left_out)
    }

    /// The rules of this run for absent resources.
    pub(crate) fn deletion_guard(&self) -> DeletionGuard {
        DeletionGuard::new(&self.options, self.run.started_at)
    }

    /// Reports the run's progress.
    pub(crate) fn show(&self) {
        self.progress.show(&self.run, &self.sets, self.writer.pending());
    }

    /// An entry of the change log about an event of this run.
    pub(crate) fn log(
        &self,
        uri: &ResourceUri,
        event: ChangeEvent,
        document: &Arc<str>,
        account: Provenance,
    ) -> ChangeLogEntry {
        let change =
            ChangeLogEntry::new(uri.clone(), event, self.clock.now(), self.run.id, Arc::clone(document));
        ChangeLogEntry { account, ..change }
    }
}

/// Whether an entry says where its resource was first published.
fn is_passed_on(item: &Item) -> bool {
    matches!(item, Item::Entry(entry) if entry.links.iter().any(|link| link.rel.eq_ignore_ascii_case(relation::VIA)))
}

#[cfg(test)]
mod tests {
    use resourcesync::{Entry, Link};

    use super::*;

    #[test]
    fn an_entry_that_names_its_first_source_is_passed_on() {
        let entry = |rels: &[&str]| {
            let links = rels.iter().map(|rel| Link::new(*rel, "https://example.org/first")).collect();
            Item::Entry(Box::new(Entry { links, ..Entry::new("https://example.org/a") }))
        };
        assert!(!is_passed_on(&entry(&[])));
        assert!(!is_passed_on(&entry(&["describedby", "canonical"])));
        assert!(is_passed_on(&entry(&["describedby", "via"])));
        assert!(is_passed_on(&entry(&["VIA"])));
    }
}
