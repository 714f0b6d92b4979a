//! A source task on a real control store, whose object store can be made unavailable.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, MessageId, Queue};
use catalog::CatalogConfig;
use control::{
    AdvertisedChannel, AskedBy, Claim, Hint, InSync, MemberId, Progress, Run, RunSpec, RunState, SourceSpec,
    WatchCache,
};
use fleet::{NatsConfig, Push, open_control};
use jiff::Timestamp;
use model::{RunId, RunMode, SourceId, SystemClock};
use secrets::Vars;
use service::Readiness;
use store::{Store, StoreOptions, StoreTarget};
use tempfile::TempDir;
use testkit::servers::NatsFixture;
use testkit::waiting::LONGEST_WAIT;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use web::{Client, WebConfig};

use crate::config::Settings;
use crate::context::SchedulerContext;
use crate::metrics::SchedulerMetrics;
use crate::origin_permits::OriginPermits;
use crate::origin_rates::OriginRates;
use crate::places::Places;
use crate::supervisor;
use crate::views::Views;
use crate::{hints, run};

pub(crate) async fn context(folder: &Path) -> SchedulerContext {
    let config = NatsConfig {
        servers: vec![NatsFixture::get().await.url],
        namespace: format!("t-{}", RunId::fresh()),
        ..NatsConfig::default()
    };
    let readiness = Readiness::default();
    let stop = CancellationToken::new();
    let control = open_control(&config, &Vars::default(), &readiness, &stop).await.unwrap();
    let Views { sources, runs, tasks, leases, hints, subscriptions, .. } =
        Views::open(&control, &readiness, &stop).await.unwrap();
    let target = StoreTarget::Directory(folder.to_owned());
    let bus: Arc<dyn Bus> = Arc::new(bus::MemoryBus::new(16));
    SchedulerContext {
        me: MemberId::fresh("me"),
        control,
        rates: Arc::new(OriginRates::new(sources.clone())),
        sources,
        runs,
        tasks,
        leases,
        hints,
        subscriptions,
        push: None,
        store: Store::open(&target, StoreOptions { fsync: false, ..StoreOptions::default() }).await.unwrap(),
        permits: OriginPermits::new(Arc::clone(&bus)),
        credentials: fleet::Credentials::default(),
        bus,
        client: Client::new(WebConfig::default()).unwrap(),
        clock: Arc::new(SystemClock),
        catalogs: CatalogConfig { commit_timeout: Duration::from_secs(3), ..CatalogConfig::default() },
        settings: Arc::default(),
        metrics: SchedulerMetrics::default(),
    }
}

/// How hubs reach the fleet.
pub(crate) fn push() -> Push {
    let vars = Vars::default().with("KEY", &"a".repeat(32));
    let config = serde_json::json!({"public_url": "http://push.example/", "key": {"env": "KEY"}});
    serde_json::from_value::<fleet::PushConfig>(config).unwrap().open(&vars).unwrap().unwrap()
}

/// A run of a scheduler that is gone, which the operator has cancelled.
async fn half_cancelled(context: &SchedulerContext) -> SourceId {
    let spec = SourceSpec::new("http://127.0.0.1:9/".parse().unwrap());
    let source = spec.id.clone();
    let now = Timestamp::now();
    context.control.sources().create(&spec).await.unwrap();
    let id = RunId::fresh();
    let mode = RunMode::Auto;
    let asked_by = AskedBy::Operator;
    let run = RunSpec {
        id,
        source: source.clone(),
        mode,
        asked_by,
        asked_at: now,
        allow_deletes: false,
        repair: false,
        task: None,
    };
    context.control.runs().submit(run).await.unwrap();
    let gone = MemberId::fresh("gone");
    let Claim::Taken(lease) = context.control.leases().acquire(&source, &gone, now).await.unwrap() else {
        panic!("nobody else is there");
    };
    context.control.runs().start(&lease, id, now).await.unwrap();
    context.control.runs().cancel(&source, id, now).await.unwrap();
    lease.release().await;
    source
}

