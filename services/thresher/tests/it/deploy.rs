//! Checks of `deploy/`: manifests, Containerfile, rules. Each service reads the configuration that the manifests give
//! it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::thresher;
use fleet::NatsConfig;
use secrets::Vars;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use service::{ServiceConfig, config};
use testkit::servers::Venv;
use testkit::waiting::found;

/// Memory of a process beyond its configured limits, in bytes: see docs/METRICS.md.
const BESIDE_BOUNDS: u64 = 200_000_000;

/// The configuration of a service in the manifests, as `build.py --environments` prints it.
#[derive(Debug, Deserialize)]
struct Told {
    variables: BTreeMap<String, String>,
    files: BTreeMap<String, String>,
    memory_bytes: u64,
    grace_seconds: u64,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace").to_owned()
}

fn python() -> Command {
    let mut python = Command::new(Venv::deploy().expect("pip installs what is pinned").program("python"));
    // Python's cache files stay out of the tree.
    python.current_dir(root()).env("PYTHONDONTWRITEBYTECODE", "1");
    python.env("THRESHER_TARGET", testkit::servers::target_directory());
    python
}

/// Runs the tests in a file of `deploy/tests`.
#[track_caller]
fn passes(file: &str) {
    let output =
        python().args(["-m", "unittest", "discover", "-s", "deploy/tests", "-p", file]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("\nOK"), "{said}");
    // A run that finds no test counts as failed.
    assert!(!said.contains("Ran 0 tests"), "{said}");
}

