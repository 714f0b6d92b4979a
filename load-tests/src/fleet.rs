//! A fleet of Thresher's services, each a process of its own, with NATS and S3 servers of the case.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use testkit::servers::S3Fixture;

use crate::meter;
use crate::place::Place;
use crate::process::output_of;
use crate::thresher::Thresher;

/// The longest start of a service.
const START_UP: Duration = Duration::from_secs(60);
/// How often readiness is checked.
const LOOK: Duration = Duration::from_millis(20);

/// The configuration of the gateway that operators' commands ask. No other user of the machine should be on it.
const GATEWAY: &str = "gateway: {listen: '127.0.0.1:0', allow_anonymous: true, requests_per_second: 10000}";

/// The configuration of a fleet, and its running processes.
#[derive(Debug)]
pub(crate) struct Fleet {
    thresher: Thresher,
    nats: String,
    namespace: String,
    store: FleetStore,
    folder: PathBuf,
    services: Vec<Service>,
    /// The gateway that operators' commands ask, and its URL. It is no part of what is measured.
    gateway: OnceLock<(Service, String)>,
}

/// The store of a fleet.
#[derive(Debug, Clone)]
pub(crate) enum FleetStore {
    /// In object storage.
    S3(S3Fixture),
    /// In a directory that all its processes see.
    Directory(PathBuf),
}

/// A process; it is killed when this is dropped.
#[derive(Debug)]
struct Service {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Fleet {
    /// A fleet without services. `namespace` separates it from others on the same NATS server.
    pub(crate) fn new(
        thresher: &Thresher,
        nats: &str,
        namespace: &str,
        store: FleetStore,
        folder: &Path,
    ) -> Self {
        let nats = nats.to_owned();
        let namespace = namespace.to_owned();
        let folder = folder.to_owned();
        let services = Vec::new();
        let gateway = OnceLock::new();
        Self { thresher: thresher.clone(), nats, namespace, store, folder, services, gateway }
    }

    /// Starts `service` in a process of its own, with `more` lines of configuration.
    pub(crate) fn start(&mut self, service: &str, more: &str) -> anyhow::Result<()> {
        let service = self.spawn(&self.services.len().to_string(), service, more)?;
        self.services.push(service);
        Ok(())
    }

    fn spawn(&self, label: &str, service: &str, more: &str) -> anyhow::Result<Service> {
        let config = self.folder.join(format!("{label}-{service}.yaml"));
        let nats = &self.nats;
        let namespace = &self.namespace;
        let place = self.place();
        let server = match &self.store {
            FleetStore::S3(s3) => format!(", endpoint: '{}', region: {}", s3.endpoint, s3.region),
            FleetStore::Directory(_) => String::new(),
        };
        let mut text = String::new();
        writeln!(text, "service: {{admin: {{listen: '127.0.0.1:0'}}}}")?;
        // Each round has streams of its own on one server, which must not run out of reserved space.
        let nats = format!("{{servers: ['{nats}'], namespace: {namespace}, max_megabytes_per_stream: 0}}");
        writeln!(text, "nats: {nats}")?;
        writeln!(text, "store: {{url: '{}'{server}}}", place.into)?;
        writeln!(text, "http: {{allow_networks: ['127.0.0.0/8', '::1']}}\n{more}")?;
        fs::write(&config, text)?;
        let log = config.with_extension("log");
        let mut command = self.thresher.command();
        command.arg("serve").arg("--config").arg(&config).args(["--only", service]);
        command
            .envs(place.environment)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?);
        let child = command.spawn().context("cannot start thresher serve")?;
        Ok(Service { name: service.to_owned(), child, log })
    }

    /// What the first process of a service logged behind these words, up to the next space.
    pub(crate) fn logged(&self, service: &str, words: &str) -> Option<String> {
        let log = fs::read_to_string(&self.named(service).next()?.log).ok()?;
        Some(log.split_once(words)?.1.split_whitespace().next()?.to_owned())
    }

