//! Configuration of the daemon.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use control::Selector;
use fixity::Sha256;
use fleet::{NatsConfig, StoreConfig};
use model::{Archive, Network, Publish};
use publish::Base;
use serde::Deserialize;
use service::{FrameConfig, Metrics, ServiceConfig};
use serving::connections::ConnectionLimits;
use url::Url;
use web::AddressPolicy;

use crate::access::Tokens;
use crate::hub_limits::HubLimits;
use crate::metrics::PublisherMetrics;
use crate::readers::Readers;
use crate::settings::{OAI_TURNS, Settings, is_mail};
use crate::takedowns::Takedowns;
use crate::topics::Topics;

/// Memory of a publication in the making: three parts of an upload of 8 MiB each, and the pass over the catalog.
const PUBLICATION_BYTES: usize = 32 * 1024 * 1024;

/// How long a URL of a bucket is valid, at least and at most, in seconds. Buckets take none for longer than seven days.
const LEAST_REDIRECT: u64 = 60;
const LONGEST_REDIRECT: u64 = 7 * 24 * 3_600;

/// Memory of a request of OAI-PMH: a page of 8 MiB, read and written, and its buffers.
const OAI_BYTES: usize = 24 * 1024 * 1024;

/// Memory of hubs beside the newest payloads. 64 payloads of earlier changes are under way, and the entries of 16
/// further ones are read, and of four of new changes.
const DELIVERY_BYTES: usize = 112 * 1024 * 1024;

/// The configuration of the daemon.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Admin port, log, drain deadline.
    #[serde(default)]
    pub service: FrameConfig,
    /// The control store.
    #[serde(default)]
    pub nats: NatsConfig,
    /// The store. The publisher reads it, and writes publications.
    pub store: StoreConfig,
    /// Settings of the publisher itself.
    pub publisher: DaemonSettings,
}

/// Settings of the publisher of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DaemonSettings {
    /// The URL at which readers find the publications, of this server or the proxy before it. Each Source has a folder
    /// below it, named by its ID. It cannot change later, since all documents name it.
    pub base: Url,
    /// Where readers are served. A reverse proxy before it terminates TLS.
    #[serde(default = "listen")]
    pub listen: SocketAddr,
    /// Only Sources whose labels match are published, of those that say so.
    #[serde(default, rename = "match")]
    pub matching: Option<Selector>,
    /// The file with the tokens of readers, for Sources that are published for these. It is read again when it changes.
    #[serde(default)]
    pub tokens: Option<PathBuf>,
    /// The file with URIs to withdraw, one a line. It is read again when it changes.
    #[serde(default)]
    pub takedown: Option<PathBuf>,
    /// Reverse proxies before the publisher, as addresses or networks. Their header `X-Forwarded-For` names the client.
    /// Without this setting, the networks of a publication are compared with the address of the proxy, and it has the
    /// connections of one client.
    #[serde(default)]
    pub trusted_proxies: Vec<Network>,
    /// WebSub hubs that are told of each publication.
    #[serde(default)]
    pub hubs: Vec<Url>,
    /// WebSub hubs that are told that a topic has changed, and fetch it, as public hubs do (`hub.mode=publish`).
    #[serde(default)]
    pub ping_hubs: Vec<Url>,
    /// How long URLs of the bucket are valid to which readers of large resources are led, in seconds, 60 to 604800 (7
    /// days). Without it the publisher sends their bytes itself.
    #[serde(default)]
    pub redirect_seconds: Option<u64>,
    /// A WebSub hub for each set. Without this section there is none.
    #[serde(default)]
    pub own_hub: Option<OwnHubSettings>,
    /// The mail address of the administrator, which OAI-PMH repositories show. Without it, `postmaster` at the base's
    /// host.
    #[serde(default)]
    pub contact: Option<String>,
    /// Whether Resource Dumps and Change Dumps are made: packages have all bytes once more.
    #[serde(default)]
    pub dumps: bool,
    /// How long Resource Lists that were replaced, and Change Lists that left the index, stay, listed in ResourceSync
    /// Archives: a time, such as `1y` or `90days`, or `all`, or `off`. Entries link to the versions that they are about.
    /// The spec of a Source may say otherwise for it (`publish_archive`).
    #[serde(default)]
    pub archive: Archive,
    /// The most connections at a time, 8 to 65536.
    #[serde(default = "connections")]
    pub connections: usize,
    /// The most of one client, up to 65536; 0: as many as there are. Those of a trusted proxy are not counted: of each
    /// client that it names, so many requests are answered at a time.
    #[serde(default = "connections_per_client")]
    pub connections_per_client: usize,
    /// The time limit for the head of a request, in seconds, 1 to 3600.
    #[serde(default = "header_timeout_seconds")]
    pub header_timeout_seconds: u64,
    /// How long a client may take no bytes of a response, in seconds, 1 to 3600.
    #[serde(default = "stall_timeout_seconds")]
    pub stall_timeout_seconds: u64,
    /// Publications that are made at a time, 1 to 256, and a quarter more of those that take long.
    #[serde(default = "max_concurrent_publications")]
    pub max_concurrent_publications: usize,
    /// How long a publication may take before it counts as one that takes long, in seconds, 1 to 3600.
    #[serde(default = "turn_seconds")]
    pub turn_seconds: u64,
    /// How many catalogs stay open for reading. Each polls for new commits every second until it was idle for a minute.
    #[serde(default = "max_open_catalogs")]
    pub max_open_catalogs: usize,
    /// Cache for recently read parts of catalogs, in megabytes.
    #[serde(default = "cache_megabytes")]
    pub cache_megabytes: usize,
}

