//! What can be set.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use control::KeptNotification;
use fleet::{NatsConfig, PushConfig, StoreConfig};
use model::{Network, Notice};
use serde::Deserialize;
use service::{FrameConfig, ServiceConfig};
use url::Url;

use crate::connections::Bounds;
use crate::push::Limits;

/// How long a delivery waits to be queued. A hub that is told to come again does; one that waits gives up.
const QUEUE_TIME: Duration = Duration::from_secs(3);

/// The daemon's configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Admin port, log, drain deadline.
    #[serde(default)]
    pub frame: FrameConfig,
    /// The message bus, beside which lies what the fleet shares.
    #[serde(default)]
    pub nats: NatsConfig,
    /// The store. It is only read.
    pub store: StoreConfig,
    /// Whether Sources' notifications are subscribed to, and how hubs reach the gateway.
    #[serde(default)]
    pub push: PushConfig,
    /// What is the gateway's own.
    #[serde(default)]
    pub gateway: Settings,
}

/// What is the gateway's own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where the API is served. TLS is the business of what stands before it.
    pub listen: SocketAddr,
    /// The file with the tokens of those who may ask. It is read again when it changes.
    pub tokens: Option<PathBuf>,
    /// Everybody who reaches the port may do everything: only where `listen` is a loopback address, and `tokens` is not set.
    pub without_tokens: bool,
    /// Under which URL operators reach the API and the console. Where it is https, the console's cookie is kept for TLS and this host alone.
    pub public_url: Option<Url>,
    /// The proxies before the gateway, as addresses or networks: their header `X-Forwarded-For` says which client they speak for. Without,
    /// all who come through one proxy count as one client, and share the number of wrong tokens.
    pub trusted_proxies: Vec<Network>,
    /// Wrong tokens in a minute from one client; beyond, its tokens are not looked at and answered with 429 until the minute is over.
    pub wrong_tokens_per_minute: NonZeroU32,
    /// The most connections at a time, 8 to 65536. Who comes then waits until one of them ends.
    pub connections: usize,
    /// Requests in a second with one token; beyond, they are answered with 429.
    pub requests_per_second: NonZeroU32,
    /// How long the head of a request may take to arrive, in seconds, 1 to 3600, since the connection was made or its last answer was sent. So
    /// a connection may be idle as long: let it be more than what stands before the gateway keeps those that it uses again.
    pub head_seconds: u64,
    /// The largest body of a request, in bytes.
    pub body_bytes: usize,
    /// The largest batch of Sources or runs, in bytes, at most 67108864. Two are worked on at a time.
    pub batch_bytes: usize,
    /// How long the body of a request may take to arrive, in seconds, 1 to 300.
    pub body_seconds: u64,
    /// Catalogs held open at a time to read from. Each that was asked lately looks for its writer's news every second.
    pub catalogs_open: usize,
    /// Memory for what was read of catalogs lately, in megabytes.
    pub cache_megabytes: usize,
    /// How long the answer to a request with an `Idempotency-Key` is kept, in seconds.
    pub idempotency_seconds: u64,
    /// How long the answer to whoever asks for a plan waits for it, in seconds, 0 to 60; then the answer says where to look.
    pub plan_wait_seconds: u64,
    /// How long a browser that has shown a token to the console need not show it again, in seconds.
    pub session_seconds: u64,
    /// The inboxes where others leave notifications of changes (LDN); without, there are none.
    pub inbox: Option<InboxSettings>,
    /// The largest payload that a hub may deliver, in bytes, at most 768000.
    pub push_body_bytes: usize,
    /// How long a delivery may take to arrive, in seconds, 1 to 300.
    pub push_body_seconds: u64,
    /// Requests in a second at the callback of one subscription; twice as many may come at once. Beyond, they are answered with 429.
    pub push_per_second: NonZeroU32,
    /// Payloads in hand at a time. Each takes up to six times `push_body_bytes` of memory.
    pub push_at_a_time: usize,
}

/// The inboxes where others leave notifications of changes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InboxSettings {
    /// The file that says who may leave notifications. It is read again when it changes.
    pub senders: PathBuf,
    /// Under which URL the world reaches the gateway; without, as the header `Host` of each request says.
    pub public_url: Option<Url>,
    /// The largest notification, in bytes, at most 512000.
    pub body_bytes: usize,
    /// How long a notification may take to arrive, in seconds.
    pub body_seconds: u64,
    /// Notifications in a second of one sender; beyond, they are answered with 429.
    pub per_second: NonZeroU32,
    /// The most notifications that are kept of one sender in one inbox; the oldest make room.
    pub most_per_sender: u32,
    /// How long they are kept, in days.
    pub retention_days: u32,
    /// The most that all of them take in NATS, in megabytes, which it sets aside; the oldest make room. 0 = no limit of their own.
    pub megabytes: u64,
}