    /// Waits until every service is ready.
    pub(crate) fn until_ready(&self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            for service in &self.services {
                let ready = async {
                    while !service.is_ready() {
                        tokio::time::sleep(LOOK).await;
                    }
                };
                let waited = tokio::time::timeout(START_UP, ready).await;
                waited.with_context(|| format!("not ready in time: see {}", service.log.display()))?;
            }
            Ok(())
        })
    }

    /// `thresher source add`
    pub(crate) fn add(&self, url: &str, options: &[&str]) -> anyhow::Result<()> {
        output_of(self.client("source")?.args(["add", url, "--no-run"]).args(options)).map(drop)
    }

    /// Harvests a Source that was added, and waits for the end. Fails when it is not in sync then.
    pub(crate) fn harvest(&self, url: &str) -> anyhow::Result<()> {
        output_of(self.client("run")?.args(["submit", url, "--watch"])).map(drop)
    }

    /// Submits a run of a Source that was added, and does not wait for it.
    pub(crate) fn submit(&self, url: &str) -> anyhow::Result<()> {
        output_of(self.client("run")?.args(["submit", url])).map(drop)
    }

    /// Waits for the end of the last run of a Source that was added. Fails when it is not in sync then.
    pub(crate) fn watch(&self, url: &str) -> anyhow::Result<()> {
        output_of(self.client("run")?.args(["watch", url])).map(drop)
    }

    /// The place of its harvests.
    pub(crate) fn place(&self) -> Place {
        match &self.store {
            FleetStore::S3(s3) => Place::bucket(s3),
            FleetStore::Directory(directory) => Place::directory(directory),
        }
    }

    /// Processor time that the services have used so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        self.services.iter().map(|service| meter::process_cpu_seconds(service.child.id())).sum()
    }

    /// Processor time that the processes of one service have used so far, in seconds.
    pub(crate) fn cpu_seconds_of(&self, service: &str) -> f64 {
        self.named(service).map(|service| meter::process_cpu_seconds(service.child.id())).sum()
    }

    /// The most resident memory of any service at any time.
    pub(crate) fn peak_rss_bytes(&self) -> u64 {
        peak_rss_bytes(self.services.iter())
    }

    /// The most resident memory of any process of one service at any time.
    pub(crate) fn peak_rss_bytes_of(&self, service: &str) -> u64 {
        peak_rss_bytes(self.named(service))
    }

    /// The value of a counter in the processes of one service, all its labels together.
    pub(crate) fn counted(&self, service: &str, metric: &str) -> anyhow::Result<u64> {
        self.counted_with(service, metric, "")
    }

    /// The same, for the samples with `label`.
    pub(crate) fn counted_with(&self, service: &str, metric: &str, label: &str) -> anyhow::Result<u64> {
        self.named(service).map(|service| service.counted(metric, label)).sum()
    }

    /// The same, for all services together.
    pub(crate) fn counted_by_all(&self, metric: &str, label: &str) -> anyhow::Result<u64> {
        self.services.iter().map(|service| service.counted(metric, label)).sum()
    }

    /// The value of a gauge in the first process of a service, all its labels together.
    pub(crate) fn gauge(&self, service: &str, metric: &str) -> anyhow::Result<u64> {
        let metrics = self.named(service).next().with_context(|| format!("no {service} runs"))?.metrics()?;
        let name = format!("thresher_{metric}");
        let samples = metrics.lines().filter(|line| line.strip_prefix(&name).is_some_and(is_sample));
        Ok(samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum())
    }

    fn named(&self, service: &str) -> impl Iterator<Item = &Service> {
        self.services.iter().filter(move |each| each.name == service)
    }

    fn client(&self, subcommand: &str) -> anyhow::Result<Command> {
        if self.gateway.get().is_none() {
            let gateway = self.spawn("operators", "gateway", GATEWAY)?;
            let url = gateway.api()?;
            // There is one thread, so none was started meanwhile.
            let _ = self.gateway.set((gateway, url));
        }
        let (_, url) = self.gateway.get().context("it was started")?;
        let mut command = self.thresher.command();
        command.arg(subcommand).env("THRESHER_SERVER", url);
        Ok(command)
    }
}

impl Service {
    fn is_ready(&self) -> bool {
        self.ask("/readyz").is_ok_and(|answer| answer.split(' ').nth(1) == Some("200"))
    }

    /// The URL of its gateway, as soon as it has logged it.
    #[expect(clippy::disallowed_methods, reason = "commands of the fleet block their thread too")]
    fn api(&self) -> anyhow::Result<String> {
        let began = Instant::now();
        while began.elapsed() < START_UP {
            if let Some((_, rest)) = fs::read_to_string(&self.log)?.split_once("api.address=") {
                let address = rest.split_whitespace().next().context("its log ends there")?;
                return Ok(format!("http://{address}"));
            }
            std::thread::sleep(LOOK);
        }
        anyhow::bail!("no gateway in time: see {}", self.log.display())
    }

    fn metrics(&self) -> anyhow::Result<String> {
        self.ask("/metrics").with_context(|| format!("the {} tells no metrics", self.name))
    }

    fn counted(&self, metric: &str, label: &str) -> anyhow::Result<u64> {
        let metrics = self.metrics()?;
        let with_label: String =
            metrics.lines().filter(|line| line.contains(label)).flat_map(|line| [line, "\n"]).collect();
        Ok(sum_of(&with_label, metric))
    }

    /// Sends a request to its admin port, whose address is in its log.
    fn ask(&self, path: &str) -> anyhow::Result<String> {
        let log = fs::read_to_string(&self.log)?;
        let address = log.split_once("admin.address=").and_then(|(_, rest)| rest.split_whitespace().next());
        Ok(ask(address.context("it has not logged its address yet")?, path)?)
    }
}

/// Whether a line is a sample of the metric whose name was before this.
fn is_sample(rest: &str) -> bool {
    rest.starts_with(['{', ' '])
}

fn peak_rss_bytes<'a>(services: impl Iterator<Item = &'a Service>) -> u64 {
    services.map(|service| meter::process_peak_rss_bytes(service.child.id())).max().unwrap_or(0)
}

/// The sum of a counter's samples, which follow its name and its labels.
fn sum_of(metrics: &str, metric: &str) -> u64 {
    let samples = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(metric)?.strip_prefix("_total")?;
        rest.rsplit_once(' ')?.1.parse::<u64>().ok()
    });
    samples.sum()
}

/// A server's response to a GET, including its head.
fn ask(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_of_a_metric_are_added_up_and_those_of_others_are_not() {
        let metrics = "# TYPE unpack_members counter\nunpack_members_total{verdict=\"digest\"} 40\n\
            unpack_members_total{verdict=\"no-member\"} 2\nunpack_members_else_total 7\nunpack_total 1\n";
        assert_eq!(sum_of(metrics, "unpack_members"), 42);
        assert_eq!(sum_of(metrics, "unpack"), 1);
    }
}
