//! The format of values in the control store does not change by accident, and earlier formats can still be read.
//!
//! This test writes the files: `WRITE_GOLDEN=1 cargo test -p control --test golden`. A file may gain fields. A field
//! that is removed, or gets another meaning, needs a new version of the value.
#![allow(missing_docs)]

use std::fmt::Debug;
use std::fs;

use control::{
    ActionKind, ActionSelector, AdvertisedChannel, AskedBy, AskedMode, Backfill, Change, Cooldown,
    DeliveryStats, Hint, HubHint, HubRequest, InSync, InboxCursor, Kept, LeaseRecord, LeaseTerm, Member,
    NameClaim, OutboxMessage, Plan, PlanEstimate, PlanState, PlanUnread, PlanWay, PollInterval,
    ProblemActionRequest, Problems, Progress, Revision, Role, Run, RunFailure, RunSpec, RunTransition,
    RunWait, Sample, SampledRuns, SampledSources, Schedule, Session, SourceSpec, Submission, Subscription,
    SubscriptionId, SubscriptionState, SyncSummary, Task, TaskProgress, WaitReason,
};
use jiff::Timestamp;
use model::{Absent, BackfillCounts, Phase, Prefer, ProblemReason, Robots, RunMode, SetId, SourceId};
use serde_json::Value;
use url::Url;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Compares a value with its file, in both directions.
fn golden<T: Kept + PartialEq + Debug>(name: &str, value: &T) {
    let written: Value = serde_json::from_slice(&model::encode(value)).unwrap();
    let path = format!("{FOLDER}/{name}.json");
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        fs::write(&path, serde_json::to_string_pretty(&written).unwrap() + "\n").unwrap();
    }
    let text = fs::read(&path).unwrap_or_else(|error| {
        panic!("{path}: {error}; write it with WRITE_GOLDEN=1 cargo test -p control --test golden")
    });
    assert_eq!(
        &model::decode::<T>(&text).unwrap(),
        value,
        "{name}: what was written before reads otherwise now"
    );
    let before: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(lost(&before, &written), None, "{name}: what is written now lacks something");
}

/// The first place at which `now` lacks a value that was there `before`, or has another one.
fn lost(before: &Value, now: &Value) -> Option<String> {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => before.iter().find_map(|(name, value)| {
            let there = now.get(name).map_or(Some(String::new()), |now| lost(value, now));
            there.map(|place| format!(".{name}{place}"))
        }),
        _ => (before != now).then(String::new),
    }
}

fn plain_source() -> SourceSpec {
    SourceSpec::new(Url::parse("https://example.org/").unwrap())
}

fn run() -> Run {
    Run::submitted(RunSpec {
        id: "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap(),
        source: "example-org-1".parse().unwrap(),
        mode: RunMode::Auto,
        asked_by: AskedBy::Schedule,
        asked_at: at("2026-03-01T12:00:00Z"),
        allow_deletes: false,
        repair: false,
        task: None,
    })
}

fn term() -> LeaseTerm {
    LeaseTerm { owner: "pod-1".parse().unwrap(), epoch: Revision::new(42) }
}

fn running() -> Run {
    let run = run().step(RunTransition::Start(term()), at("2026-03-01T12:00:01Z")).unwrap();
    let mut progress = Progress {
        phase: Some(Phase::Dispatching),
        pending: Some(7),
        told_at: Some(at("2026-03-01T12:00:05Z")),
        ..Progress::default()
    };
    progress.counters.listed = 12;
    progress.counters.quirks.insert("gzip".to_owned(), 1);
    run.step(RunTransition::Progress(term(), progress.into()), at("2026-03-01T12:00:05Z")).unwrap()
}

#[test]
fn names() {
    golden("source-name", &NameClaim { source: "example-org-1".parse().unwrap(), read: Revision::new(42) });
}

