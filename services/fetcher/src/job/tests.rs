use std::collections::BTreeSet;

use bus::{Bus as _, MemoryBus};
use model::{
    Declaration, JobId, Location, Origin, PackId, RunId, Seq, SourceId, SystemClock, Terms, Validators,
};
use service::{Metrics, ServiceInfo};
use store::{PackLimits, SharedPacks, Store};
use testkit::gated::{Gate, GatedObjects};
use testkit::scripted::{Reply, ScriptedServer};
use testkit::waiting::until;
use web::{Client, WebConfig};

use super::*;
use crate::{FetcherConfig, FetcherMetrics};

const BODIES: usize = 3;

fn source() -> SourceId {
    "case".parse().expect("a source id")
}

/// A job of some small resources, whose bodies contain its name.
fn job(server: &ScriptedServer, name: usize) -> FetchJob {
    let item = |n| {
        let path = format!("/{name}/{n}");
        server.push(&path, Reply::ok(body(name, n)));
        let uri = server.uri(&path).parse().expect("an http URI");
        let declaration = Declaration::default();
        let held = Validators::default();
        FetchItem {
            uri,
            seq: Seq::new(1),
            declaration,
            listed_until: None,
            held,
            repair: false,
            held_type: None,
            from: None,
            patch: None,
        }
    };
    let items: Vec<FetchItem> = (0..BODIES).map(item).collect();
    let origin = Origin::of(&items[0].uri.to_url()).expect("a URL with a host");
    let id = JobId::fresh();
    let run = RunId::fresh();
    let terms = Terms::default();
    FetchJob { id, source: source(), run, origin, terms, items }
}

fn body(job: usize, n: usize) -> String {
    format!("body {n} of job {job}")
}

/// A fetcher whose store waits at a gate.
fn gated() -> (Fetcher, Arc<Gate>) {
    let (objects, gate) = GatedObjects::closed();
    let store = Store::over_objects(objects, "memory", std::env::temp_dir());
    let client = Client::new(WebConfig::default()).expect("a client");
    let bus = Arc::new(MemoryBus::new(4));
    let clock = Arc::new(SystemClock);
    (Fetcher::new(client, store, bus, clock, FetcherConfig::default()), gate)
}

/// The packs with the resources of a job, each with its own bytes.
async fn packs_of(store: &Store, name: usize, done: VerifyJob) -> BTreeSet<PackId> {
    let mut packs = BTreeSet::new();
    for (n, fetched) in done.items.into_iter().enumerate() {
        let FetchedResult::Stored(stored) = fetched.result else { panic!("{:?}", fetched.result) };
        let bytes = store.read_range(&stored.location, 0..stored.computed.length()).await.unwrap();
        assert_eq!(bytes, body(name, n));
        let Location::Pack { pack, .. } = stored.location else { panic!("{:?}", stored.location) };
        packs.insert(pack);
    }
    packs
}

#[tokio::test]
async fn jobs_that_end_while_a_pack_is_stored_share_the_next_one_and_end_with_it() {
    let server = ScriptedServer::start().await.expect("a free port on loopback");
    let metrics = Metrics::new(ServiceInfo { name: "test", version: "0" });
    let (fetcher, gate) = gated();
    let fetcher = fetcher.counted(FetcherMetrics::register(&metrics));
    let begin = |name| {
        let job = job(&server, name);
        let fetcher = fetcher.clone();
        // Each uses its own terms, and all share the packs.
        tokio::spawn(async move { fetcher.on(&job.terms).expect("terms").fetch(&job).await })
    };
    let mut jobs = vec![begin(0)];
    gate.have_come(1).await;
    jobs.extend((1..=6).map(begin));
    until("all other jobs have their bodies", || fetcher.packs.waiting() == 6).await;
    assert_eq!(gate.come(), 1);
    gate.open(1);
    gate.have_come(2).await;
    assert!(jobs[1..].iter().all(|job| !job.is_finished()), "nothing is told before it is stored");
    gate.open(1);
    let mut packs = Vec::new();
    for (name, job) in jobs.into_iter().enumerate() {
        packs.push(packs_of(&fetcher.store, name, job.await.unwrap().unwrap()).await);
    }
    assert!(packs[1..].iter().all(|pack| pack.len() == 1 && *pack == packs[1]), "{packs:?}");
    assert!(packs[0].is_disjoint(&packs[1]));
    assert_eq!(gate.come(), 2);
    let said = metrics.encode();
    assert!(said.contains("thresher_fetch_jobs_per_pack_sum 7.0"), "{said}");
    assert!(said.contains("thresher_fetch_jobs_per_pack_count 2"), "{said}");
}

#[tokio::test]
async fn a_job_with_more_than_a_pack_takes_fills_several() {
    let server = ScriptedServer::start().await.expect("a free port on loopback");
    let (mut fetcher, gate) = gated();
    fetcher.packs = SharedPacks::new(fetcher.store.clone(), PackLimits { bytes: usize::MAX, members: 2 });
    gate.open(BODIES);
    let done = fetcher.fetch(&job(&server, 0)).await.unwrap();
    assert_eq!(packs_of(&fetcher.store, 0, done).await.len(), 2);
    assert_eq!(gate.come(), 2);
}

#[tokio::test]
async fn a_job_whose_pack_cannot_be_stored_fails_and_the_next_delivery_stores_it() {
    let server = ScriptedServer::start().await.expect("a free port on loopback");
    let (fetcher, gate) = gated();
    gate.refuse();
    let failed = fetcher.fetch(&job(&server, 0)).await;
    assert!(matches!(&failed, Err(error) if error.is_retryable()), "{failed:?}");
    gate.open(1);
    let done = fetcher.fetch(&job(&server, 0)).await.unwrap();
    assert_eq!(packs_of(&fetcher.store, 0, done).await.len(), 1);
}

#[tokio::test]
async fn a_job_that_is_given_back_comes_back_as_deferred_without_a_request() {
    let server = ScriptedServer::start().await.unwrap();
    let bus = Arc::new(MemoryBus::new(4));
    let client = Client::new(WebConfig::default()).expect("a client");
    let clock = Arc::new(SystemClock);
    let config = FetcherConfig::default();
    let fetcher = Fetcher::new(client, Store::in_memory(), Arc::clone(&bus) as _, clock, config);
    let job = job(&server, 0);
    let id = job.id;
    let asked = job.items.len();
    assert_eq!(fetcher.give_back(Payload::of(Arc::new(job))).await, HandlerResult::Done);
    let filter = bus::Filter::Verify;
    bus.open(bus::ConsumerSpec::new(filter.clone(), 1, std::time::Duration::from_secs(60), 2)).await.unwrap();
    let pulled = bus.pull(&filter, 1, std::time::Duration::ZERO).await.unwrap();
    let done = pulled[0].payload.read::<VerifyJob>().unwrap();
    assert_eq!((done.id, done.items.len(), done.requests), (id, asked, 0));
    assert!(done.items.iter().all(|fetched| fetched.result == FetchedResult::Deferred));
    assert!(server.requests().is_empty());
}
