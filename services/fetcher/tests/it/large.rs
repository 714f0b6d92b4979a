//! Large resources: received in parts that another fetcher continues, in parallel ranges within the origin's limit, and
//! never mixed from two versions.

use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, ConsumerSpec, Filter, HandlerResult, MemoryBus, Payload, Queue};
use fetcher::{Fetcher, FetcherConfig};
use fixity::{Computed, Digest, Sha256};
use model::{
    Declaration, FetchItem, FetchJob, FetchedResult, JobId, Location, Origin, RunId, Seq, StoredBitstream,
    SystemClock, Terms, Validators, VerifyJob,
};
use store::{Store, StoreOptions, StoreTarget};
use testkit::files::{File, FileServer, Ranges};
use testkit::waiting::{found, until};
use tokio_util::sync::CancellationToken;
use web::{Client, RobotsPolicy, WebConfig};

mod broken;
mod kept;
mod slow;

const MIB: usize = 1024 * 1024;
/// Bytes of a part that is stored, and of a range here.
const PART: usize = 8 * MIB;
const RANGE: usize = MIB;
/// A `Last-Modified`.
const SECOND: &str = "Fri, 02 Jan 2026 03:04:05 GMT";

/// A server, a bus whose origin queue has this limit, and a store that outlives its fetchers.
struct Case {
    server: FileServer,
    bus: Arc<MemoryBus>,
    store: Store,
    web: WebConfig,
    /// What a list declares.
    digests: Vec<Digest>,
    range_bytes: usize,
    stop: CancellationToken,
}

impl Case {
    async fn new(limit: usize) -> Self {
        let server = FileServer::start().await.expect("a free port on loopback");
        let bus = Arc::new(MemoryBus::new(100));
        let origin = server.uri("").parse().expect("an origin");
        let spec = ConsumerSpec::new(Filter::Fetch(origin), limit, Duration::from_secs(60), 5);
        bus.open(spec).await.expect("a bus in memory");
        let stop = CancellationToken::new();
        let store = Store::in_memory();
        // The bus alone limits requests here.
        let web = WebConfig { per_origin: 20, ..WebConfig::default() };
        Self { server, bus, store, web, digests: Vec::new(), range_bytes: RANGE, stop }
    }

    /// A fetcher as another process would have it.
    fn fetcher(&self) -> Fetcher {
        self.fetcher_over(Client::new(self.web.clone()).expect("a client"))
    }

    /// A fetcher that requests through `client`.
    fn fetcher_over(&self, client: Client) -> Fetcher {
        let config = FetcherConfig {
            large_body_bytes: 3 * MIB as u64,
            range_bytes: self.range_bytes as u64,
            ..FetcherConfig::default()
        };
        let bus = Arc::clone(&self.bus);
        Fetcher::new(client, self.store.clone(), bus, Arc::new(SystemClock), config)
            .stopped_by(self.stop.clone())
    }

    fn job(&self, path: &str, length: usize) -> FetchJob {
        let uri: model::ResourceUri = self.server.uri(path).parse().expect("an http URI");
        let origin = Origin::of(&uri.to_url()).expect("a URL with a host");
        let item = FetchItem {
            uri,
            seq: Seq::new(7),
            declaration: Declaration {
                length: Some(length as u64),
                digests: self.digests.clone(),
                ..Declaration::default()
            },
            listed_until: None,
            held: Validators::default(),
            repair: false,
            held_type: None,
            from: None,
            patch: None,
        };
        let source = "case".parse().expect("a source id");
        let items = vec![item];
        FetchJob { id: JobId::fresh(), source, run: RunId::fresh(), origin, terms: Terms::default(), items }
    }

    async fn fetch(&self, path: &str, length: usize) -> VerifyJob {
        let job = self.job(path, length);
        self.fetcher().fetch(&job).await.expect("a store in memory does not fail")
    }

    /// Starts a job that goes on until the server has sent this many bytes, and stands still.
    async fn begun(&self, path: &str, length: usize, bytes: usize) -> tokio::task::JoinHandle<VerifyJob> {
        self.server.allow(Some(bytes as u64));
        let fetching = self.begin(path, length);
        until("the server has sent what it may", || self.server.sent() == bytes as u64).await;
        fetching
    }

    /// Starts a job.
    fn begin(&self, path: &str, length: usize) -> tokio::task::JoinHandle<VerifyJob> {
        let (fetcher, job) = (self.fetcher(), self.job(path, length));
        tokio::spawn(async move { fetcher.fetch(&job).await.expect("no failure") })
    }

    /// Waits until the note of a stored part is written.
    async fn has_a_part(&self) {
        let source = "case".parse().expect("a source id");
        let noted = async || {
            let left = self.store.uploads_left(&source).await.expect("a store in memory does not fail");
            (!left.is_empty()).then_some(())
        };
        found("a part is stored", noted).await;
    }

