//! Packages received in several parallel ranges: within the origin's limit, never mixed, and never more than a part
//! ahead of what is kept.

use std::sync::Arc;
use std::time::Duration;

use crate::common::package_job;
use bus::{Bus, ConsumerSpec, Filter, MemoryBus, Queue};
use fetcher::{Fetcher, FetcherConfig};
use fixity::Computed;
use model::{Declaration, Location, PackageJob, PackageOutcome, PackageResult, Seq, SystemClock};
use store::Store;
use testkit::files::{Asked, File, FileServer, Ranges};
use testkit::waiting::{found, until};
use tokio_util::sync::CancellationToken;
use web::{Client, RobotsPolicy, WebConfig};

const MIB: usize = 1024 * 1024;
const PART: usize = 8 * MIB;

/// A server, a bus whose origin queue has this limit, and a store that outlives its fetchers.
struct Case {
    server: FileServer,
    bus: Arc<MemoryBus>,
    store: Store,
    web: WebConfig,
}

impl Case {
    async fn new(limit: usize) -> Self {
        let server = FileServer::start().await.expect("a free port on loopback");
        let bus = Arc::new(MemoryBus::new(100));
        bus.open(spec(&server, limit)).await.expect("a bus in memory");
        Self { server, bus, store: Store::in_memory(), web: WebConfig::default() }
    }

    /// A fetcher as another process would have it.
    fn fetcher(&self) -> Fetcher {
        let client = Client::new(self.web.clone()).expect("a client");
        let store = self.store.clone();
        let bus = Arc::clone(&self.bus);
        Fetcher::new(client, store, bus, Arc::new(SystemClock), FetcherConfig::default())
    }

    async fn fetch(&self, job: PackageJob) -> PackageOutcome {
        self.fetcher().fetch_package(job).await.expect("a store in memory does not fail")
    }

    async fn assert_stored(&self, outcome: &PackageOutcome, body: &[u8]) {
        let PackageResult::Stored(stored) = &outcome.result else { panic!("not stored: {outcome:?}") };
        assert_eq!(stored.computed, Computed::of(body));
        let Location::Package { offset: 0, stored_length, .. } = stored.location else {
            panic!("no package of its own: {:?}", stored.location)
        };
        let reader = self.store.range_reader(&stored.location, stored_length);
        assert!(reader.read_at(0, body.len()).await.expect("what was stored can be read") == body);
        // A request that is dropped before its response is not counted.
        let asked = self.server.asked().len() as u64;
        assert!((1..=asked).contains(&outcome.requests), "{} of {asked} requests", outcome.requests);
    }

    /// Waits until the server has sent everything that it may, then kills the fetcher.
    async fn killed_after(&self, job: PackageJob, bytes: usize) {
        self.server.wait_for(4);
        self.server.allow(Some(bytes as u64));
        let fetcher = self.fetcher();
        let fetching = tokio::spawn(async move { fetcher.fetch_package(job).await });
        until("the server has sent what it may", || self.server.sent() == bytes as u64).await;
        fetching.abort();
        assert!(fetching.await.unwrap_err().is_cancelled());
        until("nothing is open any more", || self.server.open() == 0).await;
        self.server.allow(None);
    }
}

fn spec(server: &FileServer, limit: usize) -> ConsumerSpec {
    let origin = server.uri("").parse().expect("an origin");
    ConsumerSpec::new(Filter::Fetch(origin), limit, Duration::from_secs(60), 5)
}

fn job(uri: &str, seq: u64, declared: Option<usize>) -> PackageJob {
    let declaration = Declaration { length: declared.map(|length| length as u64), ..Declaration::default() };
    PackageJob { seq: Seq::new(seq), declaration, ..package_job(uri) }
}

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n / 7 % 251) as u8 ^ (n >> 20) as u8).collect()
}

/// The range of each request, sorted by start; none for the whole.
fn asked(server: &FileServer) -> Vec<(usize, Option<usize>)> {
    let read = |asked: Asked| {
        let range = asked.range?;
        let (from, last) = range.strip_prefix("bytes=")?.split_once('-')?;
        Some((from.parse().ok()?, last.parse().ok().map(|last: usize| last + 1)))
    };
    let mut ranges: Vec<_> = server.asked().into_iter().filter_map(read).collect();
    ranges.sort_unstable();
    ranges
}

