//! The gateway as a service of the fleet. It reads catalogs and the control store, and writes what operators request.

use std::sync::Arc;

use anyhow::Context as _;
use control::{Control, ControlError};
use futures::future::BoxFuture;
use model::{Clock as _, SystemClock};
use service::{Context, Metrics};
use serving::{Catalogs, VerifiedCache};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Settings};
use crate::inbox::{Inbox, Senders};
use crate::metrics::GatewayMetrics;
use crate::push::{Callbacks, Fleet};
use crate::state::{Gateway, Parts, Views};
use crate::tokens::Tokens;
use crate::wrong_tokens::WrongTokens;
use crate::{api, batch, connections, console};

/// Serves requests until the service is to stop, then completes the requests under way.
///
/// # Errors
/// When the configuration is wrong, or the port cannot be opened.
pub fn serve(context: Context<Config>) -> BoxFuture<'static, anyhow::Result<()>> {
    fleet::serve(work(context))
}

async fn work(context: Context<Config>) -> anyhow::Result<()> {
    let settings = context.config.gateway.clone();
    settings.check()?;
    let tokens = tokens(&settings, &context.stop)?;
    let senders = senders(&settings, &context.stop)?;
    let push = context.config.push.open(&context.vars)?;
    let metrics = GatewayMetrics::register(&context.metrics);
    bound_memory(&context.metrics, &settings, push.is_some());
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
    let inbox = match settings.inbox.clone().zip(senders) {
        Some((settings, senders)) => {
            let open = || control.inboxes(Inbox::limits(&settings));
            let inboxes =
                fleet::connect("inboxes", &readiness, &stop, ControlError::is_temporary, open).await?;
            Some((settings, senders, inboxes))
        }
        None => None,
    };
    tokio::spawn(fleet::watch_control(control.clone(), readiness.clone(), stop.clone()));

    let callbacks = push.zip(bus).map(|(push, bus)| {
        let fleet = Fleet {
            push,
            subscriptions: control.subscriptions().clone(),
            hints: control.hints().clone(),
            view: views.subscriptions.clone(),
            sources: views.sources.clone(),
            bus,
            clock: Arc::new(SystemClock),
        };
        Callbacks::new(fleet, settings.delivery_limits(), metrics.clone())
    });
    let listen = settings.listen;
    let listener = TcpListener::bind(listen).await.with_context(|| {
        format!("cannot listen on {listen} for the API; set another address in `gateway.listen`")
    })?;
    let address = listener.local_addr()?;
    let catalogs = Catalogs::new(store.clone(), settings.max_open_catalogs, settings.cache_bytes());
    tokio::spawn(catalogs.clone().sweep(stop.clone()));
    let limits = settings.connection_limits();
    let gateway = Gateway::new(Parts {
        wrong_tokens: WrongTokens::new(settings.wrong_tokens_per_minute),
        settings,
        tokens,
        control,
        views,
        store,
        catalogs,
        verified: VerifiedCache::default(),
        batches: Arc::new(Semaphore::new(batch::AT_A_TIME)),
        metrics: metrics.clone(),
        clock: Arc::new(SystemClock),
        started_at: SystemClock.now(),
        readiness,
        stop: stop.clone(),
    });
    tokio::spawn(console::sample_fleet(gateway.clone(), stop.clone()));
    let inbox =
        inbox.map(|(settings, senders, inboxes)| Inbox::new(gateway.clone(), settings, senders, inboxes));
    let mut router = api::router(gateway, inbox);
    if let Some(callbacks) = &callbacks {
        router = router.merge(callbacks.router());
    }
    let reports = callbacks.map(|callbacks| tokio::spawn(callbacks.report_counts(stop.clone())));
    tracing::info!(api.address = %address, "the API is served");
    latch.release();
    connections::serve(listener, router, limits, metrics, stop).await;
    if let Some(reports) = reports {
        // An error of the task no longer matters. The task ends after the last report of its counts.
        let _ = reports.await;
    }
    Ok(())
}

/// Declares the most memory that each part takes.
fn bound_memory(metrics: &Metrics, settings: &Settings, has_push: bool) {
    let bound = |name, bytes: usize| metrics.bound_memory(name, bytes as u64);
    bound("gateway-cache", settings.cache_bytes());
    bound("gateway-connections", settings.connection_limits().memory_bytes(settings.body_bytes));
    bound("gateway-batches", batch::memory_bytes(settings.batch_bytes));
    if has_push {
        bound("gateway-deliveries", settings.delivery_limits().memory_bytes());
    }
    if let Some(inbox) = &settings.inbox {
        bound("gateway-notifications", Inbox::memory_bytes(inbox));
    }
}

fn tokens(settings: &Settings, stop: &CancellationToken) -> anyhow::Result<Tokens> {
    let rate = settings.requests_per_second;
    let Some(path) = &settings.tokens else {
        tracing::warn!(api.listen = %settings.listen, "no tokens are required: every client that reaches this port may do everything");
        return Ok(Tokens::not_required(rate));
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
        tasks: control.tasks().view().await?,
        leases: control.leases().view().await?,
        plans: control.plans().view().await?,
        subscriptions: control.subscriptions().view().await?,
        members: control.members().view().await?,
        samples: control.samples().view().await?,
    })
}
