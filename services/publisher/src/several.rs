//! Several publications as the sets of one Source: its documents, and the sets by their folder.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use fixity::Sha256;
use jiff::Timestamp;
use model::{Clock as _, SystemClock};
use publish::{Collection, CollectionDocument, Publication, PublishError, Published, paths};
use store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::Tokens;
use crate::conditions::{Condition, condition, http_date};
use crate::harvest::OAI_AT_A_TIME;
use crate::metrics::PublisherMetrics;
use crate::set::{self, Set};
use crate::settings::Settings;
use crate::shared::{Held, Shared};

/// The pause after a set could not be opened.
const PAUSE: Duration = Duration::from_secs(60);

/// The sets and the documents above them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Several(Arc<Parts>);

struct Parts {
    path: String,
    documents: Vec<CollectionDocument>,
    since: Timestamp,
    tokens: Option<Tokens>,
    oai: OfAll,
    /// None for a set that cannot be opened yet.
    sets: RwLock<BTreeMap<String, Option<Set>>>,
}

/// The OAI-PMH repository of all sets.
pub(crate) struct OfAll {
    pub(crate) url: String,
    pub(crate) contact: String,
    pub(crate) turns: Semaphore,
    pub(crate) metrics: PublisherMetrics,
}

/// What is at a path below the base.
pub(crate) enum Found {
    /// A document above the sets.
    Document(CollectionDocument),
    /// A path below the base of a set.
    InSet(Set, String),
    /// The OAI-PMH repository of all sets.
    Repository,
    /// A set that cannot be read now.
    Unready,
    /// Nothing.
    Nothing,
}

impl Several {
    /// Starts all sets. One that cannot be opened is tried again later, and keeps no other from being served.
    ///
    /// # Errors
    /// When a document above the sets cannot be made.
    pub(crate) async fn start(
        collection: &Collection,
        sets: Vec<(Publication, Store)>,
        settings: &Settings,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<(Self, Published), PublishError> {
        let names = sets.iter().map(|(publication, _)| publication.source.source.to_string());
        let all = Self(Arc::new(Parts {
            path: collection.base().path().to_owned(),
            documents: collection.documents()?,
            since: SystemClock.now(),
            tokens: settings.tokens.clone(),
            oai: OfAll {
                url: collection.base().url(paths::OAI),
                contact: settings.contact_at(collection.base()),
                turns: Semaphore::new(OAI_AT_A_TIME),
                metrics: settings.metrics.clone(),
            },
            sets: RwLock::new(names.map(|name| (name, None)).collect()),
        }));
        let mut done = Published::default();
        for (publication, store) in sets {
            match all.open(&publication, &store, settings, tasks, stop).await {
                Ok(published) => done += published,
                Err(error) => {
                    let source = publication.source.source.as_str();
                    tracing::error!(%error, source, "a Source cannot be published now: it is tried again");
                    let (all, settings, stop) = (all.clone(), settings.clone(), stop.clone());
                    let more = tasks.clone();
                    tasks.spawn(all.keep_opening(publication, store, settings, more, stop));
                }
            }
        }
        Ok((all, done))
    }

    async fn open(
        &self,
        publication: &Publication,
        store: &Store,
        settings: &Settings,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<Published, PublishError> {
        let held = Held::Harvest(store.clone());
        let (set, done) = set::start(publication.clone(), held, settings, tasks, stop).await?;
        let name = publication.source.source.to_string();
        self.0.sets.write().unwrap_or_else(PoisonError::into_inner).insert(name, Some(set));
        Ok(done)
    }

    async fn keep_opening(
        self,
        publication: Publication,
        store: Store,
        settings: Settings,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) {
        let source = publication.source.source.clone();
        loop {
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = stop.cancelled() => return,
            }
            match self.open(&publication, &store, &settings, &tasks, &stop).await {
                Ok(_) => {
                    tracing::info!(source = source.as_str(), "a Source is published now");
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, source = source.as_str(), "a Source cannot be published yet")
                }
            }
        }
    }

    /// The path of the base at the server.
    pub(crate) fn path(&self) -> &str {
        &self.0.path
    }

    /// The tokens of readers; none if everybody may read.
    pub(crate) fn tokens(&self) -> Option<&Tokens> {
        self.0.tokens.as_ref()
    }

    /// The OAI-PMH repository of all sets.
    pub(crate) fn oai(&self) -> &OfAll {
        &self.0.oai
    }

    /// All sets, in the order of their IDs. None while one cannot be read.
    pub(crate) fn ready(&self) -> Option<Vec<Shared>> {
        let sets = self.0.sets.read().unwrap_or_else(PoisonError::into_inner);
        sets.values().map(|set| set.as_ref().map(|set| set.shared.clone())).collect()
    }

    /// What is at a path below the base.
    pub(crate) fn find(&self, path: &str) -> Found {
        if let Some(document) = self.0.documents.iter().find(|document| document.path == path) {
            return Found::Document(document.clone());
        }
        if path == paths::OAI {
            return Found::Repository;
        }
        let Some((name, rest)) = path.split_once('/') else { return Found::Nothing };
        let sets = self.0.sets.read().unwrap_or_else(PoisonError::into_inner);
        let rest = if rest.is_empty() { paths::PAGE } else { rest };
        match sets.get(name) {
            Some(Some(set)) => Found::InSet(set.clone(), rest.to_owned()),
            Some(None) => Found::Unready,
            None => Found::Nothing,
        }
    }

    /// Answers with a document above the sets.
    pub(crate) fn answer(
        &self,
        document: &CollectionDocument,
        method: &Method,
        asked: &HeaderMap,
    ) -> Response {
        let CollectionDocument { path, media_type, body } = document;
        let etag = format!("\"{}\"", Sha256::of(body));
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
        headers.extend(etag.parse().ok().map(|value| (header::ETAG, value)));
        headers.extend(http_date(self.0.since).map(|value| (header::LAST_MODIFIED, value)));
        if *path == paths::PAGE {
            headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'"));
        }
        match condition(asked, &etag, self.0.since) {
            Condition::NotModified => return (StatusCode::NOT_MODIFIED, headers).into_response(),
            Condition::Failed => return StatusCode::PRECONDITION_FAILED.into_response(),
            Condition::Met => {}
        }
        headers.insert(header::CONTENT_LENGTH, body.len().into());
        let body = if *method == Method::HEAD { Body::empty() } else { Body::from(body.clone()) };
        (headers, body).into_response()
    }
}
