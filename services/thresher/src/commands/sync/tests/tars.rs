//! Tars whose unpackers, owners, or whole process are killed in their middle: how often a slice is stored
//! shows what was repeated.

use std::collections::HashSet;
use std::sync::Mutex;

use harvest::Harvest;
use pipeline::Pipeline;
use planning::RetryPolicy;
use testkit::scripted::Reply;
use tokio::sync::Notify;

use super::dump::{Package, package};
use super::site::{Site, urlset};
use super::*;

const AT: &str = "2026-01-01T00:00:00Z";
/// Entries of the tar, and slices of it.
const ENTRIES: u64 = 1_200;
const SLICES: usize = 5;

/// A Resource Dump of one tar, and the directory it is harvested into.
struct Dump {
    site: Site,
    url: Url,
    folder: tempfile::TempDir,
}

impl Dump {
    async fn new() -> Self {
        let site = Site::start().await;
        let mut tar = Package::of_resources(AT);
        for n in 0..ENTRIES {
            tar = tar.holds(&site.uri(&format!("/{n}")), format!("content {n}"));
        }
        let tar = tar.tar_xz().await;
        let entry = package(&site.uri("/1.tar.xz"), &tar, "");
        site.reply("/1.tar.xz", Reply::ok(tar));
        let dump =
            site.serve("/dump.xml", urlset(&format!("capability=\"resourcedump\" at=\"{AT}\""), &[entry]));
        Self { url: Url::parse(&dump).unwrap(), site, folder: tempfile::tempdir().expect("a directory") }
    }

    fn into(&self) -> String {
        self.folder.path().display().to_string()
    }

    async fn store(&self) -> Store {
        let target = target::parse(&self.into()).expect("a directory");
        target::open_store(&target).await.expect("a store")
    }

    fn web() -> WebConfig {
        WebConfig { per_origin: 2, ..WebConfig::default() }
    }

    async fn harvest(&self, bus: Arc<dyn Bus>) -> Report {
        self.harvest_with(HarvestOptions::default(), bus).await
    }

    async fn harvest_with(&self, options: HarvestOptions, bus: Arc<dyn Bus>) -> Report {
        let url = self.url.clone();
        let request = Request {
            url,
            into: self.into(),
            view: Some(ViewArg::None),
            web: Self::web(),
            options,
            labels: std::collections::BTreeMap::new(),
        };
        harvest_over(bus, request, watch::Sender::new(Progress::default())).await.expect("a run that ends").0
    }

    /// The whole tar is stored, received once; returns how many packs were stored.
    async fn packs(&self, report: &Report) -> usize {
        assert!(report.in_sync(), "{:?}", report.first_problems);
        assert_eq!(report.run.counters.stored, ENTRIES);
        assert_eq!(self.site.requests_at("/1.tar.xz"), 1);
        let store = self.store().await;
        let prefix = store::Key::packs(&SourceId::of_entry(&self.url));
        store.object_store().list(Some(&prefix)).try_collect::<Vec<_>>().await.unwrap().len()
    }
}

/// The number of the slice in a message's name.
fn slice_of(name: &str) -> Option<u32> {
    name.rsplit_once('.').and_then(|(_, part)| part.parse().ok()).filter(|part| *part < SLICES as u32)
}

#[tokio::test]
async fn an_unpacker_that_ends_in_a_tar_costs_the_slice_it_had_in_hand() {
    let dump = Dump::new().await;
    // It ends at the costliest moment: the pack is stored, and no outcome was sent.
    let refused: Mutex<HashSet<u32>> = Mutex::default();
    let bus = Harming::deciding("outcomes", move |name| match slice_of(name) {
        Some(slice @ (1 | 3)) if refused.lock().unwrap().insert(slice) => Fate::Refuse,
        _ => Fate::Pass,
    });
    let report = dump.harvest(bus).await;
    assert_eq!(dump.packs(&report).await, SLICES + 2);
}

#[tokio::test]
async fn an_unpacker_that_ends_before_any_slice_is_done_gives_the_package_up_in_the_end() {
    let dump = Dump::new().await;
    let bus = Harming::deciding("outcomes", |name| match slice_of(name) {
        Some(_) => Fate::Refuse,
        None => Fate::Pass,
    });
    let retries = RetryPolicy { attempts: 2, ..RetryPolicy::default() };
    let options = HarvestOptions { retries, ..HarvestOptions::default() };
    let report = dump.harvest_with(options, bus).await;
    assert!(!report.in_sync());
    let said = format!("{:?}", report.first_problems);
    assert!(said.contains("ended before a slice of the package was done"), "{said}");
}

#[tokio::test]
async fn a_process_that_is_killed_in_a_tar_does_one_slice_again() {
    let dump = Dump::new().await;
    let at_slice_2 = Arc::new(Notify::new());
    let told = Arc::clone(&at_slice_2);
    let bus = Harming::deciding("outcomes", move |name| match slice_of(name) {
        Some(2) => {
            told.notify_one();
            Fate::Hang
        }
        _ => Fate::Pass,
    });
    tokio::select! {
        _ = dump.harvest(bus) => panic!("it was to be killed"),
        () = at_slice_2.notified() => {}
    }
    let report = dump.harvest(memory()).await;
    assert_eq!(dump.packs(&report).await, SLICES + 1);
}

#[tokio::test]
async fn whoever_owns_the_source_next_waits_for_the_tar_that_is_being_unpacked() {
    let dump = Dump::new().await;
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let bus = Harming::deciding("open", move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        Fate::Pass
    });
    let store = dump.store().await;
    let client = http::client(Dump::web()).unwrap();
    let pipeline = Pipeline::start(bus, &client, &store, Arc::new(SystemClock)).await.unwrap();
    let source = SourceId::of_entry(&dump.url);
    let progress = watch::Sender::new(Progress::default());
    let owner = || async {
        let catalog = target::open_catalog(&store, &source).await.unwrap();
        let parts = Parts {
            source: source.clone(),
            entry: dump.url.clone(),
            catalog,
            store: store.clone(),
            view: None,
            client: client.clone(),
            bus: Arc::clone(&pipeline.bus),
            clock: Arc::new(SystemClock),
            options: HarvestOptions::default(),
            progress: progress.clone(),
            observer: None,
            push_lag: harvest::PushLag::default(),
            stop: CancellationToken::new(),
        };
        Harvest::open(parts).await.unwrap().run().await.unwrap()
    };
    let mut seen = progress.subscribe();
    tokio::select! {
        _ = owner() => panic!("it was to be killed"),
        _ = seen.wait_for(|progress| progress.counters.stored > 0) => {}
    }
    let report = owner().await;
    assert_eq!((dump.packs(&report).await, opened.load(Ordering::SeqCst)), (SLICES, 1));
    pipeline.finish().await;
}
