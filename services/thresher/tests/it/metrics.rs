//! The metrics of a fleet: compared with docs/METRICS.md, and read by a real Prometheus with every query of rules and
//! dashboards.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::api::{Api, send};
use crate::common::{Fleet, Service, source};
use rand::RngExt as _;
use reqwest::{Client, StatusCode};
use serde_json::Value;
use simulated_source::{Changes, Fault, SourceSpec};
use tempfile::TempDir;
use testkit::servers::{NatsFixture, S3Fixture, Venv};
use testkit::waiting::{found, until};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace").to_owned()
}

pub(crate) fn python(script: &str) -> Command {
    let mut python = Command::new(Venv::deploy().expect("pip installs what is pinned").program("python"));
    // Python's cache files stay out of the tree.
    python.current_dir(root()).env("PYTHONDONTWRITEBYTECODE", "1").arg(script);
    python.env("THRESHER_TARGET", testkit::servers::target_directory());
    python
}

/// A fleet in one process after all kinds of events: a harvest with faults and quirks, changes, a run that the deletion
/// guard stopped, and requests of an operator. It keeps running.
async fn experienced(fleet: &Fleet) -> Service {
    let followed = source(SourceSpec::default().resources(30).gzip(true)).await;
    followed.set_fault(3, Fault::status(404));
    let all = fleet.start_asking(&[], "origin_groups: {here: [127.0.0.1]}", &fleet.gateway());
    fleet.add(&followed.well_known(), &["--every", "6h"]);
    fleet.harvest(&followed.well_known()).await.exits(1);
    followed.change(Changes { create: 2, update: 3, delete: 1 });
    fleet.harvest(&followed.well_known()).await.exits(1);

    let guarded = source(SourceSpec::default().seed(2).resources(40)).await;
    fleet.add(&guarded.well_known(), &["--absent", "delete", "--mode", "baseline"]);
    fleet.harvest(&guarded.well_known()).await.exits(0);
    guarded.change(Changes { create: 0, update: 0, delete: 20 });
    guarded.forget_changes();
    guarded.refresh_resource_list();
    fleet.harvest(&guarded.well_known()).await.exits(3);

    // The gateway has no counts before its first request.
    Api::of(&all).await.get("/v1/runs").await.is(StatusCode::OK);
    // The services of a process become ready one by one. Those that the harvests did not need may be the last.
    until("the process is ready", || get(&all.admin(), "/readyz") == "ready\n").await;
    all
}

async fn fleet() -> Fleet {
    Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await)
}

/// A page of an admin port.
pub(crate) fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[tokio::test]
async fn a_fleet_says_what_the_page_of_metrics_tells_and_nothing_else() {
    let fleet = fleet().await;
    let all = experienced(&fleet).await;
    let said = get(&all.admin(), "/metrics");
    let mut command = python("deploy/tests/exposed.py");
    let mut held = command.arg("--whole").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    held.stdin.take().unwrap().write_all(said.as_bytes()).unwrap();
    let held = held.wait_with_output().unwrap();
    assert!(held.status.success(), "{}\n{said}", String::from_utf8_lossy(&held.stdout));

    // Each event is counted once, under its own name.
    let value = |series: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{series} is not said:\n{said}")).parse::<f64>().unwrap()
    };
    assert_eq!(value("thresher_scheduler_resources_total{outcome=\"stored\"}"), 29.0 + 5.0 + 40.0);
    assert_eq!(value("thresher_scheduler_resources_total{outcome=\"deleted\"}"), 1.0);
    assert_eq!(value("thresher_scheduler_deletion_guard_trips_total"), 1.0);
    assert_eq!(value("thresher_scheduler_unaccounted_entries_total"), 0.0);
    assert_eq!(value("thresher_scheduler_pending_resources"), 0.0);
    // One for each run, and one more for each that was lost while the process stood still.
    let leases =
        |change: &str| value(&format!("thresher_scheduler_lease_changes_total{{change=\"{change}\"}}"));
    assert_eq!(leases("acquired"), 4.0 + leases("lost"));
    assert!(value("thresher_http_requests_total{origin_group=\"here\",status=\"4xx\"}") >= 1.0);
    assert_eq!(value("thresher_http_requests_in_flight{origin_group=\"here\"}"), 0.0);
    assert!(value("thresher_scheduler_quirks_total{quirk=\"gzip\"}") >= 1.0);
}