fn told(overlay: &str) -> BTreeMap<String, Told> {
    let overlay = format!("deploy/kubernetes/overlays/{overlay}");
    let output = python().args(["deploy/kubernetes/build.py", "--environments", &overlay]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_builder_of_manifests_does_what_kustomize_does() {
    passes("test_build.py");
}

#[test]
fn the_manifests_are_what_kubernetes_takes_and_keep_our_rules() {
    passes("test_manifests.py");
}

#[test]
fn the_users_of_the_message_bus_may_do_what_their_services_do() {
    passes("test_nats.py");
}

#[test]
fn the_containerfile_is_one_and_what_it_copies_is_there() {
    passes("test_containerfile.py");
}

#[test]
fn alerts_pass_their_tests_and_ask_for_series_that_there_are() {
    passes("test_rules.py");
}

#[test]
fn the_page_of_metrics_tells_what_the_code_counts() {
    passes("test_metrics.py");
}

#[test]
fn the_dashboards_are_what_grafana_takes_and_ask_for_series_that_there_are() {
    passes("test_dashboards.py");
}

/// Reads a service's configuration as the service does, and checks it against the needs of a cluster.
fn read<C: DeserializeOwned + ServiceConfig>(name: &str, told: &Told) -> C {
    let folder = tempfile::tempdir().unwrap();
    let variable = format!("THRESHER_{}_CONFIG", name.to_uppercase());
    let mut vars = told.variables.iter().fold(Vars::default(), |vars, (name, value)| vars.with(name, value));
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, &told.files[&told.variables[&variable]]).unwrap();
    vars = vars.with(&variable, file.to_str().unwrap());
    let config: C = config::load(name, &vars).unwrap();
    let frame = config.frame();
    assert!(frame.admin.listen.ip().is_unspecified(), "{name}: probes come from outside");
    assert_eq!(frame.admin.listen.port(), 9600, "{name}");
    assert!(frame.drain() < Duration::from_secs(told.grace_seconds), "{name}");
    config
}

#[test]
fn what_the_manifests_tell_each_service_is_read_by_it() {
    for overlay in ["local", "production"] {
        let mut told = told(overlay);
        let mut take = |name: &str| told.remove(name).unwrap_or_else(|| panic!("{overlay} has no {name}"));
        let scheduler: scheduler::Config = read("scheduler", &take("scheduler"));
        let fetcher: fetcher::Config = read("fetcher", &take("fetcher"));
        let unpacker: unpacker::Config = read("unpacker", &take("unpacker"));
        let verifier: verifier::Config = read("verifier", &take("verifier"));
        let gateway: gateway::Config = read("gateway", &take("gateway"));
        assert!(gateway.gateway.listen.ip().is_unspecified() && gateway.gateway.tokens.is_some());
        assert_eq!(scheduler.http, fetcher.http, "Sources are asked alike, whoever asks");
        assert_eq!(scheduler.push, gateway.push, "{overlay}: hubs reach whoever was told by who asked them");
        assert_eq!(gateway.push.public_url.is_some(), overlay == "production");
        let publisher: publisher::Config = read("publisher", &take("publisher"));
        assert!(publisher.publisher.listen.ip().is_unspecified() && publisher.publisher.tokens.is_some());
        assert_eq!(publisher.publisher.trusted_proxies, gateway.gateway.trusted_proxies);
        for (user, nats) in [
            ("scheduler", &scheduler.nats),
            ("fetcher", &fetcher.nats),
            ("unpacker", &unpacker.nats),
            ("verifier", &verifier.nats),
            ("gateway", &gateway.nats),
            ("publisher", &publisher.nats),
        ] {
            nats.check().unwrap();
            assert_eq!(nats.credentials.user.as_deref(), Some(user), "{overlay}: a user of its own");
            assert_eq!(nats.make_streams, user == "scheduler", "{overlay}: {user} makes streams");
            assert_eq!(nats.tls.required, overlay == "production", "{overlay}: {user} encrypts");
            let credentials = nats.credentials.clone();
            let make_streams = nats.make_streams;
            let alike = NatsConfig { credentials, make_streams, ..scheduler.nats.clone() };
            assert_eq!(nats, &alike, "{overlay}: one message bus");
        }
        for store in [&fetcher.store, &unpacker.store, &verifier.store, &gateway.store, &publisher.store] {
            assert_eq!(store, &scheduler.store, "{overlay}: one store");
        }
        assert_eq!(scheduler.store.spool_directory, Some("/spool".into()));
        assert_eq!(
            told.keys().collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "{overlay}: services that nobody reads for"
        );
    }
}

/// A service that waits for a missing message bus. It ends when this value is dropped.
struct Waiting(Child);

impl Drop for Waiting {
    fn drop(&mut self) {
        // Our own child.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn each_service_may_take_the_memory_that_it_says_is_its_bound() {
    for (name, told) in told("production") {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        let log = folder.path().join("log");
        let prefix = format!("THRESHER_{}", name.to_uppercase());
        std::fs::write(&file, &told.files[&told.variables[&format!("{prefix}_CONFIG")]]).unwrap();
        let mut command = thresher();
        command.args(["serve", "--only", &name, "--config"]).arg(&file);
        for (variable, value) in &told.variables {
            if let Some(field) = variable.strip_prefix(&format!("{prefix}__")) {
                command.env(format!("THRESHER_SERVE__{field}"), value);
            }
        }
        command.env("THRESHER_SERVE__SERVICE__ADMIN__LISTEN", "127.0.0.1:0");
        if told.variables.contains_key(&format!("{prefix}__PUSH")) {
            let key = folder.path().join("push-key");
            std::fs::write(&key, "only for this test of bounds, and of 32 bytes at least").unwrap();
            let push = format!("{{public_url: 'https://push.example/', key: {{file: '{}'}}}}", key.display());
            command.env("THRESHER_SERVE__PUSH", push);
        }
        // No server listens there, so the service waits. It states its memory limits before it waits for a server.
        command.env("THRESHER_SERVE__NATS__SERVERS", "['nats://127.0.0.1:9']");
        command.env("THRESHER_SERVE__NATS__CREDENTIALS", "{}");
        if name == "gateway" {
            let tokens = folder.path().join("tokens.yaml");
            let text = "[{name: me, role: admin, token: only-for-this-test-of-bounds}]";
            std::fs::write(&tokens, text).unwrap();
            command.env("THRESHER_SERVE__GATEWAY__TOKENS", tokens);
            command.env("THRESHER_SERVE__GATEWAY__LISTEN", "127.0.0.1:0");
            // It opens the store before it connects to the message bus.
            command.env("THRESHER_SERVE__STORE__URL", folder.path());
        }
        if name == "publisher" {
            let tokens = folder.path().join("tokens.yaml");
            std::fs::write(&tokens, "[{name: me, token: only-for-this-test-of-bounds}]").unwrap();
            command.env("THRESHER_SERVE__PUBLISHER__TOKENS", tokens);
            command.env("THRESHER_SERVE__PUBLISHER__LISTEN", "127.0.0.1:0");
            command.env("THRESHER_SERVE__STORE__URL", folder.path());
        }
        command.env("AWS_ACCESS_KEY_ID", "a").env("AWS_SECRET_ACCESS_KEY", "b");
        let stderr = std::fs::File::create(&log).unwrap();
        let _running =
            Waiting(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).spawn().unwrap());
        let address = found(format!("{name} has said all its bounds"), async || {
            let said = std::fs::read_to_string(&log).ok()?;
            let (_, rest) = said.split_once("\"admin.address\":\"")?;
            let address = rest.split('"').next()?;
            // Until it has begun, it waits for itself.
            let begun =
                of_parts(&get(address)?, "thresher_service_unready").any(|(part, _)| part != "service");
            begun.then(|| address.to_owned())
        })
        .await;
        // Requested again: the first response may have begun before the limits were known.
        let metrics = get(&address).expect("it is there, and waits");
        let bound: u64 = of_parts(&metrics, "thresher_memory_budget_bytes").map(|(_, bytes)| bytes).sum();
        assert!(bound > 0, "{name} says no bound:\n{metrics}");
        let least = bound + BESIDE_BOUNDS;
        assert!(
            told.memory_bytes >= least,
            "{name} may take {} bytes, and its bound asks for {least}",
            told.memory_bytes
        );
        assert!(
            told.memory_bytes < least + least / 4,
            "{name} may take {} bytes, far more than {least}",
            told.memory_bytes
        );
    }
}

/// The values of a metric for each part.
fn of_parts<'a>(metrics: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
    metrics.lines().filter_map(move |line| {
        let (part, value) = line.strip_prefix(name)?.strip_prefix("{component=\"")?.split_once("\"} ")?;
        Some((part, value.parse().expect("a whole number")))
    })
}

/// The metrics of an admin port, if it responds.
fn get(address: &str) -> Option<String> {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).ok()?;
    write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