/// Settings of the sets' own hubs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnHubSettings {
    /// The URL below which subscribers reach the hubs, of this server or the proxy before it: each is at `hub` in the
    /// folder of its set. It may be that of `publisher.base`; a cache before that may not pass on requests to a hub.
    pub base: Url,
    /// The most subscribers of a set, 1 to 10000.
    #[serde(default = "subscribers")]
    pub subscribers: usize,
    /// The most subscribers of a set at one host.
    #[serde(default = "subscribers_per_host")]
    pub subscribers_per_host: usize,
    /// The most subscribers of all hubs that this publisher has open, 1 to 100000.
    #[serde(default = "subscribers_of_all")]
    pub subscribers_of_all: usize,
    /// The most hubs that requests may open before they have a subscriber, 1 to 10000. Each closes some seconds after
    /// its requests are dealt with; further sets answer 503 meanwhile.
    #[serde(default = "hubs_without_subscribers")]
    pub hubs_without_subscribers: usize,
    /// The longest lease of a subscription, in seconds, 300 to 2678400 (31 days).
    #[serde(default = "longest_lease_seconds")]
    pub longest_lease_seconds: u64,
    /// A subscription that took no delivery for this time ends, in seconds, 1 to 2678400.
    #[serde(default = "give_up_seconds")]
    pub give_up_seconds: u64,
    /// Networks that callbacks may be in, besides public addresses.
    #[serde(default)]
    pub allow_networks: Vec<Network>,
    /// Memory for the newest payloads of all hubs, with those under way, in megabytes, 1 to 4096. Who needs an earlier
    /// one gets its changes from the Change Lists.
    #[serde(default = "payload_megabytes")]
    pub payload_megabytes: usize,
}

fn subscribers() -> usize {
    1_000
}

fn subscribers_per_host() -> usize {
    100
}

fn subscribers_of_all() -> usize {
    10_000
}

fn hubs_without_subscribers() -> usize {
    64
}

fn longest_lease_seconds() -> u64 {
    31 * 24 * 3_600
}

fn give_up_seconds() -> u64 {
    24 * 3_600
}

fn payload_megabytes() -> usize {
    64
}

impl OwnHubSettings {
    /// The base of all hubs.
    pub(crate) fn base(&self) -> anyhow::Result<Base> {
        Base::new(self.base.clone()).context("publisher.own_hub.base")
    }

