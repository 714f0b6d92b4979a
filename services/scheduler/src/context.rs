//! What all tasks of a scheduler share.

use std::sync::Arc;

use bus::Bus;
use catalog::CatalogConfig;
use control::{Control, Hint, MemberId, Run, SourceSpec, Subscription, WatchCache};
use fleet::{Credentials, Push};
use model::Clock;
use store::Store;
use web::Client;

use crate::config::Settings;
use crate::metrics::SchedulerMetrics;
use crate::origin_permits::OriginPermits;
use crate::origin_rates::OriginRates;

/// Context that all jobs of a scheduler share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SchedulerContext {
    pub(crate) me: MemberId,
    pub(crate) control: Control,
    pub(crate) sources: WatchCache<SourceSpec>,
    pub(crate) runs: WatchCache<Run>,
    pub(crate) tasks: WatchCache<Run>,
    pub(crate) leases: WatchCache<control::LeaseRecord>,
    pub(crate) hints: WatchCache<Hint>,
    pub(crate) subscriptions: WatchCache<Subscription>,
    /// How hubs reach the fleet, if they can.
    pub(crate) push: Option<Push>,
    pub(crate) store: Store,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) client: Client,
    pub(crate) permits: Arc<OriginPermits>,
    pub(crate) rates: Arc<OriginRates>,
    pub(crate) credentials: Credentials,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) catalogs: CatalogConfig,
    pub(crate) settings: Arc<Settings>,
    pub(crate) metrics: SchedulerMetrics,
}

impl SchedulerContext {
    /// The view that shows this run: that of syncs, or that of tasks.
    pub(crate) fn view_of(&self, run: &Run) -> WatchCache<Run> {
        if run.is_task() { self.tasks.clone() } else { self.runs.clone() }
    }
}
