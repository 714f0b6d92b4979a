//! Bodies that are endless, slow, or larger than allowed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testkit::servers::{NatsFixture, S3Fixture};
use testkit::waiting::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{Destination, Fleet, Run, resource, thresher, urlset};

const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
/// Far more than any of these runs needs, and far less than the default limits.
const SOON: Duration = Duration::from_secs(60);
/// The limits of most tests.
const LIMITS: &str = "--max-size 100KB --body-timeout 400ms --retries 0";

/// A server whose bodies never end. `/endless…` comes as fast as it is read, `/drip…` one byte at a time. `/good` is
/// four bytes.
#[derive(Debug, Clone)]
struct Endless {
    url: String,
    /// Requests for slow bodies.
    drips: Arc<AtomicUsize>,
}

impl Endless {
    /// Serves a list of these paths, or URIs, at `/list.xml`.
    async fn start(listed: &[&str]) -> Self {
        Self::with_robots(listed, false).await
    }

    /// The same, with a slow `robots.txt` if the test wants one.
    async fn with_robots(listed: &[&str], robots_drip: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let whole =
            |path: &&str| if path.starts_with('/') { format!("{url}{path}") } else { (*path).to_owned() };
        let entries: Vec<String> = listed.iter().map(|path| resource(&whole(path), "")).collect();
        let list: Arc<str> = urlset(LIST, &entries).into();
        let server = Self { url, drips: Arc::default() };
        let drips = Arc::clone(&server.drips);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(answer(connection, Arc::clone(&list), robots_drip, Arc::clone(&drips)));
            }
        });
        server
    }

    fn uri(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn list(&self) -> String {
        self.uri("/list.xml")
    }

    /// How often a slow body was requested.
    fn drips(&self) -> usize {
        self.drips.load(Ordering::SeqCst)
    }
}

