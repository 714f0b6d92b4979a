//! A store with a few Sources, and a clock that tests advance.

use std::collections::BTreeSet;

use catalog::{Batch, Catalog, CatalogConfig, CatalogReader};
use fixity::{Computed, Hasher, Sha256};
use futures::TryStreamExt as _;
use gc::{GcError, Options, Report, collect};
use jiff::{SignedDuration, Timestamp};
use model::{
    Assurance, Bitstream, Counters, Declaration, Listing, Location, ManualClock, Method, Mode, PackageId,
    Phase, ResourceRecord, ResourceUri, RunId, RunRecord, SetId, SourceId, StoredBitstream,
};
use store::{Key, PackBuilder, PackLimits, PackMember, SourceMarker, Store};

/// The retention of most cases.
pub(crate) const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How far most cases advance the clock after all was stored.
pub(crate) const MONTH: SignedDuration = SignedDuration::from_hours(30 * 24);

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) clock: ManualClock,
}

/// A Source with its catalog open for writing.
pub(crate) struct Held {
    pub(crate) source: SourceId,
    pub(crate) catalog: Catalog,
}

pub(crate) fn id(name: &str) -> SourceId {
    name.parse().unwrap()
}

pub(crate) fn uri(name: &str) -> ResourceUri {
    format!("http://e.org/{name}").parse().unwrap()
}

impl World {
    /// Everything that is stored in it will be a month old.
    pub(crate) fn new(store: Store) -> Self {
        Self { store, clock: ManualClock::new(Timestamp::now() + MONTH) }
    }

    /// A Source whose last run is finished.
    pub(crate) async fn source(&self, name: &str) -> Held {
        let held = Held::open(&self.store, name).await;
        held.run(Phase::Finished, Timestamp::now()).await;
        let note = SourceMarker::new(held.source.clone(), format!("http://{name}/"));
        self.store.note_source(&note).await.unwrap();
        held
    }

    pub(crate) async fn collect(&self) -> Report {
        self.try_collect(false, true, WEEK).await.unwrap()
    }

    pub(crate) async fn try_collect(
        &self,
        dry_run: bool,
        as_owner: bool,
        keep_for: SignedDuration,
    ) -> Result<Report, GcError> {
        Box::pin(collect(&self.store, &Options { keep_for, dry_run, as_owner }, &self.clock)).await
    }

    /// Keys of all objects except those of the catalogs.
    pub(crate) async fn keys(&self) -> BTreeSet<String> {
        let listed = self.store.object_store().list(None).map_ok(|meta| meta.location.to_string());
        let ours = |key: &String| {
            std::future::ready(!["catalogs/", "gc/", "probe/"].iter().any(|folder| key.starts_with(folder)))
        };
        listed.try_filter(ours).try_collect().await.unwrap()
    }

    pub(crate) async fn has(&self, location: &Location) -> bool {
        self.keys().await.contains(&Key::of(location).to_string())
    }

    /// A bitstream with an object of its own.
    pub(crate) async fn object(&self, content: &str) -> Location {
        let bytes = bytes::Bytes::copy_from_slice(content.as_bytes());
        self.store.put_bitstream(store::NewBitstream::Memory(Sha256::of(&bytes), bytes)).await.unwrap()
    }

    /// Bitstreams in one pack.
    pub(crate) async fn pack(&self, source: &SourceId, contents: &[&str]) -> Vec<Location> {
        let mut builder =
            PackBuilder::new(source.clone(), Timestamp::UNIX_EPOCH, PackLimits::default()).unwrap();
        for content in contents {
            let bytes = content.as_bytes();
            let computed = Computed::of(content.as_bytes());
            let member = PackMember {
                uri: &uri("x"),
                bytes,
                computed: &computed,
                media_type: None,
                last_modified: None,
            };
            builder.add(member).unwrap();
        }
        self.store.put_pack(&builder.finish().unwrap()).await.unwrap()
    }