/// A Prometheus for this test. It ends when this value is dropped.
struct Prometheus {
    child: Child,
    base: String,
    _folder: TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Our own child.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// Reads the metrics of `admin`, many times a second, and records what the rules define.
    async fn of(admin: &str) -> Self {
        let output = python("deploy/tests/promtool.py").arg("prometheus").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let program = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        let folder = TempDir::with_prefix("prometheus-").unwrap();
        let rules = std::fs::read_to_string(root().join("deploy/prometheus/recording.yaml")).unwrap();
        assert!(rules.contains("interval: 30s"), "the interval that is made shorter");
        std::fs::write(
            folder.path().join("recording.yaml"),
            rules.replace("interval: 30s", "interval: 200ms"),
        )
        .unwrap();
        let config = format!(
            "global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\nrule_files: [recording.yaml]\n\
             scrape_configs:\n  - {{job_name: serve, static_configs: [{{targets: ['{admin}']}}]}}\n"
        );
        let file = folder.path().join("prometheus.yaml");
        std::fs::write(&file, config).unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        loop {
            // It cannot choose a free port itself. If another process takes this one first, it ends, and the next one
            // is tried.
            let port = rand::rng().random_range(9_100..10_400);
            let log = std::fs::File::create(folder.path().join("log")).unwrap();
            let mut command = Command::new(&program);
            command.arg(format!("--config.file={}", file.display()));
            command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
            command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
            let mut child = command.spawn().unwrap();
            let base = format!("http://127.0.0.1:{port}");
            let started = found("Prometheus is ready, or has ended", async || {
                if child.try_wait().unwrap().is_some() {
                    return Some(false);
                }
                let ready = client.get(format!("{base}/-/ready")).send().await.ok()?;
                ready.status().is_success().then_some(true)
            });
            if started.await {
                return Self { child, base, _folder: folder };
            }
            let said = std::fs::read_to_string(folder.path().join("log")).unwrap();
            assert!(said.contains("address already in use"), "{said}");
        }
    }

    /// Its response to a query, or its error.
    async fn ask(&self, query: &str) -> Result<Vec<Value>, String> {
        let mut url: url::Url = format!("{}/api/v1/query", self.base).parse().unwrap();
        url.query_pairs_mut().append_pair("query", query);
        let client = Client::builder().no_proxy().build().unwrap();
        let answer = send(client.get(url)).await.json();
        match answer["status"].as_str() {
            Some("success") => Ok(answer["data"]["result"].as_array().unwrap().clone()),
            _ => Err(answer["error"].to_string()),
        }
    }
}

/// The queries of a dashboard, with values for Grafana's variables.
fn queries(board: &Value) -> Vec<String> {
    let expressions = board["panels"].as_array().unwrap().iter().flat_map(|panel| {
        let targets = panel["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
        targets.iter().map(|target| target["expr"].as_str().unwrap().to_owned())
    });
    let choices = board["templating"]["list"].as_array().unwrap().iter().filter_map(|variable| {
        let query = variable["query"]["query"].as_str()?;
        let (series, label) = query.strip_prefix("label_values(")?.strip_suffix(')')?.rsplit_once(", ")?;
        Some(format!("count by ({label}) ({series})"))
    });
    let given = [("$__rate_interval", "1m"), ("$source", ".+"), ("$job", ".+"), ("$instance", ".+")];
    let replace = |query: String| given.iter().fold(query, |query, (name, value)| query.replace(name, value));
    expressions.chain(choices).map(replace).collect()
}

/// The expressions of a file of rules.
fn rules(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("deploy/prometheus").join(file)).unwrap();
    let told: Value = serde_saphyr::from_str(&text).unwrap();
    let groups = told["groups"].as_array().unwrap().iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().unwrap());
    rules.map(|rule| rule["expr"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn each_query_of_rules_and_dashboards_is_answered_by_a_prometheus_that_reads_a_fleet() {
    let fleet = fleet().await;
    let all = experienced(&fleet).await;
    let prometheus = Prometheus::of(&all.admin()).await;

    let mut asked = rules("recording.yaml");
    for name in ["fleet", "source", "service"] {
        let text = std::fs::read_to_string(root().join(format!("deploy/grafana/{name}.json"))).unwrap();
        asked.extend(queries(&serde_json::from_str(&text).unwrap()));
    }
    assert!(asked.len() > 60, "{}", asked.len());
    for query in asked {
        assert!(!query.contains('$'), "nobody fills this in: {query}");
        // A rate needs two samples, and a recording rule one more evaluation.
        found(format!("an answer to {query}"), async || {
            let answer = prometheus.ask(&query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
            (!answer.is_empty()).then_some(())
        })
        .await;
    }
    // Alerts are quiet when all is well, so this only shows that their expressions can be evaluated.
    for query in rules("alerts.yaml") {
        prometheus.ask(&query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
    }
}