/// Answers one request and closes the connection. An error means that the client has gone.
async fn answer(
    mut connection: TcpStream,
    list: Arc<str>,
    robots_drip: bool,
    drips: Arc<AtomicUsize>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(connection.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let whole = |status: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let is_drip = path.starts_with("/drip") || (robots_drip && path == "/robots.txt");
    if is_drip || path.starts_with("/endless") {
        connection.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await?;
        drips.fetch_add(usize::from(is_drip), Ordering::SeqCst);
        let large = format!("{:x}\r\n{}\r\n", 1 << 16, "#".repeat(1 << 16));
        loop {
            if is_drip {
                connection.write_all(b"1\r\n#\r\n").await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            } else {
                connection.write_all(large.as_bytes()).await?;
            }
        }
    }
    let answer = match path {
        "/list.xml" => whole("200 OK", &list),
        "/good" => whole("200 OK", "good"),
        _ => whole("404 Not Found", ""),
    };
    connection.write_all(answer.as_bytes()).await
}

fn words(options: &str) -> Vec<&str> {
    options.split_whitespace().collect()
}

/// The bytes of all files below a directory.
fn bytes_below(directory: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let sizes = entries.map(|entry| {
        let entry = entry.expect("a directory");
        let is_directory = entry.file_type().expect("a file").is_dir();
        if is_directory { bytes_below(&entry.path()) } else { entry.metadata().expect("a file").len() }
    });
    sizes.sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_without_end_and_by_drips_are_problems_and_leave_nothing_behind() {
    let source = Endless::start(&["/endless", "/drip", "/good"]).await;
    let copy = Destination::directory();
    let begun = Instant::now();
    let run = copy.sync_with(&source.list(), &words(LIMITS)).exits(1);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let run = run.says(&["(too-large)", "(too-slow)", "--max-size", "--min-speed"]);
    assert_eq!((run.count("failed"), run.count("stored")), (2, 1), "{run}");
    let present = copy.present();
    assert_eq!(present.keys().collect::<Vec<_>>(), [&source.uri("/good")], "{present:?}");
    let left = bytes_below(std::path::Path::new(&copy.into));
    assert!(left < 90_000, "{left} bytes are left of what was refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_robots_txt_by_drips_keeps_nobody_waiting() {
    let source = Endless::with_robots(&["/good", "/good?2", "/good?3"], true).await;
    let copy = Destination::directory();
    let begun = Instant::now();
    let run = copy.sync_with(&source.list(), &words(LIMITS));
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(source.drips(), 1, "it was asked for once: {run}");
    assert_eq!(copy.file(&source.uri("/good")).as_deref(), Some(&b"good"[..]), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_by_drips_ends_a_run_with_the_reason() {
    let source = Endless::start(&[]).await;
    let copy = Destination::directory();
    let begun = Instant::now();
    let run = copy.sync_with(&source.uri("/drip.xml"), &words("--body-timeout 300ms --retries 0"));
    assert_ne!(run.exit, Some(0), "{run}");
    let discovered = Run::of(thresher().args([
        "discover",
        &source.uri("/drip.xml"),
        "--body-timeout",
        "300ms",
        "--retries",
        "0",
    ]));
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert!(run.stderr.contains("comes too slowly"), "{run}");
    assert!(discovered.exit.is_some(), "{discovered}");
}

#[tokio::test(flavor = "multi_thread")]
async fn inspect_takes_no_more_of_a_package_than_it_is_told_and_leaves_no_file() {
    let source = Endless::start(&[]).await;
    for (path, options, says) in [
        ("/endless.zip", "--max-size 1MiB", ["is larger than allowed", "--max-size"]),
        ("/drip.zip", "--body-timeout 300ms --retries 0", ["comes too slowly", "--body-timeout"]),
        ("/endless.xml", "--max-size 1MiB", ["", ""]),
        ("/drip.xml", "--body-timeout 300ms --retries 0", ["comes too slowly", "--body-timeout"]),
    ] {
        let temporary = TempDir::with_prefix("inspect-").expect("a temporary directory");
        let mut command = thresher();
        command.arg("inspect").arg(source.uri(path)).args(words(options)).env("TMPDIR", temporary.path());
        let begun = Instant::now();
        let run = Run::of(&mut command);
        assert!(begun.elapsed() < SOON, "{path}: {:?}", begun.elapsed());
        assert_ne!(run.exit, Some(0), "{run}");
        let run = run.says(&says);
        assert_eq!(bytes_below(temporary.path()), 0, "{path}: {run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_drips_at_many_origins_leaves_a_fetcher_to_the_others() {
    let mut origins = Vec::new();
    for _ in 0..4 {
        origins.push(Endless::start(&[]).await);
    }
    let drips: Vec<String> = origins.iter().map(|origin| origin.uri("/drip")).collect();
    let slow = Endless::start(&drips.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let honest = Endless::start(&["/good"]).await;
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let _stages = fleet.start(&["scheduler", "verifier"], "");
    let _fetcher = fleet.start(&["fetcher"], "fetcher: {max_concurrent_jobs: 2}");
    fleet.add(&slow.list(), &[]);
    fleet.run("submit", &slow.list(), &[]).exits(0);
    let dripping = || origins.iter().map(Endless::drips).sum::<usize>();
    until("the slow Source has a job in hand", || dripping() >= 1).await;
    fleet.add(&honest.list(), &[]);
    fleet.harvest(&honest.list()).await.exits(0);
    assert_eq!(dripping(), 1, "the slow Source has half of the places");
    assert!(fleet.destination().present().contains_key(&honest.uri("/good")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_keeps_to_the_largest_resource_of_a_source() {
    let source = Endless::start(&["/endless", "/good"]).await;
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let _all = fleet.start(&[], "");
    fleet.add(&source.list(), &["--max-size", "200KB"]);
    let run = fleet.harvest(&source.list()).await.exits(1);
    assert_eq!(run.json()["counters"]["failed"], 1, "{run}");
    assert_eq!(fleet.destination().state(&source.uri("/good")).as_deref(), Some("present"));
    assert!(!fleet.destination().present().contains_key(&source.uri("/endless")));
}
