//! What all requests share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::http::HeaderValue;
use bytes::Bytes;
use jiff::Timestamp;
use model::{Archive, Clock as _, ResourceUri, SystemClock};
use publish::files::FileRecords;
use publish::{
    Admission, CatalogRecords, OaiRecords, Policy, Publication, PublishError, Published, PublishedPath,
    Records as _, Seen, Takedown, Withdrawals,
};
use serving::{Catalogs, VerifiedCache};
use store::{Store, StoreError};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::time::Instant;

use crate::damage::Damage;
use crate::harvest::Harvest;
use crate::metrics::PublisherMetrics;
use crate::packages::Packages;
use crate::readers::{Admits, Readers};
use crate::settings::Settings;
use crate::takedowns::Takedowns;
use crate::topics::Topics;
use crate::withdrawn::Withdrawn;

/// How often the catalog of a harvest in a directory is looked at where hubs are told, so that subscribers wait less. A
/// bucket charges for each look.
pub(crate) const EVERY_FOR_HUBS: Duration = Duration::from_millis(250);

/// How long it is not looked up again which deleted resources are gone. That changes about once an hour.
const GONE_KNOWN: Duration = Duration::from_secs(60);

/// What is published: a harvest, or the files of a directory.
pub enum Held {
    /// What this store holds of the publication's Source.
    Harvest(Store),
    /// Files.
    Files(Box<FileRecords>),
}

/// What all requests share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Parts>);

struct Parts {
    publication: Publication,
    /// Its sizes and times, which may change while it is served.
    policy: RwLock<Policy>,
    records: OpenRecords,
    takedowns: Option<Takedowns>,
    metrics: PublisherMetrics,
    contact: String,
    oai_turns: Arc<Semaphore>,
    withdrawn: Withdrawn,
    packages: Packages,
    /// What readers found damaged.
    damage: Damage,
    /// What was deleted before this time is gone; and when that was looked up.
    gone: Mutex<Option<(Timestamp, Instant)>>,
    redirect: Option<Duration>,
    link: Option<HeaderValue>,
    /// The end of the newest payload that a hub took.
    newest: RwLock<Timestamp>,
    topics: Topics,
    published: watch::Sender<()>,
    /// Which subscribers are told.
    admits: RwLock<Admits>,
    /// Whether its documents are known to be at the place.
    is_there: AtomicBool,
}

/// Memory for parts of the catalog of a publication that stands alone.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// The records, open.
pub(crate) enum OpenRecords {
    Harvest(Box<Harvest>),
    Files(Arc<FileRecords>),
}

impl Shared {
    /// What a store holds of a Source, or files. Nothing is read yet.
    pub(crate) fn of_held(publication: Publication, held: Held, settings: &Settings) -> Self {
        let records = match held {
            Held::Harvest(store) => {
                let is_directory = store.directory().is_some();
                let mut catalogs = Catalogs::new(store, 1, CACHE_BYTES);
                if is_directory && !publication.hubs.is_empty() {
                    catalogs = catalogs.looking_every(EVERY_FOR_HUBS);
                }
                let source = publication.source.source.clone();
                OpenRecords::Harvest(Box::new(Harvest::new(source, catalogs, VerifiedCache::default())))
            }
            Held::Files(files) => OpenRecords::Files(Arc::from(files)),
        };
        Self::new(publication, records, settings)
    }

    pub(crate) fn new(publication: Publication, records: OpenRecords, settings: &Settings) -> Self {
        let capabilities = publication.base.url(publish::paths::CAPABILITIES);
        let contact = settings.contact_at(&publication.base);
        let link = format!("<{capabilities}>; rel=\"resourcesync\"").parse().ok();
        Self(Arc::new(Parts {
            policy: RwLock::new(publication.policy),
            publication,
            records,
            takedowns: settings.takedowns.clone(),
            metrics: settings.metrics.clone(),
            contact,
            oai_turns: Arc::clone(&settings.oai_turns),
            withdrawn: Withdrawn::default(),
            packages: Packages::default(),
            damage: Damage::default(),
            gone: Mutex::default(),
            redirect: settings.redirect,
            link,
            newest: RwLock::new(Timestamp::MIN),
            topics: settings.topics.clone(),
            published: watch::Sender::new(()),
            admits: RwLock::new(Admits::new(&Readers::default())),
            is_there: AtomicBool::new(false),
        }))
    }

