//! The daemon: each Source has one owner, and its spec is compared with its status.
//!
//! The `supervisor` looks after this scheduler's share of the Sources in one loop: `source_line` decides what is to be
//! done for each, `agenda` has the times, and `places` gives memory to runs in turns, by the rules of `admission`. A
//! Source that may be silent is asked by a `probe` first. Then the Source's lease is taken, and the `run` executed;
//! `run_retry` decides what follows when it cannot go on. `estimates` estimates Sources on request. The `notifier` runs in the same process.

use std::sync::Arc;

use catalog::CatalogConfig;
use control::{MemberId, Role};
use fleet::{Connections, Credentials};
use futures::future::BoxFuture;
use model::{Clock, SystemClock};
use planning::oai::MOST_OPEN;
use service::Context;
use web::Client;

use crate::config::Config;
use crate::context::SchedulerContext;
use crate::metrics::SchedulerMetrics;
use crate::notifier::{InboxPoller, OutboxSender, SubscriptionManager, periodic};
use crate::origin_permits::OriginPermits;
use crate::origin_rates::OriginRates;
use crate::source_groups::SourceGroups;
use crate::source_status::Shown;
use crate::views::Views;
use crate::{estimates, supervisor};

/// Owns this scheduler's Sources until the service stops; then releases them between two batches.
///
/// # Errors
/// When the configuration is wrong.
pub fn serve(context: Context<Config>) -> BoxFuture<'static, anyhow::Result<()>> {
    fleet::serve(work(context))
}

async fn work(context: Context<Config>) -> anyhow::Result<()> {
    let settings = Arc::new(context.config.scheduler.clone());
    let push = context.config.push.open(&context.vars)?;
    context.metrics.bound_memory("scheduler-catalogs", settings.memory_bytes());
    let counted = SchedulerMetrics::register(&context.metrics);

    let Connections { bus, store } =
        fleet::join(&context, &context.config.nats, &context.config.store).await?;
    let Context { config, vars, readiness, stop, metrics } = context;
    let control = fleet::open_control(&config.nats, &vars, &readiness, &stop).await?;
    let credentials = Credentials::read(&config.http.credentials, &vars)?;
    // Each request takes a permit of its origin: within the limit of the fleet, a list has several at the same time.
    let client = Client::new(config.http.web(MOST_OPEN as usize))?;
    fleet::count_requests(&client, &config.http.origin_groups, &metrics)?;

    let me = MemberId::fresh(settings.name.as_deref().unwrap_or("scheduler"));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let _rests = fleet::share_cooldowns(&client, &control, Arc::clone(&clock), &readiness, &stop).await?;
    let Views { sources, runs, tasks, leases, members, plans, hints, outbox, readings, subscriptions } =
        Box::pin(Views::open(&control, &readiness, &stop)).await?;
    let shown = Shown {
        statuses: counted.statuses.clone(),
        sources: sources.clone(),
        runs: runs.clone(),
        clock: Arc::clone(&clock),
        most: settings.metrics_max_sources,
        grace: settings.freshness_grace(),
        groups: SourceGroups { label: settings.metrics_label.clone(), most: settings.metrics_max_groups },
    };
    metrics.register(|registry| registry.register_collector(Box::new(shown)));
    let context = SchedulerContext {
        me: me.clone(),
        rates: Arc::new(OriginRates::new(sources.clone())),
        sources,
        runs,
        tasks,
        leases,
        hints,
        subscriptions,
        push,
        store,
        permits: OriginPermits::new(Arc::clone(&bus)),
        credentials,
        bus,
        client,
        clock: Arc::clone(&clock),
        catalogs: CatalogConfig { cache: settings.cache(), ..CatalogConfig::default() },
        settings,
        metrics: counted,
        control,
    };
    let membership =
        fleet::become_member(&context.control, &me, Role::Scheduler, clock.now(), &readiness, &stop).await?;
    let _rate = fleet::share_rate(&context.client, &context.control, &readiness, &stop).await?;
    tracing::info!(member = %membership.member().id, "this scheduler looks after its share of the Sources");
    let mut making = tokio::task::JoinSet::new();
    making.spawn(estimates::make(context.clone(), plans, members.clone(), stop.clone()));
    if let Some(keeper) = SubscriptionManager::of(&context, members.clone())? {
        making.spawn(periodic::make(keeper, Arc::clone(&clock), stop.clone()));
    }
    let sender = OutboxSender::of(&context, outbox, members.clone())?;
    making.spawn(periodic::make(sender, Arc::clone(&clock), stop.clone()));
    let reader = InboxPoller::of(&context, readings, members.clone())?;
    making.spawn(periodic::make(reader, clock, stop.clone()));
    supervisor::look_after(context, members, stop).await;
    // Before this scheduler leaves: the next owner of its plans must be the only one.
    making.shutdown().await;
    membership.leave().await;
    Ok(())
}
