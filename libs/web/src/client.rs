//! The client: what all its requests share.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use model::{Clock, Lane, SystemClock};
use tokio::sync::{broadcast, watch};
use url::Url;

use crate::access::Accesses;
use crate::observer::Observer;
use crate::politeness::{Limits, Politeness};
use crate::robots::RobotsCache;
use crate::terms::{Agreed, Terms};
use crate::transport::Transport;
use crate::{ErrorKind, WebConfig, WebError};

/// Rests that are kept for a listener who is busy.
const RESTS_KEPT: usize = 256;

/// The HTTP client. Clones share connections, budgets and counts, and cost nothing.
#[derive(Clone)]
pub struct Client(pub(crate) Arc<Inner>, pub(crate) Arc<Agreed>);

pub(crate) struct Inner {
    pub(crate) accesses: Accesses,
    pub(crate) config: WebConfig,
    pub(crate) politeness: Politeness,
    pub(crate) requests: AtomicU64,
    pub(crate) observer: OnceLock<Arc<dyn Observer>>,
    pub(crate) clock: Arc<dyn Clock>,
    robots: RobotsCache,
    crawl_delays: watch::Sender<Option<CrawlDelay>>,
    rests: broadcast::Sender<OriginRest>,
}

/// An origin that asked to be left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginRest {
    /// The origin.
    pub lane: Lane,
    /// How long, from the answer on that said so.
    pub wait: Duration,
    /// That answer's status: 429 or 503, or that of a challenge.
    pub status: u16,
}

/// What an origin's robots.txt asks for between two requests, and what is kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrawlDelay {
    /// The origin.
    pub lane: Lane,
    /// The time that it asks for.
    pub asked: Duration,
    /// The time that is left: no more than the policy's longest.
    pub kept: Duration,
}

impl Client {
    /// A client that behaves as `config` says.
    ///
    /// # Errors
    /// [`ErrorKind::Builder`] when the configuration makes no client.
    pub fn new(config: WebConfig) -> Result<Self, WebError> {
        Self::with_clock(config, Arc::new(SystemClock))
    }

    /// A client that reads dates in `Retry-After` by `clock`.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_clock(config: WebConfig, clock: Arc<dyn Clock>) -> Result<Self, WebError> {
        Self::build(config, clock, None)
    }

    /// A client whose requests are carried by `transport` instead of the network: a Source inside this process, whose time is the test's.
    /// Names are not looked up, so only addresses that are written in URLs are guarded.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn over(
        config: WebConfig,
        clock: Arc<dyn Clock>,
        transport: Arc<dyn Transport>,
    ) -> Result<Self, WebError> {
        Self::build(config, clock, Some(transport))
    }

    fn build(
        config: WebConfig,
        clock: Arc<dyn Clock>,
        transport: Option<Arc<dyn Transport>>,
    ) -> Result<Self, WebError> {
        let refuse = |why: String| WebError::new(ErrorKind::Builder).detail(why);
        if config.per_origin == 0 {
            return Err(refuse(
                "per_origin is 0, so no request could ever be made; it is at least 1".to_owned(),
            ));
        }
        if config.host_share == 0 {
            return Err(refuse(
                "host_share is 0, so no request could ever be made; it is at least 1".to_owned(),
            ));
        }
        let accesses = Accesses::new(&config, transport).map_err(|error| refuse(error.to_string()))?;
        let agreed = Agreed::new(&config, &accesses, Terms::default()).map_err(refuse)?;
        let politeness = Politeness::new(Limits {
            at_a_time: config.per_origin,
            per_second: config.requests_per_second,
            patience: config.retry_budget,
            host_share: u32::try_from(config.host_share).unwrap_or(u32::MAX),
        });
        let inner = Arc::new(Inner {
            accesses,
            config,
            politeness,
            requests: AtomicU64::new(0),
            observer: OnceLock::new(),
            clock,
            robots: RobotsCache::default(),
            crawl_delays: watch::Sender::new(None),
            rests: broadcast::Sender::new(RESTS_KEPT),
        });
        Ok(Self(inner, Arc::new(agreed)))
    }

    /// From now on `observer` hears of each request, those of all clones. Only the first one that is named does.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        // An error says that there is one.
        let _ = self.0.observer.set(observer);
    }

    /// The `User-Agent` that requests are sent with.
    pub fn user_agent(&self) -> String {
        String::from_utf8_lossy(self.1.user_agent.as_bytes()).into_owned()
    }

    /// How many requests were sent so far, redirects, retries and each robots.txt included.
    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// How much longer an origin wants to be left alone, if it does. A request waits for it, within the configured budget.
    pub fn resting(&self, lane: &Lane) -> Option<Duration> {
        self.0.politeness.resting(lane)
    }

    /// Puts an origin to rest for so long, at most for the configuration's longest `Retry-After`: somebody else was asked to
    /// leave it alone. A rest that lasts longer already is left as it is.
    pub fn rest(&self, lane: &Lane, wait: Duration) {
        let longest = self.config().retry_after_max.max(self.config().challenge_rest);
        self.0.politeness.rest(lane, wait.min(longest));
    }

    /// Puts the origin of an answer to rest that was a challenge of its bot defence, and tells of it. How long it rests.
    pub fn rest_after_challenge(&self, at: &Url, status: u16) -> Duration {
        let wait = self.config().challenge_rest;
        if let Ok(lane) = Lane::of(at) {
            self.0.politeness.rest(&lane, wait);
            self.tell_rest(OriginRest { lane, wait, status });
        }
        wait
    }

    /// How many clients, each of a process of its own, ask the same origins, this one included. One until it is set.
    pub fn sharers(&self) -> u32 {
        self.0.politeness.sharers()
    }

    /// Says how many clients ask the same origins, this one included: each leaves so many times the space between its
    /// requests that the configured rate or an origin's crawl-delay asks for, so that together they keep to it. Holds for
    /// requests that wait already.
    pub fn set_sharers(&self, sharers: usize) {
        self.0.politeness.set_sharers(sharers);
    }

    /// Tells of each answer that puts an origin to rest or makes its rest last longer; not of [`Client::rest`]. Who
    /// listens too slowly misses the oldest ones.
    pub fn rests(&self) -> broadcast::Receiver<OriginRest> {
        self.0.rests.subscribe()
    }

    /// Tells of each crawl-delay when it is first kept. Only the latest is there for whoever comes late.
    pub fn crawl_delays(&self) -> watch::Receiver<Option<CrawlDelay>> {
        self.0.crawl_delays.subscribe()
    }

    pub(crate) fn tell_rest(&self, rest: OriginRest) {
        // An error says that nobody listens.
        let _ = self.0.rests.send(rest);
    }

    pub(crate) fn tell(&self, delay: CrawlDelay) {
        self.0.crawl_delays.send_replace(Some(delay));
    }

    pub(crate) fn config(&self) -> &WebConfig {
        &self.0.config
    }

    pub(crate) fn known_robots(&self) -> &RobotsCache {
        &self.0.robots
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("config", &self.0.config).field("requests", &self.requests()).finish()
    }
}
