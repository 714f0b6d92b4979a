//! Answers for one resource that changes.

use std::sync::Arc;

use axum::http::HeaderName;
use catalog::{Batch, Catalog, CatalogConfig};
use fixity::Hasher;
use jiff::Timestamp;
use model::{
    Assurance, ChangeEvent, ChangeLogEntry, Clock as _, Declaration, Listing, RunId, SetId, SystemClock,
    Validators,
};
use object_store::ObjectStoreExt as _;
use publish::{Base, Place, Policy, Publication, PublishedPath, paths};
use store::{Key, SourceMarker, Store};

use super::*;
use crate::settings::Settings;
use crate::shared::{Held, OpenRecords};
use crate::takedowns::Takedowns;
use crate::{documents, follow};

/// A harvest of one resource.
struct World {
    store: Store,
    catalog: Catalog,
    uri: ResourceUri,
}

impl World {
    async fn new() -> Self {
        let store = Store::in_memory();
        let path = Key::Catalog("one".parse().unwrap()).to_string();
        let config = CatalogConfig::default();
        let catalog = Catalog::open(store.object_store(), &path, config).await.unwrap();
        Self { store, catalog, uri: "http://e.org/a".parse().unwrap() }
    }

    /// Stores a version, or deletes the resource: its record and the entry of the log in one commit.
    async fn settle(&self, body: Option<&'static str>) {
        let before = self.catalog.resource(&self.uri).await.unwrap();
        let before = before.and_then(|record| record.bitstream);
        let now = SystemClock.now();
        let (bitstream, event) = match (body, &before) {
            (None, _) => (None, ChangeEvent::Deleted { absent: false }),
            (Some(body), before) => {
                let stored = self.store(body, now).await;
                let sha256 = stored.computed.sha256();
                let event = match before {
                    None => ChangeEvent::Created { sha256 },
                    Some(before) => ChangeEvent::Updated { sha256, before: before.computed.sha256() },
                };
                (Some(stored), event)
            }
        };
        let document: Arc<str> = "http://e.org/list.xml".into();
        let listing = Listing {
            document: Arc::clone(&document),
            set: SetId::new("set"),
            change: None,
            change_time: None,
            as_of: None,
            latest: None,
            links: None,
            linked: None,
        };
        let record = ResourceRecord {
            deleted: before.filter(|_| bitstream.is_none()),
            bitstream,
            declaration: Declaration::default(),
            listing,
            sets: Vec::new(),
            collected: None,
            absent: None,
            settled_at: now,
        };
        let mut batch = Batch::new();
        batch.put_resource(&self.uri, &record);
        batch.append_change(&ChangeLogEntry::new(self.uri.clone(), event, now, RunId::fresh(), document));
        self.catalog.commit(batch).await.unwrap();
    }

    async fn store(&self, body: &'static str, stored_at: Timestamp) -> Bitstream {
        let mut spool = self.store.spool(Hasher::new([])).await.unwrap();
        spool.append(body.into()).await.unwrap();
        let body = spool.finish().await.unwrap();
        let computed = body.computed().clone();
        let location = self.store.put_bitstream(body).await.unwrap();
        Bitstream {
            location,
            computed,
            assurance: Assurance::Digest,
            media_type: Some("text/plain".to_owned()),
            encoding: None,
            validators: Validators::default(),
            final_url: None,
            stored_at,
        }
    }

    /// Replaces the stored bytes of a body.
    async fn damage(&self, body: &str) {
        let key = Key::Bitstream(Sha256::of(body.as_bytes())).path();
        self.store.object_store().put(&key, "x".repeat(body.len()).into()).await.unwrap();
    }

    /// Removes the only package as a run does before it makes another one.
    async fn give_up_package(&self, package: &str, manifest: &str) {
        let objects = self.store.object_store();
        let at = |path: &str| object_store::path::Path::from(format!("publications/one/{path}"));
        let state = at(".thresher/publication.json");
        let text = objects.get(&state).await.unwrap().bytes().await.unwrap();
        let text = String::from_utf8(text.to_vec()).unwrap();
        let (before, rest) = text.split_once("\"entries\":\"").unwrap();
        let (_, after) = rest.split_once("\",").unwrap();
        objects.put(&state, format!("{before}{after}").into()).await.unwrap();
        for path in [package, manifest] {
            objects.delete(&at(path)).await.unwrap();
        }
    }

    /// A publication of it, with old lists of which it keeps what they name for so long.
    fn open(&self, keep_replaced: Duration, takedowns: Option<Takedowns>) -> Shared {
        self.open_with(keep_replaced, takedowns, false)
    }

