//! Harvests over a bus with faults, with the very stages of a laptop.

#[path = "../../../tests/it/common/dump.rs"]
#[allow(dead_code, reason = "builders of which these tests use a part")]
mod dump;
#[path = "../../../tests/it/common/site.rs"]
#[allow(dead_code, reason = "builders of which these tests use a part")]
mod site;
mod tars;
mod zips;

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bus::{
    BusError, ConsumerSpec, DeadLetter, Delivery, Depth, JetStreamBus, JetStreamConfig, Message, MessageId,
    OriginQueues, Payload, Published, Queue,
};
use bytes::Bytes;
use futures::TryStreamExt;
use model::{Origin, ProblemReason, ProblemRecord, Subject};
use simulated_source::{SimulatedSource, SourceSpec};
use testkit::servers::NatsFixture;

use super::*;
use crate::cli::ExplainArgs;
use crate::client::LocationArgs;
use crate::commands::explain;

const RESOURCES: u64 = 12;

fn memory() -> Arc<dyn Bus> {
    Arc::new(MemoryBus::new(BUS_CAPACITY))
}

/// A bus that damages messages of a stage.
#[derive(Debug)]
struct Harming {
    bus: Arc<dyn Bus>,
    stage: &'static str,
    harm: Harm,
}

/// The fate of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is queued.
    Pass,
    /// The bus refuses it.
    Refuse,
    /// Its publisher waits for ever: it is about to be killed.
    Hang,
}

/// Decides about a message by its name.
struct Decide(Box<dyn Fn(&str) -> Fate + Send + Sync>);

impl std::fmt::Debug for Decide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decide")
    }
}

#[derive(Debug)]
enum Harm {
    /// Decides about each message by its name.
    Decide(Decide),
    /// Queues the first slice job again, when the second package is opened.
    Repeat { slice: OnceLock<(Queue, Payload)>, opened: AtomicUsize, repeated: AtomicUsize },
    /// Does no harm, and counts the messages passed as values, and those passed as bytes.
    Watch { whole: AtomicUsize, written: AtomicUsize },
    /// Truncates the payloads of the first ones, this many.
    Damage(AtomicUsize),
    /// Loses all messages within this time after the first. Nothing else happens meanwhile, so time passes at
    /// once.
    Lose { time: Duration, first: OnceLock<tokio::time::Instant>, lost: AtomicUsize, healed: AtomicBool },
}

impl Harming {
    fn damaging(stage: &'static str, messages: usize) -> Arc<Self> {
        Self::damaging_on(memory(), stage, messages)
    }

    fn damaging_on(bus: Arc<dyn Bus>, stage: &'static str, messages: usize) -> Arc<Self> {
        Arc::new(Self { bus, stage, harm: Harm::Damage(AtomicUsize::new(messages)) })
    }

    fn deciding(stage: &'static str, decide: impl Fn(&str) -> Fate + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { bus: memory(), stage, harm: Harm::Decide(Decide(Box::new(decide))) })
    }

    fn repeating() -> Arc<Self> {
        let (slice, opened, repeated) = Default::default();
        Arc::new(Self { bus: memory(), stage: "unpack", harm: Harm::Repeat { slice, opened, repeated } })
    }

    fn losing(stage: &'static str, time: Duration) -> Arc<Self> {
        let first = OnceLock::new();
        let lost = AtomicUsize::new(0);
        let healed = AtomicBool::new(false);
        Arc::new(Self { bus: memory(), stage, harm: Harm::Lose { time, first, lost, healed } })
    }

    /// The rest of a payload; None if the message is lost.
    fn harm(&self, payload: Payload) -> Option<Payload> {
        match &self.harm {
            Harm::Decide(_) | Harm::Repeat { .. } => Some(payload),
            Harm::Watch { whole, written } => {
                let seen = if payload.is_written() { written } else { whole };
                seen.fetch_add(1, Ordering::SeqCst);
                Some(payload)
            }
            Harm::Damage(left) => {
                let hit = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
                let half = |bytes: Bytes| bytes.slice(..bytes.len() / 2);
                Some(if hit.is_ok() { half(payload.to_bytes()).into() } else { payload })
            }
            Harm::Lose { time, first, lost, healed } => {
                let begin = first.get_or_init(|| {
                    tokio::time::pause();
                    tokio::time::Instant::now()
                });
                if begin.elapsed() < *time {
                    lost.fetch_add(1, Ordering::SeqCst);
                    return None;
                }
                if !healed.swap(true, Ordering::SeqCst) {
                    tokio::time::resume();
                }
                Some(payload)
            }
        }
    }

