//! What all requests share.

use std::sync::{Arc, PoisonError, RwLock};

use axum::http::HeaderValue;
use bytes::Bytes;
use jiff::Timestamp;
use model::{Clock as _, ResourceUri, SystemClock};
use publish::files::FileRecords;
use publish::{Publication, PublishError, Published, Seen, Takedown, Withdrawals};
use store::Store;
use tokio::sync::watch;

use crate::access::Tokens;
use crate::harvest::Harvest;
use crate::metrics::PublisherMetrics;
use crate::settings::Settings;
use crate::takedowns::Takedowns;

/// What is published: a harvest, or the files of a directory.
pub enum Held {
    /// What this store holds of the publication's Source.
    Harvest(Store),
    /// Files.
    Files(FileRecords),
}

/// What all requests share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Parts>);

struct Parts {
    publication: Publication,
    records: OpenRecords,
    tokens: Option<Tokens>,
    takedowns: Option<Takedowns>,
    metrics: PublisherMetrics,
    contact: String,
    /// When resources were withdrawn.
    withdrawals: RwLock<Arc<Withdrawals>>,
    link: Option<HeaderValue>,
    /// The newest payload that a hub took, and its end.
    newest: RwLock<(Timestamp, Bytes)>,
    published: watch::Sender<()>,
}

/// The records, open.
pub(crate) enum OpenRecords {
    Harvest(Harvest),
    Files(Arc<FileRecords>),
}

impl Shared {
    pub(crate) async fn open(
        publication: Publication,
        held: Held,
        settings: &Settings,
    ) -> Result<Self, PublishError> {
        let records = match held {
            Held::Harvest(store) => {
                OpenRecords::Harvest(Harvest::open(store, &publication.source.source).await?)
            }
            Held::Files(files) => OpenRecords::Files(Arc::new(files)),
        };
        let capabilities = publication.base.url(publish::paths::CAPABILITIES);
        let withdrawals = match &records {
            OpenRecords::Harvest(_) => publication.withdrawals().await?,
            OpenRecords::Files(_) => Withdrawals::default(),
        };
        let contact = settings.contact_at(&publication.base);
        let link = format!("<{capabilities}>; rel=\"resourcesync\"").parse().ok();
        Ok(Self(Arc::new(Parts {
            publication,
            records,
            tokens: settings.tokens.clone(),
            takedowns: settings.takedowns.clone(),
            metrics: settings.metrics.clone(),
            contact,
            withdrawals: RwLock::new(Arc::new(withdrawals)),
            link,
            newest: RwLock::new((Timestamp::MIN, Bytes::new())),
            published: watch::Sender::new(()),
        })))
    }

    pub(crate) fn publication(&self) -> &Publication {
        &self.0.publication
    }

    pub(crate) fn records(&self) -> &OpenRecords {
        &self.0.records
    }

    /// The tokens of readers; none if everybody may read.
    pub(crate) fn tokens(&self) -> Option<&Tokens> {
        self.0.tokens.as_ref()
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

    /// When resources were withdrawn.
    pub(crate) fn withdrawals(&self) -> Arc<Withdrawals> {
        Arc::clone(&self.0.withdrawals.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The mail address of the administrator.
    pub(crate) fn contact(&self) -> &str {
        &self.0.contact
    }

    /// Whether a resource is withdrawn.
    pub(crate) fn is_withdrawn(&self, uri: &ResourceUri) -> bool {
        self.takedowns().is_some_and(|takedowns| takedowns.now().contains(uri))
    }

    /// The newest payload that a hub took; empty before.
    pub(crate) fn newest(&self) -> Bytes {
        self.0.newest.read().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Notes a payload that a hub took, unless another hub has taken a newer one.
    pub(crate) fn note_payload(&self, until: Timestamp, payload: Bytes) {
        let mut newest = self.0.newest.write().unwrap_or_else(PoisonError::into_inner);
        if until > newest.0 {
            *newest = (until, payload);
        }
    }

    /// Changes with each publication.
    pub(crate) fn published(&self) -> watch::Receiver<()> {
        self.0.published.subscribe()
    }

    /// The `Link` header that leads to the Capability List.
    pub(crate) fn link(&self) -> Option<HeaderValue> {
        self.0.link.clone()
    }

    /// Notes since when resources are withdrawn. A response that does not know it yet has an earlier time.
    async fn note_withdrawals(&self, takedown: &Takedown) -> Result<(), PublishError> {
        let Some(updated) = self.withdrawals().updated(takedown, SystemClock.now()) else { return Ok(()) };
        let updated = Arc::new(updated);
        *self.0.withdrawals.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&updated);
        self.publication().save_withdrawals(&updated).await
    }

    /// Publishes what there is by now.
    pub(crate) async fn publish(
        &self,
        see: &mut (dyn FnMut(Seen<'_>) + Send + Sync),
    ) -> Result<Published, PublishError> {
        let now = SystemClock.now();
        let takedown = self.takedown();
        if let OpenRecords::Harvest(_) = self.records() {
            self.note_withdrawals(&takedown).await?;
        }
        let publication = Publication { takedown, ..self.publication().clone() };
        let done = match self.records() {
            OpenRecords::Harvest(harvest) => publication.run(&harvest.records().await, now, see).await,
            OpenRecords::Files(files) => publication.run(&**files, now, see).await,
        };
        self.metrics().published(done.as_ref().ok().map(|done| done.changes));
        let done = done?;
        if done.changes > 0 {
            self.0.published.send_replace(());
        }
        Ok(done)
    }
}
