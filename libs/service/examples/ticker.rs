//! A service in its frame: it counts ticks, and finishes the current one when it is asked to stop.
//!
//! `cargo run -p service --example ticker`, then open <http://127.0.0.1:9600/metrics>, and press Ctrl-C.

use std::process::ExitCode;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use serde::Deserialize;
use service::{Context, FrameConfig, ServiceConfig, ServiceInfo, frame};

/// Its configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Config {
    service: FrameConfig,
    /// The work of one tick, in milliseconds.
    tick_millis: u64,
}

impl ServiceConfig for Config {
    fn frame(&self) -> &FrameConfig {
        &self.service
    }
}

fn main() -> ExitCode {
    frame::main(ServiceInfo { name: "ticker", version: env!("CARGO_PKG_VERSION") }, serve)
}

async fn serve(context: Context<Config>) -> anyhow::Result<()> {
    let latch = context.readiness.latch("clock", "winding up");
    let ticks = Counter::<u64>::default();
    context.metrics.register(|registry| registry.register("ticks", "Ticks finished", ticks.clone()));
    latch.release();
    let work = Duration::from_millis(context.config.tick_millis.max(10));
    while !context.stop.is_cancelled() {
        tracing::info!("tick begins");
        tokio::time::sleep(work).await;
        ticks.inc();
        tracing::info!(ticks = ticks.get(), "tick finished");
    }
    Ok(())
}