#[tokio::test]
async fn a_cancelling_while_the_store_is_away_is_tried_again_with_a_pause_until_it_is_done() {
    let folder = TempDir::new().unwrap();
    let context = context(folder.path()).await;
    let source = half_cancelled(&context).await;
    // A file in place of a directory: no catalog can be opened.
    let away = folder.path().join(".thresher/catalogs");
    std::fs::write(&away, "").unwrap();

    let mut runs = context.runs.clone();
    let shown = |runs: &WatchCache<Run>| runs.get(&source).map(drop);
    timeout(LONGEST_WAIT, runs.wait_for(shown)).await.expect("the run is shown");
    // Each attempt takes the lease and gives it back: two changes.
    let mut leases = context.leases.changed_keys();
    let keep = CancellationToken::new();
    let members = context.control.members().view().await.unwrap();
    let task = tokio::spawn(supervisor::look_after(context, members, keep.clone()));
    let mut changes = Vec::new();
    while changes.len() < 5 {
        timeout(LONGEST_WAIT, leases.next()).await.expect("three tries");
        changes.push(Instant::now());
    }
    // Without a pause three tries take milliseconds.
    let took = changes[4] - changes[0];
    assert!(took >= Duration::from_secs(1), "tried again at once: {took:?}");
    std::fs::remove_file(&away).unwrap();
    let over = |runs: &WatchCache<Run>| runs.get(&source).filter(|run| run.state.is_over());
    let over = timeout(LONGEST_WAIT, runs.wait_for(over)).await.expect("it is done");
    assert_eq!(over.state, RunState::Cancelled);
    keep.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn what_a_hub_has_delivered_asks_for_no_run_at_once_after_one_that_failed() {
    let folder = TempDir::new().unwrap();
    let settings = Arc::new(Settings { hint_debounce_seconds: 1, ..Settings::default() });
    let context = SchedulerContext { push: Some(push()), settings, ..context(folder.path()).await };
    let mut spec = SourceSpec::new("http://127.0.0.1:9/".parse().unwrap());
    // So each run fails before it has taken the delivery.
    spec.credential = Some("that-nobody-has".parse().unwrap());
    let source = spec.id.clone();
    context.control.sources().create(&spec).await.unwrap();
    let (set, topic) = (model::SetId::new("http://h/caps"), "http://h/channel".to_owned());
    let offered = AdvertisedChannel {
        source: source.clone(),
        set,
        topic,
        hubs: vec!["http://hub.example/".to_owned()],
    };
    context.control.subscriptions().want(&offered, "key", Timestamp::now()).await.unwrap();
    let queue = Queue::Notices { source: source.clone() };
    context.bus.publish(queue, MessageId::new("1"), "what a hub has delivered".into()).await.unwrap();

    let keep = CancellationToken::new();
    let runs = context.control.runs().clone();
    let members = context.control.members().view().await.unwrap();
    let task = tokio::spawn(supervisor::look_after(context, members, keep.clone()));
    let (first, second) = testkit::waiting::found("two runs", async || {
        let mut all = runs.past(&source).await.unwrap();
        all.insert(0, runs.get(&source).await.unwrap()?.value.as_ref().clone());
        // A run is kept among the past ones a moment before the next one takes its place.
        all.dedup_by_key(|run| run.spec.id);
        Some((all.pop()?, all.pop()?))
    })
    .await;
    assert!(matches!(first.state, RunState::Failed(_)), "{first:?}");
    let pause = second.spec.asked_at.duration_since(first.finished_at.unwrap());
    assert!(pause >= jiff::SignedDuration::from_secs(1), "asked for again after {pause}");
    keep.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn a_hint_is_taken_up_by_a_run_that_begins_and_by_no_other() {
    let folder = TempDir::new().unwrap();
    let context = context(folder.path()).await;
    let source: SourceId = "example-org-1".parse().unwrap();
    let me = context.me.clone();
    let now = Timestamp::now();
    let hint = Hint { source: source.clone(), given_at: now, by: "a".to_owned(), unproved: false };
    context.control.hints().give(&hint).await.unwrap();
    let mut seen = context.hints.clone();
    timeout(LONGEST_WAIT, seen.wait_for(|hints| hints.get(&source))).await.expect("it is seen");
    let asked = async |mode, asked_by| {
        let id = RunId::fresh();
        let source = source.clone();
        let run = RunSpec {
            id,
            source,
            mode,
            asked_by,
            asked_at: now,
            allow_deletes: false,
            repair: false,
            task: None,
        };
        context.control.runs().submit(run).await.unwrap()
    };
    let waits = async || context.control.hints().get(&source).await.unwrap().is_some();
    let Claim::Taken(lease) = context.control.leases().acquire(&source, &me, now).await.unwrap() else {
        panic!("nobody else is there");
    };

    let audit = asked(RunMode::Audit, AskedBy::Operator).await;
    hints::take_up(&context, &source, &audit).await.unwrap();
    assert!(waits().await, "an audit brings nothing in step");
    context.control.runs().cancel(&source, audit.spec.id, now).await.unwrap();
    let notified = asked(RunMode::Auto, AskedBy::Notification).await;
    hints::take_up(&context, &source, &notified).await.unwrap();
    assert!(waits().await, "what a hub has delivered may do without a look at any list");
    context.control.runs().cancel(&source, notified.spec.id, now).await.unwrap();
    let begun = asked(RunMode::Auto, AskedBy::Operator).await;
    context.control.runs().start(&lease, begun.spec.id, now).await.unwrap();
    // As a lagging view shows it.
    hints::take_up(&context, &source, &begun).await.unwrap();
    assert!(waits().await, "it may have read the Source before");
    context
        .control
        .runs()
        .finish(&lease, begun.spec.id, Progress::default(), InSync(true), now)
        .await
        .unwrap();
    let new = asked(RunMode::Auto, AskedBy::Hint).await;
    hints::take_up(&context, &source, &new).await.unwrap();
    assert!(!waits().await);
    lease.release().await;
}

#[tokio::test]
async fn a_run_that_has_ended_since_the_view_of_runs_was_told_is_no_trouble() {
    let folder = TempDir::new().unwrap();
    let context = context(folder.path()).await;
    let spec = SourceSpec::new("http://127.0.0.1:9/".parse().unwrap());
    let source = spec.id.clone();
    context.control.sources().create(&spec).await.unwrap();
    let me = context.me.clone();
    let now = Timestamp::now();
    let asked = RunSpec {
        id: RunId::fresh(),
        source: source.clone(),
        mode: RunMode::Auto,
        asked_by: AskedBy::Operator,
        asked_at: now,
        allow_deletes: false,
        repair: false,
        task: None,
    };
    let run = context.control.runs().submit(asked).await.unwrap();
    let Claim::Taken(lease) = context.control.leases().acquire(&source, &me, now).await.unwrap() else {
        panic!("nobody else is there");
    };
    context.control.runs().start(&lease, run.spec.id, now).await.unwrap();
    context.control.runs().finish(&lease, run.spec.id, Progress::default(), InSync(true), now).await.unwrap();
    // As a lagging view shows it.
    let keep = CancellationToken::new();
    let places = Places::new(u64::MAX, 1, context.settings.turns(), None);
    places.wait(&spec, &run);
    let mut place = places.grant(|_, _| 0).unwrap();
    let spec = context.control.sources().get(&source).await.unwrap();
    let preempt = CancellationToken::new();
    let executor = run::RunExecutor::new(&context, &lease, spec, &run, &preempt, &keep, &mut place);
    let left = executor.tend(&run).await.unwrap();
    assert_eq!(left, run::RunExit::Later, "the next look finds what is so");
    lease.release().await;
}
