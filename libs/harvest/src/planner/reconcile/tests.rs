use std::collections::BTreeMap;

use catalog::{Catalog, CatalogConfig, LookupCounts, Lookups};
use fixity::Computed;
use futures::TryStreamExt as _;
use jiff::Timestamp;
use model::{
    Absent, Action, Assurance, Bitstream, Counters, Declaration, DocumentRecord, Listing, Location, Mode,
    PendingRecord, ResourceRecord, ResourceUri, SetRecord,
};
use planning::HarvestOptions;
use simulated_source::{ChangeKind, SimulatedSource, SourceSpec};
use store::{Store, StoreOptions, StoreTarget};
use tempfile::TempDir;

use super::*;
use crate::run::document_queue::next_documents;
use crate::{Harvest, Parts};

/// A Source, and a catalog with its initial state.
struct Case {
    offered: SimulatedSource,
    store: Store,
    set: SetId,
    options: HarvestOptions,
    _folder: TempDir,
}

impl Case {
    /// A Source that was never harvested.
    async fn fresh(spec: SourceSpec) -> Self {
        let folder = TempDir::new().unwrap();
        let target = StoreTarget::Directory(folder.path().to_owned());
        let options = StoreOptions { fsync: false, ..StoreOptions::default() };
        let store = Store::open(&target, options).await.unwrap();
        let offered = SimulatedSource::start(spec).await.unwrap();
        let set = SetId::new(offered.capability_list());
        let options = HarvestOptions { absent: Absent::Delete, ..HarvestOptions::default() };
        Self { offered, store, set, options, _folder: folder }
    }

    async fn of(spec: SourceSpec) -> Self {
        let case = Self::fresh(spec).await;
        let catalog = case.open().await;
        let mut batch = Batch::new();
        batch.put_set(&case.set, &SetRecord { has_baseline: true, ..SetRecord::default() });
        for expected in case.offered.expected() {
            let body = case.offered.body(&expected.uri).unwrap();
            batch.put_resource(&expected.uri.parse().unwrap(), &case.held(&body));
        }
        catalog.commit(batch).await.unwrap();
        catalog.close().await.unwrap();
        case
    }

    fn with_mode(mut self, mode: Mode) -> Self {
        self.options.mode = Some(mode);
        self
    }

    fn held(&self, body: &[u8]) -> ResourceRecord {
        let computed = Computed::of(body);
        ResourceRecord {
            bitstream: Some(Bitstream {
                location: Location::Object { sha256: computed.sha256() },
                computed,
                assurance: Assurance::Digest,
                media_type: None,
                encoding: None,
                validators: Default::default(),
                final_url: None,
                stored_at: Timestamp::UNIX_EPOCH,
            }),
            declaration: Declaration::default(),
            listing: Listing {
                document: self.offered.resource_list().into(),
                set: self.set.clone(),
                change: None,
                change_time: None,
                as_of: None,
                latest: None,
                links: None,
                linked: None,
            },
            sets: vec![self.set.clone()],
            deleted: None,
            collected: None,
            absent: None,
            settled_at: Timestamp::UNIX_EPOCH,
        }
    }

    async fn open(&self) -> Catalog {
        Catalog::open(self.store.object_store(), "catalog", CatalogConfig::default()).await.unwrap()
    }

    async fn harvest(&self) -> (Harvest, Lookups) {
        let entry: url::Url = self.offered.well_known().parse().unwrap();
        let catalog = self.open().await;
        let lookups = Lookups::clone(&catalog);
        let parts = Parts::of_test(entry, catalog, &self.store);
        let parts = Parts { options: self.options.clone(), ..parts };
        (Harvest::open(parts).await.unwrap(), lookups)
    }