    async fn assert_stored(&self, done: &VerifyJob, body: &[u8]) -> StoredBitstream {
        let FetchedResult::Stored(stored) = &done.items[0].result else { panic!("not stored: {done:?}") };
        assert_eq!(stored.computed, Computed::of(body));
        let bytes = self.store.range_reader(&stored.location, body.len() as u64);
        assert!(bytes.read_at(0, body.len()).await.expect("what was stored can be read") == body);
        StoredBitstream::clone(stored)
    }

    fn ranges(&self) -> Vec<Option<String>> {
        self.server.asked().into_iter().map(|asked| asked.range).collect()
    }

    /// The first byte of each request, in their order.
    fn begins(&self) -> Vec<usize> {
        let first = |range: &str| range.strip_prefix("bytes=")?.split_once('-')?.0.parse().ok();
        self.ranges().iter().map(|range| range.as_deref().and_then(first).unwrap_or(0)).collect()
    }
}

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n / 7 % 251) as u8 ^ (n >> 20) as u8).collect()
}

#[tokio::test]
async fn as_many_ranges_as_can_be_spared_bring_it_and_each_byte_comes_once() {
    for (limit, expected) in [(1, 1), (2, 1), (3, 2), (4, 3), (20, 8)] {
        let case = Case::new(limit).await;
        let body = body(10 * MIB + 7);
        case.server.wait_for(expected);
        case.server.serve("/a", File::new(body.clone(), "\"v1\""));
        let done = case.fetch("/a", body.len()).await;
        let stored = case.assert_stored(&done, &body).await;
        assert_eq!(stored.validators.etag.as_deref(), Some("\"v1\""));
        assert_eq!(case.server.most_open(), expected, "with a limit of {limit}");
        assert_eq!(case.server.sent(), body.len() as u64);
        assert_eq!(done.requests, case.server.asked().len() as u64);
        assert_eq!(done.requests == 1, expected == 1, "without company, one request brings all");
        // All permits are returned.
        let origin = case.job("/a", 1).origin;
        let mut spare = Vec::new();
        while let Some(permit) = case.bus.try_acquire_spare(&origin).await.unwrap() {
            spare.push(permit);
        }
        assert_eq!(spare.len(), expected - 1);
    }
}

#[tokio::test]
async fn jobs_and_ranges_together_keep_to_the_limit() {
    const LIMIT: usize = 5;
    let case = Case::new(LIMIT).await;
    let body = body(6 * MIB);
    let filter = Filter::Verify;
    case.bus.open(ConsumerSpec::new(filter.clone(), 100, Duration::from_secs(60), 5)).await.unwrap();
    for n in 0..8 {
        case.server.serve(&format!("/{n}"), File::new(body.clone(), "\"v1\""));
        let mut job = case.job(&format!("/{n}"), body.len());
        job.items[0].seq = Seq::new(n);
        let queue = Queue::Fetch { origin: job.origin.clone(), source: job.source.clone() };
        bus::send(&*case.bus, queue, job.id, Arc::new(job)).await.unwrap();
    }
    let fetcher = case.fetcher();
    let handler = move |message: bus::Message| {
        let fetcher = fetcher.clone();
        async move { fetcher.work(message.payload).await }
    };
    let worker = bus::worker::Worker::new(Arc::clone(&case.bus) as Arc<dyn Bus>, handler);
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let working = tokio::spawn(async move { worker.run_origins(stopped).await });
    let mut done = 0;
    while done < 8 {
        for delivery in case.bus.pull(&filter, 10, Duration::from_secs(60)).await.unwrap() {
            let job = delivery.payload.read::<VerifyJob>().unwrap();
            case.assert_stored(&job, &body).await;
            delivery.ack().await.unwrap();
            done += 1;
        }
    }
    stop.cancel();
    working.await.unwrap().unwrap();
    let most = case.server.most_open();
    assert!(most <= LIMIT, "{most} open at a time with a limit of {LIMIT}");
}

#[tokio::test]
async fn a_killed_fetcher_costs_less_than_a_part_and_another_goes_on_behind_the_last_one() {
    let case = Case::new(1).await;
    let body = body(2 * PART + 5 * MIB);
    case.server.serve("/a", File::new(body.clone(), "\"v1\""));
    let fetching = case.begun("/a", body.len(), PART + 3 * MIB).await;
    case.has_a_part().await;
    fetching.abort();
    assert!(fetching.await.unwrap_err().is_cancelled());
    until("nothing is open any more", || case.server.open() == 0).await;
    case.server.allow(None);
    let done = case.fetch("/a", body.len()).await;
    case.assert_stored(&done, &body).await;
    assert_eq!(case.ranges(), [None, Some(format!("bytes={PART}-"))]);
}

