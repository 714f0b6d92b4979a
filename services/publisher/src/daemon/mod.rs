//! The publisher of a fleet: a service that publishes the Sources whose specs say so.

mod admission;
mod agenda;
mod config;
mod hubs;
mod keeper;
mod look;
mod mark;

use anyhow::Context as _;
use control::{Control, ControlError, MemberId, Role};
use futures::future::BoxFuture;
use model::{Clock as _, SystemClock};
use service::Context;
use serving::Catalogs;
use tokio::net::TcpListener;

use crate::metrics::PublisherMetrics;
use crate::routes::Routes;
use crate::set::Server;
use crate::several::Several;

pub use config::{Config, DaemonSettings, OwnHubSettings};

use keeper::{HubRecipe, Keeper, Recipe, Views};
use look::Looker;

/// Publishes and serves until the service is to stop, then completes the requests under way.
///
/// # Errors
/// When the configuration is wrong, or the port cannot be opened.
pub fn serve_fleet(context: Context<Config>) -> BoxFuture<'static, anyhow::Result<()>> {
    fleet::serve(work(context))
}

async fn work(context: Context<Config>) -> anyhow::Result<()> {
    let settings = context.config.publisher.clone();
    settings.check()?;
    settings.check_redirect(&context.config.store.url)?;
    settings.bound_memory(&context.metrics);
    let base = settings.base()?;
    let hub_base = settings.own_hub.as_ref().map(OwnHubSettings::base).transpose()?;
    let server =
        Server::new(settings.of_server(PublisherMetrics::register(&context.metrics))?, context.stop.clone())?;
    let latch = context.readiness.latch("publication", "what they depend on is being opened");
    // It writes publications alone, and lets schedulers find out what the store can do.
    let store = fleet::open_for_reading(&context, &context.config.store).await?;
    let Context { config, vars, readiness, stop, .. } = context;
    let control = fleet::open_control(&config.nats, &vars, &readiness, &stop).await?;
    let name = settings.name();
    let me = MemberId::fresh(&name);
    let member =
        fleet::become_member(&control, &me, Role::Publisher, SystemClock.now(), &readiness, &stop).await?;
    let with_hubs = hub_base.is_some();
    let views =
        fleet::connect("views", &readiness, &stop, ControlError::is_temporary, || views(&control, with_hubs))
            .await?;
    tokio::spawn(fleet::watch_control(control.clone(), readiness.clone(), stop.clone()));

    let listen = settings.listen;
    let listener = TcpListener::bind(listen).await.with_context(|| {
        format!("cannot listen on {listen} for readers; set another address in `publisher.listen`")
    })?;
    let address = listener.local_addr()?;
    if let Some(takedowns) = server.settings.takedowns.clone() {
        server.tasks.spawn(takedowns.follow(stop.clone()));
    }
    if let Some(tokens) = server.settings.readers.tokens.clone() {
        server.tasks.spawn(tokens.follow(stop.clone()));
    }
    if let Err(error) = store.note_publication_base(base.as_str()).await {
        tracing::warn!(%base, %error, "runs will not know that this is published here");
    }
    let catalogs = Catalogs::new(store, settings.max_open_catalogs, settings.cache_bytes());
    tokio::spawn(catalogs.clone().sweep(stop.clone()));
    let own_hub = hub_base.clone().zip(server.room.clone()).map(|(base, room)| HubRecipe {
        base,
        room,
        leases: control.hub_leases().clone(),
        hints: control.hub_hints().clone(),
    });
    let hubs = settings.all_hubs();
    let recipe = Recipe {
        name,
        catalogs,
        matching: settings.matching,
        dumps: settings.dumps,
        hubs,
        own_hub,
        archive: settings.archive,
    };
    let leases = control.publication_leases().clone();
    let looker = Looker { turns: server.turns.clone(), leases, me };
    let all = Several::new(base, settings.max_open_catalogs, hub_base, &server.settings);
    let keeper = Keeper::new(all.clone(), server.clone(), views, recipe, looker);
    server.tasks.spawn(keeper.keep(move || {
        tracing::info!(publisher.address = %address, "publications are served");
        latch.release();
    }));
    crate::serve::answer(listener, Routes::Several(all), &server).await;
    server.tasks.close();
    server.tasks.wait().await;
    // Another publisher takes over what was this one's.
    member.leave().await;
    Ok(())
}

async fn views(control: &Control, with_hubs: bool) -> Result<Views, ControlError> {
    let hub_hints = if with_hubs { Some(control.hub_hints().view().await?) } else { None };
    Ok(Views {
        sources: control.sources().view().await?,
        runs: control.runs().view().await?,
        members: control.members().view().await?,
        hub_hints,
    })
}