    fn payload_bytes(&self) -> usize {
        self.payload_megabytes * 1024 * 1024
    }

    fn check(&self) -> anyhow::Result<()> {
        self.base()?;
        let ranges = [
            ("subscribers", self.subscribers as u64, 1, 10_000),
            ("subscribers_per_host", self.subscribers_per_host as u64, 1, 10_000),
            ("subscribers_of_all", self.subscribers_of_all as u64, 1, 100_000),
            ("hubs_without_subscribers", self.hubs_without_subscribers as u64, 1, 10_000),
            ("longest_lease_seconds", self.longest_lease_seconds, 300, longest_lease_seconds()),
            ("give_up_seconds", self.give_up_seconds, 1, longest_lease_seconds()),
            ("payload_megabytes", self.payload_megabytes as u64, 1, 4_096),
        ];
        for (field, value, least, most) in ranges {
            let is_within = (least..=most).contains(&value);
            ensure!(is_within, "publisher.own_hub.{field} is {least} to {most}, not {value}");
        }
        Ok(())
    }

    fn limits(&self) -> HubLimits {
        let default = HubLimits::default();
        let networks = self.allow_networks.iter().copied();
        HubLimits {
            subscribers: self.subscribers,
            per_host: self.subscribers_per_host,
            of_all: self.subscribers_of_all,
            without_subscribers: self.hubs_without_subscribers,
            payload_bytes: self.payload_bytes(),
            longest_lease: Duration::from_secs(self.longest_lease_seconds),
            give_up: Duration::from_secs(self.give_up_seconds),
            addresses: networks.fold(default.addresses, AddressPolicy::allow_network),
            ..default
        }
    }
}

fn listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 8090))
}

fn connections() -> usize {
    512
}

fn connections_per_client() -> usize {
    64
}

fn header_timeout_seconds() -> u64 {
    30
}

fn stall_timeout_seconds() -> u64 {
    60
}

fn max_concurrent_publications() -> usize {
    4
}

fn turn_seconds() -> u64 {
    30
}

fn max_open_catalogs() -> usize {
    64
}

fn cache_megabytes() -> usize {
    64
}

impl ServiceConfig for Config {
    fn frame(&self) -> &FrameConfig {
        &self.service
    }
}