    /// Plans a run, and nothing more. Returns the counters, the plans, and the catalog's access counts.
    async fn plan(&self) -> (Counters, BTreeMap<String, PendingRecord>, LookupCounts) {
        let (mut harvest, lookups) = self.harvest().await;
        let before = lookups.asked();
        harvest.plan().await.unwrap();
        let after = lookups.asked();
        let pending = lookups.scan_pending(None).await.unwrap();
        let pending = pending.map_ok(|(uri, record)| (uri.to_string(), record)).try_collect().await.unwrap();
        let asked = LookupCounts {
            looked_up: after.looked_up - before.looked_up,
            commits: after.commits - before.commits,
            written: after.written - before.written,
        };
        (harvest.context.run.counters.clone(), pending, asked)
    }

    /// Number of log files of the catalog so far.
    async fn log_files(&self) -> usize {
        let objects: Vec<_> =
            self.store.object_store().list(Some(&"catalog/wal".into())).try_collect().await.unwrap();
        objects.len()
    }

    fn update(&self, numbers: impl Iterator<Item = u64>) {
        for number in numbers {
            self.offered.change_one(number, ChangeKind::Updated);
        }
    }
}

fn lists(resources: u64) -> SourceSpec {
    SourceSpec::default().resources(resources).change_list(false).entries_per_list(resources / 3)
}

#[tokio::test]
async fn an_entry_of_what_is_held_costs_neither_a_look_up_nor_a_write() {
    let mut asked = Vec::new();
    for resources in [300, 3_000] {
        let case = Case::of(lists(resources)).await;
        let (counters, pending, planning) = case.plan().await;
        assert_eq!((counters.listed, counters.unchanged), (resources, resources));
        assert!(pending.is_empty());
        asked.push(planning);
    }
    assert_eq!(asked[0], asked[1], "planning asks the same of the catalog, however many are held");
    assert!(asked[0].commits <= 4, "{asked:?}");
}

#[tokio::test]
async fn the_first_harvest_of_lists_in_order_looks_for_no_plan_of_its_own() {
    let case = Case::fresh(lists(3_000)).await;
    let (counters, pending, asked) = case.plan().await;
    assert_eq!((counters.listed, counters.planned, pending.len()), (3_000, 3_000, 3_000));
    assert!(asked.looked_up < 30, "{asked:?}");
}

/// Each commit is a write to the store. One per portion would be more than forty.
#[tokio::test]
async fn portions_of_a_first_harvest_are_committed_by_the_thousands() {
    let case = Case::fresh(SourceSpec::default().resources(20_000).change_list(false)).await;
    let before = case.log_files().await;
    let (_, pending, _) = case.plan().await;
    assert_eq!(pending.len(), 20_000);
    let written = case.log_files().await - before;
    assert!(written <= 14, "{written} writes");
}

/// Pages of repositories and packages are about any resources, in any order.
#[tokio::test]
async fn what_a_first_harvest_has_not_stored_is_not_looked_up_and_what_it_has_is_found() {
    let case = Case::fresh(SourceSpec::default().resources(0)).await;
    let (mut harvest, lookups) = case.harvest().await;
    let ctx = &mut harvest.context;
    let uris = |numbers: std::ops::Range<u64>| -> Vec<ResourceUri> {
        numbers.map(|number| format!("http://e.org/{number}").parse().unwrap()).collect()
    };
    let asked = || lookups.asked().looked_up;
    let before = asked();
    assert!(ctx.records_of(&uris(0..1_000)).await.unwrap().iter().all(Option::is_none));
    assert!(ctx.plans_of(&uris(0..1_000)).await.unwrap().iter().all(Option::is_none));
    assert_eq!(asked(), before);
    let mut batch = Batch::new();
    for uri in uris(0..1_000) {
        batch.put_resource(&uri, &case.held(b"held"));
        ctx.end_plan(&mut batch, &uri);
    }
    // No plan was written, so none is removed.
    assert_eq!((batch.len(), batch.pending_done()), (1_000, 1_000));
    ctx.commit_behind(batch).await.unwrap();
    assert!(ctx.records_of(&uris(0..1_000)).await.unwrap().iter().all(Option::is_some));
    assert_eq!(asked(), before + 1_000);
    assert!(ctx.records_of(&uris(1_000..11_000)).await.unwrap().iter().all(Option::is_none));
    // One in a hundred is taken for one that may be stored.
    assert!(asked() < before + 1_500, "{} of 10,000", asked() - before - 1_000);
}