impl Default for InboxSettings {
    fn default() -> Self {
        Self {
            senders: PathBuf::new(),
            public_url: None,
            body_bytes: 64 * 1024,
            body_seconds: 10,
            per_second: const { NonZeroU32::new(10).unwrap() },
            most_per_sender: 1_000,
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
        if let Some(url) = self.public_url.as_ref().filter(|url| !matches!(url.scheme(), "http" | "https")) {
            bail!("gateway.inbox.public_url is {url}: it is an http or https URL");
        }
        if !(1..=KeptNotification::MOST_BYTES).contains(&self.body_bytes)
            || !(1..=300).contains(&self.body_seconds)
        {
            bail!(
                "gateway.inbox.body_bytes is 1 to {}, and body_seconds 1 to 300",
                KeptNotification::MOST_BYTES
            );
        }
        if !(1..=1_000_000).contains(&self.most_per_sender) || !(1..=3_650).contains(&self.retention_days) {
            bail!("gateway.inbox.most_per_sender is 1 to 1000000, and retention_days 1 to 3650");
        }
        Ok(())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            tokens: None,
            without_tokens: false,
            public_url: None,
            trusted_proxies: Vec::new(),
            wrong_tokens_per_minute: const { NonZeroU32::new(60).unwrap() },
            connections: 512,
            requests_per_second: const { NonZeroU32::new(50).unwrap() },
            head_seconds: 75,
            body_bytes: 64 * 1024,
            batch_bytes: 2 * 1024 * 1024,
            body_seconds: 30,
            catalogs_open: 32,
            cache_megabytes: 64,
            idempotency_seconds: 24 * 3600,
            plan_wait_seconds: 4,
            session_seconds: 12 * 3600,
            inbox: None,
            push_body_bytes: 512 * 1024,
            push_body_seconds: 10,
            push_per_second: const { NonZeroU32::new(100).unwrap() },
            push_at_a_time: 32,
        }
    }
}

impl Settings {
    /// Refuses to be open to everybody.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match (&self.tokens, self.without_tokens) {
            (Some(_), false) => {}
            (Some(_), true) => {
                bail!("gateway.tokens and gateway.without_tokens contradict each other: set one of them")
            }
            (None, false) => bail!(
                "gateway.tokens names no file, so nobody could be told from anybody: name one (services/gateway/README.md shows it), or, for \
                 trials on this machine alone, set gateway.without_tokens"
            ),
            (None, true) if !self.listen.ip().is_loopback() => bail!(
                "gateway.without_tokens is for loopback addresses alone, and gateway.listen is {}: name a file in gateway.tokens",
                self.listen
            ),
            (None, true) => {}
        }
        if !(1..=3_600).contains(&self.head_seconds) {
            bail!("gateway.head_seconds is 1 to 3600");
        }
        if !(1..=64 * 1024 * 1024).contains(&self.batch_bytes) {
            bail!("gateway.batch_bytes is 1 to 67108864");
        }
        if !(8..=65_536).contains(&self.connections) || !(1..=300).contains(&self.body_seconds) {
            bail!("gateway.connections is 8 to 65536, and gateway.body_seconds 1 to 300");
        }
        if let Some(url) = self.public_url.as_ref().filter(|url| !matches!(url.scheme(), "http" | "https")) {
            bail!("gateway.public_url is {url}: it is an http or https URL");
        }
        if !(1..=31_536_000).contains(&self.idempotency_seconds) {
            bail!("gateway.idempotency_seconds is 1 to 31536000");
        }
        if self.plan_wait_seconds > 60 {
            bail!("gateway.plan_wait_seconds is 0 to 60");
        }
        if !(60..=31_536_000).contains(&self.session_seconds) {
            bail!("gateway.session_seconds is 60 to 31536000");
        }
        if let Some(inbox) = &self.inbox {
            inbox.check()?;
        }
        if !(1..=Notice::MOST_BYTES).contains(&self.push_body_bytes) {
            bail!("gateway.push_body_bytes is 1 to {}", Notice::MOST_BYTES);
        }
        if !(1..=300).contains(&self.push_body_seconds) || self.push_at_a_time == 0 {
            bail!("gateway.push_body_seconds is 1 to 300, and gateway.push_at_a_time at least 1");
        }
        Ok(())
    }

    /// What bounds the connections.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            most: self.connections,
            head_time: Duration::from_secs(self.head_seconds),
            proxies: self.trusted_proxies.clone().into(),
        }
    }

    /// How long a body may take to arrive.
    pub(crate) fn body_time(&self) -> Duration {
        Duration::from_secs(self.body_seconds)
    }

    /// Whether operators reach the console over TLS, by what the configuration says.
    pub(crate) fn is_over_tls(&self) -> bool {
        self.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }

    /// What the callbacks are told.
    pub(crate) fn push_limits(&self) -> Limits {
        Limits {
            body_bytes: self.push_body_bytes,
            body_time: Duration::from_secs(self.push_body_seconds),
            per_second: self.push_per_second,
            at_a_time: self.push_at_a_time,
            queue_time: QUEUE_TIME,
        }
    }
}

impl ServiceConfig for Config {
    fn frame(&self) -> &FrameConfig {
        &self.frame
    }
}

#[cfg(test)]
mod tests {
    use service::{Vars, config};

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
            Settings { without_tokens: true, inbox: Some(inbox), ..Settings::default() }.check()
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
            let mut settings = Settings { without_tokens: true, ..Settings::default() };
            change(&mut settings);
            settings.check()
        };
        assert!(check(|_| ()).is_ok());
        for (change, name) in [
            ((|settings| settings.connections = 0) as fn(&mut Settings), "connections"),
            (|settings| settings.connections = usize::MAX, "connections"),
            (|settings| settings.body_seconds = 0, "body_seconds"),
            (|settings| settings.batch_bytes = usize::MAX, "batch_bytes"),
            (|settings| settings.public_url = Some("ftp://e.org/".parse().unwrap()), "public_url"),
        ] {
            let said = check(change).unwrap_err().to_string();
            assert!(said.contains(name), "{said}");
        }
    }

    #[test]
    fn it_does_not_start_open_to_everybody() {
        let with = |listen: &str, tokens: bool, without_tokens| {
            let (listen, tokens) = (listen.parse().unwrap(), tokens.then(|| PathBuf::from("tokens.yaml")));
            Settings { listen, tokens, without_tokens, ..Settings::default() }.check()
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