impl DaemonSettings {
    /// Refuses what no publisher can do.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        check_hubs("hubs", &self.hubs)?;
        check_hubs("ping_hubs", &self.ping_hubs)?;
        if let Some(both) = self.ping_hubs.iter().find(|hub| self.hubs.contains(hub)) {
            bail!("publisher.ping_hubs: {both} is in publisher.hubs too; name it in one of them");
        }
        let lasts = self.redirect_seconds.unwrap_or(LEAST_REDIRECT);
        ensure!(
            (LEAST_REDIRECT..=LONGEST_REDIRECT).contains(&lasts),
            "publisher.redirect_seconds is {LEAST_REDIRECT} to {LONGEST_REDIRECT}, not {lasts}: buckets take no URL \
             for longer"
        );
        if let Some(own_hub) = &self.own_hub {
            own_hub.check()?;
        }
        if let Some(contact) = &self.contact {
            ensure!(is_mail(contact), "publisher.contact is a mail address, such as archive@example.org");
        }
        let ranges = [
            ("connections", self.connections as u64, 8, 65_536),
            ("connections_per_client", self.connections_per_client as u64, 0, 65_536),
            ("header_timeout_seconds", self.header_timeout_seconds, 1, 3_600),
            ("stall_timeout_seconds", self.stall_timeout_seconds, 1, 3_600),
            ("max_concurrent_publications", self.max_concurrent_publications as u64, 1, 256),
            ("turn_seconds", self.turn_seconds, 1, 3_600),
            ("max_open_catalogs", self.max_open_catalogs as u64, 1, 10_000),
        ];
        for (field, value, least, most) in ranges {
            ensure!((least..=most).contains(&value), "publisher.{field} is {least} to {most}, not {value}");
        }
        Ok(())
    }

    /// Refuses to lead readers to a bucket that there is not.
    pub(crate) fn check_redirect(&self, store: &str) -> anyhow::Result<()> {
        let has_bucket = store.starts_with("s3://");
        ensure!(
            self.redirect_seconds.is_none() || has_bucket,
            "publisher.redirect_seconds leads readers to a bucket, and store.url is {store}; leave it out"
        );
        Ok(())
    }

    /// The hubs of others, however they are told.
    pub(crate) fn all_hubs(&self) -> Vec<Url> {
        self.hubs.iter().chain(&self.ping_hubs).cloned().collect()
    }

    /// The base of all publications.
    pub(crate) fn base(&self) -> anyhow::Result<Base> {
        Base::new(self.base.clone()).context("publisher.base")
    }

    /// How the IDs of publishers begin that publish the same Sources: those with the same base and labels.
    pub(crate) fn name(&self) -> String {
        let matching = self.matching.as_ref().map(ToString::to_string).unwrap_or_default();
        let digest = Sha256::of(format!("{} {matching}", self.base).as_bytes()).to_string();
        format!("publisher-{}-", &digest[..12])
    }

    /// The bytes of the cache for parts of catalogs.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.cache_megabytes.max(1) * 1024 * 1024
    }

    /// Declares the most memory that each part takes.
    pub(crate) fn bound_memory(&self, metrics: &Metrics) {
        let slow = (self.max_concurrent_publications / 4).max(1);
        let publications = (self.max_concurrent_publications + slow) * PUBLICATION_BYTES;
        let limits = ConnectionLimits {
            most: self.connections,
            per_client: None,
            proxies: self.trusted_proxies.clone().into(),
            head_time: Duration::from_secs(self.header_timeout_seconds),
            stall_time: None,
        };
        metrics.bound_memory("publisher-publications", publications as u64);
        metrics.bound_memory("publisher-connections", limits.memory_bytes(0) as u64);
        metrics.bound_memory("publisher-oai", (OAI_TURNS * OAI_BYTES) as u64);
        metrics.bound_memory("publisher-cache", self.cache_bytes() as u64);
        let topics = if self.all_hubs().is_empty() { 0 } else { self.topics().most_bytes() };
        let hubs = self.own_hub.as_ref().map_or(topics, |hub| hub.payload_bytes() + DELIVERY_BYTES);
        if hubs > 0 {
            metrics.bound_memory("publisher-hubs", hubs as u64);
        }
    }

    /// The newest payloads of topics: with hubs of its own, a part of the memory for their payloads.
    fn topics(&self) -> Topics {
        self.own_hub.as_ref().map(|hub| Topics::of(hub.payload_bytes() / 4)).unwrap_or_default()
    }

    /// The limits of the server, and the files that it reads.
    pub(crate) fn of_server(&self, metrics: PublisherMetrics) -> anyhow::Result<Settings> {
        let tokens = self.tokens.as_deref().map(Tokens::of_file).transpose().context("publisher.tokens")?;
        let takedowns = self.takedown.as_deref().map(Takedowns::of_file).transpose();
        Ok(Settings {
            connections: self.connections,
            connections_per_client: Some(self.connections_per_client).filter(|most| *most > 0),
            head_time: Duration::from_secs(self.header_timeout_seconds),
            stall_time: Duration::from_secs(self.stall_timeout_seconds),
            turns: self.max_concurrent_publications,
            turn_time: Duration::from_secs(self.turn_seconds),
            // Without a file no token is known: readers of what is published for those with tokens get 401.
            readers: Readers { tokens: Some(tokens.unwrap_or_else(Tokens::none)), networks: None },
            proxies: self.trusted_proxies.clone().into(),
            takedowns: takedowns.context("publisher.takedown")?,
            metrics,
            pinged: self.ping_hubs.clone(),
            redirect: self.redirect_seconds.map(Duration::from_secs),
            contact: self.contact.clone(),
            hub: self.own_hub.as_ref().map(OwnHubSettings::limits),
            topics: self.topics(),
            ..Settings::default()
        })
    }
}

