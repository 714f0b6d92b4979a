//! `publish`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use control::Selector;
use model::{Archive, Network, SetRule};
use url::Url;

use super::harvest::HarvestArgs;
use crate::values::{ReaderNetwork, duration, mail, reader_network, scan_interval};

// clap takes a requirement for met where an option that is given contradicts the missing one: with --to, nothing would
// require --listen. So options of a server contradict --to, and options of files contradict those of a harvest.

/// The options that choose a harvest, or Sources of it.
const HARVEST: [&str; 4] = ["into", "source", "all_sources", "label"];
/// These, and the option of a publication without a server.
const HARVEST_OR_TO: [&str; 5] = ["to", "into", "source", "all_sources", "label"];

/// `publish`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("where").required(true).args(["to", "listen"]))]
pub(crate) struct PublishArgs {
    /// The URL at which readers find the publication: of the directory or bucket, or of this server or the proxy before
    /// it. It cannot change later.
    #[arg(long, value_name = "URL")]
    pub(crate) base: Url,
    /// Write the publication into a directory or bucket, for any web server. The same command publishes later changes.
    #[arg(long, value_name = "DIR|s3://…")]
    pub(crate) to: Option<String>,
    /// Publish the files of this directory instead of a harvest.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["into", "source"])]
    pub(crate) from: Option<PathBuf>,
    /// With --from: the URL at which the files are served already. Then only documents are written.
    #[arg(long, value_name = "URL", requires = "from", conflicts_with_all = HARVEST)]
    pub(crate) files_url: Option<Url>,
    /// With --from: publish also if more than half of the files are gone since the last run.
    #[arg(long, requires = "from", conflicts_with_all = HARVEST)]
    pub(crate) allow_deletes: bool,
    /// With --from and --listen: where documents and digests are kept; a directory of its own.
    #[arg(long, value_name = "DIR|s3://…", requires = "from", conflicts_with_all = HARVEST_OR_TO)]
    pub(crate) state: Option<String>,
    /// With --from and --listen: interval of full scans where the system reports no changes; elsewhere, of rechecks of
    /// changing or unreadable files.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        requires = "from",
        conflicts_with_all = HARVEST_OR_TO,
        value_parser = scan_interval::<1>
    )]
    pub(crate) rescan: Duration,
    /// With --from and --listen: interval of full scans where the system reports changes.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1h",
        requires = "from",
        conflicts_with_all = HARVEST_OR_TO,
        value_parser = scan_interval::<7>
    )]
    pub(crate) rescan_all: Duration,
    /// With --from and --listen: do not use inotify; scan at each --rescan.
    #[arg(long, requires = "from", conflicts_with = "rescan_all", conflicts_with_all = HARVEST_OR_TO)]
    pub(crate) no_watch: bool,
    /// Also make a Resource Dump and a Change Dump: packages of many resources. They need the place of all bytes once
    /// more.
    #[arg(long)]
    pub(crate) dumps: bool,
    /// Keep Resource Lists that were replaced, and Change Lists that left the index, and list them in ResourceSync
    /// Archives: for this time, such as 1y or 90days, or `all`. With --listen, entries link to the versions that they
    /// are about; sync with --keep-versions to have these.
    #[arg(long, value_name = "TIME|all|off", default_value = "off")]
    pub(crate) archive: Archive,
    /// With --listen: also publish the resources whose URIs match a regular expression, as a set with lists of its own:
    /// theses=/theses/. Repeatable. Of several Sources, each has these sets.
    #[arg(long = "set", value_name = "NAME=REGEX", conflicts_with_all = ["to", "from"])]
    pub(crate) sets: Vec<SetRule>,
    /// Close a Change List after this time; with --dumps, its changes are a package then. Default: 24h; with
    /// --dumps, 1h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) close_after: Option<Duration>,
    /// Where 5 % of the resources have changed, make a new Resource List this long after the last one, at the earliest.
    /// Until then, changes are told in Change Lists.
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = duration)]
    pub(crate) list_pause: Duration,
    /// With --to: only the documents; the bytes are served from elsewhere.
    #[arg(long, conflicts_with = "listen")]
    pub(crate) documents_only: bool,
    /// Serve it at this address until Ctrl-C, such as 127.0.0.1:8080. Changes are published as they come.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// With --listen: the most connections at a time.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 512,
        conflicts_with = "to",
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub(crate) connections: u32,
    /// With --listen: the most of one client; 0: as many as there are. Those of a --trusted-proxy are not counted: of
    /// each client that it names, so many requests are answered at a time.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        conflicts_with = "to",
        value_parser = clap::value_parser!(u32).range(0..=100_000)
    )]
    pub(crate) connections_per_client: u32,
    /// With --listen, of a harvest in a bucket: redirect readers of large resources to the bucket, by presigned URLs
    /// valid for this time. Default: 15min
    #[arg(
        long,
        value_name = "TIME",
        conflicts_with = "to",
        value_parser = duration,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "15min"
    )]
    pub(crate) redirect: Option<Duration>,
    /// With --listen: send each publication to this WebSub hub. Repeatable.
    #[arg(long, value_name = "URL", conflicts_with = "to")]
    pub(crate) hub: Vec<Url>,
    /// With --listen: tell this WebSub hub that the topic has changed, so that it fetches the topic, as public hubs do.
    /// Repeatable.
    #[arg(long, value_name = "URL", conflicts_with = "to")]
    pub(crate) ping_hub: Vec<Url>,
    /// With --listen: be a WebSub hub for the changes, too. Its address is `hub` below the base.
    #[arg(long, conflicts_with = "to")]
    pub(crate) own_hub: bool,
    /// With --own-hub: the most subscribers.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1_000,
        requires = "own_hub",
        conflicts_with = "to",
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub(crate) hub_subscribers: u32,
    /// With --own-hub: the most subscribers at one host.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        requires = "own_hub",
        conflicts_with = "to",
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub(crate) hub_subscribers_per_host: u32,
    /// With --own-hub: the longest lease of a subscription. Default: 31days
    #[arg(long, value_name = "TIME", requires = "own_hub", conflicts_with = "to", value_parser = duration)]
    pub(crate) hub_lease: Option<Duration>,
    /// With --own-hub: end a subscription that took no delivery for this time. Default: 24h
    #[arg(long, value_name = "TIME", requires = "own_hub", conflicts_with = "to", value_parser = duration)]
    pub(crate) hub_give_up: Option<Duration>,
    /// With --own-hub: allow callbacks at this address or network; else they must be public. Repeatable.
    #[arg(
        long,
        visible_alias = "allow-network",
        value_name = "CIDR",
        requires = "own_hub",
        conflicts_with = "to"
    )]
    pub(crate) allow_address: Vec<Network>,
    /// With --listen: readers need a token of this file, a YAML list with name, and token or sha256.
    #[arg(long, value_name = "FILE", conflicts_with = "to")]
    pub(crate) tokens: Option<PathBuf>,
    /// With --listen: the mail address of an administrator, which the OAI-PMH repository of a set shows. Default:
    /// postmaster at the base's host
    #[arg(long, value_name = "MAIL", conflicts_with = "to", value_parser = mail)]
    pub(crate) contact: Option<String>,
    /// With --listen: readers are in this network; others get 403. With SOURCE=, its URL or its ID, for that set alone.
    /// Repeatable. With --tokens, a reader needs both.
    #[arg(long, value_name = "[SOURCE=]CIDR", conflicts_with = "to", value_parser = reader_network)]
    pub(crate) allow_readers: Vec<ReaderNetwork>,
    /// With --listen: a reverse proxy before the server, as an address or a network. Its header X-Forwarded-For names the
    /// reader for --allow-readers, and for --connections-per-client. Repeatable.
    #[arg(long, value_name = "CIDR", conflicts_with = "to")]
    pub(crate) trusted_proxy: Vec<Network>,
    /// With --listen: serve metrics and probes at this address, such as 127.0.0.1:9600.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "to")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Withdraw the resources of this list, a URI on each line: they are published as deleted, and their bytes go at
    /// once. A server reads it again when it changes.
    #[arg(long, value_name = "FILE")]
    pub(crate) takedown: Option<PathBuf>,
    /// The Source: its URL or its ID. Optional if the harvest has one Source. Repeat it to publish several as the sets
    /// of one Source, each in a folder named by its ID.
    #[arg(long)]
    pub(crate) source: Vec<String>,
    /// Publish all Sources of the harvest as the sets of one.
    #[arg(long, conflicts_with_all = ["source", "from"])]
    pub(crate) all_sources: bool,
    /// Publish the Sources whose labels match as the sets of one: country=jp, country!=jp, country, !country; commas join
    /// them. Labels are those of the last run: of `sync --label`, or of the Source in a fleet.
    #[arg(long, value_name = "SELECTOR", conflicts_with_all = ["source", "all_sources", "from"])]
    pub(crate) label: Option<Selector>,
    #[command(flatten)]
    pub(crate) harvest: HarvestArgs,
    /// Print the totals as a JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl PublishArgs {
    /// The hubs of others, however they are told.
    pub(crate) fn hubs(&self) -> Vec<Url> {
        self.hub.iter().chain(&self.ping_hub).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
