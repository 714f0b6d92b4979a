//! A fleet that loses nothing, although its processes are killed, its bus restarts and its store stalls.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::common::{Fleet, Service, source, truth};
use futures::{StreamExt as _, TryStreamExt as _};
use model::Location;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use simulated_source::{Changes, Fault, SimulatedSource, Size, SourceSpec};
use store::{Store, StoreOptions, StoreTarget};
use testkit::servers::{NatsServer, SeaweedServer};

/// The whole fleet, each as a process of its own.
const MEMBERS: [&str; 10] = [
    "fetcher",
    "fetcher",
    "fetcher",
    "fetcher",
    "verifier",
    "verifier",
    "unpacker",
    "unpacker",
    "scheduler",
    "scheduler",
];
/// Larger bodies get objects of their own, so that both kinds of storage are used.
const MORE: &str = "fetcher: {jobs: {pack_threshold_bytes: 16384}}";
/// Sets the seed, to reproduce a failure.
const SEED: &str = "THRESHER_CHAOS_SEED";

/// How many resources `thresher cat` reads after every stored byte was compared.
const SAMPLE: usize = 20;

/// The size and the timing of a test.
struct Plan {
    resources: u64,
    latency: Duration,
    /// One process is killed in each beat.
    beat: Duration,
    /// The least number of kills. They go on until the first run is over.
    beats: u32,
    /// The beat at which the Source changes.
    changed_at: u32,
    /// The beat at which NATS is killed and started again.
    nats_at: u32,
    /// The beat at which S3 stops responding, and for how many beats.
    s3_at: u32,
    s3_for: u32,
    /// The time limit of a run after all faults.
    patience: Duration,
}

/// A resource's length and digest.
type Version = (u64, String);

struct Chaos {
    plan: Plan,
    rng: ChaCha8Rng,
    source: SimulatedSource,
    nats: NatsServer,
    s3: SeaweedServer,
    fleet: Fleet,
    members: Vec<(&'static str, Service)>,
    /// Every version that a resource ever had.
    versions: BTreeMap<String, BTreeSet<Version>>,
    killed: u32,
    /// The exit statuses of processes that were not killed.
    gave_up: Vec<String>,
    runs: u32,
}

#[tokio::test]
async fn a_fleet_that_is_killed_piece_by_piece_holds_every_byte_and_nothing_else() {
    let plan = Plan {
        resources: 2_000,
        latency: Duration::from_millis(60),
        beat: Duration::from_secs(2),
        beats: 12,
        changed_at: 3,
        nats_at: 4,
        s3_at: 7,
        s3_for: 2,
        patience: Duration::from_secs(120),
    };
    chaos(plan).await;
}

/// The test that load-tests/chaos describes. It takes minutes.
#[tokio::test]
#[ignore = "the long form: see load-tests/chaos"]
async fn twenty_thousand_resources_come_through_chaos() {
    let plan = Plan {
        resources: 20_000,
        latency: Duration::from_millis(40),
        beat: Duration::from_secs(2),
        beats: 60,
        changed_at: 15,
        nats_at: 20,
        s3_at: 30,
        s3_for: 5,
        patience: Duration::from_secs(900),
    };
    chaos(plan).await;
}

async fn chaos(plan: Plan) {
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    eprintln!("{SEED}={seed}");
    let began = Instant::now();
    let mut chaos = Chaos::begin(plan, seed).await;
    chaos.rage().await;
    chaos.settle().await;
    chaos.judge().await;
    let Chaos { killed, gave_up, runs, source, .. } = &chaos;
    let requests = source.requests();
    println!(
        "{{\"seed\":{seed},\"resources\":{},\"killed\":{killed},\"gave_up\":{},\"runs\":{runs},\"resource_requests\":{},\
         \"document_requests\":{},\"seconds\":{}}}",
        source.len(),
        gave_up.len(),
        requests.resources,
        requests.documents,
        began.elapsed().as_secs()
    );
}

impl Chaos {
    async fn begin(plan: Plan, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let spec = SourceSpec::default().seed(seed).resources(plan.resources).size(Size::Range(0, 20_000));
        let source = source(spec.latency(plan.latency)).await;
        for _ in 0..plan.resources / 100 {
            let index = rng.random_range(0..plan.resources);
            let fault = *[Trouble::Error, Trouble::Busy, Trouble::CutOff].choose(&mut rng).expect("three");
            source.set_fault(simulated_source::Target::Resource(index), fault.fault());
        }
        let (nats, s3) = tokio::try_join!(NatsServer::start(), SeaweedServer::start()).expect("both start");
        let fleet = Fleet::new(nats.url(), s3.fixture());
        let members = MEMBERS.map(|service| (service, fleet.start(&[service], MORE))).into();
        fleet.add(&source.well_known(), &["--concurrency", "8"]);
        let versions = BTreeMap::new();
        let killed = 0;
        let gave_up = Vec::new();
        let runs = 0;
        let mut chaos = Self { plan, rng, source, nats, s3, fleet, members, versions, killed, gave_up, runs };
        chaos.note_versions();
        chaos.submit();
        chaos
    }