    /// A package, or an index of one.
    pub(crate) async fn package(&self, source: &SourceId, content: &str) -> (PackageId, Location) {
        let package = PackageId::fresh();
        let mut spool = self.store.spool(Hasher::new([])).await.unwrap();
        spool.append(bytes::Bytes::copy_from_slice(content.as_bytes())).await.unwrap();
        self.store.put_beside_packages(source, package, spool.finish().await.unwrap()).await.unwrap();
        let location = Location::Package {
            source: source.clone(),
            package,
            offset: 0,
            stored_length: content.len() as u64,
            method: Method::Stored,
        };
        (package, location)
    }

    /// The record of a resource in a Source's catalog.
    pub(crate) async fn record(&self, source: &SourceId, name: &str) -> ResourceRecord {
        let path = Key::Catalog(source.clone()).to_string();
        let opened = CatalogReader::open(self.store.object_store(), &path, CatalogConfig::default()).await;
        opened.unwrap().resource(&uri(name)).await.unwrap().unwrap()
    }
}

impl Held {
    pub(crate) async fn open(store: &Store, name: &str) -> Self {
        let source = id(name);
        let path = Key::Catalog(source.clone()).to_string();
        let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await.unwrap();
        Self { source, catalog }
    }

    pub(crate) async fn run(&self, phase: Phase, started_at: Timestamp) {
        let run = RunRecord {
            id: RunId::fresh(),
            mode: Mode::Baseline,
            phase,
            options: String::new(),
            view: false,
            started_at,
            finished_at: None,
            cancelled: false,
            counters: Counters::default(),
        };
        self.commit(|batch| batch.put_run(&run)).await;
    }

    pub(crate) async fn commit(&self, fill: impl FnOnce(&mut Batch)) {
        let mut batch = Batch::new();
        fill(&mut batch);
        self.catalog.commit(batch).await.unwrap();
    }

    /// A stored resource.
    pub(crate) async fn holds(&self, name: &str, location: &Location, content: &str) {
        let record = present(location, content);
        self.commit(|batch| batch.put_resource(&uri(name), &record)).await;
    }

    /// A resource that was deleted at this time.
    pub(crate) async fn deleted(&self, name: &str, location: &Location, content: &str, at: Timestamp) {
        let record = present(location, content);
        let deleted = record.bitstream;
        let record = ResourceRecord { bitstream: None, deleted, settled_at: at, ..record };
        self.commit(|batch| batch.put_resource(&uri(name), &record)).await;
    }

    /// A resource whose bytes nothing points to any more.
    pub(crate) async fn let_go(&self, name: &str, location: &Location, content: &str) {
        let record = ResourceRecord { bitstream: None, ..present(location, content) };
        self.commit(|batch| batch.put_resource(&uri(name), &record)).await;
    }

    pub(crate) async fn close(self) {
        self.catalog.close().await.unwrap();
    }
}

pub(crate) fn listing() -> Listing {
    Listing {
        document: "http://e.org/list.xml".into(),
        set: SetId::new("http://e.org/caps.xml"),
        change: None,
        change_time: None,
        as_of: None,
        latest: None,
        links: None,
        linked: None,
    }
}

pub(crate) fn stored(location: &Location, content: &str) -> StoredBitstream {
    StoredBitstream {
        location: location.clone(),
        computed: Computed::of(content.as_bytes()),
        media_type: None,
        encoding: None,
        validators: Default::default(),
        modified: None,
        final_url: None,
    }
}

pub(crate) fn bitstream(location: &Location, content: &str) -> Bitstream {
    Bitstream {
        location: location.clone(),
        computed: Computed::of(content.as_bytes()),
        assurance: Assurance::None,
        media_type: None,
        encoding: None,
        validators: Default::default(),
        final_url: None,
        stored_at: Timestamp::now(),
    }
}

fn present(location: &Location, content: &str) -> ResourceRecord {
    ResourceRecord {
        bitstream: Some(bitstream(location, content)),
        declaration: Declaration::default(),
        listing: listing(),
        sets: vec![listing().set],
        deleted: None,
        collected: None,
        absent: None,
        settled_at: Timestamp::now(),
    }
}
