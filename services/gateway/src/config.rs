//! Configuration of the gateway.

use std::fmt::Display;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{bail, ensure};
use control::KeptNotification;
use fleet::{NatsConfig, PushConfig, StoreConfig};
use model::{ChangeNotification, Network};
use serde::Deserialize;
use service::{FrameConfig, ServiceConfig};
use url::Url;

use crate::connections::ConnectionLimits;
use crate::push::DeliveryLimits;

/// How long a delivery may wait for the queue. A hub that gets a retry status sends again; a hub that waits too long
/// gives up.
const QUEUE_TIME: Duration = Duration::from_secs(3);

/// The configuration of the daemon.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Admin port, log, drain deadline.
    #[serde(default)]
    pub service: FrameConfig,
    /// The message bus and the control store.
    #[serde(default)]
    pub nats: NatsConfig,
    /// The store. The gateway only reads it.
    pub store: StoreConfig,
    /// Whether the fleet subscribes to notifications of Sources, and how hubs reach the gateway.
    #[serde(default)]
    pub push: PushConfig,
    /// Settings of the gateway itself.
    #[serde(default)]
    pub gateway: Settings,
}

/// Settings of the gateway itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The address of the API. A reverse proxy before the gateway terminates TLS.
    pub listen: SocketAddr,
    /// The file with the tokens of operators. The gateway rereads it when it changes.
    pub tokens: Option<PathBuf>,
    /// Every client may do everything, without a token. Allowed only where `listen` is a loopback address and `tokens`
    /// is not set.
    pub allow_anonymous: bool,
    /// The URL under which operators reach the API and the console. With https, the browser keeps the console's cookie
    /// for TLS and this host only.
    pub public_url: Option<Url>,
    /// Reverse proxies before the gateway, as addresses or networks. Their header `X-Forwarded-For` names the client.
    /// Without this setting, all clients behind one proxy count as one client, and share its limit of wrong tokens.
    pub trusted_proxies: Vec<Network>,
    /// Wrong tokens per minute from one client. Beyond that, the gateway does not check its tokens and answers 429
    /// until the minute is over.
    pub wrong_tokens_per_minute: NonZeroU32,
    /// The most connections at a time, 8 to 65536. Further clients wait until one of them ends.
    pub connections: usize,
    /// The most of one client, up to 65536; 0: as many as there are. Those of a trusted proxy are not counted: of each
    /// client that it names, so many requests are answered at a time.
    pub connections_per_client: usize,
    /// Requests per second with one token. Further requests are answered with 429.
    pub requests_per_second: NonZeroU32,
    /// The time limit for the head of a request, in seconds, 1 to 3600, since the connection was made or its last
    /// response was sent. An idle connection is closed after the same time. So set it higher than the keep-alive time
    /// of the proxy before the gateway.
    pub header_timeout_seconds: u64,
    /// The largest body of a request, in bytes.
    pub body_bytes: usize,
    /// The largest batch of Sources or runs, in bytes, at most 67108864. The gateway processes two at a time.
    pub batch_bytes: usize,
    /// The time limit for the body of a request, in seconds, 1 to 300.
    pub body_timeout_seconds: u64,
    /// How many catalogs stay open for reading. Each open catalog polls for new commits every second.
    pub max_open_catalogs: usize,
    /// Cache for recently read parts of catalogs, in megabytes.
    pub cache_megabytes: usize,
    /// How long the response to a request with an `Idempotency-Key` is kept, in seconds.
    pub idempotency_ttl_seconds: u64,
    /// How long a response waits for the requested plan, in seconds, 0 to 60. After that, the response says where to
    /// fetch the plan.
    pub plan_wait_seconds: u64,
    /// How long a console session lasts after signing in, in seconds.
    pub session_ttl_seconds: u64,
    /// Inboxes for notifications of changes (LDN). Without this section there are no inboxes.
    pub inbox: Option<InboxSettings>,
    /// The largest payload that a hub may deliver, in bytes, at most 768000.
    pub push_body_bytes: usize,
    /// The time limit for a delivery, in seconds, 1 to 300.
    pub push_body_seconds: u64,
    /// Requests per second at the callback of one subscription, with bursts of twice as many. Further requests are
    /// answered with 429.
    pub push_per_second: NonZeroU32,
    /// How many payloads are processed at a time. Each takes up to six times `push_body_bytes` of memory.
    pub push_max_in_flight: usize,
}

/// Inboxes for notifications of changes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InboxSettings {
    /// The file that lists the allowed senders. The gateway rereads it when it changes.
    pub senders: PathBuf,
    /// The public URL of the gateway. Without it, the header `Host` of each request names the host.
    pub public_url: Option<Url>,
    /// The largest notification, in bytes, at most 512000.
    pub body_bytes: usize,
    /// The time limit for a notification, in seconds.
    pub body_timeout_seconds: u64,
    /// Notifications per second from one sender. Further notifications are answered with 429.
    pub per_second: NonZeroU32,
    /// The most notifications that are kept of one sender in one inbox. The oldest are dropped first.
    pub max_per_sender: u32,
    /// How long notifications are kept, in days.
    pub retention_days: u32,
    /// The most space that all notifications take in NATS, in megabytes. NATS reserves it, and drops the oldest first.
    /// 0 = no limit of their own.
    pub megabytes: u64,
}

