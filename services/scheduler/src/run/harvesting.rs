//! One harvest of a run, with the parts that it needs.

use std::sync::Arc;

use catalog::Catalog;
use harvest::{Harvest, HarvestError, Parts, Report};
use planning::HarvestOptions;
use store::{Key, SourceMarker};
use tokio_util::sync::CancellationToken;
use web::Client;

use super::RunExecutor;
use crate::notifier::OutboxWriter;
use crate::pending_actions;

impl RunExecutor<'_> {
    /// One harvest, for this run.
    pub(super) fn harvest(
        &self,
        client: Client,
        options: HarvestOptions,
        stop: CancellationToken,
    ) -> impl Future<Output = Result<Report, HarvestError>> + use<> {
        let context = self.context.clone();
        let source = Arc::clone(&self.source.value);
        let progress = self.progress.clone();
        let catalogs = context.catalogs.clone();
        async move {
            let path = Key::Catalog(source.id.clone()).to_string();
            // Boxed, like the harvest itself: nested futures would overflow the stack of a worker thread.
            let opening = Box::pin(Catalog::open(context.store.object_store(), &path, catalogs));
            let catalog = opening.await?;
            Box::pin(pending_actions::take_up(&context, &source.id, &catalog)).await?;
            let witness = OutboxWriter::of(&context, &source.id);
            let parts = Parts {
                source: source.id.clone(),
                entry: source.entry.clone(),
                catalog,
                store: context.store.clone(),
                view: None,
                client,
                bus: Arc::clone(&context.bus),
                clock: Arc::clone(&context.clock),
                options,
                progress,
                observer: Some(Arc::new(witness)),
                push_lag: context.metrics.lag.clone(),
                stop,
            };
            let harvest = Harvest::open(parts).await?;
            let labels = source.labels.iter().map(|(key, value)| (key.to_string(), value.to_string()));
            let note = SourceMarker {
                labels: labels.collect(),
                ..SourceMarker::new(source.id.clone(), source.entry.as_str())
            };
            // Requests to the store, beside the first ones to the Source.
            let noted = async { context.store.note_source(&note).await.map_err(HarvestError::from) };
            let ((), report) = tokio::try_join!(noted, harvest.run())?;
            Ok(report)
        }
    }
}
