//! State that all handlers share.

use std::ops::Deref;
use std::sync::Arc;

use control::{Control, LeaseRecord, Member, Plan, Run, Sample, SourceSpec, Subscription, WatchCache};
use jiff::Timestamp;
use model::Clock;
use service::Readiness;
use store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::metrics::GatewayMetrics;
use crate::tokens::Tokens;
use crate::wrong_tokens::WrongTokens;
use serving::{Catalogs, VerifiedCache};

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
    pub(crate) verified: VerifiedCache,
    /// Permits for batches.
    pub(crate) batches: Arc<Semaphore>,
    pub(crate) metrics: GatewayMetrics,
    pub(crate) clock: Arc<dyn Clock>,
    /// When the service started.
    pub(crate) started_at: Timestamp,
    pub(crate) readiness: Readiness,
    /// Cancelled when the service accepts no new work.
    pub(crate) stop: CancellationToken,
}

/// Views of the control store, which follow its changes.
#[derive(Debug, Clone)]
pub(crate) struct Views {
    pub(crate) sources: WatchCache<SourceSpec>,
    pub(crate) runs: WatchCache<Run>,
    pub(crate) tasks: WatchCache<Run>,
    pub(crate) leases: WatchCache<LeaseRecord>,
    pub(crate) plans: WatchCache<Plan>,
    pub(crate) subscriptions: WatchCache<Subscription>,
    pub(crate) members: WatchCache<Member>,
    pub(crate) samples: WatchCache<Sample>,
}

impl Gateway {
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl Deref for Gateway {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