impl Default for InboxSettings {
    fn default() -> Self {
        Self {
            senders: PathBuf::new(),
            public_url: None,
            body_bytes: 64 * 1024,
            body_timeout_seconds: 10,
            per_second: const { NonZeroU32::new(10).unwrap() },
            max_per_sender: 1_000,
            retention_days: 30,
            megabytes: 256,
        }
    }
}

impl InboxSettings {
    fn check(&self) -> anyhow::Result<()> {
        if self.senders.as_os_str().is_empty() {
            bail!(
                "gateway.inbox.senders names no file: it says who may leave notifications (services/gateway/README.md shows it)"
            );
        }
        check_url("inbox.public_url", self.public_url.as_ref())?;
        check_range("inbox.body_bytes", self.body_bytes, 1..=KeptNotification::MOST_BYTES)?;
        check_range("inbox.body_timeout_seconds", self.body_timeout_seconds, 1..=300)?;
        check_range("inbox.max_per_sender", self.max_per_sender, 1..=1_000_000)?;
        check_range("inbox.retention_days", self.retention_days, 1..=3_650)
    }
}

/// Refuses a value outside the range of its field.
fn check_range<T: PartialOrd + Display>(
    field: &str,
    value: T,
    range: RangeInclusive<T>,
) -> anyhow::Result<()> {
    ensure!(range.contains(&value), "gateway.{field} is {} to {}, not {value}", range.start(), range.end());
    Ok(())
}

fn check_url(field: &str, url: Option<&Url>) -> anyhow::Result<()> {
    if let Some(url) = url {
        ensure!(
            matches!(url.scheme(), "http" | "https"),
            "gateway.{field} is {url}: it is an http or https URL"
        );
    }
    Ok(())
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            tokens: None,
            allow_anonymous: false,
            public_url: None,
            trusted_proxies: Vec::new(),
            wrong_tokens_per_minute: const { NonZeroU32::new(60).unwrap() },
            connections: 512,
            connections_per_client: 256,
            requests_per_second: const { NonZeroU32::new(50).unwrap() },
            header_timeout_seconds: 75,
            body_bytes: 64 * 1024,
            batch_bytes: 2 * 1024 * 1024,
            body_timeout_seconds: 30,
            max_open_catalogs: 32,
            cache_megabytes: 64,
            idempotency_ttl_seconds: 24 * 3600,
            plan_wait_seconds: 4,
            session_ttl_seconds: 12 * 3600,
            inbox: None,
            push_body_bytes: 512 * 1024,
            push_body_seconds: 10,
            push_per_second: const { NonZeroU32::new(100).unwrap() },
            push_max_in_flight: 32,
        }
    }
}

impl Settings {
    /// Refuses a configuration that would let every client in.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match (&self.tokens, self.allow_anonymous) {
            (Some(_), false) => {}
            (Some(_), true) => {
                bail!("gateway.tokens and gateway.allow_anonymous contradict each other: set one of them")
            }
            (None, false) => bail!(
                "gateway.tokens names no file, so no operator could be authenticated: name one (services/gateway/README.md \
                 shows it), or, for trials on this machine alone, set gateway.allow_anonymous"
            ),
            (None, true) if !self.listen.ip().is_loopback() => bail!(
                "gateway.allow_anonymous is for loopback addresses alone, and gateway.listen is {}: name a file in gateway.tokens",
                self.listen
            ),
            (None, true) => {}
        }
        check_url("public_url", self.public_url.as_ref())?;
        check_range("header_timeout_seconds", self.header_timeout_seconds, 1..=3_600)?;
        check_range("batch_bytes", self.batch_bytes, 1..=64 * 1024 * 1024)?;
        check_range("connections", self.connections, 8..=65_536)?;
        check_range("connections_per_client", self.connections_per_client, 0..=65_536)?;
        check_range("body_timeout_seconds", self.body_timeout_seconds, 1..=300)?;
        check_range("idempotency_ttl_seconds", self.idempotency_ttl_seconds, 1..=31_536_000)?;
        check_range("plan_wait_seconds", self.plan_wait_seconds, 0..=60)?;
        check_range("session_ttl_seconds", self.session_ttl_seconds, 60..=31_536_000)?;
        check_range("push_body_bytes", self.push_body_bytes, 1..=ChangeNotification::MOST_BYTES)?;
        check_range("push_body_seconds", self.push_body_seconds, 1..=300)?;
        ensure!(self.push_max_in_flight > 0, "gateway.push_max_in_flight is at least 1");
        self.inbox.as_ref().map_or(Ok(()), InboxSettings::check)
    }

    /// The limits of the connections.
    pub(crate) fn connection_limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            most: self.connections,
            per_client: Some(self.connections_per_client).filter(|most| *most > 0),
            head_time: Duration::from_secs(self.header_timeout_seconds),
            proxies: self.trusted_proxies.clone().into(),
        }
    }

    /// The bytes of the cache for parts of catalogs.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.cache_megabytes.max(1) * 1024 * 1024
    }

    /// The time limit for a body.
    pub(crate) fn body_time(&self) -> Duration {
        Duration::from_secs(self.body_timeout_seconds)
    }

    /// Whether operators reach the console over TLS, according to the configuration.
    pub(crate) fn is_over_tls(&self) -> bool {
        self.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }

    /// The limits of the callbacks.
    pub(crate) fn delivery_limits(&self) -> DeliveryLimits {
        DeliveryLimits {
            body_bytes: self.push_body_bytes,
            body_time: Duration::from_secs(self.push_body_seconds),
            per_second: self.push_per_second,
            at_a_time: self.push_max_in_flight,
            queue_time: QUEUE_TIME,
        }
    }
}

