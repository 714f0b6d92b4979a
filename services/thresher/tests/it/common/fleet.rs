//! A fleet: services as processes of their own, over real NATS and S3 servers.

use std::fmt::Write as _;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testkit::servers::S3Fixture;
use ulid::Ulid;

use super::api::ADMIN;
use super::{Destination, Run, thresher};

/// The time limit for a request to a fleet. A loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// The path of the password of a user at NATS.
const PASSWORD: &str = "THRESHER_NATS_PASSWORD";

/// A namespace and a bucket for one fleet, on servers that other fleets may share.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) nats: String,
    pub(crate) namespace: String,
    pub(crate) s3: S3Fixture,
    /// Each service logs in at NATS as the user of its name. Only the scheduler makes streams.
    pub(crate) has_users: bool,
    /// The gateway's keys of the store. If there are none, it uses those of the other services.
    pub(crate) reading_keys: Option<(String, String)>,
    folder: TempDir,
    started: AtomicU32,
    /// The gateway of the operator's commands, and its URL.
    gateway: OnceLock<(Service, String)>,
}

/// A running service. `kill -9` ends it, even if the test fails.
#[derive(Debug)]
pub(crate) struct Service {
    child: Child,
    log: PathBuf,
}

impl Fleet {
    pub(crate) fn new(nats: &str, s3: S3Fixture) -> Self {
        let namespace = format!("t{}", Ulid::new().to_string().to_lowercase());
        let folder = TempDir::with_prefix("fleet-").expect("a temporary directory");
        let has_users = false;
        let reading_keys = None;
        let started = AtomicU32::new(0);
        let gateway = OnceLock::new();
        Self { nats: nats.to_owned(), namespace, s3, has_users, reading_keys, folder, started, gateway }
    }

    /// The password of a user at NATS.
    pub(crate) fn password(user: &str) -> String {
        format!("password-of-{user}")
    }

    /// More fields of `nats`, for the user of a service.
    fn login(&self, services: &[&str]) -> String {
        let ([user], true) = (services, self.has_users) else { return String::new() };
        let credentials = format!("{{user: {user}, password: {{env: {PASSWORD}}}}}");
        format!(", make_streams: {}, credentials: {credentials}", *user == "scheduler")
    }

    /// Starts `services` (such as `fetcher`) in one process, with `more` lines of configuration.
    pub(crate) fn start(&self, services: &[&str], more: &str) -> Service {
        self.start_asking(services, "", more)
    }

    /// The same, with more fields for requests to Sources.
    pub(crate) fn start_asking(&self, services: &[&str], http: &str, more: &str) -> Service {
        self.start_logging(services, http, more, "info")
    }