    fn lost(&self) -> usize {
        match &self.harm {
            Harm::Decide(_) | Harm::Repeat { .. } | Harm::Watch { .. } | Harm::Damage(_) => 0,
            Harm::Lose { lost, .. } => lost.load(Ordering::SeqCst),
        }
    }
}

#[async_trait]
impl Bus for Harming {
    async fn open(&self, spec: ConsumerSpec) -> Result<(), BusError> {
        self.bus.open(spec).await
    }
    async fn close(&self, filter: &bus::Filter) -> Result<bool, BusError> {
        self.bus.close(filter).await
    }
    fn origins(&self) -> watch::Receiver<OriginQueues> {
        self.bus.origins()
    }
    async fn publish(&self, queue: Queue, id: MessageId, payload: Payload) -> Result<Published, BusError> {
        let concerned = queue.subject().starts_with(self.stage);
        if let Harm::Repeat { slice, opened, repeated } = &self.harm {
            match &queue {
                Queue::Unpack { .. } => drop(slice.set((queue.clone(), payload.clone()))),
                Queue::Open { .. } if opened.fetch_add(1, Ordering::SeqCst) == 1 => {
                    let (queue, payload) =
                        slice.get().cloned().expect("one package is settled after the other");
                    let id = queue.message_of(model::JobId::fresh());
                    self.bus.publish(queue, id, payload).await?;
                    repeated.fetch_add(1, Ordering::SeqCst);
                }
                _ => {}
            }
        }
        let fate = match &self.harm {
            Harm::Decide(Decide(decide)) if concerned => decide(id.as_str()),
            _ => Fate::Pass,
        };
        match fate {
            Fate::Pass => {}
            Fate::Refuse => {
                let action = "queue a message".to_owned();
                let source = "it is to be refused".into();
                return Err(BusError::Unavailable { action, source });
            }
            Fate::Hang => std::future::pending().await,
        }
        let left = if concerned { self.harm(payload) } else { Some(payload) };
        let Some(payload) = left else { return Ok(Published { duplicate: false }) };
        self.bus.publish(queue, id, payload).await
    }
    async fn pull(
        &self,
        filter: &bus::Filter,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        self.bus.pull(filter, max, wait).await
    }
    async fn acquire_permit(&self, origin: &Origin, limit: usize) -> Result<bus::OriginPermit, BusError> {
        self.bus.acquire_permit(origin, limit).await
    }
    async fn try_acquire_spare(&self, origin: &Origin) -> Result<Option<bus::OriginPermit>, BusError> {
        self.bus.try_acquire_spare(origin).await
    }
    async fn caught_up(&self, filter: &bus::Filter) -> Result<(), BusError> {
        self.bus.caught_up(filter).await
    }
    async fn purge(&self, source: &SourceId) -> Result<usize, BusError> {
        self.bus.purge(source).await
    }
    async fn depth(&self, filter: &bus::Filter) -> Result<Depth, BusError> {
        self.bus.depth(filter).await
    }
    async fn under_way(&self, source: &SourceId) -> Result<usize, BusError> {
        self.bus.under_way(source).await
    }
}

