//! The client: the state that all its requests share.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use model::{Clock, Origin, SystemClock};
use tokio::sync::{broadcast, watch};
use url::Url;

use crate::access::Accesses;
use crate::observer::Observer;
use crate::politeness::{Limits, Politeness};
use crate::robots::RobotsCache;
use crate::terms::{Agreed, Terms};
use crate::transport::Transport;
use crate::{ErrorKind, WebConfig, WebError};

/// Cooldowns that are buffered for a busy subscriber.
const RESTS_KEPT: usize = 256;

/// The HTTP client. Clones share connections, budgets and counts, and cost nothing.
#[derive(Clone)]
pub struct Client(pub(crate) Arc<Inner>, pub(crate) Arc<Agreed>, pub(crate) Option<OwnCount>);

/// How many requests one client and its clones have sent.
type OwnCount = Arc<AtomicU64>;

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

/// An origin that requested a cooldown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginRest {
    /// The origin.
    pub origin: Origin,
    /// The cooldown, counted from the response that requested it.
    pub wait: Duration,
    /// The status of that response: 429 or 503, or that of a challenge.
    pub status: u16,
}

/// The crawl-delay in an origin's robots.txt, and the part of it that is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrawlDelay {
    /// The origin.
    pub origin: Origin,
    /// The requested delay.
    pub asked: Duration,
    /// The applied delay: at most the policy's longest.
    pub kept: Duration,
}

impl Client {
    /// A client with this configuration.
    ///
    /// # Errors
    /// [`ErrorKind::Builder`] when the configuration is invalid.
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

    /// A client whose requests go through `transport` instead of the network: to a Source inside this
    /// process, on the test's clock. Names are not looked up, so only addresses that are written in URLs are
    /// checked.
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

    /// A client for the requests of one Source. It shares everything else with this one: connections (unless
    /// it may reach other networks), the budgets of origins and their cooldowns, counters, and robots.txt.
    ///
    /// # Errors
    /// [`ErrorKind::Builder`] when a contact fits no header, or two credentials set the same header.
    pub fn on(&self, terms: Terms) -> Result<Self, WebError> {
        let agreed = Agreed::new(self.config(), &self.0.accesses, terms);
        let agreed = agreed.map_err(|why| WebError::new(ErrorKind::Builder).detail(why))?;
        Ok(Self(Arc::clone(&self.0), Arc::new(agreed), self.2.clone()))
    }

    fn build(
        config: WebConfig,
        clock: Arc<dyn Clock>,
        transport: Option<Arc<dyn Transport>>,
    ) -> Result<Self, WebError> {
        let refuse = |why: String| WebError::new(ErrorKind::Builder).detail(why);
        for (name, limit) in [("per_origin", config.per_origin), ("host_share", config.host_share)] {
            if limit == 0 {
                return Err(refuse(format!(
                    "{name} is 0, so no request could ever be made; it is at least 1"
                )));
            }
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
        Ok(Self(inner, Arc::new(agreed), None))
    }

    /// Calls `observer` for each request from now on, those of all clones. Only the first observer is kept.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        // Setting fails when there is one already.
        let _ = self.0.observer.set(observer);
    }

    /// The `User-Agent` of its requests.
    pub fn user_agent(&self) -> String {
        String::from_utf8_lossy(self.1.user_agent.as_bytes()).into_owned()
    }

    /// How many requests were sent so far, including redirects, retries and each robots.txt.
    pub fn requests(&self) -> u64 {
        self.0.requests.load(Ordering::Relaxed)
    }

    /// The same client with a count of its own ([`own_requests`](Self::own_requests)), which its clones share.
    #[must_use]
    pub fn counting(&self) -> Self {
        Self(Arc::clone(&self.0), Arc::clone(&self.1), Some(OwnCount::default()))
    }

    /// How many requests were sent through a [counting](Self::counting) client, including redirects, and those
    /// whose answer is not awaited any more; without those for a robots.txt that was answered. So a server that
    /// lets a caller wait is told from a turn that does not come.
    pub fn own_requests(&self) -> u64 {
        self.2.as_ref().map_or(0, |own| own.load(Ordering::Relaxed))
    }

    /// Takes requests out of its own count.
    pub(crate) fn discount(&self, requests: u32) {
        if let Some(own) = &self.2 {
            own.fetch_sub(u64::from(requests), Ordering::Relaxed);
        }
    }

    /// The rest of an origin's cooldown, if it has one. A request waits for it, within the configured budget.
    pub fn resting(&self, origin: &Origin) -> Option<Duration> {
        self.0.politeness.resting(origin)
    }

    /// Puts an origin into cooldown for `wait`, at most for the configured maximum `Retry-After`, because
    /// another process was told to pause. A longer cooldown stays as it is.
    pub fn rest(&self, origin: &Origin, wait: Duration) {
        let longest = self.config().retry_after_max.max(self.config().challenge_rest);
        self.0.politeness.rest(origin, wait.min(longest));
    }

    /// Puts the origin of a bot defence's challenge into cooldown, and reports it. Returns its length.
    pub fn rest_after_challenge(&self, at: &Url, status: u16) -> Duration {
        let wait = self.config().challenge_rest;
        if let Ok(origin) = Origin::of(at) {
            self.0.politeness.rest(&origin, wait);
            self.tell_rest(OriginRest { origin, wait, status });
        }
        wait
    }

    /// How many clients, each in a process of its own, send requests to the same origins, this one included.
    /// Initially one.
    pub fn sharers(&self) -> u32 {
        self.0.politeness.sharers()
    }

    /// Sets how many clients send requests to the same origins, this one included. Each multiplies the
    /// interval of the configured rate or of an origin's crawl-delay by this number, so that together they
    /// obey it. Also applies to waiting requests.
    pub fn set_sharers(&self, sharers: usize) {
        self.0.politeness.set_sharers(sharers);
    }

    /// Receives each response that starts a cooldown or extends it; not calls of [`Client::rest`]. A slow
    /// subscriber misses the oldest ones.
    pub fn cooldowns(&self) -> broadcast::Receiver<OriginRest> {
        self.0.rests.subscribe()
    }

    /// Receives each crawl-delay when it is first applied. A late subscriber sees only the latest.
    pub fn crawl_delays(&self) -> watch::Receiver<Option<CrawlDelay>> {
        self.0.crawl_delays.subscribe()
    }

    pub(crate) fn tell_rest(&self, rest: OriginRest) {
        // Sending fails only when there is no subscriber.
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
