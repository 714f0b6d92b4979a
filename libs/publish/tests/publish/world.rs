//! A Source with a few resources, which changes, and publications of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catalog::{Batch, Catalog, CatalogConfig};
use fixity::{Hasher, Sha256};
use futures::TryStreamExt as _;
use jiff::Timestamp;
use model::{
    Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Declaration, Links, Listing, Location, ResourceRecord,
    ResourceUri, RunId, SetId, SourceId, Validators,
};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt as _};
use publish::{Base, CatalogRecords, Place, Policy, Publication, PublishError, Published, Seen};
use resourcesync::Link;
use store::{Key, SourceMarker, Store};

pub(crate) const BASE: &str = "https://mirror.example/one/";

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) catalog: Catalog,
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) publication: Publication,
    /// Seconds since the begin.
    pub(crate) clock: i64,
    /// The links of the entries that are stored next.
    pub(crate) links: Vec<Link>,
}

pub(crate) fn uri(name: &str) -> ResourceUri {
    format!("http://e.org/{name}").parse().unwrap()
}

/// A day of small parts: two to four entries.
pub(crate) fn small() -> Policy {
    let edition_pause = Duration::ZERO;
    Policy { least_entries: 2, one_in: 3, most_entries: 4, small: 0, edition_pause, ..Policy::default() }
}

/// A publication with bytes, without dumps.
pub(crate) fn publication(place: Place, source: SourceMarker, policy: Policy) -> Publication {
    Publication {
        with_bytes: true,
        policy,
        ..Publication::of_documents(place, Base::new(BASE.parse().unwrap()).unwrap(), source)
    }
}

impl World {
    pub(crate) async fn new(policy: Policy) -> Self {
        let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let place = Place::bucket("memory", Arc::clone(&objects));
        Self::at(place, objects, policy).await
    }

    pub(crate) async fn at(place: Place, objects: Arc<dyn ObjectStore>, policy: Policy) -> Self {
        let store = Store::in_memory();
        let source = "case".parse::<SourceId>().unwrap();
        let path = Key::Catalog(source.clone()).to_string();
        let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await.unwrap();
        let source = SourceMarker::new(source, "http://e.org/");
        let publication = publication(place, source, policy);
        Self { store, catalog, objects, publication, clock: 0, links: Vec::new() }
    }

    /// With this many resources.
    pub(crate) async fn with(resources: usize, policy: Policy) -> Self {
        let mut world = Self::new(policy).await;
        for number in 0..resources {
            world.put(&format!("{number:03}"), &format!("body {number}")).await;
        }
        world
    }

    pub(crate) fn now(&self) -> Timestamp {
        let begin: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        begin.checked_add(Duration::from_secs(self.clock as u64)).unwrap()
    }

    pub(crate) fn passes(&mut self, hours: i64) {
        self.clock += hours * 3_600;
    }

    /// Stores a resource, as a run does: its record and the entry of the change log in one commit.
    pub(crate) async fn put(&mut self, name: &str, body: &str) {
        let before = self.catalog.resource(&uri(name)).await.unwrap().and_then(|record| record.bitstream);
        let bytes = Bytes::copy_from_slice(body.as_bytes());
        let mut spool = self.store.spool(Hasher::new([])).await.unwrap();
        spool.append(bytes).await.unwrap();
        let body = spool.finish().await.unwrap();
        let computed = body.computed().clone();
        self.store.put_bitstream(body).await.unwrap();
        let sha256 = computed.sha256();
        self.clock += 1;
        let bitstream = Bitstream {
            location: Location::Object { sha256 },
            computed,
            assurance: Assurance::Digest,
            media_type: Some("text/plain".to_owned()),
            encoding: None,
            validators: Validators::default(),
            final_url: None,
            stored_at: self.now(),
        };
        let event = match before {
            None => ChangeEvent::Created { sha256 },
            Some(before) => ChangeEvent::Updated { sha256, before: before.computed.sha256() },
        };
        self.settle(name, Some(bitstream), event).await;
    }

    pub(crate) async fn delete(&mut self, name: &str) {
        self.clock += 1;
        self.settle(name, None, ChangeEvent::Deleted { absent: false }).await;
    }

    async fn settle(&self, name: &str, bitstream: Option<Bitstream>, event: ChangeEvent) {
        let set = SetId::new("set");
        let document: Arc<str> = "http://e.org/list.xml".into();
        let listing = Listing {
            document: Arc::clone(&document),
            set: set.clone(),
            change: None,
            change_time: None,
            as_of: None,
            latest: None,
            links: Links::of(&self.links),
            linked: None,
        };
        let lastmod = Some("2025-12-01T00:00:00Z".parse().unwrap());
        let record = ResourceRecord {
            bitstream,
            declaration: Declaration { lastmod, ..Declaration::default() },
            listing,
            sets: vec![set],
            deleted: None,
            collected: None,
            absent: None,
            settled_at: self.now(),
        };
        let mut batch = Batch::new();
        batch.put_resource(&uri(name), &record);
        batch.append_change(&ChangeLogEntry::new(uri(name), event, self.now(), RunId::fresh(), document));
        self.catalog.commit(batch).await.unwrap();
    }

    /// Replaces the stored bytes of a body.
    pub(crate) async fn damage(&self, body: &str) {
        let key = Key::Bitstream(Sha256::of(body.as_bytes())).path();
        self.store.object_store().put(&key, "x".repeat(body.len()).into()).await.unwrap();
    }

    /// Puts the bytes of a body back.
    pub(crate) async fn repair(&self, body: &str) {
        let key = Key::Bitstream(Sha256::of(body.as_bytes())).path();
        self.store.object_store().put(&key, body.to_owned().into()).await.unwrap();
    }

    pub(crate) async fn publish(&self) -> Published {
        self.try_publish().await.unwrap()
    }

    pub(crate) async fn try_publish(&self) -> Result<Published, PublishError> {
        let mut see = |_: Seen<'_>| {};
        let records = CatalogRecords::new(&self.catalog, &self.store);
        self.publication.run(&records, self.now(), &mut see).await
    }

    /// What is at the place, without the publisher's own files.
    pub(crate) async fn files(&self) -> Vec<(String, Bytes)> {
        let all = self.all_files().await.into_iter();
        all.filter(|(path, _)| !path.starts_with(".thresher")).collect()
    }

    /// All that is at the place.
    pub(crate) async fn all_files(&self) -> Vec<(String, Bytes)> {
        let mut listed: Vec<_> = self.objects.list(None).try_collect().await.unwrap();
        listed.sort_by(|a, b| a.location.cmp(&b.location));
        let mut files = Vec::new();
        for meta in listed {
            let bytes = self.objects.get(&meta.location).await.unwrap().bytes().await.unwrap();
            files.push((meta.location.to_string(), bytes));
        }
        files
    }

    /// The paths of the publisher's own files.
    pub(crate) async fn own_files(&self) -> Vec<String> {
        let listed: Vec<_> = self.objects.list(None).try_collect().await.unwrap();
        let paths = listed.into_iter().map(|meta| meta.location.to_string());
        paths.filter(|path| path.starts_with(".thresher")).collect()
    }

    /// What is stored, by URI: the digest.
    pub(crate) async fn stored(&self) -> std::collections::BTreeMap<String, String> {
        let records: Vec<_> =
            self.catalog.scan_resources(None, None).await.unwrap().try_collect().await.unwrap();
        let stored = records.into_iter().filter_map(|(uri, record)| {
            Some((uri.to_string(), record.bitstream?.computed.sha256().to_string()))
        });
        stored.collect()
    }
}
