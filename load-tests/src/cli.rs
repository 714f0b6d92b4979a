//! The command line.

mod far;
mod many_sources;
mod oai;
mod oai_loss;
mod publish_push;
mod publish_serve;

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::far::FarOptions;
pub(crate) use self::many_sources::ManySourcesOptions;
pub(crate) use self::oai::OaiOptions;
pub(crate) use self::oai_loss::OaiLossOptions;
pub(crate) use self::publish_push::PublishPushOptions;
pub(crate) use self::publish_serve::PublishServeOptions;
use crate::get_all::GetAllArgs;
use crate::measure::MeasureArgs;
use crate::read_list::ReadListArgs;
use crate::read_pages::ReadPagesArgs;
use crate::sources_server::ServeSourcesArgs;

/// Measures Thresher beside what a user could pick instead, on this machine, over loopback.
#[derive(Debug, Parser)]
#[command(name = "load-tests", max_term_width = 110)]
pub(crate) struct Cli {
    /// What to measure.
    #[command(subcommand)]
    pub(crate) case: Case,
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Case {
    /// 20,000 resources of 2 KiB: thresher with and without the view, and what a user could pick instead.
    SmallFiles(Options),
    /// 20,000 resources of 2 KiB: thresher in one process, and a fleet with packs and without.
    SmallFilesFleet(Options),
    /// 64 resources of 64 MiB: thresher, and curl followed by sha256sum.
    LargeFiles(Options),
    /// 10,000 resources of a Source that takes 50 ms for each answer, with 64 requests open.
    #[command(name = "latency-50ms")]
    Latency(Options),
    /// 20,000 resources of 2 KiB over TLS, by HTTP/1.1 and by HTTP/2: thresher, a bare loop, curl, aria2c,
    /// wget2 and rclone.
    SmallFilesTls(Options),
    /// 64 resources of 64 MiB over TLS, by HTTP/1.1 and by HTTP/2: thresher, a bare loop and curl.
    LargeFilesTls(Options),
    /// 8 resources of 16 MiB from a server that is 20, 100 and 240 ms away, over TLS, by HTTP/1.1 and by HTTP/2.
    FarLarge(FarOptions),
    /// 1,280 resources of 2 KiB from a server that is 240 ms away, with 64 requests open.
    FarSmall(FarOptions),
    /// A list of 1,000,000 entries whose resources are all held already.
    MillionUnchanged(Options),
    /// The same with three links in each entry.
    MillionLinks(Options),
    /// 1,000,000 resources that are held, and nothing new.
    IncrementalIdle(Options),
    /// 1,000,000 changes to 100,000 resources that are held. `--resources` are changes.
    ChangeBurst(Options),
    /// 1,000,000 resources that are held are compared with the list that names them.
    MillionAudit(Options),
    /// A Change List of 1,000,000 entries is read, from a file; and one of 50,000, beside resync.
    ReadLists(Options),
    /// 1,000,000 records of an OAI-PMH repository, in pages of 100 and of 1,000: thresher, its reader alone, sickle
    /// and oaipmh-scythe.
    Oai(OaiOptions),
    /// A page of 400,000 OAI-PMH records (1 GiB), and a list of 10,000,000 headers: memory. `--resources` are headers,
    /// 25 for each record of the page.
    OaiLarge(Options),
    /// 200,000 records of an OAI-PMH repository, harvested while the process is killed every two seconds, tokens expire,
    /// pages fail and records change: whether one is lost.
    OaiLoss(OaiLossOptions),
    /// 10,000,000 resources that are held are published, and again after changes. `--rounds` means nothing.
    Publish(Options),
    /// 100,000 files become a Source, and again after 1 % changed, beside resync-build. `--resources` are files.
    PublishFiles(Options),
    /// A publisher's own hub tells 100 subscribers of 1,000 changes a second for a minute, and ten of the changes of ten
    /// minutes in which it was down.
    PublishPush(PublishPushOptions),
    /// A server of a publication beside nginx: small documents, and ranges of large resources.
    PublishServe(PublishServeOptions),
    /// A gateway answers for versions of 1,000,000 resources, three of each (Memento).
    Timegate(Options),
    /// 6,000 resources with a latency of 50 ms, harvested by a fleet with one fetcher and by one with four.
    ScaleOut(Options),
    /// A dump package of 200,000 members and 5 GB: one unpacker and two, beside unzip -t and sha256sum.
    ManyMembers(Options),
    /// A dump package of 20 members of 250 MB: the same.
    LargeMembers(Options),
    /// 2 GB that are held in a directory are read again, beside sha256sum.
    Scrub(Options),
    /// 2,000 Sources, one of them with 5,000,000 resources: every page of the console.
    Console(ConsoleOptions),
    /// Where the time of a small resource goes, by strace, callgrind and perf, as far as they are there.
    Profile(Options),
    /// A Source that changes ten times a second and has a hub: how long after each change is it held. `--resources` are changes.
    PushLag(Options),
    /// Twenty honest Sources, harvested by a fleet alone and beside hostile ones. `--resources` are those of each.
    HostileFleet(Options),
    /// 10,000 Sources of 20 resources, some of them dead or slow: a fleet harvests all, and polls them afterwards.
    ManySources(ManySourcesOptions),
    /// One Source of 20 resources: what a run costs, with a store that is near and with one that takes 20 ms a request.
    SmallSource(Options),
    /// A gateway that is flooded with 1,000 deliveries or notifications a second for ten seconds.
    PushFlood(PushFloodOptions),
    /// Serve thousands of Sources; the cases with many Sources call this.
    #[command(hide = true)]
    ServeSources(ServeSourcesArgs),
    /// Get every URL of a list and digest it; cases whose limit that is call this.
    #[command(hide = true)]
    GetAll(GetAllArgs),
    /// Read one document; the case read-lists calls this.
    #[command(hide = true)]
    ReadList(ReadListArgs),
    /// Read answers of an OAI-PMH repository; the case oai calls this.
    #[command(hide = true)]
    ReadPages(ReadPagesArgs),
    /// Run one command and write down what it used; the other cases call this.
    #[command(hide = true)]
    Measure(MeasureArgs),
}

/// How to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How often each command is run.
    #[arg(long, value_name = "N", default_value = "3")]
    pub(crate) rounds: NonZeroUsize,

