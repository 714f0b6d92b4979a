//! Packages, over real HTTP: what a server may do to a long download, and which bytes are kept.

use std::sync::Arc;
use std::time::Duration;

use crate::common::package_job as job;
use bus::{Bus, ConsumerSpec, Filter, HandlerResult, MemoryBus};
use fetcher::{Fetcher, FetcherConfig};
use fixity::Computed;
use model::{
    Disposition, Failure, Location, PackageJob, PackageOutcome, PackageResult, ProblemReason, Seq,
    StoredBitstream, SystemClock, Terms, Validators,
};
use store::Store;
use testkit::scripted::{Recorded, Reply, ScriptedServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use web::{Client, WebConfig};

mod broken;
mod slow;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
/// A package of a server inside a test.
const AT: &str = "http://h.example/a.zip";
const PART: usize = 8 * MIB;

/// A server, and a store that outlives its fetchers.
struct Case {
    server: ScriptedServer,
    store: Store,
    config: FetcherConfig,
    stop: CancellationToken,
}

impl Case {
    async fn new() -> Self {
        let server = ScriptedServer::start().await.expect("a free port on loopback");
        let stop = CancellationToken::new();
        Self { server, store: Store::in_memory(), config: FetcherConfig::default(), stop }
    }

    /// A fetcher as another process would have it.
    fn fetcher(&self, bus: Arc<MemoryBus>) -> Fetcher {
        self.fetcher_over(Client::new(WebConfig::default()).expect("a client"), bus)
    }

    fn fetcher_over(&self, client: Client, bus: Arc<MemoryBus>) -> Fetcher {
        let clock = Arc::new(SystemClock);
        Fetcher::new(client, self.store.clone(), bus, clock, self.config.clone())
            .stopped_by(self.stop.clone())
    }

    async fn fetch(&self, job: PackageJob) -> PackageOutcome {
        let fetcher = self.fetcher(Arc::new(MemoryBus::new(4)));
        fetcher.fetch_package(job).await.expect("a store in memory does not fail")
    }

    async fn fetch_at(&self, path: &str) -> PackageOutcome {
        self.fetch(job(&self.server.uri(path))).await
    }

    async fn assert_stored(&self, outcome: PackageOutcome, body: &[u8]) -> StoredBitstream {
        let PackageResult::Stored(stored) = outcome.result else { panic!("not stored: {outcome:?}") };
        assert_eq!(stored.computed, Computed::of(body));
        let Location::Package { offset: 0, stored_length, .. } = stored.location else {
            panic!("no package of its own: {:?}", stored.location)
        };
        assert_eq!(stored_length, body.len() as u64);
        let reader = self.store.range_reader(&stored.location, stored_length);
        assert!(reader.read_at(0, body.len()).await.expect("what was stored can be read") == body);
        stored
    }
}

/// The outcome of one job.
async fn outcome(store: &Store, client: &Client) -> PackageOutcome {
    let bus = Arc::new(MemoryBus::new(4));
    let config = FetcherConfig::default();
    let fetcher = Fetcher::new(client.clone(), store.clone(), bus, Arc::new(SystemClock), config);
    fetcher.fetch_package(job(AT)).await.expect("a store in memory does not fail")
}

fn failed(outcome: PackageOutcome) -> Failure {
    match outcome.result {
        PackageResult::Failed(failure) => failure,
        other => panic!("not failed: {other:?}"),
    }
}

fn deferred(outcome: PackageOutcome) -> usize {
    match outcome.result {
        PackageResult::Deferred { received } => received as usize,
        other => panic!("not deferred: {other:?}"),
    }
}

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n / 7 % 251) as u8 ^ (n >> 20) as u8).collect()
}

fn whole(body: &[u8], etag: &str) -> Reply {
    Reply::ok(body.to_vec()).header("etag", etag).header("accept-ranges", "bytes")
}

fn rest(body: &[u8], from: usize, etag: &str) -> Reply {
    let range = format!("bytes {from}-{}/{}", body.len() - 1, body.len());
    Reply::status(206).body(body[from..].to_vec()).header("content-range", range).header("etag", etag)
}

fn ranges(requests: &[Recorded]) -> Vec<Option<&str>> {
    requests.iter().map(|request| request.header("range")).collect()
}

