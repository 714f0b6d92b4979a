//! The example service as a real process: its ports, its signals, its exit status.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// The example `ticker`, with its log read line by line.
struct Ticker {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
}

/// The example, which cargo builds next to the tests.
fn binary() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples/ticker");
    assert!(path.exists(), "{} is not built: run cargo build -p service --examples", path.display());
    path
}

fn command(vars: &[(&str, &str)]) -> Command {
    let mut command = Command::new(binary());
    command.env("THRESHER_TICKER__SERVICE__ADMIN__LISTEN", "127.0.0.1:0");
    command.env("THRESHER_TICKER__SERVICE__TELEMETRY__FORMAT", "json");
    command.envs(vars.iter().copied()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

impl Ticker {
    fn start(vars: &[(&str, &str)]) -> Self {
        let mut child = command(vars).spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, log }
    }

    /// Reads the log up to the line that contains `text`.
    async fn logs(&mut self, text: &str) -> String {
        let mut seen = String::new();
        while let Some(line) = self.log.next_line().await.unwrap() {
            if line.contains(text) {
                return line;
            }
            seen.push_str(&line);
            seen.push('\n');
        }
        panic!("{text:?} was never logged, but\n{seen}");
    }

    async fn address(&mut self) -> String {
        let line = self.logs("admin.address").await;
        line.split("\"admin.address\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    }

    async fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id().unwrap());
        assert!(Command::new("sh").args(["-c", &kill]).status().await.unwrap().success());
    }

    async fn status(mut self) -> Option<i32> {
        self.child.wait().await.unwrap().code()
    }
}

async fn get(address: &str, path: &str) -> (u16, String, String) {
    let response = reqwest::get(format!("http://{address}{path}")).await.unwrap();
    let kind = response.headers().get("content-type").map_or("", |value| value.to_str().unwrap()).to_owned();
    let status = response.status().as_u16();
    #[expect(clippy::disallowed_methods, reason = "a page of our own, a few lines long")]
    let body = response.text().await.unwrap();
    (status, kind, body)
}

#[tokio::test]
async fn sigterm_finishes_the_tick_in_hand_and_exits_with_0() {
    for signal in ["TERM", "INT"] {
        let mut ticker = Ticker::start(&[("THRESHER_TICKER__TICK_MILLIS", "300")]);
        ticker.logs("tick begins").await;
        ticker.signal(signal).await;
        let line = ticker.logs("asked to stop").await;
        assert!(line.contains(&format!("SIG{signal}")), "{line}");
        ticker.logs("tick finished").await;
        ticker.logs("\"stopped\"").await;
        assert_eq!(ticker.status().await, Some(0));
    }
}

#[tokio::test]
async fn service_that_does_not_finish_by_its_deadline_exits_with_1_and_says_why() {
    let mut ticker = Ticker::start(&[
        ("THRESHER_TICKER__TICK_MILLIS", "3600000"),
        ("THRESHER_TICKER__SERVICE__DRAIN_SECONDS", "0"),
    ]);
    ticker.logs("tick begins").await;
    ticker.signal("TERM").await;
    ticker.logs("raise `service.drain_seconds`").await;
    assert_eq!(ticker.status().await, Some(1));
}

#[tokio::test]
async fn ports_tell_life_readiness_and_metrics() {
    let mut ticker = Ticker::start(&[("THRESHER_TICKER__TICK_MILLIS", "10")]);
    let start = ticker.logs("starting").await;
    assert!(start.contains("\"service.name\":\"ticker\"") && start.contains("tick_millis: 10"), "{start}");
    let address = ticker.address().await;
    assert_eq!(get(&address, "/healthz").await.0, 200);
    ticker.logs("tick finished").await;
    assert_eq!(get(&address, "/readyz").await.0, 200);
    let (status, kind, metrics) = get(&address, "/metrics").await;
    assert_eq!((status, kind.split(';').next().unwrap()), (200, "application/openmetrics-text"));
    let build =
        format!("thresher_build_info{{service=\"ticker\",version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    assert!(metrics.contains(&build), "{metrics}");
    let ticks = metrics.lines().find_map(|line| line.strip_prefix("thresher_ticks_total ")).unwrap();
    assert!(ticks.parse::<u64>().unwrap() >= 1, "{metrics}");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
}

#[tokio::test]
async fn wrong_configuration_exits_with_2_and_one_line_that_names_the_field() {
    let output = command(&[("THRESHER_TICKER__TICK_MILIS", "10")]).output().await.unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{text}");
    assert!(
        text.starts_with("ticker: field `tick_milis` from environment variable THRESHER_TICKER__TICK_MILIS"),
        "{text}"
    );
    let output = command(&[("THRESHER_TICKER__SERVICE__TELEMETRY__LEVEL", "a=loud")]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[tokio::test]
async fn taken_port_exits_with_3_and_names_the_address() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = command(&[("THRESHER_TICKER__SERVICE__ADMIN__LISTEN", &address)]).output().await.unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains(&format!("cannot listen on {address}")), "{text}");
}