    /// How many resources the Source has, or members its package. Default: what the case is named after.
    #[arg(long, value_name = "N")]
    pub(crate) resources: Option<u64>,

    /// Run only the row of this name, and each other one that is named so: to look closer at a few of them.
    #[arg(long, value_name = "ROW")]
    pub(crate) only: Vec<String>,

    /// Who serves.
    #[arg(long, value_enum, default_value_t = SourceKind::Nginx)]
    pub(crate) source: SourceKind,

    /// Work in a new directory below this one. Default: below cargo's target directory.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,

    /// Leave the working directory behind.
    #[arg(long)]
    pub(crate) keep: bool,

    /// Take this thresher instead of building one.
    #[arg(long, value_name = "PATH")]
    pub(crate) thresher: Option<PathBuf>,

    /// Print no table on standard error.
    #[arg(long)]
    pub(crate) json_only: bool,
}

impl Options {
    /// For a case whose rows depend on each other.
    ///
    /// # Errors
    /// When only some of its rows are requested.
    pub(crate) fn only_all_rows(&self) -> anyhow::Result<()> {
        anyhow::ensure!(self.only.is_empty(), "the rows of this case need each other: leave --only out");
        Ok(())
    }
}

/// How to measure the console.
#[derive(Debug, Args)]
pub(crate) struct ConsoleOptions {
    /// As of the other cases; `--resources` are those of the large Source.
    #[command(flatten)]
    pub(crate) common: Options,

    /// How many Sources there are. Default: 2,000.
    #[arg(long, value_name = "N")]
    pub(crate) sources: Option<u64>,

    /// How often each page is asked for in a round.
    #[arg(long, value_name = "N", default_value = "50")]
    pub(crate) requests: NonZeroUsize,
}

/// How to flood a gateway.
#[derive(Debug, Args)]
pub(crate) struct PushFloodOptions {
    /// As of the other cases; `--resources` are those of each of the two Sources, 100.
    #[command(flatten)]
    pub(crate) common: Options,

    /// Posts in a second.
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(crate) per_second: NonZeroU64,

    /// For how many seconds.
    #[arg(long, value_name = "N", default_value = "10")]
    pub(crate) seconds: NonZeroU64,
}

/// Who serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SourceKind {
    /// Debian's nginx, installed under the target directory if there is none: static files.
    Nginx,
    /// The testkit's simulated Source, in the runner's own process: bytes made while they are sent.
    Simulated,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_rounds_are_wrong_usage() {
        let error = Cli::try_parse_from(["load-tests", "small-files", "--rounds", "0"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }
}
