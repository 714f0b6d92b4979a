//! A hub of a folder's files, for tests.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use publish::files::FileRecords;
use publish::{Admission, Base, Place, Publication, Subscriber};
use store::SourceMarker;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use web::AddressPolicy;

use super::{Hub, Room};
use crate::hub_limits::HubLimits;
use crate::settings::Settings;
use crate::shared::{Held, Shared};

/// A hub of a folder's files.
pub(crate) struct Case {
    folder: TempDir,
    /// The place of the publication.
    objects: Arc<InMemory>,
    pub(crate) hub: Hub,
    pub(crate) room: Room,
    /// A time before the last change, which is in the Change List and in no payload.
    pub(crate) told: Timestamp,
}

/// A subscriber that was told until then.
pub(crate) fn subscriber(callback: &str, told: Timestamp) -> Subscriber {
    Subscriber {
        callback: callback.parse().unwrap(),
        secret: None,
        lease_until: Timestamp::MAX,
        told,
        failing_since: None,
        admission: Admission::default(),
    }
}

impl Case {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let objects = Arc::new(InMemory::new());
        let place = Place::bucket("memory", objects.clone());
        let url = "http://mirror.example/files/".parse().unwrap();
        let files = FileRecords::new(folder.path(), &url, &place).unwrap();
        let publication = Publication::of_documents(
            place,
            Base::new("http://mirror.example/".parse().unwrap()).unwrap(),
            SourceMarker::new("one".parse().unwrap(), url.as_str()),
        );
        let shared = Shared::of_held(publication, Held::Files(Box::new(files)), &Settings::default());
        shared.publish(&mut |_| {}).await.unwrap();
        let told = shared.publication().published_until().await.unwrap();
        put(&folder);
        assert_eq!(shared.publish(&mut |_| {}).await.unwrap().changes, 1);
        let limits = HubLimits {
            // A callback that does not answer stays slow for longer than a test waits.
            answer_time: Duration::from_secs(3_600),
            addresses: AddressPolicy::public_only().allow_network("127.0.0.0/8".parse().unwrap()),
            ..HubLimits::default()
        };
        let url = "http://mirror.example/hub".parse().unwrap();
        let room = Room::new(limits).unwrap();
        let hub = Hub::open(&shared, &url, room.clone(), None, CancellationToken::new()).await.unwrap();
        Self { folder, objects, hub, room, told }
    }

    /// What is published.
    pub(crate) fn shared(&self) -> &Shared {
        &self.hub.0.shared
    }

    /// Publishes another change.
    pub(crate) async fn change(&self) {
        put(&self.folder);
        assert_eq!(self.hub.0.shared.publish(&mut |_| {}).await.unwrap().changes, 1);
    }

    /// Writes an object at the place.
    pub(crate) async fn put_object(&self, path: &str, content: &'static str) {
        self.objects.put(&path.into(), content.into()).await.unwrap();
    }

    /// Stops the hub.
    pub(crate) fn stop(&self) {
        self.hub.0.stop.cancel();
    }
}

/// Adds a file.
fn put(folder: &TempDir) {
    tempfile::Builder::new().prefix("file").tempfile_in(folder.path()).unwrap().keep().unwrap();
}