    /// Injects all faults until the fleet has finished a run in spite of them.
    async fn rage(&mut self) {
        let mut finished = 0;
        for beat in 1.. {
            let end = tokio::time::Instant::now() + self.plan.beat;
            if beat == self.plan.changed_at {
                let tenth = self.plan.resources / 10;
                self.source.change(Changes { create: tenth, update: tenth, delete: tenth });
                self.note_versions();
            }
            if beat == self.plan.nats_at {
                self.nats.kill();
                tokio::time::sleep(Duration::from_secs(1)).await;
                self.nats.start_again().await.expect("it starts on what it has stored");
            }
            if beat == self.plan.s3_at {
                self.s3.pause().expect("it runs");
            }
            if beat == self.plan.s3_at + self.plan.s3_for {
                self.s3.resume().expect("it is there still");
            }
            let stopped = (self.plan.s3_at..self.plan.s3_at + self.plan.s3_for).contains(&beat);
            self.kill_one();
            self.replace_those_that_gave_up();
            if beat % 5 == 0 && !stopped {
                self.only_true_versions_are_present();
            }
            let state = self.state();
            eprintln!("beat {beat}: {state}, {} requests", self.source.requests().resources);
            if is_over(&state) {
                finished += 1;
                self.submit();
            }
            if beat >= self.plan.beats && (finished > 0 || beat >= self.plan.beats * 5) {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }

    /// Leaves the fleet undisturbed until its content equals the Source.
    async fn settle(&mut self) {
        for _ in 0..6 {
            let state = self.end_of_run().await;
            eprintln!("settling: {state}");
            if state == "finished"
                && self.in_sync()
                && self.fleet.destination().present() == truth(&self.source)
            {
                return;
            }
            self.submit();
        }
        let held = self.fleet.destination().present();
        let truth = truth(&self.source);
        let lost: Vec<_> = truth.iter().filter(|(uri, what)| held.get(*uri) != Some(what)).collect();
        let doubled: Vec<_> = held.keys().filter(|uri| !truth.contains_key(*uri)).collect();
        panic!("not in sync: lost {lost:?}, kept {doubled:?}; {:?}", self.fleet.run("ls", "--json", &[]));
    }

    /// Compares all stored content with the Source.
    async fn judge(&mut self) {
        let destination = self.fleet.destination();
        let held = destination.ls();
        let strange: Vec<_> =
            held.iter().filter(|(_, held)| !["present", "deleted"].contains(&held.state.as_str())).collect();
        assert!(strange.is_empty(), "{strange:?}");
        self.every_byte_is_there().await;
        let mut uris: Vec<_> = destination.present().into_keys().collect();
        uris.shuffle(&mut self.rng);
        for uri in uris.into_iter().take(SAMPLE) {
            assert!(
                self.source.body(&uri) == Some(destination.cat(&uri)),
                "{uri} has other bytes than the Source"
            );
        }
        for (service, member) in self.members.drain(..) {
            let log = member.log();
            assert!(!log.contains("panicked at"), "a {service} panicked: {log}");
        }
    }

    /// Reads every present resource from its location in the store.
    async fn every_byte_is_there(&self) {
        let destination = self.fleet.destination();
        let environment = self.fleet.s3.aws_environment().map(|(name, value)| (name.to_owned(), value));
        let target: StoreTarget = destination.into.parse().expect("a place");
        let options = StoreOptions { read_only: true, ..StoreOptions::default() };
        let store = Store::open_with(&target, environment, options).await.expect("the store is there");
        let present = destination.listed().into_iter().filter(|line| line["state"] == "present");
        let reads = futures::stream::iter(present).map(|line| {
            let store = store.clone();
            async move {
                let location: Location =
                    serde_json::from_value(line["location"].clone()).expect("a location");
                let length = line["length"].as_u64().expect("a length");
                let pieces = store.read(&location, length).await.expect("the bytes are there");
                let bytes: Vec<_> = pieces.try_collect().await.expect("they can be read");
                (line["uri"].as_str().expect("a URI").to_owned(), bytes.concat())
            }
        });
        let mut reads = std::pin::pin!(reads.buffer_unordered(8));
        let mut read = 0;
        while let Some((uri, bytes)) = reads.next().await {
            assert!(
                self.source.body(&uri) == Some(bytes),
                "{uri} has other bytes in the store than at the Source"
            );
            read += 1;
        }
        assert_eq!(read, self.source.len());
    }

    fn note_versions(&mut self) {
        for (uri, version) in truth(&self.source) {
            self.versions.entry(uri).or_default().insert(version);
        }
    }

    fn submit(&mut self) {
        self.runs += 1;
        self.fleet.run("submit", &self.source.well_known(), &[]).exits(0);
    }

    fn kill_one(&mut self) {
        let at = self.rng.random_range(0..self.members.len());
        let (service, victim) = self.members.remove(at);
        let log = victim.log();
        assert!(!log.contains("panicked at"), "a {service} panicked: {log}");
        victim.kill();
        self.killed += 1;
        self.members.push((service, self.fleet.start(&[service], MORE)));
    }

    fn replace_those_that_gave_up(&mut self) {
        for (service, member) in &mut self.members {
            let Some(status) = member.ended() else { continue };
            let log = member.log();
            let last = log.lines().rev().take(5).collect::<Vec<_>>();
            eprintln!("a {service} ended by itself ({status}): {last:#?}");
            self.gave_up.push(format!("{service}: {status}"));
            *member = self.fleet.start(&[service], MORE);
        }
    }

    /// Everything present while faults go on is what the Source had at some time.
    fn only_true_versions_are_present(&self) {
        let listed = self.fleet.destination().run("ls", &["--json"]);
        if listed.exit != Some(0) {
            // No catalog yet.
            return;
        }
        for line in listed.json_lines() {
            if line["state"] == "present" {
                let uri = line["uri"].as_str().expect("a URI");
                let version = (
                    line["length"].as_u64().expect("a length"),
                    line["sha256"].as_str().expect("a digest").to_owned(),
                );
                assert!(
                    self.versions.get(uri).is_some_and(|all| all.contains(&version)),
                    "never true: {line}"
                );
            }
        }
    }

    /// Whether the last run, which is over, left no problem.
    fn in_sync(&self) -> bool {
        self.fleet.run("watch", &self.source.well_known(), &["--json"]).exit == Some(0)
    }

    /// The state of the last run.
    fn state(&self) -> String {
        let runs = self.fleet.run("ls", "--json", &[]).exits(0);
        runs.json()["state"].as_str().expect("a state").to_owned()
    }

    async fn end_of_run(&mut self) -> String {
        let deadline = Instant::now() + self.plan.patience;
        loop {
            self.replace_those_that_gave_up();
            let state = self.state();
            if is_over(&state) {
                return state;
            }
            assert!(
                Instant::now() < deadline,
                "the run does not end: {:?}",
                self.fleet.run("ls", "--json", &[])
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

fn is_over(state: &str) -> bool {
    !["queued", "running", "interrupted"].contains(&state)
}

/// Faults at a resource, for a while.
#[derive(Clone, Copy)]
enum Trouble {
    Error,
    Busy,
    CutOff,
}

impl Trouble {
    fn fault(self) -> Fault {
        match self {
            Self::Error => Fault::Status { code: 500, retry_after: None, times: Some(2) },
            Self::Busy => Fault::busy(1, 1),
            Self::CutOff => Fault::CutOff { after: 100, times: Some(1) },
        }
    }
}