/// Refuses hubs that cannot be posted to, or whose URL has a secret.
fn check_hubs(field: &str, hubs: &[Url]) -> anyhow::Result<()> {
    for hub in hubs {
        let is_plain = hub.username().is_empty() && hub.password().is_none();
        ensure!(is_plain, "publisher.{field}: a URL cannot have a user or a password, since readers see it");
        let is_hub = matches!(hub.scheme(), "http" | "https") && hub.has_host();
        ensure!(is_hub, "publisher.{field}: {hub} cannot be a hub; name an http or https URL");
    }
    Ok(())
}

/// The readers of a Source's publication; none if it is not published.
pub(crate) fn readers(spec: &control::Spec, tokens: Option<&Tokens>) -> Option<Readers> {
    match spec.publish {
        Publish::Off => None,
        Publish::Public => Some(Readers::default()),
        Publish::Tokens => Some(Readers { tokens: tokens.cloned(), networks: None }),
        Publish::Networks => {
            Some(Readers { tokens: None, networks: Some(spec.publish_networks.clone().into()) })
        }
    }
}

/// Which readers a Source's publication has, in a word that changes with them.
pub(crate) fn admits_by(spec: &control::Spec) -> String {
    match spec.publish {
        Publish::Off => "off".to_owned(),
        Publish::Public => "public".to_owned(),
        Publish::Tokens => "tokens".to_owned(),
        Publish::Networks => {
            let networks: Vec<String> = spec.publish_networks.iter().map(ToString::to_string).collect();
            let digest = Sha256::of(networks.join(" ").as_bytes()).to_string();
            format!("networks-{}", &digest[..12])
        }
    }
}

#[cfg(test)]
mod tests {
    use secrets::Vars;
    use service::config;

    use super::*;

    #[test]
    fn the_sample_configuration_is_read_and_says_what_the_defaults_say() {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/config/publisher.yaml");
        let vars = Vars::default().with("THRESHER_PUBLISHER_CONFIG", sample);
        let config: Config = config::load("publisher", &vars).unwrap();
        let base = config.publisher.base.as_str();
        let plain: DaemonSettings = serde_saphyr::from_str(&format!("base: '{base}'")).unwrap();
        assert!(config.publisher.tokens.is_some());
        assert_eq!(DaemonSettings { tokens: None, ..config.publisher }, plain);
        plain.check().unwrap();
        plain.base().unwrap();
    }

