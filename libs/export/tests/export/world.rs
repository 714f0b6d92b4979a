//! A Source with a few resources of every kind, and exports of it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use bytes::Bytes;
use catalog::{Batch, Catalog, CatalogConfig, CatalogReader};
use export::{Destination, Export, ExportError, Format, Seen, Selection, Sizes, Summary};
use fixity::{Computed, Hasher, Sha256};
use jiff::{SignedDuration, Timestamp};
use model::{
    Assurance, Bitstream, Declaration, Links, Listing, Location, ResourceRecord, ResourceUri, SetId,
    SourceId, Validators,
};
use object_store::{ObjectStoreExt as _, PutPayload};
use resourcesync::Link;
use store::{Key, PackBuilder, PackLimits, PackMember, Store};

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) source: SourceId,
    pub(crate) catalog: Catalog,
}

pub(crate) fn uri(name: &str) -> ResourceUri {
    format!("http://e.org/{name}").parse().unwrap()
}

/// The moment at which the resource of this number was stored.
pub(crate) fn moment(number: i64) -> Timestamp {
    let first: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    first + SignedDuration::from_hours(24 * number)
}

/// The content of a resource; the larger ones are not held in memory.
pub(crate) fn content(number: usize) -> Vec<u8> {
    let length = if number % 4 == 3 { (1 << 20) + number } else { 10 * number };
    (0..length).map(|at| (at * 7 + number) as u8).collect()
}

impl World {
    pub(crate) async fn new() -> Self {
        let store = Store::in_memory();
        let source = "case".parse::<SourceId>().unwrap();
        let path = Key::Catalog(source.clone()).to_string();
        let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await.unwrap();
        Self { store, source, catalog }
    }

    /// With this many resources, of which every third is in a pack; their names are in the order of their
    /// numbers.
    pub(crate) async fn with(resources: usize) -> Self {
        let world = Self::new().await;
        for number in 0..resources {
            world.put(number).await;
        }
        world
    }

    async fn put(&self, number: usize) {
        let bytes = Bytes::from(content(number));
        let computed = Computed::of(&bytes);
        let location = match number % 3 {
            0 => self.pack(&bytes, &computed).await,
            _ => self.object(bytes).await,
        };
        let media_type = ["text/html; charset=utf-8", "application/pdf"][number % 2].to_owned();
        let bitstream = Bitstream {
            location,
            computed,
            assurance: Assurance::Digest,
            media_type: Some(media_type),
            encoding: None,
            validators: Validators::default(),
            final_url: None,
            stored_at: moment(number as i64),
        };
        self.record(&format!("{number:03}/file"), Some(bitstream.clone()), None, bitstream.stored_at).await;
    }

    pub(crate) async fn deleted(&self, name: &str, at: Timestamp) {
        self.record(name, None, None, at).await;
    }

    async fn record(&self, name: &str, held: Option<Bitstream>, deleted: Option<Bitstream>, at: Timestamp) {
        let (set, document) = (SetId::new("set"), "http://e.org/list.xml".to_owned());
        let listing = Listing {
            document: document.into(),
            set: set.clone(),
            change: None,
            change_time: None,
            as_of: None,
            latest: None,
            links: links_of(name),
            linked: None,
        };
        let record = ResourceRecord {
            bitstream: held,
            declaration: Declaration { length: Some(7), ..Declaration::default() },
            listing,
            sets: vec![set],
            deleted,
            collected: None,
            absent: None,
            settled_at: at,
        };
        let mut batch = Batch::new();
        batch.put_resource(&uri(name), &record);
        self.catalog.commit(batch).await.unwrap();
    }

    async fn object(&self, bytes: Bytes) -> Location {
        let sha256 = Sha256::of(&bytes);
        let mut spool = self.store.spool(Hasher::new([])).await.unwrap();
        spool.append(bytes).await.unwrap();
        self.store.put_bitstream(spool.finish().await.unwrap()).await.unwrap();
        Location::Object { sha256 }
    }

    /// Replaces the bytes of a resource that has an object of its own.
    pub(crate) async fn damage(&self, number: usize) {
        let key = Key::Bitstream(Sha256::of(&content(number))).to_string();
        let mut bytes = content(number);
        *bytes.last_mut().unwrap() ^= 1;
        let objects = self.store.object_store();
        objects.put(&key.as_str().into(), PutPayload::from(bytes)).await.unwrap();
    }

    async fn pack(&self, bytes: &Bytes, computed: &Computed) -> Location {
        let mut builder =
            PackBuilder::new(self.source.clone(), Timestamp::UNIX_EPOCH, PackLimits::default()).unwrap();
        let member = PackMember { uri: &uri("x"), bytes, computed, media_type: None, last_modified: None };
        builder.add(member).unwrap();
        self.store.put_pack(&builder.finish().unwrap()).await.unwrap().remove(0)
    }

    /// An export of all, in small pieces.
    pub(crate) fn export(format: Format, to: &Path) -> Export {
        let sizes = Sizes {
            package_entries: 3,
            package_bytes: 3 << 20,
            table_rows: 4,
            kept_every: 3,
            kept_bytes: 2 << 20,
        };
        Export { format, to: Destination::Path(to.to_owned()), selection: Selection::default(), sizes }
    }

    /// Makes it, and also returns the resources that were left out.
    pub(crate) async fn run(&self, export: &Export) -> Result<(Summary, Vec<String>), ExportError> {
        let mut damaged = Vec::new();
        let mut see = |seen: Seen<'_>| {
            if let Seen::Damaged(uri, _) = seen {
                damaged.push(uri.to_string());
            }
            ControlFlow::Continue(())
        };
        let done = self.watched(export, &mut see).await?;
        Ok((done, damaged))
    }

    pub(crate) async fn watched(
        &self,
        export: &Export,
        see: &mut dyn FnMut(Seen<'_>) -> ControlFlow<()>,
    ) -> Result<Summary, ExportError> {
        let path = Key::Catalog(self.source.clone()).to_string();
        let opened = CatalogReader::open(self.store.object_store(), &path, CatalogConfig::default()).await;
        export.run(&self.store, &opened.unwrap(), &self.source, moment(1000), see).await
    }
}

/// Every other resource has links, with and without all of their fields.
fn links_of(name: &str) -> Option<Links> {
    let is_odd =
        name.bytes().next_back() == Some(b'e') && name.as_bytes().get(2).is_some_and(|digit| digit % 2 == 1);
    let full = Link {
        pri: Some(7),
        length: Some(u64::MAX),
        media_type: Some("text/plain".to_owned()),
        modified: Some(Timestamp::UNIX_EPOCH.into()),
        other: BTreeMap::from([("profile".to_owned(), "p".to_owned()), ("x:y".to_owned(), "3".to_owned())]),
        ..Link::new("duplicate", "http://m.org/a")
    };
    is_odd.then(|| Links::of(&[full, Link::new("via", "http://o.org/a")])).flatten()
}
