//! A fleet of Thresher's services, each a process of its own, with NATS and S3 servers of the case.

mod metrics;
mod service;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context as _;
use testkit::servers::S3Fixture;

use self::metrics::counter;
use self::service::{Killed, Service};
use crate::place::Place;
use crate::process::output_of;
use crate::thresher::Thresher;

/// The longest start of a service.
const START_UP: Duration = Duration::from_secs(60);
/// How often readiness is checked.
const LOOK: Duration = Duration::from_millis(20);

/// The configuration of the gateway that operators' commands ask. No other user of the machine should be on it.
pub(crate) const GATEWAY: &str =
    "gateway: {listen: '127.0.0.1:0', allow_anonymous: true, requests_per_second: 10000}";

/// The configuration of a fleet, and its running processes.
#[derive(Debug)]
pub(crate) struct Fleet {
    thresher: Thresher,
    nats: String,
    namespace: String,
    store: FleetStore,
    folder: PathBuf,
    services: Vec<Service>,
    /// What killed processes had used and counted.
    killed: Vec<Killed>,
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
        let killed = Vec::new();
        let gateway = OnceLock::new();
        Self { thresher: thresher.clone(), nats, namespace, store, folder, services, killed, gateway }
    }

    /// Starts `service` in a process of its own, with `more` lines of configuration.
    pub(crate) fn start(&mut self, service: &str, more: &str) -> anyhow::Result<()> {
        let service = self.spawn(&self.next_label(), service, more)?;
        self.services.push(service);
        Ok(())
    }

    /// Kills the nth process of a service (`kill -9`), and starts another one in its place. Counts what the killed one
    /// had counted until just before.
    pub(crate) fn kill_and_start(&mut self, service: &str, nth: usize) -> anyhow::Result<()> {
        let mut places = (0..self.services.len()).filter(|place| self.services[*place].name == service);
        let place = places.nth(nth).with_context(|| format!("there is no {service} {nth}"))?;
        let label = self.next_label();
        let killed = self.services[place].kill()?;
        self.killed.push(killed);
        self.services[place] = self.spawn(&label, service, &self.services[place].more)?;
        Ok(())
    }

    /// A label that no process of this fleet had.
    fn next_label(&self) -> String {
        (self.services.len() + self.killed.len()).to_string()
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
        Ok(Service { name: service.to_owned(), more: more.to_owned(), child, log })
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
        let killed: f64 = self.killed.iter().map(|killed| killed.cpu_seconds).sum();
        killed + self.services.iter().map(Service::cpu_seconds).sum::<f64>()
    }

    /// Processor time that the processes of one service have used so far, in seconds.
    pub(crate) fn cpu_seconds_of(&self, service: &str) -> f64 {
        let killed: f64 = self.killed_of(service).map(|killed| killed.cpu_seconds).sum();
        killed + self.named(service).map(Service::cpu_seconds).sum::<f64>()
    }

    /// The most resident memory of any service at any time.
    pub(crate) fn peak_rss_bytes(&self) -> u64 {
        let killed = self.killed.iter().map(|killed| killed.peak_rss_bytes).max();
        self.services.iter().map(Service::peak_rss_bytes).chain(killed).max().unwrap_or(0)
    }

    /// The most resident memory of any process of one service at any time.
    pub(crate) fn peak_rss_bytes_of(&self, service: &str) -> u64 {
        let killed = self.killed_of(service).map(|killed| killed.peak_rss_bytes).max();
        self.named(service).map(Service::peak_rss_bytes).chain(killed).max().unwrap_or(0)
    }

    /// The same, of the processes that run now.
    pub(crate) fn peak_rss_bytes_of_running(&self, service: &str) -> u64 {
        self.named(service).map(Service::peak_rss_bytes).max().unwrap_or(0)
    }

    /// The value of a counter in the processes of one service, all its labels together.
    pub(crate) fn counted(&self, service: &str, metric: &str) -> anyhow::Result<u64> {
        self.counted_with(service, metric, "")
    }

    /// The same, for the samples with `label`.
    pub(crate) fn counted_with(&self, service: &str, metric: &str, label: &str) -> anyhow::Result<u64> {
        let killed: u64 = self.killed_of(service).map(|killed| counter(&killed.metrics, metric, label)).sum();
        let running: anyhow::Result<u64> =
            self.named(service).map(|service| service.counted(metric, label)).sum();
        Ok(killed + running?)
    }

    /// The same, for all services together.
    pub(crate) fn counted_by_all(&self, metric: &str, label: &str) -> anyhow::Result<u64> {
        let killed: u64 = self.killed.iter().map(|killed| counter(&killed.metrics, metric, label)).sum();
        let running: anyhow::Result<u64> =
            self.services.iter().map(|service| service.counted(metric, label)).sum();
        Ok(killed + running?)
    }

    /// The value of a gauge in the first process of a service, all its labels together.
    pub(crate) fn gauge(&self, service: &str, metric: &str) -> anyhow::Result<u64> {
        self.gauges(service, metric)?.into_iter().next().with_context(|| format!("no {service} runs"))
    }

    /// The same in each process of a service.
    pub(crate) fn gauges(&self, service: &str, metric: &str) -> anyhow::Result<Vec<u64>> {
        self.named(service).map(|service| service.gauge(metric)).collect()
    }

    fn killed_of(&self, service: &str) -> impl Iterator<Item = &Killed> {
        self.killed.iter().filter(move |each| each.name == service)
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