#[tokio::test]
async fn a_fetcher_that_stops_keeps_what_came_and_the_resource_comes_back_as_deferred() {
    let mut case = Case::new(1).await;
    let body = body(PART + 5 * MIB);
    case.server.serve("/a", File::new(body.clone(), "\"v1\""));
    let sent = PART + 3 * MIB + 64 * 1024;
    let fetching = case.begun("/a", body.len(), sent).await;
    case.has_a_part().await;
    case.stop.cancel();
    let done = fetching.await.unwrap();
    assert_eq!(done.items[0].result, FetchedResult::Deferred);
    case.stop = CancellationToken::new();
    case.server.allow(None);
    let done = case.fetch("/a", body.len()).await;
    case.assert_stored(&done, &body).await;
    let ranges = case.ranges();
    let from = ranges[1].as_deref().and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-'));
    let from: usize = from.expect("the rest is requested").parse().unwrap();
    assert!(from >= PART && from <= sent, "{ranges:?}");
}

#[tokio::test]
async fn a_server_without_ranges_is_asked_for_the_whole() {
    for ranges in [Ranges::Unknown, Ranges::Ignored] {
        let case = Case::new(20).await;
        let body = body(9 * MIB);
        case.server.serve("/a", File::new(body.clone(), "\"v1\"").with(ranges));
        let done = case.fetch("/a", body.len()).await;
        case.assert_stored(&done, &body).await;
        assert_eq!(case.server.asked().len(), 1, "{ranges:?}");
    }
}

#[tokio::test]
async fn a_server_that_says_it_has_ranges_and_resumes_nothing_is_asked_for_the_whole_in_the_end() {
    let mut case = Case::new(1).await;
    let body = body(9 * MIB);
    case.server.serve("/a", File::new(body.clone(), "\"v1\"").with(Ranges::Ignored));
    let fetching = case.begun("/a", body.len(), 2 * MIB).await;
    case.stop.cancel();
    assert_eq!(fetching.await.unwrap().items[0].result, FetchedResult::Deferred);
    case.stop = CancellationToken::new();
    case.server.allow(None);
    let done = case.fetch("/a", body.len()).await;
    case.assert_stored(&done, &body).await;
}

#[tokio::test]
async fn without_a_strong_validator_nothing_is_put_together() {
    let case = Case::new(20).await;
    let body = body(9 * MIB);
    case.server.serve("/a", File::new(body.clone(), "W/\"v1\""));
    let done = case.fetch("/a", body.len()).await;
    case.assert_stored(&done, &body).await;
    let asked: Vec<_> = case.ranges().into_iter().map(|range| range.is_some()).collect();
    assert_eq!(asked, [true, false], "a range is tried once, then the whole is requested");
}

#[tokio::test]
async fn two_versions_of_one_second_are_never_mixed() {
    let case = Case::new(20).await;
    let (old, new) = (body(12 * MIB), vec![7; 12 * MIB]);
    case.server.serve("/a", File::dated(old.clone(), SECOND));
    let fetching = case.begun("/a", new.len(), 2 * MIB + MIB / 2).await;
    case.server.serve("/a", File::dated(new.clone(), SECOND));
    case.server.allow(None);
    let done = fetching.await.unwrap();
    let FetchedResult::Stored(stored) = &done.items[0].result else { panic!("not stored: {done:?}") };
    assert!([old, new].iter().any(|body| stored.computed == Computed::of(body)), "{:?}", case.ranges());
}

#[tokio::test]
async fn a_version_that_has_only_a_time_is_not_continued_unless_a_digest_judges_the_whole() {
    for is_judged in [false, true] {
        let mut case = Case::new(1).await;
        let body = body(PART + 5 * MIB);
        case.digests = is_judged.then(|| Sha256::of(&body).into()).into_iter().collect();
        case.server.serve("/a", File::dated(body.clone(), SECOND));
        let fetching = case.begun("/a", body.len(), PART + 3 * MIB).await;
        if is_judged {
            case.has_a_part().await;
        }
        fetching.abort();
        let _ = fetching.await;
        until("nothing is open any more", || case.server.open() == 0).await;
        case.server.allow(None);
        let done = case.fetch("/a", body.len()).await;
        case.assert_stored(&done, &body).await;
        let rest = is_judged.then(|| format!("bytes={PART}-"));
        assert_eq!(case.ranges(), [None, rest]);
    }
}

#[tokio::test]
async fn ranges_that_are_not_what_was_asked_for_are_not_taken() {
    for ranges in [Ranges::Short, Ranges::Misaligned, Ranges::Restless] {
        let case = Case::new(20).await;
        let body = body(9 * MIB);
        case.server.serve("/a", File::new(body.clone(), "\"v1\"").with(ranges));
        let done = case.fetch("/a", body.len()).await;
        case.assert_stored(&done, &body).await;
        // A first one, as many as may be open, and the rest in one.
        assert!(case.server.asked().len() <= 10, "{ranges:?}: {:?}", case.ranges());
    }
}