#[tokio::test]
async fn as_many_ranges_as_can_be_spared_bring_a_package_and_each_byte_is_asked_for_once() {
    for (limit, expected, spare) in [(1, 1, 0), (2, 1, 0), (3, 2, 1), (4, 3, 2), (20, 4, 7)] {
        let case = Case::new(limit).await;
        let body = body(3 * PART + 5 * MIB + 7);
        case.server.wait_for(expected);
        let uri = case.server.serve("/a", File::new(body.clone(), "\"v1\""));
        let outcome = case.fetch(job(&uri, 1, Some(body.len()))).await;
        case.assert_stored(&outcome, &body).await;
        assert_eq!(case.server.most_open(), expected, "with a limit of {limit}");
        assert_eq!(outcome.requests, case.server.asked().len() as u64);
        if expected > 1 {
            let ranges = asked(&case.server);
            assert_eq!((ranges[0].0, ranges.last().unwrap().1), (0, Some(body.len())));
            assert!(ranges.windows(2).all(|pair| pair[0].1 == Some(pair[1].0)), "{ranges:?}");
        } else {
            assert_eq!(case.server.asked().len(), 1, "one request brings all");
        }
        // A request that is no longer counted as open leaves its permit free.
        let origin = job(&uri, 1, None).origin;
        let mut free = Vec::new();
        while let Some(place) = case.bus.try_acquire_spare(&origin).await.unwrap() {
            free.push(place);
        }
        assert_eq!(free.len(), spare, "all places are given back");
    }
}

#[tokio::test]
async fn a_package_whose_length_nobody_declared_is_spread_as_soon_as_the_server_tells() {
    let case = Case::new(4).await;
    let body = body(3 * PART);
    case.server.wait_for(3);
    let uri = case.server.serve("/a", File::new(body.clone(), "\"v1\""));
    let outcome = case.fetch(job(&uri, 1, None)).await;
    case.assert_stored(&outcome, &body).await;
    assert_eq!(case.server.asked()[0].range, None);
    // A package no longer than a part is not divided, nor is one of another length than declared.
    let uri = case.server.serve("/small", File::new(body[..PART].to_vec(), "\"v1\""));
    let before = case.server.asked().len();
    for (seq, declared) in [(2, Some(PART)), (3, None)] {
        case.fetch(job(&uri, seq, declared)).await;
    }
    assert_eq!(case.server.asked().len() - before, 2);
}

