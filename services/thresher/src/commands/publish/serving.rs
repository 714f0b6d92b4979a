//! The server of `thresher publish --listen`.

use model::{Network, SourceId};
use publish::{Base, Published};
use publisher::{HubLimits, PublisherMetrics, Readers, Settings, Site, Tokens};
use service::admin::Admin;
use service::{Metrics, Readiness, ServiceInfo};
use tokio::net::TcpListener;
use web::AddressPolicy;

use super::output::print;
use super::{failed, takedowns};
use crate::cli::PublishArgs;
use crate::commands::sync::stop_on_interrupt;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::terminal::{note, say};
use crate::values::ReaderNetwork;

/// Serves until it is interrupted.
pub(super) async fn serve(
    args: &PublishArgs,
    listen: std::net::SocketAddr,
    base: Base,
    site: Site,
    readers: Readers,
) -> CommandResult {
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        usage(format!("cannot listen on {listen}: {error}; pass another address with --listen"))
    })?;
    let address = listener.local_addr()?;
    let (stop, _) = stop_on_interrupt();
    let metrics = Metrics::new(ServiceInfo { name: "publisher", version: env!("CARGO_PKG_VERSION") });
    let readiness = Readiness::default();
    let latch = readiness.latch("publication", "not published yet");
    if let Some(listen) = args.metrics {
        let admin = Admin::bind(listen, readiness, metrics.clone()).await;
        let admin = admin.map_err(|error| {
            usage(format!("cannot listen on {listen}: {error}; pass another address with --metrics"))
        })?;
        say!("metrics on {}", admin.address())?;
        drop(tokio::spawn(admin.serve(stop.clone())));
    }
    let settings = Settings {
        metrics: PublisherMetrics::register(&metrics),
        readers,
        proxies: args.trusted_proxy.clone().into(),
        takedowns: takedowns(args)?,
        contact: args.contact.clone(),
        hub: hub_limits(args)?,
        pinged: args.ping_hub.clone(),
        redirect: args.redirect,
        connections: args.connections as usize,
        connections_per_client: Some(args.connections_per_client as usize).filter(|most| *most > 0),
        rescan: args.rescan,
        ..Settings::default()
    };
    let ready = |done: Option<Published>| {
        latch.release();
        // A reader of standard output that has gone does not end the server.
        match done {
            Some(done) => drop(print(args, &done, None)),
            None => note!("what was published before is served; what has changed since follows"),
        }
        let _ = say!("serving {base} on {address}");
    };
    Box::pin(publisher::serve(listener, site, settings, ready, stop)).await.map_err(failed)?;
    Ok(Exit::Good)
}

/// The tokens of readers; none where they need none.
pub(super) fn tokens(args: &PublishArgs) -> Result<Option<Tokens>, Failed> {
    let tokens = args.tokens.as_deref().map(Tokens::of_file).transpose();
    tokens.map_err(|error| usage(format!("{error:#}; repair the file of --tokens")))
}

/// Who may read the publication of a Source: with one of these tokens, if they are needed, and in one of its networks.
pub(super) fn readers(args: &PublishArgs, tokens: Option<&Tokens>, source: &SourceId) -> Readers {
    let is_for_it = |allowed: &&ReaderNetwork| allowed.source.as_ref().is_none_or(|named| named == source);
    let networks: Vec<Network> =
        args.allow_readers.iter().filter(is_for_it).map(|allowed| allowed.network).collect();
    Readers { tokens: tokens.cloned(), networks: (!networks.is_empty()).then(|| networks.into()) }
}

/// The limits of the publisher's own hub. None without `--own-hub`.
fn hub_limits(args: &PublishArgs) -> Result<Option<HubLimits>, Failed> {
    if !args.own_hub {
        return Ok(None);
    }
    let default = HubLimits::default();
    let limits = HubLimits {
        subscribers: args.hub_subscribers as usize,
        per_host: args.hub_subscribers_per_host as usize,
        longest_lease: args.hub_lease.unwrap_or(default.longest_lease),
        give_up: args.hub_give_up.unwrap_or(default.give_up),
        addresses: args.allow_address.iter().copied().fold(default.addresses, AddressPolicy::allow_network),
        ..default
    };
    if limits.longest_lease.is_zero() || limits.longest_lease > HubLimits::default().longest_lease {
        return Err(usage("--hub-lease is above nothing, and at most 31 days: leases are never endless"));
    }
    Ok(Some(limits))
}