impl ServiceConfig for Config {
    fn frame(&self) -> &FrameConfig {
        &self.service
    }
}

#[cfg(test)]
mod tests {
    use secrets::Vars;
    use service::config;

    use super::*;

    #[test]
    fn the_sample_configuration_is_read_and_says_what_the_defaults_say() {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/config/gateway.yaml");
        let vars = Vars::default().with("THRESHER_GATEWAY_CONFIG", sample);
        let config: Config = config::load("gateway", &vars).unwrap();
        assert!(config.gateway.tokens.is_some());
        assert_eq!(Settings { tokens: None, ..config.gateway }, Settings::default());
        let misspelt = vars.with("THRESHER_GATEWAY__GATEWAY__TOKEN", "/x");
        assert!(config::load::<Config>("gateway", &misspelt).is_err());
    }

    #[test]
    fn inboxes_need_a_file_of_senders_and_bounds_that_make_sense() {
        let check = |change: fn(&mut InboxSettings)| {
            let mut inbox =
                InboxSettings { senders: PathBuf::from("senders.yaml"), ..InboxSettings::default() };
            change(&mut inbox);
            Settings { allow_anonymous: true, inbox: Some(inbox), ..Settings::default() }.check()
        };
        assert!(check(|_| ()).is_ok());
        for (change, name) in [
            ((|inbox| inbox.senders = PathBuf::new()) as fn(&mut InboxSettings), "senders"),
            (|inbox| inbox.public_url = Some("ftp://e.org/".parse().unwrap()), "public_url"),
            (|inbox| inbox.body_bytes = 0, "body_bytes"),
            (|inbox| inbox.body_bytes = KeptNotification::MOST_BYTES + 1, "body_bytes"),
            (|inbox| inbox.retention_days = 0, "retention_days"),
        ] {
            let said = check(change).unwrap_err().to_string();
            assert!(said.contains(name), "{said}");
        }
    }

    #[test]
    fn the_edge_has_finite_limits_that_make_sense() {
        let check = |change: fn(&mut Settings)| {
            let mut settings = Settings { allow_anonymous: true, ..Settings::default() };
            change(&mut settings);
            settings.check()
        };
        assert!(check(|_| ()).is_ok());
        for (change, name) in [
            ((|settings| settings.connections = 0) as fn(&mut Settings), "connections"),
            (|settings| settings.connections = usize::MAX, "connections"),
            (|settings| settings.body_timeout_seconds = 0, "body_timeout_seconds"),
            (|settings| settings.batch_bytes = usize::MAX, "batch_bytes"),
            (|settings| settings.public_url = Some("ftp://e.org/".parse().unwrap()), "public_url"),
        ] {
            let said = check(change).unwrap_err().to_string();
            assert!(said.contains(name), "{said}");
        }
    }

    #[test]
    fn it_does_not_start_open_to_everybody() {
        let with = |listen: &str, tokens: bool, allow_anonymous| {
            let listen = listen.parse().unwrap();
            let tokens = tokens.then(|| PathBuf::from("tokens.yaml"));
            Settings { listen, tokens, allow_anonymous, ..Settings::default() }.check()
        };
        assert!(with("0.0.0.0:1", true, false).is_ok());
        assert!(with("127.0.0.1:1", false, true).is_ok());
        assert!(with("[::1]:1", false, true).is_ok());
        for (listen, tokens, without) in
            [("127.0.0.1:1", false, false), ("0.0.0.0:1", false, true), ("127.0.0.1:1", true, true)]
        {
            let said = with(listen, tokens, without).unwrap_err().to_string();
            assert!(said.contains("gateway.tokens"), "{said}");
        }
    }
}