#[tokio::test]
async fn a_package_comes_whole_with_what_the_server_says_of_it() {
    let case = Case::new().await;
    let body = body(2 * PART + 77);
    let reply = whole(&body, "\"v1\"").header("content-type", "application/zip");
    case.server.push("/a", reply.header("last-modified", "Fri, 02 Jan 2026 03:04:05 GMT"));
    let outcome = case.fetch_at("/a").await;
    assert_eq!(outcome.requests, 1);
    let stored = case.assert_stored(outcome, &body).await;
    assert_eq!(stored.media_type.as_deref(), Some("application/zip"));
    assert_eq!(stored.validators.etag.as_deref(), Some("\"v1\""));
    assert_eq!(stored.modified, Some("2026-01-02T03:04:05Z".parse().unwrap()));

    // The job is repeated: its outcome may have been lost.
    let again = case.fetch_at("/a").await;
    assert_eq!((again.requests, again.result), (0, PackageResult::Stored(stored)));
}

#[tokio::test]
async fn what_breaks_off_is_taken_up_at_the_very_byte() {
    let case = Case::new().await;
    let body = body(300_000);
    case.server.push("/a", whole(&body, "\"v1\"").cut_after(200_000));
    case.server.push("/a", rest(&body, 200_000, "\"v1\""));
    let outcome = case.fetch_at("/a").await;
    assert_eq!(outcome.requests, 2);
    case.assert_stored(outcome, &body).await;
    let again = &case.server.requests_at("/a")[1];
    assert_eq!((again.header("range"), again.header("if-range")), (Some("bytes=200000-"), Some("\"v1\"")));
}

#[tokio::test]
async fn when_a_process_is_gone_another_goes_on_behind_its_last_part() {
    let case = Case::new().await;
    let body = body(2 * PART + 3 * MIB);
    let sent = 2 * PART + MIB;
    case.server.push("/a", whole(&body, "\"v1\"").cut_after(sent as u64));
    case.server.push("/a", rest(&body, sent, "\"v1\"").delay(Duration::from_secs(3600)));
    let fetcher = case.fetcher(Arc::new(MemoryBus::new(4)));
    let job_at = job(&case.server.uri("/a"));
    let first = tokio::spawn(async move { fetcher.fetch_package(job_at).await });
    // It is killed while it waits for the rest.
    testkit::waiting::until("it asks for the rest", || case.server.requests_at("/a").len() == 2).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());

    case.server.push("/a", rest(&body, 2 * PART, "\"v1\""));
    let outcome = case.fetch_at("/a").await;
    case.assert_stored(outcome, &body).await;
    let resumed = format!("bytes={}-", 2 * PART);
    assert_eq!(ranges(&case.server.requests_at("/a"))[2], Some(&resumed[..]));
    let twice = sent + (body.len() - 2 * PART) - body.len();
    assert!(twice < PART, "{twice} bytes came twice");
}

#[tokio::test]
async fn a_package_that_has_changed_is_begun_anew() {
    let case = Case::new().await;
    let old = body(PART + MIB);
    let new = body(PART + 9);
    let gone_on = |reply: Reply| case.server.push("/a", reply);
    gone_on(whole(&old, "\"v1\"").cut_after(PART as u64 + 5));
    gone_on(whole(&new, "\"v2\""));
    case.assert_stored(case.fetch_at("/a").await, &new).await;
    case.store.forget_upload(&"case".parse().unwrap(), Seq::new(5)).await.unwrap();

    // A server that sends the rest of another version, whatever `If-Range` says.
    let range = format!("bytes 200000-{}/{}", old.len() - 1, old.len());
    let untagged = Reply::status(206).body(vec![7_u8; old.len() - 200_000]).header("content-range", range);
    let odd = [rest(&new, 200_000, "\"v2\""), rest(&new, 200_000, "\"v1\""), untagged, Reply::status(416)];
    for odd in odd {
        gone_on(whole(&old, "\"v1\"").cut_after(200_000));
        gone_on(odd);
        gone_on(whole(&new, "\"v2\""));
        let outcome = case.fetch_at("/a").await;
        assert_eq!(outcome.requests, 3);
        case.assert_stored(outcome, &new).await;
        case.store.forget_upload(&"case".parse().unwrap(), Seq::new(5)).await.unwrap();
    }
    case.server.assert_followed();
}

