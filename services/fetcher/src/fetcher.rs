//! The fetcher: the state that all its jobs share.

use std::sync::Arc;

use bus::Bus;
use bus::worker::{OriginShares, RequestTimer};
use fleet::Credentials;
use model::{Clock, Origin, Terms};
use store::{PackLimits, SharedPacks, Store};
use tokio_util::sync::CancellationToken;
use web::Client;

use crate::config::FetcherConfig;
use crate::metrics::FetcherMetrics;
use crate::patch_room::PatchRoom;
use crate::range_permits::SingleRangeOrigins;

/// Processes fetch jobs.
#[derive(Debug, Clone)]
pub struct Fetcher {
    pub(crate) client: Client,
    credentials: Credentials,
    pub(crate) store: Store,
    /// Packs of all jobs of this process: jobs that end while others store their bodies share a pack.
    pub(crate) packs: SharedPacks,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) config: Arc<FetcherConfig>,
    pub(crate) metrics: FetcherMetrics,
    pub(crate) loners: SingleRangeOrigins,
    /// Memory that patches share.
    pub(crate) patch_room: PatchRoom,
    origin_shares: Option<OriginShares>,
    pub(crate) stop: CancellationToken,
}

impl Fetcher {
    /// A fetcher that requests through `client`, stores in `store` and reports on `bus`.
    pub fn new(
        client: Client,
        store: Store,
        bus: Arc<dyn Bus>,
        clock: Arc<dyn Clock>,
        config: FetcherConfig,
    ) -> Self {
        Self {
            client,
            credentials: Credentials::default(),
            packs: SharedPacks::new(store.clone(), PackLimits::default()),
            store,
            bus,
            clock,
            config: Arc::new(config),
            metrics: FetcherMetrics::default(),
            loners: SingleRangeOrigins::default(),
            patch_room: PatchRoom::default(),
            origin_shares: None,
            stop: CancellationToken::new(),
        }
    }

    /// Adds metrics.
    #[must_use]
    pub fn counted(self, metrics: FetcherMetrics) -> Self {
        let counted = metrics.clone();
        let packs = self.packs.observed(move |jobs| counted.count_pack(jobs));
        Self { metrics, packs, ..self }
    }

    /// Allows Sources to name these credentials; without this call there are none.
    #[must_use]
    pub fn knowing(self, credentials: Credentials) -> Self {
        Self { credentials, ..self }
    }

    /// Reports how long requests take, so that jobs of slow origins leave slots to others.
    #[must_use]
    pub fn sharing_by_origin(self, shares: OriginShares) -> Self {
        Self { origin_shares: Some(shares), ..self }
    }

    /// Measures a request to an origin, until the value is dropped.
    pub(crate) fn time_request(&self, origin: &Origin) -> Option<RequestTimer> {
        self.origin_shares.as_ref().map(|shares| shares.begin(origin))
    }

    /// This fetcher with the terms of a Source.
    pub(crate) fn on(&self, terms: &Terms) -> Result<Self, String> {
        let asked = self.credentials.terms(terms).map_err(|error| error.to_string())?;
        let client = self.client.on(asked).map_err(|error| error.to_string())?;
        let config = match terms.max_body_bytes {
            Some(largest) => {
                let max_body_bytes = largest.get();
                Arc::new(FetcherConfig { max_body_bytes, ..FetcherConfig::clone(&self.config) })
            }
            None => Arc::clone(&self.config),
        };
        Ok(Self { client, config, ..self.clone() })
    }

    /// Stops package jobs in the middle when `stop` is cancelled. A fetch job is short, and is finished.
    #[must_use]
    pub fn stopped_by(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }
}
