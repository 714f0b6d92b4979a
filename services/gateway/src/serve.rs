//! The gateway as a service of the fleet. It reads catalogs and the control store, and writes what operators request.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use control::{Control, ControlError};
use model::SystemClock;
use service::{Context, Latch, Readiness};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::catalogs::Catalogs;
use crate::config::{Config, Settings};
use crate::inbox::{Inbox, Senders};
use crate::judged::Judged;
use crate::push::Callbacks;
use crate::state::{Gateway, Parts, Views};
use crate::tokens::Tokens;
use crate::wrong_tokens::WrongTokens;
use crate::{GatewayMetrics, api, batch, connections};

/// The interval of checks whether the control store is reachable.
const PROBE_EVERY: Duration = Duration::from_secs(2);

/// Serves requests until the service is to stop, then completes the requests under way.
///
/// # Errors
/// When the configuration is wrong, or the port cannot be opened.
pub async fn serve(context: Context<Config>) -> anyhow::Result<()> {
    fleet::unless_stopped(work(context).await)
}

async fn work(context: Context<Config>) -> anyhow::Result<()> {
    let settings = context.config.gateway.clone();
    settings.check()?;
    let tokens = tokens(&settings, &context.stop)?;
    let senders = senders(&settings, &context.stop)?;
    let push = context.config.push.open(&context.vars)?;
    let metrics = GatewayMetrics::register(&context.metrics);
    let cache_bytes = settings.cache_megabytes.max(1) * 1024 * 1024;
    context.metrics.bound_memory("gateway-cache", cache_bytes as u64);
    let bounds = settings.bounds();
    let connected_bytes = bounds.memory_bytes(settings.body_bytes);
    context.metrics.bound_memory("gateway-connections", connected_bytes as u64);
    let batch_bytes = batch::memory_bytes(settings.batch_bytes);
    context.metrics.bound_memory("gateway-batches", batch_bytes as u64);
    if push.is_some() {
        let limits = settings.push_limits();
        context.metrics.bound_memory("gateway-deliveries", limits.memory_bytes() as u64);
    }
    if let Some(inbox) = &settings.inbox {
        context.metrics.bound_memory("gateway-notifications", Inbox::memory_bytes(inbox) as u64);
    }
    let latch = context.readiness.latch("api", "what it depends on is being opened");

    let store = fleet::open_for_reading(&context, &context.config.store).await?;
    let bus = match &push {
        Some(_) => Some(fleet::join_bus(&context, &context.config.nats).await?),
        None => None,
    };
    let Context { config, vars, readiness, stop, .. } = context;
    let control = fleet::open_control(&config.nats, &vars, &readiness, &stop).await?;
    let views =
        fleet::connect("views", &readiness, &stop, ControlError::is_temporary, || views(&control)).await?;
    let inbox = match (&settings.inbox, senders) {
        (Some(wanted), Some(senders)) => {
            let open = || control.inboxes(Inbox::limits(wanted));
            let inboxes =
                fleet::connect("inboxes", &readiness, &stop, ControlError::is_temporary, open).await?;
            Some(Inbox::new(wanted.clone(), senders, inboxes))
        }
        _ => None,
    };
    tokio::spawn(watch(control.clone(), readiness.clone(), stop.clone()));

    let callbacks = match push.zip(bus) {
        None => None,
        Some((push, bus)) => {
            let limits = settings.push_limits();
            let known = (views.subscriptions.clone(), views.sources.clone());
            let clock = Arc::new(SystemClock);
            Some(Callbacks::new(push, &control, known, bus, limits, metrics.clone(), clock))
        }
    };
    let listen = settings.listen;
    let listener = TcpListener::bind(listen).await.with_context(|| {
        format!("cannot listen on {listen} for the API; set another address in `gateway.listen`")
    })?;
    let address = listener.local_addr()?;
    let catalogs = Catalogs::new(store.clone(), settings.max_open_catalogs, cache_bytes);
    tokio::spawn(catalogs.clone().sweep(stop.clone()));
    let clock = Arc::new(SystemClock);
    let judged = Judged::default();
    let parts = Parts {
        wrong_tokens: WrongTokens::new(settings.wrong_tokens_per_minute),
        settings,
        tokens,
        control,
        views,
        store,
        catalogs,
        judged,
        batches: Arc::new(Semaphore::new(batch::AT_A_TIME)),
        inbox,
        metrics: metrics.clone(),
        clock,
        stop: stop.clone(),
    };
    let mut router = api::router(Gateway::new(parts));
    let tally = callbacks.map(|callbacks| {
        router = std::mem::take(&mut router).merge(callbacks.router());
        tokio::spawn(callbacks.keep_tally(stop.clone()))
    });
    tracing::info!(api.address = %address, "the API is served");
    latch.release();
    connections::serve(listener, router, bounds, metrics, stop).await;
    if let Some(tally) = tally {
        // An error of the task no longer matters. The task ends after the last report of its counts.
        let _ = tally.await;
    }
    Ok(())
}

fn tokens(settings: &Settings, stop: &CancellationToken) -> anyhow::Result<Tokens> {
    let rate = settings.requests_per_second;
    let Some(path) = &settings.tokens else {
        tracing::warn!(api.listen = %settings.listen, "no token is asked for: whoever reaches this port may do everything");
        return Ok(Tokens::not_asked_for(rate));
    };
    let tokens = Tokens::of_file(path, rate)?;
    tokio::spawn(tokens.clone().follow(path.clone(), stop.clone()));
    Ok(tokens)
}

fn senders(settings: &Settings, stop: &CancellationToken) -> anyhow::Result<Option<Senders>> {
    let Some(inbox) = &settings.inbox else { return Ok(None) };
    let senders = Senders::of_file(&inbox.senders, inbox.per_second)?;
    tokio::spawn(senders.clone().follow(inbox.senders.clone(), stop.clone()));
    Ok(Some(senders))
}

async fn views(control: &Control) -> Result<Views, ControlError> {
    Ok(Views {
        sources: control.sources().view().await?,
        runs: control.runs().view().await?,
        leases: control.leases().view().await?,
        plans: control.plans().view().await?,
        subscriptions: control.subscriptions().view().await?,
    })
}

/// Marks the service as not ready, with the reason, while the control store is unreachable. Ends with `stop`.
async fn watch(control: Control, readiness: Readiness, stop: CancellationToken) {
    let mut latch: Option<Latch> = None;
    loop {
        tokio::select! {
            () = tokio::time::sleep(PROBE_EVERY) => {}
            () = stop.cancelled() => return,
        }
        match control.health().await {
            Ok(()) => {
                if let Some(held) = latch.take() {
                    held.release();
                }
            }
            Err(error) => {
                let held = latch.take().unwrap_or_else(|| readiness.latch("control", "it cannot be reached"));
                held.waits_for(&error.to_string());
                latch = Some(held);
            }
        }
    }
}
