//! State that all handlers share.

use std::sync::Arc;

use control::{Control, LeaseRecord, Plan, Run, SourceSpec, Subscription, WatchCache};
use jiff::Timestamp;
use model::Clock;
use store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::catalogs::Catalogs;
use crate::config::Settings;
use crate::inbox::Inbox;
use crate::judged::Judged;
use crate::metrics::GatewayMetrics;
use crate::tokens::Tokens;
use crate::wrong_tokens::WrongTokens;

/// State that all handlers share. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Gateway(Arc<Parts>);

/// The parts of the state.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) settings: Settings,
    pub(crate) tokens: Tokens,
    pub(crate) wrong_tokens: WrongTokens,
    pub(crate) control: Control,
    pub(crate) views: Views,
    pub(crate) store: Store,
    pub(crate) catalogs: Catalogs,
    pub(crate) judged: Judged,
    /// Permits for batches.
    pub(crate) batches: Arc<Semaphore>,
    /// The inboxes, if configured.
    pub(crate) inbox: Option<Inbox>,
    pub(crate) metrics: GatewayMetrics,
    pub(crate) clock: Arc<dyn Clock>,
    /// Cancelled when the service accepts no new work.
    pub(crate) stop: CancellationToken,
}

/// Views of the control store, which follow its changes.
#[derive(Debug, Clone)]
pub(crate) struct Views {
    pub(crate) sources: WatchCache<SourceSpec>,
    pub(crate) runs: WatchCache<Run>,
    pub(crate) leases: WatchCache<LeaseRecord>,
    pub(crate) plans: WatchCache<Plan>,
    pub(crate) subscriptions: WatchCache<Subscription>,
}

impl Gateway {
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.0.tokens
    }

    pub(crate) fn wrong_tokens(&self) -> &WrongTokens {
        &self.0.wrong_tokens
    }

    pub(crate) fn control(&self) -> &Control {
        &self.0.control
    }

    pub(crate) fn views(&self) -> &Views {
        &self.0.views
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn catalogs(&self) -> &Catalogs {
        &self.0.catalogs
    }

    pub(crate) fn judged(&self) -> &Judged {
        &self.0.judged
    }

    pub(crate) fn batches(&self) -> &Arc<Semaphore> {
        &self.0.batches
    }

    pub(crate) fn inbox(&self) -> Option<&Inbox> {
        self.0.inbox.as_ref()
    }

    pub(crate) fn metrics(&self) -> &GatewayMetrics {
        &self.0.metrics
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }
}