#[test]
fn sources() {
    golden("source-plain", &plain_source());
    let mut full = plain_source();
    full.enabled = false;
    full.schedule = Some(Schedule::cron("30 2 * * *").jitter(900));
    full.follow = Some(PollInterval { min_seconds: 10, max_seconds: 600 });
    full.prefer = Some(Prefer::Dump);
    full.absent = Absent::Keep;
    full.max_deletes_percent = 5;
    full.metadata_prefix = Some("mets".to_owned());
    full.encoding = Some("windows-1252".parse().unwrap());
    full.sets = vec!["col_1".to_owned(), "a:b".to_owned()];
    full.include = Some("[.]pdf$".to_owned());
    full.exclude = Some("/tmp/".to_owned());
    full.origins = model::Origins::Same;
    full.mirrors = model::Mirrors::Prefer;
    full.patches = model::Patches::Off;
    full.publish = model::Publish::Networks;
    full.publish_networks = vec!["10.2.0.0/16".parse().unwrap()];
    full.publish_archive = Some("1y".parse().unwrap());
    full.publish_sets = vec!["theses=/theses/".parse().unwrap()];
    full.follow_links = ["item", "describedby"].map(|rel| rel.parse().unwrap()).into();
    full.follow_types = vec!["application/pdf".parse().unwrap()];
    full.follow_max = 5.try_into().ok();
    full.follow_rules = vec!["rel=alternate,type=application/pdf,max=2,instead".parse().unwrap()];
    full.only = ["type=application/pdf", "describes"].map(|only| only.parse().unwrap()).into();
    full.strict = true;
    full.accept_html = true;
    full.concurrency = 2.try_into().unwrap();
    full.requests_per_second = Some(8.try_into().unwrap());
    full.max_body_bytes = Some((1 << 30).try_into().unwrap());
    full.robots = Robots::Obey;
    full.contact = Some("mailto:a@example.org".to_owned());
    full.credential = Some("partner-1".parse().unwrap());
    full.allow_networks = vec!["10.1.0.0/16".parse().unwrap(), "fd00:1::7".parse().unwrap()];
    full.push = model::Push::Off;
    full.notify = vec!["https://index.example.com/".parse().unwrap()];
    full.inbox = Some("https://registry.example.com/inbox/".parse().unwrap());
    full.check().unwrap();
    // A request for it is refused, and it can still be read.
    full.mode = RunMode::Audit;
    golden("source-full", &full);
    let mut described = plain_source();
    described.name = Some("example.main".parse().unwrap());
    described.title = Some("The example".to_owned());
    let labels = [("country", "jp"), ("example.org/tier", "")];
    described.labels = labels.map(|(key, value)| (key.parse().unwrap(), value.parse().unwrap())).into();
    described.notes = Some("Ask before a baseline.".to_owned());
    described.source_contact = Some("Ada <ada@example.org>".to_owned());
    described.check().unwrap();
    golden("source-described", &described);
    let mut every = plain_source();
    every.schedule = Some(Schedule::every(3600));
    golden("source-every", &every);
}

#[test]
fn runs() {
    golden("run-queued", &run());
    let waiting = RunWait {
        reason: WaitReason::Unreachable,
        why: "https://example.org/ did not answer within 10 s".to_owned(),
        since: at("2026-03-01T12:00:00Z"),
        until: at("2026-03-01T12:00:40Z"),
        tries: 3,
    };
    golden("run-waiting", &Run { waiting: Some(waiting), ..run() });
    let mut hinted = run();
    hinted.spec.asked_by = AskedBy::Hint;
    golden("run-hinted", &hinted);
    golden("run-running", &running());
    let end = |step| running().step(step, at("2026-03-01T12:10:00Z")).unwrap();
    golden("run-finished", &end(RunTransition::Finish(term(), InSync(true))));
    golden(
        "run-failed",
        &end(RunTransition::Fail(term(), RunFailure::because("the source cannot be reached"))),
    );
    golden(
        "run-guarded",
        &end(RunTransition::Fail(term(), RunFailure::by_guard("20 of 40 resources would be deleted"))),
    );
    golden("run-stopping", &end(RunTransition::Cancel));
    let problems = Some(Problems { open: 3, ignored: 1 });
    let in_sync_as_of = Some(at("2026-02-28T12:00:01Z"));
    let progress = Progress { problems, ..Progress::default() };
    let before = SyncSummary { in_sync_as_of, problems, title: None };
    golden("run-followed", &Run { progress: progress.clone(), before: before.clone(), ..running() });
    let title = Some("The example".to_owned());
    let progress = Progress { title: title.clone(), ..progress };
    golden("run-titled", &Run { progress, before: SyncSummary { title, ..before }, ..running() });
    let asked = Backfill {
        versions: 5.try_into().ok(),
        since: Some(at("2025-01-01T00:00:00Z")),
        archives: true,
        any_host: true,
    };
    let mut counts =
        BackfillCounts { resources: 2, known: 7, stored: 4, bytes: 12, ..BackfillCounts::default() };
    counts.failed.insert("memento-undated".to_owned(), 1);
    let after = "https://example.org/a".parse().ok();
    let mut backfill = running();
    backfill.spec.task = Some(Task::Backfill(asked));
    backfill.progress.task = Some(TaskProgress::Backfill { after, counts });
    golden("run-backfill", &backfill);
    golden("run-paused", &run().step(RunTransition::Pause, at("2026-03-01T12:10:00Z")).unwrap());
    golden("run-cancelled", &run().step(RunTransition::Cancel, at("2026-03-01T12:10:00Z")).unwrap());
}