/// A Source and the directory it is harvested into.
struct Bench {
    source: SimulatedSource,
    folder: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        let spec = SourceSpec::default().seed(7).resources(RESOURCES);
        let source = SimulatedSource::start(spec).await.expect("a Source");
        Self { source, folder: tempfile::tempdir().expect("a directory") }
    }

    fn into(&self) -> String {
        self.folder.path().display().to_string()
    }

    async fn harvest(&self, bus: Arc<dyn Bus>) -> Report {
        self.try_harvest(bus).await.expect("a run that ends")
    }

    async fn try_harvest(&self, bus: Arc<dyn Bus>) -> Result<Report, Failed> {
        let web = WebConfig { per_origin: 2, ..WebConfig::default() };
        let url = Url::parse(&self.source.url()).expect("a URL");
        let options = HarvestOptions::default();
        let request = Request { url, into: self.into(), view: None, web, options, labels: BTreeMap::new() };
        Ok(harvest_over(bus, request, watch::Sender::new(Progress::default())).await?.0)
    }

    async fn explain(&self, name: &str) -> String {
        let held = LocationArgs { into: Some(self.into()), ..LocationArgs::default() };
        let args = ExplainArgs { uri: name.to_owned(), location: held, source: None, json: false };
        explain::text(&args).await.expect("a story")
    }

    /// All problems, those of messages apart from those of resources.
    async fn problems(&self) -> [Vec<(Subject, ProblemRecord)>; 2] {
        let harvested = target::open_for_reading(&self.into(), None).await.expect("a harvest");
        let all: Vec<_> = harvested.sources[0].1.scan_problems().await.unwrap().try_collect().await.unwrap();
        let (messages, rest) =
            all.into_iter().partition(|(subject, _)| matches!(subject, Subject::Message(_)));
        [messages, rest]
    }
}

/// The bus's own tests check that the bus itself encodes nothing.
#[tokio::test]
async fn no_job_and_no_outcome_of_a_harvest_in_one_process_is_written() {
    for stage in ["fetch", "verify", "outcomes"] {
        let bench = Bench::new().await;
        let harm = Harm::Watch { whole: AtomicUsize::new(0), written: AtomicUsize::new(0) };
        let bus = Arc::new(Harming { bus: memory(), stage, harm });
        assert!(bench.harvest(Arc::clone(&bus) as Arc<dyn Bus>).await.in_sync());
        let Harm::Watch { whole, written } = &bus.harm else { panic!("it watches") };
        assert!(whole.load(Ordering::SeqCst) > 0, "{stage}: nothing was sent");
        assert_eq!(written.load(Ordering::SeqCst), 0, "{stage}");
    }
}