    #[test]
    fn limits_and_hubs_that_make_no_sense_are_refused_by_name() {
        for (line, name) in [
            ("connections: 0", "connections"),
            ("connections_per_client: 100000", "connections_per_client"),
            ("max_concurrent_publications: 0", "max_concurrent_publications"),
            ("turn_seconds: 0", "turn_seconds"),
            ("hubs: ['https://user:hunter2@hub.example/']", "hubs"),
            ("hubs: ['ftp://hub.example/']", "hubs"),
            ("ping_hubs: ['https://user:hunter2@hub.example/']", "ping_hubs"),
            ("ping_hubs: ['ftp://hub.example/']", "ping_hubs"),
            ("hubs: ['https://hub.example/']\nping_hubs: ['https://hub.example/']", "publisher.hubs too"),
            ("redirect_seconds: 59", "redirect_seconds"),
            ("redirect_seconds: 604801", "redirect_seconds"),
            ("contact: archive", "contact"),
            ("own_hub: {base: 'ftp://hub.example/'}", "own_hub.base"),
            ("own_hub: {base: 'https://hub.example/', subscribers: 0}", "own_hub.subscribers"),
            (
                "own_hub: {base: 'https://hub.example/', hubs_without_subscribers: 0}",
                "hubs_without_subscribers",
            ),
            ("own_hub: {base: 'https://hub.example/', longest_lease_seconds: 9}", "longest_lease_seconds"),
        ] {
            let text = format!("base: 'https://mirror.example/'\n{line}\n");
            let settings: DaemonSettings = serde_saphyr::from_str(&text).unwrap();
            let said = format!("{:#}", settings.check().unwrap_err());
            assert!(said.contains(name) && !said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn readers_are_led_to_a_bucket_where_there_is_one() {
        let read = |text: &str| {
            serde_saphyr::from_str::<DaemonSettings>(&format!("base: 'https://mirror.example/'\n{text}\n"))
        };
        let led = read("redirect_seconds: 900").unwrap();
        led.check().unwrap();
        led.check_redirect("s3://bucket/harvest").unwrap();
        let said = led.check_redirect("/srv/harvest").unwrap_err().to_string();
        assert!(said.contains("redirect_seconds") && said.contains("leave it out"), "{said}");
        read("").unwrap().check_redirect("/srv/harvest").unwrap();
    }

    #[test]
    fn publishers_of_the_same_sources_have_names_that_begin_alike() {
        let name = |text: &str| serde_saphyr::from_str::<DaemonSettings>(text).unwrap().name();
        let plain = name("base: 'https://mirror.example/'");
        assert_eq!(plain, name("base: 'https://mirror.example'\nlisten: 127.0.0.1:1\n"));
        assert_ne!(plain, name("base: 'https://other.example/'"));
        assert_ne!(plain, name("base: 'https://mirror.example/'\nmatch: country=jp\n"));
        let id = control::MemberId::fresh(&plain);
        assert!(id.as_str().starts_with(&plain), "{id}");
    }

    #[test]
    fn what_needs_a_token_is_closed_where_no_token_is_known() {
        let mut spec = control::Spec::new("https://example.org/".parse().unwrap());
        assert!(readers(&spec, None).is_none());
        spec.publish = Publish::Tokens;
        let tokens = Tokens::none();
        assert!(readers(&spec, Some(&tokens)).unwrap().tokens.is_some());
        spec.publish = Publish::Networks;
        spec.publish_networks = vec!["10.2.0.0/16".parse().unwrap()];
        assert_eq!(readers(&spec, Some(&tokens)).unwrap().networks.unwrap().len(), 1);
    }

    #[test]
    fn the_word_for_the_readers_changes_with_them() {
        let mut spec = control::Spec::new("https://example.org/".parse().unwrap());
        let mut words = std::collections::BTreeSet::new();
        for (publish, networks) in [
            (Publish::Public, &[][..]),
            (Publish::Tokens, &[]),
            (Publish::Networks, &["10.2.0.0/16"]),
            (Publish::Networks, &["10.2.0.0/16", "10.3.0.0/16"]),
        ] {
            spec.publish = publish;
            spec.publish_networks = networks.iter().map(|text| text.parse().unwrap()).collect();
            assert!(words.insert(admits_by(&spec)), "{words:?}");
            spec.title = Some("Another title".to_owned());
            assert!(words.contains(&admits_by(&spec)));
        }
    }

    #[test]
    fn a_hub_needs_the_url_at_which_subscribers_reach_it() {
        let read = |text: &str| {
            serde_saphyr::from_str::<DaemonSettings>(&format!("base: 'https://mirror.example/'\n{text}\n"))
        };
        assert!(read("").unwrap().own_hub.is_none());
        assert!(read("own_hub: {subscribers: 5}").unwrap_err().to_string().contains("base"));
        let settings = read("own_hub: {base: 'https://hub.example/', subscribers: 5}").unwrap();
        settings.check().unwrap();
        let limits = settings.own_hub.unwrap().limits();
        assert_eq!((limits.subscribers, limits.per_host), (5, 100));
        assert_eq!(limits.give_up, HubLimits::default().give_up);
        assert_eq!(limits.longest_lease, HubLimits::default().longest_lease);
    }
}
