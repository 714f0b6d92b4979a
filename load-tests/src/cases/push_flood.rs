//! `push-flood`: one gateway is flooded with deliveries and notifications, forged ones and signed ones, while
//! the hub of another Source delivers honestly.

mod flood;

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;
use simulated_source::{Changes, Expected, SimTime, SimulatedSource, SourceSpec};
use testkit::hub::{SimulatedHub, Subscriber, sign};
use testkit::servers::{NatsServer, SeaweedServer};
use testkit::waiting::until;
use tokio::runtime::Runtime;

use super::{interleaved, unchecked};
use crate::check::{self, Check};
use crate::cli::PushFloodOptions;
use crate::fleet::{Fleet, FleetStore};
use crate::folder::WorkFolder;
use crate::machine::Machine;
use crate::measure::Usage;
use crate::meter;
use crate::ready::make_ready;
use crate::report::{Report, Round};
use crate::stats::{Spread, rounded};
use crate::thresher::Thresher;
use flood::{Flood, Flooded};

const RESOURCES: u64 = 100;
/// How often the honest hub delivers.
const HONEST_EVERY: Duration = Duration::from_millis(100);
/// The promise: memory stays flat, whichever sender posts.
const MOST_RESIDENT_BYTES: u64 = 256_000_000;
/// The promise: half of the honest deliveries are answered sooner.
const MOST_MEDIAN_MILLIS: u64 = 300;
/// The longest time until all deliveries are stored.
const TO_BE_HELD: Duration = Duration::from_secs(60);
/// Which senders may post notifications: the flooding senders have no token.
const SENDERS: &str = "- {name: repository, token: a token of the load test}\n- {name: reviews, origins: ['https://review.example.com']}\n";
const DELIVERIES: &str = "thresher_gateway_deliveries";
const NOTIFICATIONS: &str = "thresher_gateway_notifications";

/// State that every round needs.
struct Bench {
    runtime: Runtime,
    thresher: Thresher,
    nats: NatsServer,
    s3: SeaweedServer,
    work: WorkFolder,
    resources: u64,
    per_second: u64,
    seconds: u64,
}

/// A fleet with two Sources and their hub.
struct Beset {
    fleet: Fleet,
    /// The gateway's URL: `http://127.0.0.1:<port>`.
    gateway: String,
    hub: SimulatedHub,
    /// The one whose callback is flooded, and the one that is not.
    sources: [SimulatedSource; 2],
    subscribers: [Subscriber; 2],
}

/// The results of the honest deliveries.
#[derive(Debug, Default)]
struct Honest {
    delivered: u64,
    taken: u64,
    millis: Vec<f64>,
}