/// Entries are planned in portions of 500. The plans of one portion may not be committed yet when the next is
/// planned.
#[tokio::test]
async fn an_entry_that_speaks_of_a_resource_of_the_portion_before_it_finds_its_plan() {
    let case = Case::fresh(SourceSpec::default().resources(0)).await;
    let (mut harvest, lookups) = case.harvest().await;
    let (uri, record) = next_unread(&mut harvest).await.unwrap();
    let entry = |n: u64, length: u64| {
        format!(r#"<url><loc>http://e.org/{n:05}</loc><rs:md length="{length}"/></url>"#)
    };
    // Every hundredth is about the resource 500 entries before it.
    let entries =
        (0..5_000).map(|n| if n >= 500 && n % 100 == 0 { entry(n - 500 + 1, 2) } else { entry(n, 1) });
    let list = format!(
        r#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"><rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>{}</urlset>"#,
        entries.collect::<String>()
    );
    let horizon = planning::Horizon::at(harvest.context.clock.now());
    let options = horizon.options(resourcesync::Mode::Tolerant);
    let stream = documents::open_bytes(list.into_bytes(), uri.parse().unwrap(), options);
    harvest.planner.read_document(&mut harvest.context, &uri, record, stream, horizon).await.unwrap();
    let counters = &harvest.context.run.counters;
    assert_eq!((counters.listed, counters.planned, counters.superseded), (5_000, 4_955, 45));
    assert_eq!(lookups.count_pending().await.unwrap(), 4_955);
    let again = lookups.pending(&"http://e.org/00001".parse().unwrap()).await.unwrap();
    assert_eq!(again.unwrap().declaration.length, Some(2), "the later entry counts");
}

#[tokio::test]
async fn what_differs_is_new_or_is_missing_is_planned_in_the_same_pass() {
    let case = Case::of(lists(300)).await;
    case.update([7, 150].into_iter());
    case.offered.change_one(299, ChangeKind::Deleted);
    case.offered.change_one(300, ChangeKind::Created);
    case.offered.advance(86_400);
    case.offered.refresh_resource_list();
    let (counters, pending, asked) = case.plan().await;
    assert_eq!((counters.listed, counters.unchanged, counters.planned), (300, 297, 4));
    let planned = |number: u64| pending.get(&case.offered.resource_uri(number)).map(|record| &record.action);
    for number in [7, 150, 300] {
        assert!(matches!(planned(number), Some(Action::Fetch { .. })), "{number}");
    }
    assert_eq!(planned(299), Some(&Action::Delete));
    assert_eq!(pending.len(), 4);
    assert!(asked.looked_up < 20, "{asked:?}");
}

#[tokio::test]
async fn many_changes_of_one_resource_are_one_plan_and_one_write() {
    let spec = SourceSpec::default().resources(60).entries_per_change_list(100);
    let case = Case::of(spec).await.with_mode(Mode::Incremental);
    for _ in 0..10 {
        case.update(0..50);
    }
    let (counters, pending, asked) = case.plan().await;
    assert_eq!((counters.listed, counters.planned, counters.superseded), (500, 50, 450));
    assert_eq!(pending.len(), 50);
    for (uri, record) in &pending {
        let body = case.offered.body(uri).unwrap();
        assert_eq!(record.declaration.length, Some(body.len() as u64));
        let digest = &record.declaration.digests[0];
        assert_eq!(Some(digest), Computed::of(&body).get(digest.algorithm()), "the last change counts");
    }
    // Beside the plans: documents, sets, and the run with each commit.
    assert!(asked.written < 100, "{asked:?}");
    assert!(asked.looked_up < 30, "{asked:?}");
}

#[tokio::test]
async fn changes_of_one_resource_that_are_more_than_are_looked_at_together_count_in_their_order() {
    let spec = SourceSpec::default().resources(3).entries_per_change_list(100);
    let case = Case::of(spec).await.with_mode(Mode::Incremental);
    for _ in 0..700 {
        case.update(1..2);
    }
    case.offered.change_one(1, ChangeKind::Deleted);
    let (counters, pending, _) = case.plan().await;
    assert_eq!((counters.listed, counters.planned, counters.superseded), (701, 1, 700));
    let actions: Vec<_> = pending.values().map(|record| record.action.clone()).collect();
    assert_eq!(actions, [Action::Delete]);
}

#[tokio::test]
async fn a_run_that_ends_while_it_plans_counts_nothing_twice_and_plans_the_same() {
    let case = Case::of(lists(300)).await;
    case.update([7, 150].into_iter());
    case.offered.advance(86_400);
    case.offered.refresh_resource_list();
    // Everything is read and joined with the catalog, but no document is recorded as read.
    let (mut harvest, _) = case.harvest().await;
    let run = harvest.context.run.id;
    while let Some((uri, record)) = next_unread(&mut harvest).await {
        harvest.context.progress.show_document(&uri);
        let horizon = planning::Horizon::at(harvest.context.clock.now());
        let url = url::Url::parse(&uri).unwrap();
        let options = horizon.options(resourcesync::Mode::Tolerant);
        let opened =
            documents::open(&harvest.context.client, &url, Default::default(), options).await.unwrap();
        let documents::Opened::Document(stream) = opened else { panic!("{uri} was not sent") };
        harvest.planner.read_document(&mut harvest.context, &uri, record, stream, horizon).await.unwrap();
    }
    let Spool { entries, documents, .. } = std::mem::take(&mut harvest.planner.reconciler.spool);
    harvest.planner.join(&mut harvest.context, entries.unwrap(), documents).await.unwrap();
    assert_eq!((harvest.context.run.counters.listed, harvest.context.run.counters.unchanged), (300, 298));
    drop(harvest);

    let (mut harvest, lookups) = case.harvest().await;
    assert_eq!((harvest.context.run.id, harvest.context.run.mode), (run, Mode::Baseline));
    assert_eq!((harvest.context.run.counters.listed, harvest.context.run.counters.unchanged), (0, 0));
    harvest.plan().await.unwrap();
    let counters = &harvest.context.run.counters;
    assert_eq!((counters.listed, counters.unchanged, counters.planned), (300, 298, 2));
    assert_eq!(lookups.count_pending().await.unwrap(), 2);
}

async fn next_unread(harvest: &mut Harvest) -> Option<(String, DocumentRecord)> {
    let catalog = harvest.context.catalog().await.unwrap();
    let is_read = |uri: &str| harvest.planner.reconciler.spool.holds(uri);
    next_documents(&catalog, harvest.context.run.id, is_read).await.unwrap().into_iter().next()
}

#[tokio::test]
async fn without_room_documents_are_planned_entry_by_entry_and_nothing_is_concluded_from_silence() {
    let case = Case::of(lists(300)).await;
    case.update([7, 150].into_iter());
    case.offered.change_one(299, ChangeKind::Deleted);
    case.offered.advance(86_400);
    case.offered.refresh_resource_list();
    let (mut harvest, lookups) = case.harvest().await;
    let (_, list) = next_unread(&mut harvest).await.unwrap();
    harvest.planner.expect_names(&mut harvest.context, &list);
    harvest
        .planner
        .reconciler
        .give_up(&mut harvest.context, &reconcile::SpoolError(std::io::ErrorKind::StorageFull.into()));
    harvest.plan().await.unwrap();
    let counters = &harvest.context.run.counters;
    assert_eq!((counters.listed, counters.unchanged, counters.planned), (299, 297, 2));
    assert_eq!(lookups.count_pending().await.unwrap(), 2);
}