#[test]
fn leases_members_and_rests() {
    let since = at("2026-03-01T12:00:00Z");
    let first = LeaseRecord { holder: "pod-1".parse().unwrap(), epoch: None, since };
    golden("lease-first", &first);
    golden("lease", &LeaseRecord { epoch: Some(Revision::new(42)), ..first });
    let version = "0.1.0".to_owned();
    golden("member", &Member { id: "pod-1".parse().unwrap(), role: Role::Scheduler, version, since });
    let origin = "https://example.org".parse().unwrap();
    golden("rest", &Cooldown { origin, until: since, status: 503 });
}

#[test]
fn submissions_sessions_and_words() {
    let run = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
    let submission = Submission { content: "ab".repeat(32), run, answer: Some("{}".to_owned()) };
    golden("submission", &submission);
    golden("session", &Session { mark: "ab".repeat(32) });
    let about = ActionSelector {
        uris: vec!["https://example.org/a".to_owned()],
        prefix: Some("https://example.org/".to_owned()),
        reasons: vec![ProblemReason::Timeout],
        kinds: vec!["resource".to_owned()],
    };
    let source: SourceId = "example-org-8198d1bac40a".parse().unwrap();
    let word = |name: &str, word| {
        let said = ProblemActionRequest::new(source.clone(), about.clone(), word, at("2026-03-01T12:00:00Z"));
        golden(name, &ProblemActionRequest { id: "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap(), ..said });
    };
    word("word-ignore", ActionKind::Ignore { note: "gone since 2019".to_owned() });
    word("word-retry", ActionKind::Retry { ignored: true });
    word("word-undo", ActionKind::Undo);
}

#[test]
fn samples() {
    let runs = SampledRuns { active: 8, queued: 120, unreachable: 9, retry_after: 2, turn: 1 };
    let sources = SampledSources {
        failed: 3,
        blocked: 11,
        stale: 4,
        problems: 5,
        paused: 6,
        never_synced: 700,
        running: 129,
        in_sync: 9_000,
        disabled: 10,
    };
    let (stored, bytes) = (Some(1_200), Some(5_000_000));
    let sample = Sample { at: at("2026-03-01T12:00:00Z"), runs, sources, pending: 40_000, stored, bytes };
    golden("sample", &sample);
    let (runs, sources) = (SampledRuns::default(), SampledSources { in_sync: 1, ..Default::default() });
    golden("sample-first", &Sample { runs, sources, pending: 0, stored: None, bytes: None, ..sample });
}

#[test]
fn plans() {
    let at = at("2026-03-01T12:00:00Z");
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
    let plan = |tries, state| Plan { id, source: plain_source(), asked_at: at, tries, state };
    golden("plan-asked", &plan(0, PlanState::Asked));
    golden("plan-taken", &plan(1, PlanState::Taken { by: "pod-1".parse().unwrap() }));
    golden("plan-failed", &plan(1, PlanState::Failed { why: "nothing is there".to_owned(), at }));
    let way = PlanWay {
        set: SetId::new("https://example.org/set"),
        capability: "resourcelist".to_owned(),
        documents: 2,
        named: 1_000,
        held: 10,
        requests: 990,
        bytes: Some(5_000_000),
        time_ms: Some(25_000),
        chosen: true,
    };
    let unread = PlanUnread { uri: "https://example.org/list2".to_owned(), why: "status 404".to_owned() };
    let estimate = PlanEstimate {
        ways: vec![way],
        ways_left_out: 1,
        wait_ms: 100,
        requests: 5,
        unread: vec![unread],
        unread_left_out: 2,
        formats: Vec::new(),
    };
    golden("plan-done", &plan(1, PlanState::Done { estimate, at }));
}

#[test]
fn hints() {
    let source = "example-org-1".parse().unwrap();
    let given_at = at("2026-03-01T12:00:00Z");
    let by = "repository-1".to_owned();
    golden("hint", &Hint { source, given_at, by, unproved: false });
    golden("hub-hint", &HubHint { source: "example-org-1".parse().unwrap(), given_at });
}

#[test]
fn what_is_left_out_has_its_default() {
    let text = br#"{"kind":"source-spec","version":1,
        "body":{"id":"example-org-8198d1bac40a","entry":"https://example.org/"}}"#;
    assert_eq!(model::decode::<SourceSpec>(text).unwrap(), plain_source());
}

#[test]
fn a_field_that_goes_or_changes_is_found_and_one_that_comes_is_not() {
    let value = |text| serde_json::from_str::<Value>(text).unwrap();
    let before = value(r#"{"a":{"b":1}}"#);
    assert_eq!(lost(&before, &value(r#"{"a":{"b":1,"c":2}}"#)), None);
    assert_eq!(lost(&before, &value(r#"{"a":{"b":2}}"#)), Some(".a.b".to_owned()));
    assert_eq!(lost(&before, &value(r#"{"a":{}}"#)), Some(".a.b".to_owned()));
}

#[test]
fn subscriptions() {
    let offered = AdvertisedChannel {
        source: "example-org-1".parse().unwrap(),
        set: SetId::new("https://example.org/capabilitylist.xml"),
        topic: "https://example.org/change/".to_owned(),
        hubs: vec!["https://hub.example/".to_owned(), "https://hub2.example/".to_owned()],
    };
    let wanted = Subscription {
        id: SubscriptionId::of(&offered.source, &offered.topic, "0123456789abcdef"),
        source: offered.source,
        set: offered.set,
        topic: offered.topic,
        hubs: offered.hubs,
        key: "0123456789abcdef".to_owned(),
        made_at: at("2026-03-01T12:00:00Z"),
        state: SubscriptionState::Wanted,
        next_at: at("2026-03-01T12:00:00Z"),
        asked: None,
        tries: 0,
        trouble: None,
        revived_at: None,
        received: DeliveryStats::default(),
    };
    golden("subscription-wanted", &wanted);
    let asked = |mode| Some(HubRequest { mode, at: at("2026-03-01T12:00:01Z") });
    let pending = Subscription {
        state: SubscriptionState::Pending,
        asked: asked(AskedMode::Subscribe),
        tries: 2,
        trouble: Some("no answer".to_owned()),
        ..wanted
    };
    golden("subscription-pending", &pending);
    let since = at("2026-03-01T12:00:02Z");
    let until = at("2026-03-11T12:00:02Z");
    let received = DeliveryStats { queued: 7, dropped: 1, last_at: Some(since), missed: 2 };
    let active = Subscription {
        state: SubscriptionState::Active { since, until },
        received,
        tries: 0,
        trouble: None,
        revived_at: Some(at("2026-03-02T12:00:00Z")),
        ..pending
    };
    golden("subscription-active", &active);
    let at = until;
    let reason = Some("full".to_owned());
    golden(
        "subscription-denied",
        &Subscription { state: SubscriptionState::Denied { at, reason }, asked: None, ..active.clone() },
    );
    let asked = asked(AskedMode::Unsubscribe);
    golden("subscription-ending", &Subscription { state: SubscriptionState::Ending, asked, ..active });
}

#[test]
fn outgoing() {
    let change = Change {
        run: "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap(),
        from: at("2026-03-01T12:00:00Z"),
        until: at("2026-03-01T12:00:05Z"),
        stored: 12,
        deleted: 1,
    };
    let source: SourceId = "example-org-1".parse().unwrap();
    let target = Url::parse("https://index.example.com/").unwrap();
    let waiting = OutboxMessage::new(source, target, change.clone(), at("2026-03-01T12:00:05Z"));
    golden("outgoing-waiting", &waiting);
    let later = Change { run: "01ARZ3NDEKTSV4RRFFQ69G5FAW".parse().unwrap(), stored: 1, ..change };
    let merged = waiting.and(&later, at("2026-03-01T13:00:00Z")).taken(at("2026-03-01T13:00:01Z"));
    golden("outgoing-refused", &merged.refused("403"));
}

#[test]
fn inbox_cursors() {
    let source: SourceId = "example-org-1".parse().unwrap();
    let page = Url::parse("https://registry.example.com/").unwrap();
    let new = InboxCursor::new(source, page.clone(), at("2026-03-01T12:00:00Z"));
    let every = std::time::Duration::from_secs(300);
    let taken = new.taken(every, at("2026-03-01T12:00:00Z"));
    golden("reading-failed", &taken.failed("503", None, every, at("2026-03-01T12:00:01Z")));
    let listed = [page.join("1").unwrap(), page.join("2").unwrap()];
    let validators = model::Validators { etag: Some("\"1\"".to_owned()), last_modified: None };
    let inbox = page.join("inbox/").unwrap();
    golden("reading-read", &taken.read(inbox, &listed, &[], validators, every, at("2026-03-01T12:00:02Z")));
}