#[tokio::test]
async fn a_resource_that_changes_between_ranges_is_begun_anew_and_never_mixed() {
    for limit in [1, 20] {
        let case = Case::new(limit).await;
        let (old, new) = (body(12 * MIB), vec![7; 12 * MIB]);
        case.server.serve("/a", File::new(old, "\"v1\""));
        let stop = if limit == 1 { PART + 2 * MIB } else { 2 * MIB + MIB / 2 };
        let fetching = case.begun("/a", new.len(), stop).await;
        case.server.serve("/a", File::new(new.clone(), "\"v2\""));
        if limit == 1 {
            case.has_a_part().await;
            fetching.abort();
            let _ = fetching.await;
            until("nothing is open any more", || case.server.open() == 0).await;
            case.server.allow(None);
            let done = case.fetch("/a", new.len()).await;
            case.assert_stored(&done, &new).await;
        } else {
            case.server.allow(None);
            let stored = case.assert_stored(&fetching.await.unwrap(), &new).await;
            assert_eq!(stored.validators.etag.as_deref(), Some("\"v2\""));
        }
    }
}

#[tokio::test]
async fn an_origin_that_refuses_several_requests_is_asked_one_by_one_for_a_while() {
    let case = Case::new(20).await;
    let body = body(9 * MIB);
    let file = File::new(body.clone(), "\"v1\"").with(Ranges::Refused { beyond: 1 });
    case.server.serve("/a", file.clone());
    case.server.allow(Some(MIB as u64 / 2));
    let fetcher = case.fetcher();
    let (first, job) = (fetcher.clone(), case.job("/a", body.len()));
    let fetching = tokio::spawn(async move { first.fetch(&job).await.unwrap() });
    until("another range was refused", || case.server.asked().iter().any(|asked| asked.status == 429)).await;
    case.server.allow(None);
    case.assert_stored(&fetching.await.unwrap(), &body).await;
    let before = case.server.asked().len();
    case.server.serve("/b", file);
    let mut job = case.job("/b", body.len());
    job.items[0].seq = Seq::new(8);
    let done = fetcher.fetch(&job).await.unwrap();
    case.assert_stored(&done, &body).await;
    assert_eq!(case.server.asked().len() - before, 1);
}

#[tokio::test]
async fn an_origin_that_wants_space_between_requests_is_asked_once() {
    let mut case = Case::new(20).await;
    case.web.robots = RobotsPolicy::links_only();
    case.server.serve("/robots.txt", File::new("User-agent: *\nCrawl-delay: 1\n", "\"r\""));
    let body = body(9 * MIB);
    case.server.serve("/a", File::new(body.clone(), "\"v1\""));
    let done = case.fetch("/a", body.len()).await;
    case.assert_stored(&done, &body).await;
    assert_eq!(case.server.asked().iter().filter(|asked| asked.path == "/a").count(), 1);
}

#[tokio::test]
async fn a_body_of_another_length_than_declared_is_received_as_any_other() {
    let case = Case::new(20).await;
    let body = body(5 * MIB);
    case.server.serve("/a", File::new(body.clone(), "\"v1\""));
    let done = case.fetch("/a", 6 * MIB).await;
    case.assert_stored(&done, &body).await;
}

#[tokio::test]
async fn in_a_directory_it_has_the_name_of_its_content_and_in_a_bucket_no_note_is_left_once_it_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    let mut case = Case::new(20).await;
    let body = body(9 * MIB);
    case.server.serve("/a", File::new(body.clone(), "\"v1\""));
    let job = case.job("/a", body.len());
    let left = async |case: &Case| case.store.uploads_left(&job.source).await.unwrap();

    let done = case.fetch("/a", body.len()).await;
    let stored = case.assert_stored(&done, &body).await;
    assert!(matches!(stored.location, Location::Package { offset: 0, .. }), "{:?}", stored.location);
    assert_eq!(left(&case).await.len(), 1, "a job that is repeated finds it");
    let before = case.server.asked().len();
    let payload = Payload::of(Arc::new(job.clone()));
    assert!(matches!(case.fetcher().work(payload).await, HandlerResult::Done), "it is sent");
    assert_eq!(case.server.asked().len(), before, "it was found");
    assert!(left(&case).await.is_empty());

    let target: StoreTarget = directory.path().to_str().unwrap().parse().unwrap();
    case.store = Store::open(&target, StoreOptions::default()).await.unwrap();
    let done = case.fetch("/a", body.len()).await;
    let stored = case.assert_stored(&done, &body).await;
    assert_eq!(stored.location, Location::Object { sha256: stored.computed.sha256() });
    assert!(left(&case).await.is_empty());
}