    pub(crate) fn publication(&self) -> &Publication {
        &self.0.publication
    }

    /// Whether it is this very one, and not another of the same Source.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether hubs are told of its changes.
    pub(crate) fn has_hubs(&self) -> bool {
        !self.0.publication.hubs.is_empty()
    }

    pub(crate) fn records(&self) -> &OpenRecords {
        &self.0.records
    }

    /// How long URLs at the bucket are valid to which readers are led; none if they are not.
    pub(crate) fn redirect(&self) -> Option<Duration> {
        self.0.redirect
    }

    /// What it counts.
    pub(crate) fn metrics(&self) -> &PublisherMetrics {
        &self.0.metrics
    }

    /// The list of what is withdrawn, if there is one.
    pub(crate) fn takedowns(&self) -> Option<&Takedowns> {
        self.0.takedowns.as_ref()
    }

    /// What is withdrawn.
    pub(crate) fn takedown(&self) -> Takedown {
        self.takedowns().map(Takedowns::now).unwrap_or_default()
    }

    /// When resources were withdrawn, and the time up to which all withdrawals are known.
    ///
    /// # Errors
    /// When the place fails.
    pub(crate) async fn withdrawals(&self) -> Result<(Arc<Withdrawals>, Timestamp), PublishError> {
        self.0.withdrawn.get(self.publication()).await
    }

    /// What was deleted before this time is gone: no list that readers may have names it.
    ///
    /// # Errors
    /// When the place fails.
    pub(crate) async fn gone_before(&self) -> Result<Timestamp, PublishError> {
        let mut known = self.0.gone.lock().await;
        if let Some((before, _)) = known.filter(|(_, at)| at.elapsed() < GONE_KNOWN) {
            return Ok(before);
        }
        let before = self.publication().gone_before(SystemClock.now()).await?;
        *known = Some((before, Instant::now()));
        Ok(before)
    }

    /// Notes a resource whose bytes cannot be read, for this reason: the next publication looks, and tells it.
    pub(crate) async fn note_damage(&self, uri: &ResourceUri, error: &StoreError) {
        self.0.damage.note(self.publication(), uri, error).await;
    }

    /// Whether damage was noted since this was asked last.
    pub(crate) fn take_damage(&self) -> bool {
        self.0.damage.take_waiting()
    }

    /// Turns of requests of OAI-PMH, of all repositories of the server.
    pub(crate) fn oai_turns(&self) -> &Semaphore {
        &self.0.oai_turns
    }

    /// The mail address of the administrator.
    pub(crate) fn contact(&self) -> &str {
        &self.0.contact
    }

    /// Whether a resource is withdrawn.
    pub(crate) fn is_withdrawn(&self, uri: &ResourceUri) -> bool {
        self.takedowns().is_some_and(|takedowns| takedowns.now().contains(uri))
    }

    /// Whether a package has bytes of what is withdrawn.
    ///
    /// # Errors
    /// When its manifest cannot be read.
    pub(crate) async fn has_withdrawn(&self, package: &str) -> Result<bool, PublishError> {
        let Some(takedowns) = self.takedowns() else { return Ok(false) };
        let publication = self.publication();
        let url = |uri: &ResourceUri| match self.records() {
            OpenRecords::Harvest(_) => publication.base.url(PublishedPath::of(uri).as_str()),
            OpenRecords::Files(files) => files.url(&publication.base, uri),
        };
        self.0.packages.has_any(publication, package, takedowns.now().now(), url).await
    }

    /// The newest payload that was sent to a hub. Empty before, and when other publications had many since.
    pub(crate) fn newest(&self) -> Bytes {
        self.0.topics.get(self.0.publication.base.as_str()).unwrap_or_default()
    }

    /// Notes a payload before it is sent to a hub, unless another hub was sent a newer one.
    pub(crate) fn note_payload(&self, until: Timestamp, payload: Bytes) {
        let mut newest = self.0.newest.write().unwrap_or_else(PoisonError::into_inner);
        if until > *newest {
            *newest = until;
            self.0.topics.put(self.0.publication.base.as_str(), payload);
        }
    }