#[tokio::test]
async fn of_a_server_without_ranges_a_broken_package_comes_again_from_its_beginning() {
    let case = Case::new().await;
    let body = body(300_000);
    // The server has a validator, and ignores the range.
    case.server.push("/a", Reply::ok(body.clone()).header("etag", "\"v1\"").cut_after(200_000));
    case.server.push("/a", Reply::ok(body.clone()).header("etag", "\"v1\""));
    case.assert_stored(case.fetch_at("/a").await, &body).await;

    // It has no validator: no bytes are kept, and the outcome reports none.
    case.server.push("/b", Reply::ok(body.clone()).cut_after(200_000));
    let outcome = case.fetch(PackageJob { seq: Seq::new(6), ..job(&case.server.uri("/b")) }).await;
    let failure = failed(outcome);
    assert_eq!(failure.reason, ProblemReason::Interrupted);
    case.server.push("/b", Reply::ok(body.clone()));
    let outcome = case.fetch(PackageJob { seq: Seq::new(6), ..job(&case.server.uri("/b")) }).await;
    case.assert_stored(outcome, &body).await;
    assert_eq!(ranges(&case.server.requests_at("/b")), [None, None]);
}

#[tokio::test]
async fn a_package_that_goes_forward_by_a_few_bytes_fails_and_they_are_kept() {
    let mut case = Case::new().await;
    case.config.max_resumes = 0;
    let body = body(300_000);
    case.server.push("/a", whole(&body, "\"v1\"").cut_after(200_000));
    case.server.push("/a", rest(&body, 200_000, "\"v1\"").cut_after(50_000));
    case.server.push("/a", rest(&body, 250_000, "\"v1\"").cut_after(0));
    case.server.push("/a", rest(&body, 250_000, "\"v1\""));
    for _ in 0..3 {
        assert_eq!(failed(case.fetch_at("/a").await).reason, ProblemReason::Interrupted);
    }
    case.assert_stored(case.fetch_at("/a").await, &body).await;
}

#[tokio::test]
async fn a_redirect_is_followed_each_time() {
    let case = Case::new().await;
    let body = body(300_000);
    case.server.always("/a", Reply::status(302).header("location", "/b?key=secret"));
    case.server.push("/b?key=secret", whole(&body, "\"v1\"").cut_after(200_000));
    case.server.push("/b?key=secret", rest(&body, 200_000, "\"v1\""));
    let outcome = case.fetch_at("/a").await;
    assert_eq!(outcome.requests, 4);
    let stored = case.assert_stored(outcome, &body).await;
    let final_url = stored.final_url.unwrap();
    assert!(final_url.contains("/b"), "{final_url}");
    assert_eq!(ranges(&case.server.requests_at("/b?key=secret")), [None, Some("bytes=200000-")]);
}

#[tokio::test]
async fn a_server_that_asks_for_patience_is_given_it_and_what_came_is_kept() {
    let case = Case::new().await;
    let body = body(300_000);
    case.server.push("/a", whole(&body, "\"v1\"").cut_after(200_000));
    case.server.push("/a", Reply::status(503).header("retry-after", "30"));
    let failure = failed(case.fetch_at("/a").await);
    let wait = jiff::SignedDuration::from_secs(30);
    assert_eq!(failure.disposition, Disposition::Retry { after: Some(wait) });
    case.server.push("/a", rest(&body, 200_000, "\"v1\""));
    case.assert_stored(case.fetch_at("/a").await, &body).await;
    case.server.assert_followed();
}

#[tokio::test]
async fn a_known_version_is_not_sent_again_and_one_that_is_gone_is_refused() {
    let case = Case::new().await;
    case.server.push("/a", Reply::status(304)).push("/a", Reply::status(404));
    let held = Validators { etag: Some("\"v1\"".into()), last_modified: None };
    let job_at = PackageJob { held, ..job(&case.server.uri("/a")) };
    assert_eq!(case.fetch(job_at).await.result, PackageResult::NotModified);
    assert_eq!(case.server.requests()[0].header("if-none-match"), Some("\"v1\""));
    let failure = failed(case.fetch_at("/a").await);
    assert_eq!((failure.reason, failure.disposition), (ProblemReason::HttpClientError, Disposition::Refuse));
}

