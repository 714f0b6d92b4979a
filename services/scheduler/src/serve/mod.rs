//! The scheduler beside others: each Source has one owner, and what the operator wants is compared with what is so.
//!
//! The story: `claims` finds out which Sources are this scheduler's to look after; a `steward` for each of them waits for
//! work, or for `hints` that there is some, takes the Source's lease and tends the `run`; what follows when a run cannot go on is decided in `ending`. What a run has changed is written
//! down for others by its `witness`. Beside that, `plans` finds out what Sources would take that somebody asks about, the `sender` goes its `rounds` to tell those others, and the `reader` to
//! read what they tell.

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

/// What all stewards of a scheduler share. Cheap to clone.
#[derive(Clone)]
struct Crew {
    me: MemberId,
    control: Control,
    sources: View<SourceSpec>,
    runs: View<Run>,
    leases: View<control::LeaseRecord>,
    hints: View<Hint>,
    subscriptions: View<Subscription>,
    /// How hubs reach the fleet, where they do.
    push: Option<Push>,
    store: Store,
    bus: Arc<dyn Bus>,
    client: Client,
    places: Arc<Places>,
    credentials: Credentials,
    clock: Arc<dyn Clock>,
    catalogs: CatalogConfig,
    /// Catalogs that may be open at a time.
    room: Arc<Semaphore>,
    settings: Arc<Settings>,
    metrics: SchedulerMetrics,
}

/// Looks after the Sources that are this scheduler's until the service is to stop; then it lets them go, between two batches.
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
    fleet::count_requests(&client, &config.http.lane_groups, &metrics)?;

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
        most: settings.sources_shown,
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
        room: Arc::new(Semaphore::new(settings.sources_at_a_time.max(1))),
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
    // Before this scheduler is gone: whoever takes its plans over is to be the only one.
    making.shutdown().await;
    membership.leave().await;
    Ok(())
}
