//! Settings of the publisher of a fleet, with their defaults.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use control::Selector;
use fixity::Sha256;
use model::{Archive, Network};
use publish::Base;
use serde::Deserialize;
use url::Url;

use super::OwnHubSettings;

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

impl DaemonSettings {
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
}