    /// Whether what a subscriber was admitted by still holds.
    pub(crate) fn admits(&self, admission: &Admission) -> bool {
        let admits = self.0.admits.read().unwrap_or_else(PoisonError::into_inner);
        admits.holds(admission, &self.0.publication.source)
    }

    /// Notes which readers it has. Subscribers that others were admitted by are told nothing more.
    pub(crate) fn admit(&self, readers: &Readers) {
        *self.0.admits.write().unwrap_or_else(PoisonError::into_inner) = Admits::new(readers);
    }

    /// Changes with each publication.
    pub(crate) fn published(&self) -> watch::Receiver<()> {
        self.0.published.subscribe()
    }

    /// The `Link` header that leads to the Capability List.
    pub(crate) fn link(&self) -> Option<HeaderValue> {
        self.0.link.clone()
    }

    /// Whether it was published, by this process or another one. False if that cannot be told now.
    pub(crate) async fn is_published(&self) -> bool {
        if self.0.is_there.load(Ordering::Relaxed) {
            return true;
        }
        let is_there = match self.publication().is_there().await {
            Ok(is_there) => is_there,
            Err(error) => {
                let source = self.publication().source.source.as_str();
                tracing::warn!(%error, source, "it cannot be told whether a Source is published");
                false
            }
        };
        if is_there {
            self.0.is_there.store(true, Ordering::Relaxed);
        }
        is_there
    }

    /// Has its lists of the past stay for so long, from its next look on. Returns whether that is a change.
    pub(crate) fn archive_for(&self, archive: Archive) -> bool {
        let mut policy = self.0.policy.write().unwrap_or_else(PoisonError::into_inner);
        let wanted = policy.archived(archive);
        std::mem::replace(&mut *policy, wanted) != wanted
    }

    /// Publishes what there is by now.
    pub(crate) async fn publish(
        &self,
        see: &mut (dyn FnMut(Seen<'_>) + Send + Sync),
    ) -> Result<Published, PublishError> {
        let now = SystemClock.now();
        // Of a first publication, the documents above the lists come last.
        let was_there = self.is_published().await;
        let mut see = |seen: Seen<'_>| {
            if was_there && matches!(seen, Seen::Told(_)) {
                self.0.published.send_replace(());
            }
            see(seen);
        };
        let see = &mut see;
        let policy = *self.0.policy.read().unwrap_or_else(PoisonError::into_inner);
        let publication = Publication { takedown: self.takedown(), policy, ..self.publication().clone() };
        let done = match self.records() {
            OpenRecords::Harvest(harvest) => self.publish_harvest(harvest, &publication, now, see).await,
            OpenRecords::Files(files) => publication.run(&**files, now, see).await,
        };
        self.metrics().published(done.as_ref().ok().map(|done| done.changes));
        if let Some(done) = done.as_ref().ok().filter(|done| done.changes > 0) {
            self.metrics().told(done.telling);
        }
        if done.is_ok() {
            self.0.is_there.store(true, Ordering::Relaxed);
        }
        // One that failed may have published changes before, and so may another process: hubs were not told of them.
        let is_told = done.as_ref().is_ok_and(|done| done.changes == 0) && !publication.place.is_shared();
        if !is_told {
            self.0.published.send_replace(());
        }
        done
    }

    async fn publish_harvest(
        &self,
        harvest: &Harvest,
        publication: &Publication,
        now: Timestamp,
        see: &mut (dyn FnMut(Seen<'_>) + Send + Sync),
    ) -> Result<Published, PublishError> {
        let catalog = harvest.catalog().await?;
        let records = harvest.records(&catalog);
        // Only harvesters of OAI-PMH ask since when.
        if let Some(base) = OaiRecords::base_of(&records).await? {
            self.0.withdrawn.note(publication, &base, &publication.takedown).await?;
        }
        let done = publication.run(&records, now, see).await;
        if !matches!(done, Err(PublishError::Behind)) {
            return done;
        }
        // Another process has published more than this reader shows, or the catalog was made anew.
        drop((records, catalog));
        harvest.close_catalog().await;
        let catalog = harvest.catalog().await?;
        publication.run(&CatalogRecords::new(&catalog, harvest.store()), now, see).await
    }
}

#[cfg(test)]
mod tests;
