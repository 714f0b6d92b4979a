//! `thresher serve`: run all services in one process, over NATS and a shared store.

use std::process::ExitCode;

use anyhow::bail;
use fleet::{HttpConfig, NatsConfig, PushConfig, StoreConfig};
use secrets::Vars;
use serde::Deserialize;
use service::{Context, FrameConfig, ServiceConfig, ServiceInfo, config, frame};
use tokio::task::JoinSet;

use crate::cli::{ServeArgs, ServiceArg};
use crate::client::local::LocalAccess;
use crate::terminal::note;

const ABOUT: ServiceInfo = ServiceInfo { name: "serve", version: env!("CARGO_PKG_VERSION") };

/// The configuration of all services; shared settings are given once.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    #[serde(default)]
    service: FrameConfig,
    #[serde(default)]
    nats: NatsConfig,
    store: StoreConfig,
    #[serde(default)]
    http: HttpConfig,
    #[serde(default)]
    scheduler: scheduler::Settings,
    #[serde(default)]
    fetcher: fetcher::Settings,
    #[serde(default)]
    unpacker: unpacker::Settings,
    #[serde(default)]
    verifier: verifier::Settings,
    /// Whether to subscribe to Sources' notifications, and how hubs reach the gateway.
    #[serde(default)]
    push: PushConfig,
    /// Without this section, the gateway listens on loopback, for this user only.
    #[serde(default)]
    gateway: gateway::Settings,
    /// Without this section, nothing is published.
    #[serde(default)]
    publisher: Option<publisher::DaemonSettings>,
}

impl ServiceConfig for Config {
    fn frame(&self) -> &FrameConfig {
        &self.service
    }
}

/// Runs the command until a stop signal. The exit status is a service's: see [`frame::main`].
pub(crate) async fn run(args: ServeArgs) -> ExitCode {
    let vars = Vars::of_process();
    let vars = match &args.config {
        Some(path) => vars.with("THRESHER_SERVE_CONFIG", &path.to_string_lossy()),
        None => vars,
    };
    match config::load::<Config>(ABOUT.name, &vars) {
        Ok(config) => frame::run(ABOUT, config, vars, |context| serve(context, args.only)).await,
        Err(error) => {
            note!("thresher serve: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs all services, or `only` these, until they are stopped. One that ends early stops the others.
async fn serve(context: Context<Config>, only: Vec<ServiceArg>) -> anyhow::Result<()> {
    let runs = |service| only.is_empty() || only.contains(&service);
    let mut services = JoinSet::new();
    let Config {
        service,
        nats,
        store,
        http,
        scheduler,
        fetcher,
        unpacker,
        verifier,
        push,
        mut gateway,
        publisher,
    } = context.config.clone();
    if publisher.is_none() && only.contains(&ServiceArg::Publisher) {
        bail!("the publisher needs its section, with its base: add `publisher: {{base: https://…/}}`");
    }
    let access = if runs(ServiceArg::Gateway) && needs_token(&gateway) {
        let access = LocalAccess::open(gateway.listen, &context.vars)?;
        gateway.tokens = Some(access.tokens());
        Some(access)
    } else {
        None
    };
    // Each service gets the shared settings as its own.
    let shared = || (service.clone(), nats.clone(), store.clone());
    if runs(ServiceArg::Scheduler) {
        let (service, nats, store) = shared();
        let http = http.clone();
        let push = push.clone();
        let config = scheduler::Config { service, nats, store, http, push, scheduler };
        services.spawn(scheduler::serve(with(&context, config)));
    }
    if runs(ServiceArg::Fetcher) {
        let (service, nats, store) = shared();
        let config = fetcher::Config { service, nats, store, http, fetcher };
        services.spawn(fetcher::serve(with(&context, config)));
    }
    if runs(ServiceArg::Unpacker) {
        let (service, nats, store) = shared();
        let config = unpacker::Config { service, nats, store, unpacker };
        services.spawn(unpacker::serve(with(&context, config)));
    }
    if runs(ServiceArg::Verifier) {
        let (service, nats, store) = shared();
        let config = verifier::Config { service, nats, store, verifier };
        services.spawn(verifier::serve(with(&context, config)));
    }
    if runs(ServiceArg::Gateway) {
        let (service, nats, store) = shared();
        let config = gateway::Config { service, nats, store, push, gateway };
        services.spawn(gateway::serve(with(&context, config)));
    }
    if let Some(publisher) = publisher.filter(|_| runs(ServiceArg::Publisher)) {
        let (service, nats, store) = shared();
        let config = publisher::Config { service, nats, store, publisher };
        services.spawn(publisher::serve_fleet(with(&context, config)));
    }

    let mut ended = Ok(());
    while let Some(done) = services.join_next().await {
        let done = done.unwrap_or_else(|panic| Err(anyhow::Error::new(panic)));
        // The others finish their work in progress.
        context.stop.cancel();
        ended = ended.and(done);
    }
    drop(access);
    ended
}

/// Whether the gateway is for this user only: nothing says who may use it, and no other machine reaches it.
fn needs_token(gateway: &gateway::Settings) -> bool {
    let listen = gateway.listen;
    gateway.tokens.is_none() && !gateway.allow_anonymous && listen.ip().is_loopback() && listen.port() != 0
}

/// The same context with another configuration.
fn with<C>(context: &Context<Config>, config: C) -> Context<C> {
    Context {
        config,
        vars: context.vars.clone(),
        readiness: context.readiness.clone(),
        metrics: context.metrics.clone(),
        stop: context.stop.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_configuration_is_read() {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/config/serve.yaml");
        let vars = Vars::default().with("THRESHER_SERVE_CONFIG", sample);
        let config: Config = config::load("serve", &vars).unwrap();
        assert_eq!(config.fetcher, fetcher::Settings::default());
        assert_eq!(config.scheduler, scheduler::Settings::default());
    }
}