    /// The same, perhaps with dumps.
    fn open_with(&self, keep_replaced: Duration, takedowns: Option<Takedowns>, dumps: bool) -> Shared {
        let source = "one".parse().unwrap();
        let publication = Publication {
            dumps,
            policy: Policy { keep_replaced, change_list_age: Duration::ZERO, ..Policy::default() },
            ..Publication::of_documents(
                Place::of(self.store.publication(&source)).unwrap(),
                Base::new("http://mirror.example/".parse().unwrap()).unwrap(),
                SourceMarker::new(source, "http://e.org/"),
            )
        };
        let settings = Settings { takedowns, ..Settings::default() };
        Shared::of_held(publication, Held::Harvest(self.store.clone()), &settings)
    }

    async fn publish(&self, shared: &Shared) {
        if let OpenRecords::Harvest(harvest) = shared.records() {
            // The next use opens it again, and shows all commits.
            harvest.close_catalog().await;
        }
        follow::publish(shared).await.unwrap();
    }

    async fn get(&self, shared: &Shared, headers: &[(HeaderName, String)]) -> Response {
        let OpenRecords::Harvest(harvest) = shared.records() else { panic!("a harvest") };
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        let path = PublishedPath::of(&self.uri);
        answer(shared, harvest, path.as_str(), &Method::GET, &headers).await
    }
}