    /// The same, with a log of this level.
    pub(crate) fn start_logging(&self, services: &[&str], http: &str, more: &str, level: &str) -> Service {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let config = self.path(&format!("{number}.yaml"));
        let log = self.path(&format!("{number}.log"));
        let mut text = String::new();
        writeln!(text, "service: {{admin: {{listen: '127.0.0.1:0'}}, drain_seconds: 20}}").expect("a String");
        let nats = &self.nats;
        let namespace = &self.namespace;
        let login = self.login(services);
        writeln!(
            text,
            "nats: {{servers: ['{nats}'], namespace: {namespace}, max_megabytes_per_stream: 0{login}}}"
        )
        .expect("a String");
        let bucket = &self.s3.bucket;
        let endpoint = &self.s3.endpoint;
        let region = &self.s3.region;
        writeln!(
            text,
            "store: {{url: 's3://{bucket}/harvests/one', endpoint: '{endpoint}', region: {region}}}"
        )
        .expect("a String");
        // The servers of tests are on this machine. A test may state itself what is allowed.
        let networks =
            if http.contains("allow_networks") { "" } else { "allow_networks: ['127.0.0.0/8', '::1'], " };
        writeln!(text, "http: {{{networks}{http}}}\n{more}").expect("a String");
        if services.is_empty() && !more.contains("gateway:") {
            // The default port may be taken on this machine.
            writeln!(text, "{}", self.gateway()).expect("a String");
        }
        std::fs::write(&config, text).expect("our own folder");
        let mut command = thresher();
        command.arg("serve").arg("--config").arg(&config);
        for service in services {
            command.args(["--only", service]);
        }
        command.envs(self.s3.aws_environment()).env("THRESHER_SERVE__SERVICE__TELEMETRY__LEVEL", level);
        // Where it writes the token of its gateway, if it makes one.
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command.env(PASSWORD, Self::password(services.first().copied().unwrap_or_default()));
        if let (["gateway"], Some((key, secret))) = (services, &self.reading_keys) {
            command.env("AWS_ACCESS_KEY_ID", key).env("AWS_SECRET_ACCESS_KEY", secret);
        }
        let stderr = File::create(&log).expect("our own folder");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).spawn();
        Service { child: child.expect("the binary was built by cargo"), log }
    }

    /// `thresher source add <url> --no-run`
    #[track_caller]
    pub(crate) fn add(&self, url: &str, options: &[&str]) {
        Run::of(self.command("source").args(["add", url, "--no-run"]).args(options)).exits(0);
    }

    /// `thresher run <what> <source>`
    pub(crate) fn run(&self, what: &str, source: &str, options: &[&str]) -> Run {
        Run::of(self.command("run").args([what, source]).args(options))
    }

    /// `thresher run submit --watch --json`: requests a run and waits for its end.
    pub(crate) async fn harvest(&self, source: &str) -> Run {
        self.harvest_with(source, &[]).await
    }

    /// The same, with options.
    pub(crate) async fn harvest_with(&self, source: &str, options: &[&str]) -> Run {
        let mut command = self.command("run");
        command.args(["submit", source, "--watch", "--json"]).args(options);
        wait(command).await
    }

    /// `thresher run watch`: waits for the end of the last run.
    pub(crate) async fn watch(&self, source: &str) -> Run {
        let mut command = self.command("run");
        command.args(["watch", source, "--json"]);
        wait(command).await
    }

    /// The store of the fleet.
    pub(crate) fn destination(&self) -> Destination {
        Destination::s3(&self.s3)
    }

    /// An operator's command. The first one starts a gateway for them, which no test stops.
    pub(crate) fn command(&self, subcommand: &str) -> Command {
        let (_, url) = self.gateway.get_or_init(|| {
            let gateway = self.start(&["gateway"], &self.gateway());
            let url = gateway.api();
            (gateway, url)
        });
        let mut command = thresher();
        command.arg(subcommand).env("THRESHER_SERVER", url).env("THRESHER_TOKEN", ADMIN);
        command
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Waits for the end of a command, while tasks in this process go on.
pub(crate) async fn wait(mut command: Command) -> Run {
    let waiting = tokio::task::spawn_blocking(move || Run::of(&mut command));
    let ended = tokio::time::timeout(PATIENCE, waiting).await;
    ended.expect("the fleet comes to an end in time").expect("no panic")
}

impl Service {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it ended by itself.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our own child")
    }

    /// `kill -9`
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("our own child");
        self.child.wait().expect("our own child");
    }

    /// Stops it and returns its exit status.
    pub(crate) async fn terminate(mut self) -> Option<i32> {
        self.signal("TERM");
        let ending = tokio::task::spawn_blocking(move || self.child.wait().expect("our own child").code());
        tokio::time::timeout(PATIENCE, ending).await.expect("it ends in time").expect("no panic")
    }

    /// Sends it a signal, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(format!("-{name}")).arg(self.id().to_string()).status();
        assert!(status.expect("a system with kill").success());
    }

    /// The address of its admin port, once it has logged it.
    pub(crate) fn admin(&self) -> String {
        self.said("admin.address").expect("it says where its admin port is")
    }

    /// The first value of a field that it has logged, from a line that is there to its end.
    pub(crate) fn said(&self, field: &str) -> Option<String> {
        let log = self.log();
        let (_, rest) = log.split_once(&format!("{field}="))?;
        let (line, _) = rest.split_once('\n')?;
        line.split_whitespace().next().map(str::to_owned)
    }

    /// The URL of its gateway, as soon as it has logged it.
    fn api(&self) -> String {
        self.url("api")
    }

    /// The URL of its publications, as soon as it has logged it.
    pub(crate) fn publications(&self) -> String {
        self.url("publisher")
    }

    #[expect(clippy::disallowed_methods, reason = "commands of the fleet block their thread too")]
    fn url(&self, of: &str) -> String {
        let field = format!("{of}.address");
        let began = Instant::now();
        loop {
            if let Some(address) = self.said(&field) {
                return format!("http://{address}");
            }
            assert!(began.elapsed() < PATIENCE, "it does not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let ended = self.ended();
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- log of process {}, which ended by itself: {ended:?}\n{}", self.id(), self.log());
        }
    }
}
