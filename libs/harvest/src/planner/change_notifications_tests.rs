//! Harvests of a Source whose catalog the test writes by hand, with notifications on a bus.

use bus::{Bus, Filter, MemoryBus, MessageId, Payload, Queue};
use catalog::{Catalog, CatalogConfig};
use jiff::Timestamp;
use model::{
    CapabilityLink, Counters, DiscoveryRecord, Listing, ManualClock, MissedChanges, Mode, Phase,
    ProblemRecord, ResourceUri, RunId, RunRecord, SourceId, Subject,
};
use planning::HarvestOptions;
use store::{Store, StoreOptions, StoreTarget};
use tempfile::TempDir;
use testkit::scripted::{Reply, ScriptedServer};

use super::*;
use crate::Harvest;
use crate::error::HarvestError;
use crate::parts::Parts;

const TOPIC: &str = "http://h/channel";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_772_366_400 + second).unwrap()
}

fn id() -> SetId {
    SetId::new("http://h/capabilitylist.xml")
}

/// A document with the changes between two times.
fn changes(capability: &str, from: i64, until: i64, entries: &str) -> String {
    let from = at(from);
    let until = at(until);
    format!(
        r#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">
        <rs:md capability="{capability}" from="{from}" until="{until}"/>{entries}</urlset>"#
    )
}

/// A bad entry.
const BAD: &str = "<url><rs:md change=\"updated\"/></url>";

/// A Source with a Change List and a channel, synchronized up to time 0.
struct Case {
    _folder: TempDir,
    store: Store,
    bus: Arc<MemoryBus>,
    server: ScriptedServer,
    source: SourceId,
}

impl Case {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let target = StoreTarget::Directory(folder.path().to_owned());
        let options = StoreOptions { fsync: false, ..StoreOptions::default() };
        let store = Store::open(&target, options).await.unwrap();
        let server = ScriptedServer::start().await.unwrap();
        server.always("/changes.xml", Reply::ok(changes("changelist", 0, 90, "")));
        let source = "example-org-1".parse().unwrap();
        let case = Self { _folder: folder, store, bus: Arc::new(MemoryBus::new(16)), server, source };
        let capabilities = vec![
            CapabilityLink::new(Capability::ChangeList, case.server.uri("/changes.xml")),
            CapabilityLink::new(Capability::ChangeNotification, TOPIC),
        ];
        let set = SetRecord {
            capabilities,
            has_baseline: true,
            synchronized_to: Some(at(0)),
            ..SetRecord::default()
        };
        let mut batch = Batch::new();
        batch.put_set(&id(), &set);
        batch.put_discovery(&DiscoveryRecord {
            entry: case.server.uri("/"),
            looked_up_at: at(0),
            sets: vec![id()],
            failures: 0,
            documents: Vec::new(),
        });
        case.edit(batch).await;
        case
    }

    async fn catalog(&self) -> Catalog {
        let path = store::Key::Catalog(self.source.clone()).to_string();
        Catalog::open(self.store.object_store(), &path, CatalogConfig::default()).await.unwrap()
    }

    async fn edit(&self, batch: Batch) {
        let catalog = self.catalog().await;
        catalog.commit(batch).await.unwrap();
        catalog.close().await.unwrap();
    }

    /// The state after a run that was interrupted while it planned notifications.
    async fn interrupted(&self) {
        let mut batch = Batch::new();
        batch.put_run(&RunRecord {
            id: RunId::fresh(),
            mode: Mode::Incremental,
            phase: Phase::Planning,
            options: String::new(),
            view: false,
            started_at: at(1),
            finished_at: None,
            cancelled: false,
            counters: Counters::default(),
        });
        self.edit(batch).await;
    }

    async fn open(&self, notified: bool) -> Result<Harvest, HarvestError> {
        let entry = self.server.uri("/").parse().unwrap();
        let parts = Parts {
            source: self.source.clone(),
            bus: Arc::clone(&self.bus) as Arc<dyn Bus>,
            clock: Arc::new(ManualClock::new(at(100))),
            options: HarvestOptions { notified, ..HarvestOptions::default() },
            ..Parts::of_test(entry, self.catalog().await, &self.store)
        };
        Harvest::open(parts).await
    }

    async fn harvest(&self, notified: bool) {
        Box::pin(self.open(notified).await.unwrap().run()).await.unwrap();
    }

    /// Delivers, as a hub, the changes between two times.
    async fn deliver(&self, name: &str, from: i64, until: i64, entries: &str) {
        let notice = ChangeNotification {
            source: self.source.clone(),
            set: id(),
            topic: TOPIC.to_owned(),
            subscription: "1".to_owned(),
            received_at: at(until),
            body: changes("change-notification", from, until, entries).into_bytes(),
        };
        let queue = Queue::Notices { source: self.source.clone() };
        self.bus.publish(queue, MessageId::new(name), Payload::of(Arc::new(notice))).await.unwrap();
    }

    /// Number of notifications that are not acknowledged.
    async fn left(&self) -> usize {
        let depth = self.bus.depth(&Filter::Notices(self.source.clone())).await.unwrap();
        depth.waiting + depth.in_flight
    }

    fn lists_asked_for(&self) -> usize {
        self.server.requests_at("/changes.xml").len()
    }
}