async fn body(response: Response) -> String {
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The Change Lists, oldest first.
async fn change_lists(shared: &Shared) -> Vec<Response> {
    let none = HeaderMap::new();
    let index = body(documents::answer(shared, paths::CHANGES, &Method::GET, &none).await).await;
    let lists = index.split("<loc>http://mirror.example/").skip(1);
    let mut found = Vec::new();
    for list in lists.filter_map(|rest| rest.split("</loc>").next()) {
        found.push(documents::answer(shared, list, &Method::GET, &none).await);
    }
    found
}

const TWO_DAYS: Duration = Duration::from_secs(2 * 24 * 3_600);

#[tokio::test]
async fn a_deleted_resource_is_there_as_long_as_lists_may_name_it_and_then_gone() {
    let world = World::new().await;
    world.settle(Some("the last version")).await;
    let shared = world.open(TWO_DAYS, None);
    world.publish(&shared).await;
    world.settle(None).await;
    for is_told in [false, true] {
        let found = world.get(&shared, &[]).await;
        assert_eq!(found.status(), StatusCode::OK, "told: {is_told}");
        assert_eq!(body(found).await, "the last version");
        world.publish(&shared).await;
    }
    // Another server of the same place, whose lists are old at once.
    let later = world.open(Duration::ZERO, None);
    assert_eq!(world.get(&later, &[]).await.status(), StatusCode::GONE);
    world.settle(Some("back")).await;
    world.publish(&later).await;
    assert_eq!(body(world.get(&later, &[]).await).await, "back");
    world.catalog.close().await.unwrap();
}

#[tokio::test]
async fn what_was_deleted_before_the_first_list_and_what_is_withdrawn_is_gone_at_once() {
    let world = World::new().await;
    world.settle(Some("never published")).await;
    world.settle(None).await;
    let shared = world.open(TWO_DAYS, None);
    world.publish(&shared).await;
    assert_eq!(world.get(&shared, &[]).await.status(), StatusCode::GONE, "no list has named it");

    world.settle(Some("published")).await;
    world.publish(&shared).await;
    world.settle(None).await;
    world.publish(&shared).await;
    let list = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(list.path(), format!("{}\n", world.uri)).unwrap();
    let withdrawn = world.open(TWO_DAYS, Some(Takedowns::of_file(list.path()).unwrap()));
    assert_eq!(world.get(&withdrawn, &[]).await.status(), StatusCode::GONE);
    assert_eq!(world.get(&world.open(TWO_DAYS, None), &[]).await.status(), StatusCode::OK);
    world.catalog.close().await.unwrap();
}

#[tokio::test]
async fn an_updated_resource_has_its_new_bytes_and_says_so() {
    let world = World::new().await;
    world.settle(Some("old")).await;
    let shared = world.open(TWO_DAYS, None);
    world.publish(&shared).await;
    let listed = world.get(&shared, &[]).await.headers()[header::ETAG].to_str().unwrap().to_owned();
    world.settle(Some("new")).await;
    world.publish(&shared).await;
    let found = world.get(&shared, &[]).await;
    assert_ne!(found.headers()[header::ETAG].to_str().unwrap(), listed);
    assert_eq!(body(found).await, "new");
    let asked = [(header::IF_MATCH, listed)];
    assert_eq!(world.get(&shared, &asked).await.status(), StatusCode::PRECONDITION_FAILED);
    world.catalog.close().await.unwrap();
}

#[tokio::test]
async fn a_closed_change_list_is_final_for_caches() {
    let world = World::new().await;
    let shared = world.open(TWO_DAYS, None);
    for version in ["one", "two", "three"] {
        world.settle(Some(version)).await;
        world.publish(&shared).await;
    }
    let none = HeaderMap::new();
    let index = documents::answer(&shared, paths::CHANGES, &Method::GET, &none).await;
    assert_eq!(index.headers()[header::CACHE_CONTROL], "public, max-age=60");
    let lists = change_lists(&shared).await;
    let told: Vec<_> = lists.iter().map(|list| &list.headers()[header::CACHE_CONTROL]).collect();
    assert_eq!(told, ["public, max-age=604800, immutable", "public, max-age=60"]);
    world.catalog.close().await.unwrap();
}

#[tokio::test]
async fn a_package_with_what_is_withdrawn_is_refused_before_another_one_is_made() {
    let world = World::new().await;
    world.settle(Some("in a package")).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let takedowns = Takedowns::of_file(file.path()).unwrap();
    let shared = world.open_with(TWO_DAYS, Some(takedowns.clone()), true);
    world.publish(&shared).await;
    let none = HeaderMap::new();
    let dump = body(documents::answer(&shared, paths::DUMP, &Method::GET, &none).await).await;
    let stem =
        dump.split("http://mirror.example/").find_map(|rest| Some(rest.split_once(".zip")?.0)).unwrap();
    let (package, manifest) = (format!("{stem}.zip"), format!("{stem}.xml"));
    let status_at = async |shared: &Shared, path: &str| {
        documents::answer(shared, path, &Method::GET, &none).await.status().as_u16()
    };
    let status = async |path: &str| status_at(&shared, path).await;
    assert_eq!(status(&package).await, 200);
    let withdraw = |uri: &str| takedowns.now().replace(&publish::Takedown::parse(uri).unwrap());
    withdraw("http://e.org/another");
    assert_eq!(status(&package).await, 200);
    // Nothing is published meanwhile.
    withdraw(world.uri.as_str());
    for _ in 0..2 {
        assert_eq!((status(&package).await, status(&manifest).await), (410, 200));
    }
    let other = package.replace("resourcedump/", "resourcedump/0");
    assert_eq!(status(&other).await, 404);
    withdraw("");
    assert_eq!(status(&package).await, 200);

    // A run removes the package, and is killed before it has made another one. Nothing is known of its manifest now.
    withdraw(world.uri.as_str());
    world.give_up_package(&package, &manifest).await;
    let fresh = world.open_with(TWO_DAYS, Some(takedowns.clone()), true);
    for list in [world.uri.as_str(), ""] {
        withdraw(list);
        for (path, expected) in [(&package, 410), (&manifest, 404), (&other, 404)] {
            assert_eq!(status_at(&fresh, path).await, expected, "{path}, {list:?}");
        }
    }
    world.catalog.close().await.unwrap();
}

#[tokio::test]
async fn a_reader_of_damaged_bytes_has_them_told_as_deleted() {
    let large: &str = Box::leak("large ".repeat(1 << 20).into_boxed_str());
    for present in ["small", large] {
        let world = World::new().await;
        world.settle(Some(present)).await;
        let shared = world.open(TWO_DAYS, None);
        world.publish(&shared).await;
        world.damage(present).await;
        for _ in 0..2 {
            let found = world.get(&shared, &[]).await;
            let is_refused = found.status() == StatusCode::SERVICE_UNAVAILABLE;
            let read = axum::body::to_bytes(found.into_body(), 8 << 20).await;
            assert!(is_refused || read.is_err(), "it does not come to its end");
        }
        assert!(shared.take_damage() && !shared.take_damage(), "noted once");
        world.publish(&shared).await;
        let last = body(change_lists(&shared).await.pop().unwrap()).await;
        assert_eq!(last.matches("\"deleted\"").count(), 1, "{last}");
        world.catalog.close().await.unwrap();
    }
}

#[tokio::test]
async fn damage_of_an_earlier_version_tells_nothing_of_the_present_one() {
    let world = World::new().await;
    world.settle(Some("deleted, and damaged")).await;
    let shared = world.open(TWO_DAYS, None);
    world.publish(&shared).await;
    world.settle(None).await;
    world.publish(&shared).await;
    world.damage("deleted, and damaged").await;
    assert_eq!(world.get(&shared, &[]).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(!shared.take_damage());
    world.catalog.close().await.unwrap();
}
