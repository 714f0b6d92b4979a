//! The scheduler in a fleet: each Source has one owner, and its spec is compared with its status.
//!
//! `claims` assigns Sources to this scheduler. A `steward` per Source waits for work, or for `hints` of it, takes the
//! Source's lease and executes the `run`. `ending` decides what follows when a run cannot go on. The `witness` writes
//! the changes of a run into the outbox. Beside that, `plans` estimates Sources on request, the `sender` sends the
//! outbox in `rounds`, and the `reader` polls the inboxes of others.

mod channels;
mod claims;
mod config;
mod due;
mod ending;
mod hints;
mod hubs;
mod inbox;
mod keeper;
mod meter;
mod metrics;
mod places;
mod plans;
mod reader;
mod rounds;
mod run;
mod said;
mod sender;
mod standings;
mod steward;
#[cfg(test)]
mod tests;
mod views;
mod wishes;
mod witness;

use std::sync::Arc;

use bus::Bus;
use catalog::{CacheBudget, CatalogConfig};
use control::{Control, Hint, MemberId, Role, Run, SourceSpec, Subscription, View};
use fleet::{Credentials, Joined, Push};
use model::{Clock, SystemClock};
use service::Context;
use store::Store;
use tokio::sync::Semaphore;
use web::Client;

pub use config::{Config, Settings};
use keeper::Keeper;
use metrics::SchedulerMetrics;
use places::Places;
use reader::Reader;
use sender::Sender;
use standings::Shown;
use views::Views;

/// Context that all stewards of a scheduler share. Cheap to clone.
#[derive(Clone)]
struct Crew {
    me: MemberId,
    control: Control,
    sources: View<SourceSpec>,
    runs: View<Run>,
    leases: View<control::LeaseRecord>,
    hints: View<Hint>,
    subscriptions: View<Subscription>,
    /// How hubs reach the fleet, if they can.
    push: Option<Push>,
    store: Store,
    bus: Arc<dyn Bus>,
    client: Client,
    places: Arc<Places>,
    credentials: Credentials,
    clock: Arc<dyn Clock>,
    catalogs: CatalogConfig,
    /// Semaphore for open catalogs.
    room: Arc<Semaphore>,
    settings: Arc<Settings>,
    metrics: SchedulerMetrics,
}

/// Owns this scheduler's Sources until the service stops; then releases them between two batches.
///
/// # Errors
/// When the configuration is wrong.
pub async fn serve(context: Context<Config>) -> anyhow::Result<()> {
    fleet::unless_stopped(work(context).await)
}

async fn work(context: Context<Config>) -> anyhow::Result<()> {
    let settings = Arc::new(context.config.scheduler.clone());
    let push = context.config.push.open(&context.vars)?;
    context.metrics.bound_memory("scheduler-catalogs", settings.memory_bytes());
    let counted = SchedulerMetrics::register(&context.metrics);

    let Joined { bus, store } = fleet::join(&context, &context.config.nats, &context.config.store).await?;
    let Context { config, vars, readiness, stop, metrics } = context;
    let control = fleet::open_control(&config.nats, &vars, &readiness, &stop).await?;
    let credentials = Credentials::read(&config.http.credentials, &vars)?;
    let client = Client::new(config.http.web(1))?;
    fleet::count_requests(&client, &config.http.origin_groups, &metrics)?;

    let me = MemberId::fresh(settings.name.as_deref().unwrap_or("scheduler"));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let _rests = fleet::share_rests(&client, &control, Arc::clone(&clock), &readiness, &stop).await?;
    let (cache_blocks, cache_indexes) = settings.cache_bytes();
    let Views { sources, runs, leases, members, plans, hints, outbox, readings, subscriptions } =
        Box::pin(Views::open(&control, &readiness, &stop)).await?;
    let shown = Shown {
        standings: counted.standings.clone(),
        sources: sources.clone(),
        runs: runs.clone(),
        clock: Arc::clone(&clock),
        most: settings.metrics_max_sources,
        grace: settings.freshness_grace(),
    };
    metrics.register(|registry| registry.register_collector(Box::new(shown)));
    let crew = Crew {
        me: me.clone(),
        sources,
        runs,
        leases,
        hints,
        subscriptions,
        push,
        store,
        places: Places::new(Arc::clone(&bus)),
        credentials,
        bus,
        client,
        clock: Arc::clone(&clock),
        catalogs: CatalogConfig {
            cache: CacheBudget::new(cache_blocks, cache_indexes),
            ..CatalogConfig::default()
        },
        room: Arc::new(Semaphore::new(settings.max_concurrent_sources.max(1))),
        settings,
        metrics: counted,
        control,
    };
    let membership =
        fleet::become_member(&crew.control, &me, Role::Scheduler, clock.now(), &readiness, &stop).await?;
    let _rate = fleet::share_rate(&crew.client, &crew.control, &readiness, &stop).await?;
    tracing::info!(member = %membership.member().id, "this scheduler looks after its share of the Sources");
    let mut making = tokio::task::JoinSet::new();
    making.spawn(plans::make(crew.clone(), plans, members.clone(), stop.clone()));
    if let Some(keeper) = Keeper::of(&crew, members.clone())? {
        making.spawn(rounds::make(keeper, Arc::clone(&clock), stop.clone()));
    }
    let sender = Sender::of(&crew, outbox, members.clone())?;
    making.spawn(rounds::make(sender, Arc::clone(&clock), stop.clone()));
    let reader = Reader::of(&crew, readings, members.clone())?;
    making.spawn(rounds::make(reader, clock, stop.clone()));
    claims::look_after(crew, members, stop).await;
    // Before this scheduler leaves: the next owner of its plans must be the only one.
    making.shutdown().await;
    membership.leave().await;
    Ok(())
}