async fn a_damaged_message_ends_as_problems_and_the_next_run_heals(stage: &'static str, bus: Arc<dyn Bus>) {
    let bench = Bench::new().await;
    let report = bench.harvest(Harming::damaging_on(Arc::clone(&bus), stage, 1)).await;
    assert!(!report.in_sync());
    let [messages, resources] = bench.problems().await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(!resources.is_empty());
    assert_eq!(report.run.counters.failed, resources.len() as u64);
    assert_eq!(report.run.counters.stored + report.run.counters.failed, RESOURCES);
    assert_eq!(report.open_problems, 1 + resources.len() as u64);

    let Subject::Message(name) = &messages[0].0 else { panic!("no message: {messages:?}") };
    assert!(name.starts_with(stage), "{name}");
    let story = bench.explain(name).await;
    assert!(story.contains("Problem: poison") && story.contains("bytes in all"), "{story}");
    assert!(story.contains(&format!(r#"  {{"kind":"{stage}"#)), "its payload can be read: {story}");
    for (subject, problem) in &resources {
        assert_eq!(problem.reason, ProblemReason::Poison);
        assert!(problem.retry && problem.message.contains(name.as_str()), "{}", problem.message);
        assert!(bench.explain(subject.uri()).await.contains("became a dead letter after one delivery"));
    }

    let report = bench.harvest(bus).await;
    assert!(report.in_sync(), "{:?}", report.first_problems);
    assert_eq!(report.run.counters.stored, resources.len() as u64);
    assert_eq!(bench.problems().await, [vec![], vec![]]);
}

#[tokio::test]
async fn a_damaged_fetch_job_ends_as_problems_and_the_next_run_heals() {
    a_damaged_message_ends_as_problems_and_the_next_run_heals("fetch", memory()).await;
}

#[tokio::test]
async fn a_damaged_verify_job_ends_as_problems_and_the_next_run_heals() {
    a_damaged_message_ends_as_problems_and_the_next_run_heals("verify", memory()).await;
}

#[tokio::test]
async fn damaged_outcomes_end_as_problems_and_the_next_run_heals() {
    a_damaged_message_ends_as_problems_and_the_next_run_heals("outcomes", memory()).await;
}

#[tokio::test]
async fn a_damaged_message_of_any_stage_ends_as_problems_on_a_real_server_too() {
    for stage in ["fetch", "verify", "outcomes"] {
        let config = JetStreamConfig {
            servers: vec![NatsFixture::get().await.url],
            namespace: format!("poison-{stage}-{:x}", std::process::id()),
            max_megabytes_per_stream: 0,
            ..JetStreamConfig::default()
        };
        let bus = JetStreamBus::connect(config, &secrets::Vars::default()).await.unwrap();
        a_damaged_message_ends_as_problems_and_the_next_run_heals(stage, Arc::new(bus)).await;
    }
}

#[tokio::test]
async fn where_every_message_is_poison_the_run_ends_all_the_same() {
    let bench = Bench::new().await;
    let report = bench.harvest(Harming::damaging("fetch", usize::MAX)).await;
    assert_eq!((report.run.counters.stored, report.run.counters.failed), (0, RESOURCES));
    let [messages, resources] = bench.problems().await;
    assert_eq!(resources.len() as u64, RESOURCES);
    assert!(!messages.is_empty());
}

#[tokio::test]
async fn the_letter_of_an_earlier_job_is_a_problem_of_one_run_and_of_no_resource() {
    let bench = Bench::new().await;
    let bus = Arc::new(MemoryBus::new(BUS_CAPACITY));
    let source = SourceId::of_entry(&Url::parse(&bench.source.url()).unwrap());
    let id = MessageId::new(format!("fetch-{}", model::JobId::fresh()));
    let queue = Queue::Verify { source };
    let message = Message { id: id.clone(), queue, payload: vec![0xff, 0x00].into(), attempt: 3 };
    DeadLetter::bury(&*bus, &message, "it was never any good").await.unwrap();

    let report = bench.harvest(bus).await;
    assert_eq!((report.run.counters.stored, report.run.counters.failed), (RESOURCES, 0));
    assert_eq!(report.open_problems, 1);
    let [messages, resources] = bench.problems().await;
    assert_eq!((messages.len(), resources), (1, vec![]));
    assert!(messages[0].1.message.contains("after 3 deliveries: it was never any good"), "{messages:?}");
    let story = bench.explain(id.as_str()).await;
    assert!(story.contains("Payload (2 bytes in all; its beginning as base64)\n  /wA="), "{story}");

    let report = bench.harvest(Arc::new(MemoryBus::new(BUS_CAPACITY))).await;
    assert!(report.in_sync(), "{:?}", report.first_problems);
}

async fn jobs_that_vanish_are_sent_again(stage: &'static str) {
    let bench = Bench::new().await;
    let bus = Harming::losing(stage, Duration::from_secs(30));
    let report = bench.harvest(bus.clone()).await;
    assert!(bus.lost() > 0);
    assert!(report.in_sync(), "{:?}", report.first_problems);
    assert_eq!((report.run.counters.stored, report.run.counters.failed), (RESOURCES, 0));
}

#[tokio::test]
async fn fetch_jobs_that_vanish_from_the_bus_are_sent_again() {
    jobs_that_vanish_are_sent_again("fetch").await;
}

#[tokio::test]
async fn a_run_whose_jobs_vanish_again_and_again_ends_and_says_so() {
    let bench = Bench::new().await;
    let bus = Harming::losing("fetch", Duration::MAX);
    let failed = bench.try_harvest(bus.clone()).await.expect_err("nothing ever comes");
    let said = failed.error.to_string();
    assert!(said.contains("vanished from the message bus") && said.contains("times in a row"), "{said}");
    tokio::time::resume();
    let report = bench.harvest(Arc::new(MemoryBus::new(BUS_CAPACITY))).await;
    assert!(report.in_sync(), "nothing is lost: {:?}", report.first_problems);
}
