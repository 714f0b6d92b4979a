//! The console's first page: the fleet at a glance, and the list of runs behind it.

use std::time::{Duration, Instant};

use control::{
    AskedBy, Claim, Config, Control, InSync, MemberId, Progress, RunFailure, RunSpec, Sample, SampledRuns,
    SampledSources, Schedule, SourceSpec, Spec,
};
use futures::{TryStreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use model::{Counters, RunId, RunMode};
use reqwest::StatusCode;
use simulated_source::{Fault, SourceSpec as Simulated};
use testkit::servers::{NatsFixture, S3Fixture};
use testkit::waiting::found;

use crate::common::api::{ADMIN, Api, OPERATE, READ, fleet};
use crate::common::console::Visitor;
use crate::common::{Fleet, source};

/// Sources of the large fleet.
const SOURCES: usize = 10_000;
/// Some of them have runs: these are queued, …
const QUEUED: usize = 300;
/// … these are worked on, …
const ACTIVE: usize = 40;
/// … and these have failed.
const FAILED: usize = 60;
/// … and of the others, each with such a number is in sync. Their schedules tell whether they are stale.
const IN_SYNC_EACH: usize = 10;
/// The most bytes of the page, however many Sources there are.
const MOST_BYTES: usize = 100_000;

#[tokio::test]
async fn the_first_page_shows_what_runs_what_failed_and_who_works() {
    let good = source(Simulated::default().resources(4)).await;
    let bad = source(Simulated::default().resources(4)).await;
    bad.set_fault(1, Fault::status(404));
    let (fleet, _all, api) = fleet().await;
    let visitor = Visitor::of(&api).signed_in(OPERATE).await;
    let page = visitor.page("/console").await;
    assert!(page.contains("<h1>Fleet</h1>") && page.contains(">all 0</a>"), "{page}");
    for url in [good.well_known(), bad.well_known()] {
        fleet.add(&url, &[]);
        fleet.harvest(&url).await;
    }
    // The gateway opens the store while the page is served, so it may count Sources before it is ready.
    let page = found("both Sources are counted, and all services are ready", async || {
        let page = visitor.page("/console").await;
        let counted = page.contains("in sync 1") && page.contains("problems 1");
        (counted && page.contains("<td>ready</td>")).then_some(page)
    })
    .await;
    assert!(page.contains("href=\"/console/sources?state=problems\""), "{page}");
    assert!(page.contains("No run waits.") && page.contains("No Source's last run failed."), "{page}");
    assert!(page.contains("1 scheduler and 1 fetcher send heartbeats."), "{page}");
    assert!(page.contains("<td>alive</td>"), "{page}");
    let list = visitor.page("/console/sources?state=problems").await;
    assert!(list.contains("1 on this page"), "{list}");

    // Links from before the page moved go on to the list.
    let moved = visitor.get("/console?state=problems&name=").await.is(StatusCode::PERMANENT_REDIRECT);
    assert_eq!(moved.header("location"), "/console/sources?state=problems&name=");

    let runs = visitor.page("/console/runs").await;
    assert!(runs.contains("finished 2") && runs.contains("2 on this page"), "{runs}");
    let runs = visitor.page("/console/runs?state=waiting&reason=turn").await;
    assert!(runs.contains("No matching run.") && runs.contains("unreachable"), "{runs}");
}

/// A gateway alone, beside a control store that the test fills. No scheduler changes what it has written.
async fn gateway_alone() -> (Fleet, crate::common::Service, Api, Control) {
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let config = Config {
        servers: vec![fleet.nats.clone()],
        namespace: fleet.namespace.clone(),
        // No scheduler renews leases and memberships here.
        lease_seconds: 3_600,
        member_seconds: 3_600,
        ..Config::default()
    };
    let control = Control::connect(&config).await.expect("NATS");
    let gateway = fleet.start(&["gateway"], &fleet.gateway());
    let api = Api::of(&gateway).await;
    (fleet, gateway, api, control)
}

fn spec(number: usize) -> SourceSpec {
    let entry = format!("https://source-{number:05}.example.org/").parse().expect("a URL");
    let schedule =
        if number.is_multiple_of(3) { Schedule::cron("0 3 * * *") } else { Schedule::every(3_600) };
    Spec { schedule: Some(schedule), ..Spec::new(entry) }.into()
}

async fn submit(control: &Control, source: &SourceSpec) -> RunId {
    let spec = RunSpec {
        id: RunId::fresh(),
        source: source.id.clone(),
        mode: RunMode::Auto,
        asked_by: AskedBy::Schedule,
        asked_at: Timestamp::now(),
        allow_deletes: false,
        repair: false,
        task: None,
    };
    control.runs().submit(spec).await.expect("it is queued").spec.id
}

/// A run from its submission to its end.
async fn sync(control: &Control, source: &SourceSpec) {
    let id = submit(control, source).await;
    let owner: MemberId = "scheduler-1".parse().expect("an ID");
    let now = Timestamp::now();
    let Claim::Taken(lease) = control.leases().acquire(&source.id, &owner, now).await.expect("NATS") else {
        panic!("the lease of {} is taken", source.id);
    };
    control.runs().start(&lease, id, now).await.expect("it is started");
    control
        .runs()
        .finish(&lease, id, control::Progress::default(), InSync(true), now)
        .await
        .expect("it is finished");
    lease.release().await;
}

/// Submits a run, and starts it. Some fail.
async fn work(control: &Control, source: &SourceSpec, number: usize) {
    let id = submit(control, source).await;
    let owner: MemberId = "scheduler-1".parse().expect("an ID");
    let runs = control.runs();
    let now = Timestamp::now();
    let Claim::Taken(lease) = control.leases().acquire(&source.id, &owner, now).await.expect("NATS") else {
        panic!("the lease of {} is taken", source.id);
    };
    runs.start(&lease, id, now).await.expect("it is started");
    if number < FAILED {
        runs.fail(&lease, id, RunFailure::because("<b>no such host</b>"), now).await.expect("it has failed");
        lease.release().await;
        return;
    }
    let counters = Counters { planned: 1_000, stored: 400, ..Counters::default() };
    let progress = Progress { counters, pending: Some(600), ..Progress::default() };
    runs.tell(&lease, id, progress, now).await.expect("it is told");
    // It stays with its owner.
    std::mem::forget(lease);
}

#[tokio::test]
async fn the_first_page_of_ten_thousand_sources_is_short_and_counts_all_of_them() {
    let (_fleet, _gateway, api, control) = gateway_alone().await;
    let specs: Vec<SourceSpec> = (0..SOURCES).map(spec).collect();
    stream::iter(specs.iter().enumerate().map(Ok))
        .try_for_each_concurrent(64, async |(number, spec)| {
            control.sources().create(spec).await?;
            match number {
                0..QUEUED => drop(submit(&control, spec).await),
                QUEUED.. if number < QUEUED + FAILED + ACTIVE => work(&control, spec, number - QUEUED).await,
                _ if number.is_multiple_of(IN_SYNC_EACH) => sync(&control, spec).await,
                _ => {}
            }
            Ok::<_, control::ControlError>(())
        })
        .await
        .expect("NATS");
    let visitor = Visitor::of(&api).signed_in(READ).await;
    let page = found("all Sources are counted", async || {
        let page = visitor.page("/console").await;
        let counted = page.contains("all 10\u{202f}000</a>") && page.contains("failed 60</a>");
        (counted && page.contains("running 340</a>") && page.contains("in sync 960</a>")).then_some(page)
    })
    .await;
    assert!(page.len() < MOST_BYTES, "{} bytes", page.len());
    assert!(page.contains("never synced 8\u{202f}640</a>") && page.contains("in sync 960</a>"), "{page}");
    assert!(page.contains("Runs that began first: 10 of 40"), "{page}");
    assert!(page.contains("Newest first: 10 of 60"), "{page}");
    assert!(page.contains("&lt;b&gt;no such host&lt;/b&gt;") && !page.contains("<b>no such"), "{page}");
    assert!(page.contains("24\u{202f}000 resources"), "the backlog of 40 runs: {page}");
    let queued =
        "a free slot at a scheduler</th><td class=\"number\"><a href=\"/console/runs?state=queued\">300</a>";
    assert!(page.contains(queued), "{page}");

    let runs = visitor.page("/console/runs?state=running").await;
    assert!(runs.contains("40 on this page") && runs.contains("running 40"), "{runs}");
    let first = visitor.page("/console/runs?state=queued").await;
    let next = first.split("rel=\"next\" href=\"").nth(1).expect("there is more").split('"').next().unwrap();
    let second = visitor.page(&next.replace("&amp;", "&")).await;
    assert!(second.contains("50 on this page") && first != second, "{second}");

    // Not a promise, as this is no measurement: it tells a page that costs something for each Source.
    let start = Instant::now();
    for _ in 0..10 {
        visitor.page("/console").await;
    }
    eprintln!("the first page of {SOURCES} Sources: {:?} each", start.elapsed() / 10);
}

#[tokio::test]
async fn runs_of_all_sources_with_a_status_are_started_after_a_look_at_their_number() {
    let (_fleet, _gateway, api, control) = gateway_alone().await;
    for number in 0..3 {
        control.sources().create(&spec(number)).await.expect("NATS");
    }
    let operator = Visitor::of(&api).signed_in(OPERATE).await;
    let reader = Visitor::of(&api).signed_in(READ).await;
    let at = "/console/runs:batch?state=never-synced";
    let list = found("all three are listed", async || {
        let list = operator.page("/console/sources?state=never-synced").await;
        list.contains("3 on this page").then_some(list)
    })
    .await;
    assert!(list.contains(&format!("href=\"{at}\"")), "{list}");
    assert!(!reader.page("/console/sources?state=never-synced").await.contains(at), "a reader may not");
    let form = operator.page(at).await;
    assert!(form.contains("3 Sources match.") && form.contains("Start 3 runs"), "{form}");
    let value = |name: &str| {
        let (_, rest) = form.split_once(&format!("name=\"{name}\" value=\"")).expect(name);
        rest.split('"').next().expect("a value").to_owned()
    };
    let key = value("key");
    let sent = |count| [("state", "never-synced"), ("count", count), ("key", key.as_str())];
    let path = "/console/runs:batch";
    reader.post(path, &sent("3")).await.is(StatusCode::FORBIDDEN);
    let more = operator.post(path, &sent("2")).await.is(StatusCode::CONFLICT).text();
    assert!(more.contains("There are more Sources now than the 2"), "{more}");
    assert!(control.runs().view().await.expect("NATS").all().is_empty(), "nothing was requested yet");
    let done = operator.post(path, &sent("3")).await.is(StatusCode::OK).text();
    assert!(done.contains("3 runs were requested.") && !done.contains("refused"), "{done}");
    assert_eq!(control.runs().view().await.expect("NATS").all().len(), 3);
    operator.get("/console/runs:batch?state=none").await.is(StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn all_sources_of_a_filtered_list_are_paused_labelled_and_resumed_after_a_look_at_their_number() {
    let (_fleet, _gateway, api, control) = gateway_alone().await;
    for number in 0..3 {
        let mut spec = spec(number);
        if number > 0 {
            spec.labels.insert("country".parse().expect("a key"), "jp".parse().expect("a value"));
        }
        control.sources().create(&spec).await.expect("NATS");
    }
    let admin = Visitor::of(&api).signed_in(ADMIN).await;
    let operator = Visitor::of(&api).signed_in(OPERATE).await;
    let path = "/console/sources:batch";
    let of_japan = "match=country%3Djp";
    let list = found("two are listed", async || {
        let list = admin.page(&format!("/console/sources?{of_japan}")).await;
        list.contains("2 on this page").then_some(list)
    });
    let list = list.await;
    for action in ["pause", "resume", "label"] {
        let link = format!("href=\"{path}?action={action}&amp;{of_japan}\"");
        assert!(list.contains(&link), "{link}: {list}");
    }
    assert!(list.contains(&format!("href=\"/console/runs:batch?{of_japan}\"")), "{list}");
    let list = operator.page(&format!("/console/sources?{of_japan}")).await;
    assert!(list.contains("/console/runs:batch") && !list.contains(path), "an operator changes no spec");
    operator.get(&format!("{path}?action=pause")).await.is(StatusCode::FORBIDDEN);

    let form = admin.page(&format!("{path}?action=pause&{of_japan}")).await;
    assert!(form.contains("2 Sources match.") && form.contains("Pause 2 Sources"), "{form}");
    let sent = |action, count| [("action", action), ("match", "country=jp"), ("count", count)];
    operator.post(path, &sent("pause", "2")).await.is(StatusCode::FORBIDDEN);
    let more = admin.post(path, &sent("pause", "1")).await.is(StatusCode::CONFLICT).text();
    assert!(more.contains("There are more Sources now than the 1"), "{more}");
    let enabled = async || {
        let mut enabled = Vec::new();
        for number in 0..3 {
            enabled.push(control.sources().get(&spec(number).id).await.expect("NATS").enabled);
        }
        enabled
    };
    assert_eq!(enabled().await, [true, true, true], "nothing was changed yet");
    let done = admin.post(path, &sent("pause", "2")).await.is(StatusCode::OK).text();
    assert!(done.contains("2 Sources were changed.") && !done.contains("refused"), "{done}");
    assert_eq!(enabled().await, [true, false, false]);
    let again = admin.post(path, &sent("pause", "2")).await.is(StatusCode::OK).text();
    assert!(
        again.contains("0 Sources were changed.") && again.contains("2 Sources were so already."),
        "{again}"
    );
    admin.post(path, &sent("resume", "2")).await.is(StatusCode::OK);
    assert_eq!(enabled().await, [true, true, true]);

    let labels = [&sent("label", "2")[..], &[("set", "tier=1 owner=ada"), ("remove", "country")]].concat();
    admin.post(path, &labels).await.is(StatusCode::OK);
    for number in 0..3 {
        let labels = control.sources().get(&spec(number).id).await.expect("NATS").labels.clone();
        let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let expected: &[&str] = if number > 0 { &["owner=ada", "tier=1"] } else { &[] };
        assert_eq!(labels, expected, "{number}");
    }
    admin.post(path, &sent("label", "2")).await.is(StatusCode::BAD_REQUEST);
    admin.get(&format!("{path}?action=remove")).await.is(StatusCode::BAD_REQUEST);
    admin.get(&format!("{path}?action=pause&match=%3D")).await.is(StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_charts_show_the_samples_of_the_last_hours() {
    let (_fleet, _gateway, api, control) = gateway_alone().await;
    let visitor = Visitor::of(&api).signed_in(READ).await;
    let now = Timestamp::now();
    let samples = (1..=30).map(|ago| {
        let runs = SampledRuns { active: 7, unreachable: ago, ..SampledRuns::default() };
        let sources = SampledSources { failed: 2, in_sync: 90, ..SampledSources::default() };
        let at = now - SignedDuration::from_mins(i64::from(ago));
        Sample { at, runs, sources, pending: 5_000, stored: Some(1_234), bytes: Some(1 << 20) }
    });
    for sample in samples {
        control.samples().record(&sample).await.expect("NATS");
    }
    let page = found("all samples are drawn", async || {
        let page = visitor.page("/console").await;
        (page.matches("<title>").count() >= 30 * 5).then_some(page)
    })
    .await;
    assert!(page.contains("resources stored per minute. The last value is 1\u{202f}234"), "{page}");
    assert!(
        page.contains("queued, or waiting for their Sources. The last value is 1, the highest 30."),
        "{page}"
    );
    assert!(
        page.contains("1\u{202f}234 in the last minute") && page.contains("1.0 MiB in the last"),
        "{page}"
    );
    assert!(page.contains("<figcaption") && page.contains("Figures of the charts"), "{page}");
}

#[tokio::test]
async fn gateways_record_one_sample_a_minute_by_themselves() {
    let (fleet, _gateway, _api, control) = gateway_alone().await;
    let _second = fleet.start(&["gateway"], &fleet.gateway());
    let mut view = control.samples().view().await.expect("NATS");
    let recorded = view.wait_for(|view| view.all().into_iter().next());
    let sample = tokio::time::timeout(Duration::from_secs(120), recorded).await.expect("a sample in time");
    assert_eq!(sample.at.as_second() % 60, 0, "{sample:?}");
    assert_eq!((sample.pending, sample.runs), (0, SampledRuns::default()));
}
