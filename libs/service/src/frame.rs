//! The frame: runs a service from its start to its end.

use std::fmt::Debug;
use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use secrets::Vars;
use serde::de::DeserializeOwned;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::admin::Admin;
use crate::config::{self, FrameConfig};
use crate::{Metrics, Readiness, ServiceInfo, telemetry};

/// Stopped on request, with all work in progress finished.
const DONE: u8 = 0;
/// Failed while running, or did not finish in time.
const FAILED: u8 = 1;
/// The configuration is wrong: a restart changes nothing.
const MISCONFIGURED: u8 = 2;
/// Could not start.
const COULD_NOT_RUN: u8 = 3;

/// The configuration of a service, including that of its frame.
pub trait ServiceConfig: Debug + DeserializeOwned + Send + 'static {
    /// The part that the frame reads.
    fn frame(&self) -> &FrameConfig;
}

/// What the frame passes to a service.
#[derive(Debug)]
pub struct Context<C> {
    /// Its configuration.
    pub config: C,
    /// The environment, for the secrets that the configuration names.
    pub vars: Vars,
    /// Where its parts report their readiness.
    pub readiness: Readiness,
    /// Where it registers its metrics.
    pub metrics: Metrics,
    /// Cancelled to stop it: accept nothing new, finish the work in progress, and return.
    pub stop: CancellationToken,
}

/// How a service ended.
#[derive(Debug)]
enum End {
    Itself(Result<anyhow::Result<()>, JoinError>),
    TooSlow,
    ToldTwice,
}

/// A service's whole `main`: reads the configuration, creates a runtime, and calls [`run`].
///
/// The exit status is 0 when it stopped on request, 1 when it failed or did not finish in time, 2 when the
/// configuration is wrong, 3 when it could not start.
pub fn main<C, F>(about: ServiceInfo, serve: impl FnOnce(Context<C>) -> F) -> ExitCode
where
    C: ServiceConfig,
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let vars = Vars::of_process();
    let config = match config::load::<C>(about.name, &vars) {
        Ok(config) => config,
        Err(error) => return refuse(about, MISCONFIGURED, &error),
    };
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(run(about, config, vars, serve)),
        Err(error) => refuse(about, COULD_NOT_RUN, &error),
    }
}

/// Runs a service: starts the log, opens the admin port, calls `serve`, and waits until the service ends or
/// SIGTERM or SIGINT arrives. Then the service drains until its deadline. A second signal stops it at once.
pub async fn run<C, F>(
    about: ServiceInfo,
    config: C,
    vars: Vars,
    serve: impl FnOnce(Context<C>) -> F,
) -> ExitCode
where
    C: ServiceConfig,
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let frame = config.frame().clone();
    if let Err(error) = telemetry::init(&frame.telemetry) {
        return refuse(about, MISCONFIGURED, &error);
    }
    tracing::info!(service.name = about.name, service.version = about.version, ?config, "starting");
    let readiness = Readiness::default();
    let metrics = Metrics::new(about);
    metrics.add_readiness(&readiness);
    let admin = match Admin::bind(frame.admin.listen, readiness.clone(), metrics.clone()).await {
        Ok(admin) => admin,
        Err(error) => return refuse(about, COULD_NOT_RUN, &error),
    };
    tracing::info!(admin.address = %admin.address(), "probes and metrics are served");
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => return refuse(about, COULD_NOT_RUN, &format!("{error:#}")),
    };
    let admin_stop = CancellationToken::new();
    let admin = tokio::spawn(admin.serve(admin_stop.clone()));

    let stop = CancellationToken::new();
    let context = Context { config, vars, readiness: readiness.clone(), metrics, stop: stop.clone() };
    let service = tokio::spawn(serve(context));
    let end = until_end(service, &mut signals, &readiness, &stop, frame.drain()).await;

    admin_stop.cancel();
    // A slow reader of metrics does not delay the exit.
    let _ = tokio::time::timeout(Duration::from_secs(1), admin).await;
    ExitCode::from(status(end, frame.drain()))
}

/// Waits for the end of a service, or for a stop signal.
async fn until_end(
    mut service: JoinHandle<anyhow::Result<()>>,
    signals: &mut impl StopSignals,
    readiness: &Readiness,
    stop: &CancellationToken,
    drain: Duration,
) -> End {
    tokio::select! {
        ended = &mut service => return End::Itself(ended),
        signal = signals.next() => tracing::info!(signal, drain_ms = drain.as_millis(), "asked to stop"),
    }
    readiness.drain();
    stop.cancel();
    let end = tokio::select! {
        ended = &mut service => return End::Itself(ended),
        () = tokio::time::sleep(drain) => End::TooSlow,
        _ = signals.next() => End::ToldTwice,
    };
    service.abort();
    end
}

fn status(end: End, drain: Duration) -> u8 {
    match end {
        End::Itself(Ok(Ok(()))) => {
            tracing::info!("stopped");
            DONE
        }
        End::Itself(Ok(Err(error))) => {
            // With its causes in one line.
            tracing::error!(error = format!("{error:#}"), "the service failed");
            FAILED
        }
        End::Itself(Err(error)) => {
            tracing::error!(%error, "the service panicked");
            FAILED
        }
        End::TooSlow => {
            let why = "jobs not finished in time; others take them over; \
                       raise `service.drain_seconds` if they need longer";
            tracing::error!(drain_ms = drain.as_millis(), "{why}");
            FAILED
        }
        End::ToldTwice => {
            tracing::error!("second stop signal: others take over unfinished jobs");
            FAILED
        }
    }
}

fn refuse(about: ServiceInfo, status: u8, error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("{}: {error}", about.name);
    ExitCode::from(status)
}

/// The source of stop requests: signals, or a test.
trait StopSignals {
    async fn next(&mut self) -> &'static str;
}

struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        let terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
        let interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
        Ok(Self { terminate, interrupt })
    }
}

impl StopSignals for Signals {
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(test)]
mod tests;
