//! A fleet of Thresher's services, each a process of its own, over NATS and S3 servers of the case.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};
use testkit::servers::S3Fixture;

use crate::meter;
use crate::process::output_of;
use crate::thresher::Thresher;

/// Where a fleet lies, and the processes of it that run.
#[derive(Debug)]
pub(crate) struct Fleet {
    thresher: Thresher,
    nats: String,
    namespace: String,
    s3: S3Fixture,
    folder: PathBuf,
    services: Vec<Service>,
}

/// A process; it is killed when this is dropped.
#[derive(Debug)]
struct Service(Child);

impl Fleet {
    /// A fleet without services. `namespace` keeps it apart from others on the same NATS server.
    pub(crate) fn new(
        thresher: &Thresher,
        nats: &str,
        namespace: &str,
        s3: S3Fixture,
        folder: &Path,
    ) -> Self {
        let (nats, namespace, folder) = (nats.to_owned(), namespace.to_owned(), folder.to_owned());
        Self { thresher: thresher.clone(), nats, namespace, s3, folder, services: Vec::new() }
    }

    /// Starts `service` in a process of its own, with `more` lines of configuration.
    pub(crate) fn start(&mut self, service: &str, more: &str) -> anyhow::Result<()> {
        let number = self.services.len();
        let config = self.folder.join(format!("{number}-{service}.yaml"));
        let (nats, namespace, bucket) = (&self.nats, &self.namespace, &self.s3.bucket);
        let (endpoint, region) = (&self.s3.endpoint, &self.s3.region);
        let mut text = String::new();
        writeln!(text, "frame: {{admin: {{listen: '127.0.0.1:0'}}}}")?;
        writeln!(text, "nats: {{servers: ['{nats}'], namespace: {namespace}}}")?;
        writeln!(text, "store: {{url: 's3://{bucket}/harvest', endpoint: '{endpoint}', region: {region}}}")?;
        writeln!(text, "http: {{allow_private_addresses: true}}\n{more}")?;
        fs::write(&config, text)?;
        let log = File::create(config.with_extension("log"))?;
        let mut command = self.thresher.command();
        command.arg("serve").arg("--config").arg(&config).args(["--only", service]);
        command.envs(self.s3.aws_environment()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.services.push(Service(command.spawn().context("cannot start thresher serve")?));
        Ok(())
    }

    /// `thresher source add`
    pub(crate) fn add(&self, url: &str, options: &[&str]) -> anyhow::Result<()> {
        output_of(self.client("source").args(["add", url]).args(options)).map(drop)
    }

    /// Harvests a Source that was added, and waits for the end. Fails when it is not in sync then.
    pub(crate) fn harvest(&self, url: &str) -> anyhow::Result<()> {
        output_of(self.client("run").args(["submit", url, "--watch"])).map(drop)
    }

    /// Every line of `thresher ls --json`.
    pub(crate) fn held(&self) -> anyhow::Result<String> {
        let into = format!("s3://{}/harvest", self.s3.bucket);
        let mut command = self.thresher.command();
        let output =
            command.args(["ls", "--json", "--into", &into]).envs(self.s3.aws_environment()).output()?;
        if !output.status.success() {
            bail!("thresher ls failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Processor time that the services have used so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        self.services.iter().map(|service| meter::process_cpu_seconds(service.0.id())).sum()
    }

    /// The most memory that any of the services had resident at any time.
    pub(crate) fn peak_rss_bytes(&self) -> u64 {
        self.services.iter().map(|service| meter::process_peak_rss_bytes(service.0.id())).max().unwrap_or(0)
    }

    fn client(&self, subcommand: &str) -> Command {
        let mut command = self.thresher.command();
        command.arg(subcommand).env("THRESHER_NATS", &self.nats).env("THRESHER_NAMESPACE", &self.namespace);
        command
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