#[tokio::test]
async fn a_package_beyond_the_limit_is_refused_before_it_fills_the_store() {
    let mut case = Case::new().await;
    case.config.max_package_bytes = 100_000;
    case.server.push("/a", whole(&body(100_001), "\"v1\""));
    case.server.push("/a", whole(&body(300_000), "\"v1\"").without_length());
    for _ in 0..2 {
        let failure = failed(case.fetch_at("/a").await);
        assert_eq!((failure.reason, failure.disposition), (ProblemReason::TooLarge, Disposition::Refuse));
        assert!(failure.message.contains("100000 bytes"), "{}", failure.message);
    }
    case.server.push("/a", whole(&body(100_000), "\"v1\""));
    case.assert_stored(case.fetch_at("/a").await, &body(100_000)).await;
}

/// Serves one request: the head of a response, and `sent` bytes of its body; then it stalls.
async fn stands_still(
    listener: tokio::net::TcpListener,
    head: String,
    sent: Vec<u8>,
    stop: CancellationToken,
) {
    let (mut connection, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(connection.read_u8().await.unwrap());
    }
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(&sent).await.unwrap();
    connection.flush().await.unwrap();
    stop.cancel();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn when_the_service_stops_or_the_time_is_over_nothing_that_came_is_lost() {
    let mut case = Case::new().await;
    // More than sockets buffer, so that some of it was received for certain when all is sent.
    let body = body(4 * PART);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/a", listener.local_addr().unwrap());
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"v1\"\r\nAccept-Ranges: bytes\r\n\r\n",
        body.len()
    );
    let serving =
        tokio::spawn(stands_still(listener, head, body[..3 * PART + MIB].to_vec(), case.stop.clone()));
    let received = deferred(case.fetch(job(&uri)).await);
    serving.abort();
    assert!(received > 0);

    // Its time is over before it has its turn.
    case.stop = CancellationToken::new();
    case.config.max_package_seconds = 0;
    let job_at = job(&case.server.uri("/a"));
    let client = Client::new(WebConfig::default()).unwrap();
    client.rest(&job_at.origin, Duration::from_secs(60));
    let waiting = case.fetcher_over(client, Arc::new(MemoryBus::new(4)));
    let outcome = waiting.fetch_package(job_at).await.unwrap();
    assert_eq!((outcome.requests, deferred(outcome)), (0, received));

    case.config.max_package_seconds = 60;
    case.server.push("/a", rest(&body, received, "\"v1\""));
    case.assert_stored(case.fetch_at("/a").await, &body).await;
    assert_eq!(ranges(&case.server.requests_at("/a")), [Some(&format!("bytes={received}-")[..])]);
}

#[tokio::test]
async fn a_job_on_the_queue_is_answered_among_the_outcomes() {
    let case = Case::new().await;
    case.server.push("/a", whole(b"a package", "\"v1\""));
    let bus = Arc::new(MemoryBus::new(4));
    let terms = Terms { contact: Some("mailto:partner@example.org".to_owned()), ..Terms::default() };
    let job_at = PackageJob { terms, ..job(&case.server.uri("/a")) };
    let spec = ConsumerSpec::new(Filter::Outcomes(job_at.source.clone()), 1, Duration::from_secs(60), 5);
    bus.open(spec.clone()).await.unwrap();
    let fetcher = case.fetcher(Arc::clone(&bus));
    assert_eq!(fetcher.work(model::encode(&job_at).into()).await, HandlerResult::Done);
    // The request uses the terms of its Source.
    let asked = case.server.requests().remove(0);
    assert!(asked.header("user-agent").unwrap().ends_with("(+mailto:partner@example.org)"));
    let seen = CancellationToken::new();
    let stop = seen.clone();
    let answered = bus::worker::run(bus, spec, seen, move |message| {
        let stop = stop.clone();
        async move {
            stop.cancel();
            assert_eq!(message.id.job(), Some(job_at.id));
            let outcome: PackageOutcome = Arc::unwrap_or_clone(message.payload.read().unwrap());
            assert!(matches!(outcome.result, PackageResult::Stored(_)), "{outcome:?}");
            HandlerResult::Done
        }
    });
    answered.await.unwrap();
    let odd = br#"{"kind":"package-job","version":1,"body":{}}"#;
    assert!(matches!(fetcher.work(odd.to_vec().into()).await, HandlerResult::Poison { .. }));
}