#[tokio::test]
async fn jobs_and_ranges_together_keep_to_the_limit_and_everybody_has_a_turn() {
    const LIMIT: usize = 4;
    const PACKAGES: usize = 6;
    let case = Case::new(LIMIT).await;
    let body = body(2 * PART + MIB);
    for n in 0..PACKAGES {
        let uri = case.server.serve(&format!("/{n}"), File::new(body.clone(), "\"v1\""));
        let job = job(&uri, n as u64, Some(body.len()));
        let queue = Queue::Fetch { origin: job.origin.clone(), source: job.source.clone() };
        bus::send(&*case.bus, queue, job.id, Arc::new(job)).await.unwrap();
    }
    let outcomes = Filter::Outcomes("case".parse().unwrap());
    case.bus.open(ConsumerSpec::new(outcomes.clone(), 100, Duration::from_secs(60), 5)).await.unwrap();
    let stop = CancellationToken::new();
    let fetcher = case.fetcher();
    let worker =
        bus::worker::Worker::new(Arc::clone(&case.bus) as Arc<dyn Bus>, move |message: bus::Message| {
            let fetcher = fetcher.clone();
            async move { fetcher.work(message.payload).await }
        });
    let stopped = stop.clone();
    let working = tokio::spawn(async move { worker.run_origins(stopped).await });
    let mut done = 0;
    while done < PACKAGES {
        for delivery in case.bus.pull(&outcomes, 10, Duration::from_secs(60)).await.unwrap() {
            let outcome: PackageOutcome = Arc::unwrap_or_clone(delivery.payload.read().unwrap());
            assert!(matches!(outcome.result, PackageResult::Stored(_)), "{outcome:?}");
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
async fn a_server_that_gives_no_ranges_is_asked_once_for_the_whole() {
    for (ranges, declared) in [(Ranges::Unknown, true), (Ranges::Unknown, false), (Ranges::Ignored, true)] {
        let case = Case::new(4).await;
        let body = body(3 * PART);
        let uri = case.server.serve("/a", File::new(body.clone(), "\"v1\"").with(ranges));
        let outcome = case.fetch(job(&uri, 1, declared.then_some(body.len()))).await;
        case.assert_stored(&outcome, &body).await;
        assert_eq!(case.server.asked().len(), 1, "{ranges:?}");
    }
    // This server announces ranges.
    let case = Case::new(4).await;
    let body = body(3 * PART);
    let uri = case.server.serve("/a", File::new(body.clone(), "\"v1\"").with(Ranges::Ignored));
    let outcome = case.fetch(job(&uri, 1, None)).await;
    case.assert_stored(&outcome, &body).await;
    assert!(case.server.asked().iter().all(|asked| asked.status == 200));
    assert!(case.server.asked().len() <= 3, "it is asked for several ranges once");
}

#[tokio::test]
async fn without_a_strong_validator_nothing_is_put_together() {
    let case = Case::new(4).await;
    let body = body(3 * PART);
    let uri = case.server.serve("/a", File::new(body.clone(), "W/\"v1\""));
    let outcome = case.fetch(job(&uri, 1, Some(body.len()))).await;
    case.assert_stored(&outcome, &body).await;
    let ranges: Vec<_> = case.server.asked().into_iter().map(|asked| asked.range.is_some()).collect();
    assert_eq!(ranges, [true, false], "once it is tried, then the whole is asked for");
}

#[tokio::test]
async fn pieces_that_are_not_what_was_asked_for_are_not_taken() {
    for ranges in [Ranges::Short, Ranges::Misaligned] {
        for declared in [true, false] {
            let case = Case::new(4).await;
            let body = body(3 * PART);
            let uri = case.server.serve("/a", File::new(body.clone(), "\"v1\"").with(ranges));
            let outcome = case.fetch(job(&uri, 1, declared.then_some(body.len()))).await;
            case.assert_stored(&outcome, &body).await;
        }
    }
}

#[tokio::test]
async fn a_package_that_changes_in_the_middle_is_begun_anew_and_never_mixed() {
    for stop in [MIB, PART - 1, PART + 3 * MIB, 2 * PART + 4 * MIB] {
        let case = Case::new(4).await;
        let old = body(4 * PART);
        let new = vec![7; 3 * PART + 5];
        let uri = case.server.serve("/a", File::new(old.clone(), "\"v1\""));
        case.server.allow(Some(stop as u64));
        let fetcher = case.fetcher();
        let job = job(&uri, 1, Some(old.len()));
        let fetching = tokio::spawn(async move { fetcher.fetch_package(job).await });
        until("it stands still", || case.server.sent() == stop as u64).await;
        case.server.serve("/a", File::new(new.clone(), "\"v2\""));
        case.server.allow(None);
        let outcome = fetching.await.unwrap().unwrap();
        case.assert_stored(&outcome, &new).await;
        let PackageResult::Stored(stored) = outcome.result else { unreachable!() };
        assert_eq!(stored.validators.etag.as_deref(), Some("\"v2\""));
    }
}

#[tokio::test]
async fn a_server_that_never_says_the_same_of_a_version_is_asked_for_the_whole_in_the_end() {
    for declared in [true, false] {
        let case = Case::new(4).await;
        let body = body(3 * PART);
        let uri = case.server.serve("/a", File::new(body.clone(), "").with(Ranges::Restless));
        let outcome = case.fetch(job(&uri, 1, declared.then_some(body.len()))).await;
        case.assert_stored(&outcome, &body).await;
        assert!(case.server.asked().len() <= 4, "{:?}", case.server.asked());
    }
}

#[tokio::test]
async fn a_killed_fetcher_costs_less_than_a_part_however_many_ranges_are_open() {
    for stop in [MIB, PART - 1, PART + 3 * MIB, 2 * PART + 7 * MIB] {
        let case = Case::new(20).await;
        let body = body(4 * PART + 9);
        let uri = case.server.serve("/a", File::new(body.clone(), "\"v1\""));
        case.killed_after(job(&uri, 1, Some(body.len())), stop).await;
        assert_eq!(case.server.most_open(), 4);
        let killed = asked(&case.server);
        let outcome = case.fetch(job(&uri, 1, Some(body.len()))).await;
        let PackageResult::Stored(stored) = outcome.result else { panic!("not stored: {outcome:?}") };
        assert_eq!(stored.computed, Computed::of(&body));
        let again = case.server.sent() - body.len() as u64;
        assert!(again < PART as u64, "{again} bytes were asked for again after {stop}");
        // Complete parts are not requested again.
        let resumed = asked(&case.server).len() - killed.len();
        let parts = (body.len() - stop / PART * PART).div_ceil(PART);
        assert!(resumed <= parts * 4, "{resumed} requests for {parts} parts");
    }
}

#[tokio::test]
async fn an_origin_that_refuses_several_requests_at_a_time_is_asked_one_by_one_for_a_while() {
    let case = Case::new(20).await;
    let body = body(3 * PART);
    let file = File::new(body.clone(), "\"v1\"").with(Ranges::Refused { beyond: 1 });
    case.server.serve("/a", file.clone());
    // So that the second request finds the first one open.
    case.server.allow(Some(MIB as u64));
    let fetcher = case.fetcher();
    let first = fetcher.clone();
    let uri = case.server.uri("/a");
    let job_at = job(&uri, 1, Some(body.len()));
    let fetching = tokio::spawn(async move { first.fetch_package(job_at).await });
    until("another range was refused", || case.server.asked().iter().any(|asked| asked.status == 429)).await;
    case.server.allow(None);
    let outcome = fetching.await.unwrap().unwrap();
    case.assert_stored(&outcome, &body).await;

    let before = case.server.asked().len();
    case.server.serve("/b", file);
    let uri = case.server.uri("/b");
    let outcome = fetcher.fetch_package(job(&uri, 2, Some(body.len()))).await.unwrap();
    assert!(matches!(outcome.result, PackageResult::Stored(_)), "{outcome:?}");
    assert_eq!(case.server.asked().len() - before, 1);
}

#[tokio::test]
async fn what_came_beside_a_range_that_was_refused_is_not_asked_for_again() {
    let case = Case::new(20).await;
    let body = body(3 * PART);
    let file = File::new(body.clone(), "\"v1\"").with(Ranges::RefusedAt { first: PART / 4 });
    let uri = case.server.serve("/a", file);
    // The leading range and two after the refused one are open, and have received more than the leading one.
    case.server.wait_for(3);
    case.server.allow(Some((PART / 4 + MIB) as u64));
    let fetcher = case.fetcher();
    let job = job(&uri, 1, Some(body.len()));
    let fetching = tokio::spawn(async move { fetcher.fetch_package(job).await });
    let refused = || case.server.asked().iter().any(|asked| asked.status == 429);
    until("one was refused, and others came", || refused() && case.server.sent() >= (PART / 4 + MIB) as u64)
        .await;
    case.server.allow(None);
    let outcome = fetching.await.unwrap().unwrap();
    case.assert_stored(&outcome, &body).await;
    assert_eq!(case.server.sent(), body.len() as u64);
    let quarter = |n| (n * PART / 4, Some((n + 1) * PART / 4));
    let expected = [quarter(0), quarter(1), quarter(1), quarter(2), quarter(3), (PART, None)];
    assert_eq!(asked(&case.server), expected);
}

#[tokio::test]
async fn where_the_leading_range_is_the_one_that_is_refused_the_package_comes_all_the_same() {
    let case = Case::new(20).await;
    let body = body(4 * PART);
    let file = File::new(body.clone(), "\"v1\"");
    let uri = case.server.serve("/a", file.clone());
    case.killed_after(job(&uri, 1, Some(body.len())), PART + MIB).await;
    // From now on, only the first of the next part's ranges is served, whichever that is.
    case.server.serve("/a", file.with(Ranges::Refused { beyond: 1 }));
    let outcome = case.fetch(job(&uri, 1, Some(body.len()))).await;
    let PackageResult::Stored(stored) = &outcome.result else { panic!("not stored: {outcome:?}") };
    assert_eq!(stored.computed, Computed::of(&body));
}

#[tokio::test]
async fn an_origin_that_wants_space_between_requests_is_asked_once() {
    let mut case = Case::new(20).await;
    case.web.robots = RobotsPolicy::links_only();
    case.server.serve("/robots.txt", File::new("User-agent: *\nCrawl-delay: 1\n", "\"r\""));
    let body = body(3 * PART);
    let uri = case.server.serve("/a", File::new(body.clone(), "\"v1\""));
    let outcome = case.fetch(job(&uri, 1, Some(body.len()))).await;
    case.assert_stored(&outcome, &body).await;
    let asked = case.server.asked();
    assert_eq!(asked.iter().filter(|asked| asked.path == "/a").count(), 1);

    let mut case = Case::new(20).await;
    case.web.requests_per_second = std::num::NonZeroU32::new(2);
    let uri = case.server.serve("/a", File::new(body.clone(), "\"v1\""));
    let outcome = case.fetch(job(&uri, 1, Some(body.len()))).await;
    case.assert_stored(&outcome, &body).await;
    assert_eq!(case.server.asked().len(), 1);
}

#[tokio::test]
async fn a_server_that_sends_the_whole_after_all_leaves_the_places_to_others() {
    let case = Case::new(4).await;
    let body = body(3 * PART);
    let uri = case.server.serve("/a", File::new(body.clone(), "\"v1\"").with(Ranges::Unknown));
    case.server.allow(Some(MIB as u64));
    let job = job(&uri, 1, Some(body.len()));
    let fetcher = case.fetcher();
    let origin = job.origin.clone();
    let fetching = tokio::spawn(async move { fetcher.fetch_package(job).await });
    until("the download stands still", || case.server.sent() == MIB as u64).await;
    let place =
        found("a place can be spared", async || case.bus.try_acquire_spare(&origin).await.unwrap()).await;
    drop(place);
    case.server.allow(None);
    let outcome = fetching.await.unwrap().unwrap();
    case.assert_stored(&outcome, &body).await;
}

#[tokio::test]
async fn a_package_with_all_that_can_be_spared_leaves_a_slot_and_gives_the_rest_back_at_its_end() {
    // The bus counts waiting jobs: a package that has all spare permits leaves a slot to the next job at once.
    let case = Case::new(4).await;
    let body = body(3 * PART);
    let uri = case.server.serve("/a", File::new(body.clone(), "\"v1\""));
    case.server.allow(Some(MIB as u64));
    let job_at = job(&uri, 1, Some(body.len()));
    let queue = Queue::Fetch { origin: job_at.origin.clone(), source: job_at.source.clone() };
    let filter = queue.filter();
    let next = |name: &str| (queue.clone(), bus::MessageId::new(name));
    let publish = |(queue, id): (Queue, bus::MessageId)| case.bus.publish(queue, id, "".into());
    publish(next("its own")).await.unwrap();
    let own = case.bus.pull(&filter, 1, Duration::from_secs(10)).await.unwrap();
    let fetcher = case.fetcher();
    let fetching = tokio::spawn(async move { fetcher.fetch_package(job_at).await });
    until("three ranges are open", || case.server.open() == 3).await;
    publish(next("another")).await.unwrap();
    let other = case.bus.pull(&filter, 1, Duration::from_secs(10)).await.unwrap();
    assert_eq!((own.len(), other.len()), (1, 1));
    publish(next("one more")).await.unwrap();
    assert!(case.bus.pull(&filter, 1, Duration::ZERO).await.unwrap().is_empty(), "all four are taken");
    case.server.allow(None);
    let outcome = fetching.await.unwrap().unwrap();
    case.assert_stored(&outcome, &body).await;
    // A slot is free again before any job has ended: the permits of the package were released.
    assert_eq!(case.bus.pull(&filter, 1, Duration::from_secs(10)).await.unwrap().len(), 1);
    for delivery in own.into_iter().chain(other) {
        delivery.ack().await.unwrap();
    }
}