#[tokio::test]
async fn what_joins_on_is_planned_without_a_look_at_a_list() {
    let case = Case::new().await;
    case.deliver("1", 0, 5, "").await;
    case.harvest(true).await;
    assert_eq!((case.lists_asked_for(), case.left().await), (0, 0));
}

#[tokio::test]
async fn a_run_that_was_interrupted_among_notices_reads_the_lists_whoever_goes_on_with_it() {
    for notified in [true, false] {
        let case = Case::new().await;
        case.interrupted().await;
        case.deliver("1", 0, 5, "").await;
        case.harvest(notified).await;
        assert_eq!(case.lists_asked_for(), 1, "notified: {notified}");
        let catalog = case.catalog().await;
        let run = catalog.last_run().await.unwrap().unwrap();
        assert_eq!(
            (run.phase, run.started_at),
            (Phase::Finished, at(1)),
            "it is the one that was interrupted"
        );
        catalog.close().await.unwrap();
    }
}

#[tokio::test]
async fn what_lists_have_to_tell_instead_is_acknowledged_once_these_are_queued() {
    let case = Case::new().await;
    let mut batch = Batch::new();
    // Discovery is necessary, and the Source does not answer.
    batch.put_discovery(&DiscoveryRecord {
        entry: "http://elsewhere/".to_owned(),
        looked_up_at: at(0),
        sets: Vec::new(),
        failures: 0,
        documents: Vec::new(),
    });
    case.edit(batch).await;
    for path in ["/", "/.well-known/resourcesync", "/robots.txt"] {
        case.server.always(path, Reply::status(404));
    }
    case.deliver("1", 0, 5, BAD).await;
    assert!(Box::pin(case.open(true).await.unwrap().run()).await.is_err());
    assert_eq!(case.left().await, 1);
}

#[tokio::test]
async fn a_notice_is_no_more_whole_when_it_is_delivered_again_than_it_was_before() {
    let case = Case::new().await;
    case.deliver("bad", 0, 5, BAD).await;
    let mut harvest = case.open(true).await.unwrap();
    let filter = Filter::Notices(case.source.clone());
    case.bus.open(consumer(filter.clone())).await.unwrap();
    let pull = async || case.bus.pull(&filter, 1, Duration::ZERO).await.unwrap().remove(0);
    for time in 1..=2 {
        // Dropped without acknowledgement, it is delivered again.
        assert!(
            !harvest.planner.plan_notice(&mut harvest.context, &pull().await).await.unwrap(),
            "the {time}. time"
        );
    }
    pull().await.ack().await.unwrap();

    case.deliver("good", 5, 9, "").await;
    for time in 1..=2 {
        // The state after a crash between the two batches.
        let missed = MissedChanges { changes: 1, oldest: at(7), latest: at(7) };
        harvest.context.sets.get_mut(&id()).unwrap().missed = Some(missed);
        assert!(harvest.planner.plan_notice(&mut harvest.context, &pull().await).await.unwrap());
        assert_eq!(harvest.context.sets[&id()].missed, None, "the {time}. time");
    }
}

#[tokio::test]
async fn what_failed_before_is_not_tried_again_as_it_was_where_a_notice_tells_of_a_later_version() {
    let case = Case::new().await;
    let (uri, other): (ResourceUri, ResourceUri) =
        ("http://h/1".parse().unwrap(), "http://h/2".parse().unwrap());
    let mut batch = Batch::new();
    for uri in [&uri, &other] {
        let listing = Listing {
            document: case.server.uri("/changes.xml").into(),
            set: id(),
            change: None,
            change_time: None,
            as_of: Some(at(-9)),
            latest: None,
            links: None,
            linked: None,
        };
        let problem = ProblemRecord {
            reason: model::ProblemReason::Timeout,
            message: String::new(),
            first_seen: at(-8),
            last_seen: at(-8),
            attempts: 1,
            retry: true,
            next_attempt_at: None,
            ignored: None,
            evidence: model::Evidence::default(),
            declaration: Some(model::Declaration::default()),
            listing: Some(listing),
            repair: false,
        };
        batch.put_problem(&Subject::Resource(uri.to_string()), &problem);
    }
    case.edit(batch).await;
    let changed =
        format!(r#"<url><loc>{uri}</loc><rs:md change="updated" datetime="{}"/></url>{BAD}"#, at(3));
    case.deliver("1", 0, 5, &changed).await;
    let mut harvest = case.open(true).await.unwrap();
    assert!(
        harvest.planner.plan_notices(&mut harvest.context).await.unwrap(),
        "an entry is told by the lists alone"
    );
    let catalog = harvest.context.catalog().await.unwrap();
    let planned = async |uri| catalog.pending(uri).await.unwrap().unwrap().listing.as_of;
    assert_eq!((planned(&uri).await, planned(&other).await), (Some(at(3)), Some(at(-9))));
}