/// Runs the case.
pub(crate) fn run(options: &PushFloodOptions) -> anyhow::Result<Report> {
    let resources = options.common.resources.unwrap_or(RESOURCES);
    let per_second = options.per_second.get();
    let seconds = options.seconds.get();
    let thresher = Thresher::get(&options.common)?;
    let work = WorkFolder::new(&options.common, "push-flood")?;
    let machine = Machine::here(work.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let start = async { tokio::try_join!(NatsServer::start(), SeaweedServer::start()) };
    let (nats, s3) = runtime.block_on(start)?;
    let versions = vec![thresher.version.clone()];
    let bench = Bench { runtime, thresher, nats, s3, work, resources, per_second, seconds };
    let rows =
        interleaved(&Flood::ALL, Flood::name, per_second * seconds, &options.common, |flood, round| {
            Ok((format!("POST {}", flood.what()), bench.run(flood, round)?))
        })?;
    let setup = BTreeMap::from([
        ("posts_in_a_second", json!(per_second)),
        ("seconds", json!(seconds)),
        ("honest_delivery_every_ms", json!(HONEST_EVERY.as_millis())),
        ("resources_of_each_source", json!(resources)),
        ("rounds", json!(options.common.rounds)),
        ("transport", json!("HTTP/1.1 over loopback; NATS, SeaweedFS as S3")),
    ]);
    let finished_at = jiff::Timestamp::now();
    let report = Report { case: "push-flood", finished_at, machine, setup, versions, rows };
    Ok(report.summed_up(&[]))
}

impl Bench {
    fn run(&self, flood: Flood, round: usize) -> anyhow::Result<Round> {
        let mut beset = self.start(flood, round)?;
        make_ready();
        let machine = meter::machine_cpu_seconds()?;
        let working = beset.fleet.cpu_seconds();
        let start = Instant::now();
        let (flooded, honest) = self.runtime.block_on(async {
            let until = Instant::now() + Duration::from_secs(self.seconds);
            let flooding = flood.pour(&beset, self.per_second, self.seconds);
            tokio::join!(flooding, beset.deliver_honestly(until))
        });
        let seconds = start.elapsed().as_secs_f64();
        let used = beset.fleet.cpu_seconds() - working;
        let all = meter::machine_cpu_seconds()? - machine;
        let usage = Usage {
            seconds: rounded(seconds),
            cpu_seconds: rounded(used),
            peak_rss_bytes: beset.fleet.peak_rss_bytes_of("gateway"),
            exit_status: Some(0),
        };
        let mut done = unchecked(usage, 0.0, all);
        self.judge(&mut done, &mut beset, flood, &flooded?, honest)?;
        Ok(done)
    }

    /// A fleet that was started for this round, in sync with two Sources, and subscribed to both.
    fn start(&self, flood: Flood, round: usize) -> anyhow::Result<Beset> {
        let name = format!("round-{round}-{}", flood.name().replace(' ', "-"));
        let folder = self.work.make(&name)?;
        let (key, senders, tokens) =
            (folder.join("push-key"), folder.join("senders.yaml"), folder.join("tokens.yaml"));
        fs::write(&key, "a key of the load test that has more than 32 bytes\n")?;
        fs::write(&senders, SENDERS)?;
        fs::write(&tokens, "- {name: load, role: read, token: a token of the load test}\n")?;
        let push =
            format!("push: {{public_url: 'http://push.example/', key: {{file: '{}'}}}}", key.display());
        let gateway = format!(
            "gateway: {{listen: '127.0.0.1:0', tokens: '{}', inbox: {{senders: '{}', megabytes: 0}}}}\n{push}",
            tokens.display(),
            senders.display()
        );
        let store = FleetStore::S3(self.s3.fixture());
        let mut fleet = Fleet::new(&self.thresher, self.nats.url(), &name, store, &folder);
        for (service, settings) in
            [("gateway", gateway.as_str()), ("scheduler", &push), ("fetcher", ""), ("verifier", "")]
        {
            fleet.start(service, settings)?;
        }
        fleet.until_ready()?;
        let address =
            fleet.logged("gateway", "api.address=").context("the gateway has not said where it listens")?;
        let hub = SimulatedHub::start()?;
        hub.find_callbacks_at(format!("http://{address}"));
        let spec = |seed| SourceSpec::default().seed(seed).resources(self.resources).hub(hub.url());
        let starting =
            async { tokio::try_join!(SimulatedSource::start(spec(1)), SimulatedSource::start(spec(2))) };
        let (flooded, honest) = self.runtime.block_on(starting)?;
        for source in [&flooded, &honest] {
            fleet.add(&source.well_known(), &[])?;
            fleet.harvest(&source.well_known())?;
        }
        self.runtime.block_on(until("the hub has verified both", || hub.subscribers().len() == 2));
        let of = |source: &SimulatedSource| {
            let all = hub.subscribers().into_iter();
            let url = source.url();
            all.into_iter().find(|each| each.topic.starts_with(&url)).context("a Source is not subscribed to")
        };
        let subscribers = [of(&flooded)?, of(&honest)?];
        let gateway = format!("http://{address}");
        Ok(Beset { fleet, gateway, hub, sources: [flooded, honest], subscribers })
    }

    /// Reports the counts, and checks them.
    fn judge(
        &self,
        done: &mut Round,
        beset: &mut Beset,
        flood: Flood,
        flooded: &Flooded,
        honest: Honest,
    ) -> anyhow::Result<()> {
        let queued = beset.fleet.counted_with("gateway", DELIVERIES, "verdict=\"queued\"")?;
        done.counted = beset.verdicts()?;
        let statuses = flooded.statuses.iter();
        done.counted.extend(statuses.map(|(status, count)| (flood::counted_as(*status), *count)));
        let millis = Spread::of(honest.millis).context("nobody delivered honestly")?;
        // Rounded up to whole milliseconds, so that no figure is better than measured.
        let told = |millis: f64| millis.ceil() as u64;
        done.counted.extend([
            ("flood_per_second".to_owned(), flooded.per_second),
            ("honest".to_owned(), honest.delivered),
            ("honest_median_ms".to_owned(), told(millis.median)),
            ("honest_most_ms".to_owned(), told(millis.max)),
        ]);
        let signed = if flood.is_signed() { flooded.of(202) } else { 0 };
        done.checks = vec![
            Check::equal("posts of the flood", flood.posts(self.per_second, self.seconds), flooded.posts()),
            Check::equal("honest deliveries that were taken", honest.delivered, honest.taken),
            Check::at_most("median of an honest delivery in ms", MOST_MEDIAN_MILLIS, told(millis.median)),
            Check::at_most(
                "peak resident bytes of the gateway",
                MOST_RESIDENT_BYTES,
                done.usage.peak_rss_bytes,
            ),
            Check::equal("deliveries that were queued: honest or signed", honest.delivered + signed, queued),
        ];
        done.checks.extend(self.held(beset)?);
        Ok(())
    }

    /// Waits until both Sources are stored as they are, or a timeout, and returns the checks.
    fn held(&self, beset: &Beset) -> anyhow::Result<Vec<Check>> {
        let truth: Vec<Expected> = beset.sources.iter().flat_map(SimulatedSource::expected).collect();
        let start = Instant::now();
        loop {
            // Queued notifications are planned by runs that start on their own.
            for source in &beset.sources {
                beset.fleet.watch(&source.well_known())?;
            }
            let checks = check::harvest(&self.thresher, &beset.fleet.place(), &truth, 3)?;
            if checks.iter().all(|check| check.holds) || start.elapsed() > TO_BE_HELD {
                return Ok(checks);
            }
        }
    }
}

impl Beset {
    /// The hub of the other Source delivers changes repeatedly, until the given time.
    async fn deliver_honestly(&self, until: Instant) -> Honest {
        let source = &self.sources[1];
        let to = &self.subscribers[1];
        let mut honest = Honest::default();
        let mut told: SimTime = source.now();
        let mut times = tokio::time::interval(HONEST_EVERY);
        while Instant::now() < until {
            times.tick().await;
            let made = source.change(Changes { update: 1, ..Changes::default() });
            let payload = source.notification(told, source.now(), &made);
            told = source.now();
            let signature = sign(&to.secret, payload.as_bytes());
            let start = Instant::now();
            let status = self.hub.deliver_signed(to, &payload, &signature).await;
            honest.millis.push(start.elapsed().as_secs_f64() * 1e3);
            honest.delivered += 1;
            honest.taken += u64::from(status == 202);
        }
        honest
    }

    /// The gateway's counts, by result.
    fn verdicts(&self) -> anyhow::Result<BTreeMap<String, u64>> {
        let mut counted = BTreeMap::new();
        for (metric, names) in [
            (
                DELIVERIES,
                &[
                    "queued",
                    "unsigned",
                    "bad-signature",
                    "unknown",
                    "oversized",
                    "slow",
                    "rate-limited",
                    "not-queued",
                ][..],
            ),
            (NOTIFICATIONS, &["hint", "kept"]),
        ] {
            let kind = metric.rsplit('_').next().unwrap_or_default();
            for name in names {
                let count = self.fleet.counted_with("gateway", metric, &format!("verdict=\"{name}\""))?;
                if count > 0 {
                    counted.insert(format!("{kind}_{name}"), count);
                }
            }
        }
        ensure!(!counted.is_empty(), "the gateway has counted nothing");
        Ok(counted)
    }
}
