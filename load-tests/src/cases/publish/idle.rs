//! A server that follows a harvest in a bucket: how many requests to the store it costs while nothing changes.

use std::time::{Duration, Instant};

use testkit::servers::{S3Fixture, SeaweedServer};
use tokio::runtime::Runtime;

use super::Held;
use crate::cases::unchecked;
use crate::check::{self, Check};
use crate::measure::Usage;
use crate::meter;
use crate::place::Place;
use crate::publish_server::PublishServer;
use crate::report::Row;
use crate::stats::rounded;
use crate::store_proxy::{self, StoreProxy};
use crate::thresher::Thresher;

pub(super) const NAME: &str = "idle look, in a bucket";
const RESOURCES: u64 = 20_000;
/// The server is quiet by then: it looks once more after its first publication.
const SETTLE: Duration = Duration::from_secs(5);
/// How long requests are counted. The server looks for changes once a second, or more often.
const COUNTED: Duration = Duration::from_secs(20);

/// Starts the store and the server, and counts.
pub(super) fn row(thresher: &Thresher, runtime: &Runtime) -> anyhow::Result<Row> {
    let server = runtime.block_on(SeaweedServer::start())?;
    let proxy = runtime.block_on(StoreProxy::start(server.endpoint(), Duration::ZERO))?;
    let place = Place::bucket(&S3Fixture { endpoint: proxy.endpoint(), ..server.fixture() });
    runtime.block_on(Held::fill(&place, RESOURCES))?;
    let server = PublishServer::start(thresher, &place, &[])?;
    runtime.block_on(async { tokio::time::sleep(SETTLE).await });

    let (used, machine, passed) = (server.cpu_seconds(), meter::machine_cpu_seconds()?, proxy.count());
    let begun = Instant::now();
    runtime.block_on(async { tokio::time::sleep(COUNTED).await });
    let requests = proxy.after(passed);
    let usage = Usage {
        seconds: rounded(begun.elapsed().as_secs_f64()),
        cpu_seconds: rounded(server.cpu_seconds() - used),
        peak_rss_bytes: server.peak_rss_bytes(),
        exit_status: Some(0),
    };
    let mut done = unchecked(usage, 0.0, meter::machine_cpu_seconds()? - machine);
    let changing = requests.iter().filter(|passed| !matches!(passed.method, "get" | "head" | "list"));
    done.checks = vec![
        // One more for the second that was under way.
        Check::at_most("requests to the store", COUNTED.as_secs() + 1, requests.len() as u64),
        Check::equal("requests that write", 0, changing.count() as u64),
        check::resident(done.usage.peak_rss_bytes),
    ];
    done.counted = store_proxy::counted(&requests);
    let mut row = Row::new(NAME, COUNTED.as_secs());
    row.command = "thresher publish --listen".to_owned();
    row.rounds.push(done);
    Ok(row)
}
