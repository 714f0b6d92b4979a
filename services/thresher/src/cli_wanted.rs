//! What is wanted of a Source, whoever harvests it: this process or a fleet.

use std::num::{NonZeroU64, NonZeroUsize};

use clap::{Args, ValueEnum};
use regex::Regex;
use scheduler::{AbsentPolicy, RunLimits};
use url::Url;
use web::WebConfig;

use crate::cli_scrub::bytes;
use crate::exit::Failed;
use crate::http::HttpArgs;

/// What is wanted of a Source.
#[derive(Debug, Args)]
pub(crate) struct WantedArgs {
    /// The way to go. auto: a baseline the first time, then what has changed.
    #[arg(long, value_enum, default_value_t = ModeArg::Auto)]
    pub(crate) mode: ModeArg,

    /// What to read where a Source offers both: lists, with a request for each resource, or dumps, with one for each package.
    #[arg(long, value_enum)]
    pub(crate) prefer: Option<PreferArg>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,

    /// Keep the last N versions of each resource beside the one that is held: for `cat --at` and `ls --at`. Without it, as many as before; none
    /// at first.
    #[arg(long, value_name = "N")]
    pub(crate) history: Option<u32>,

    /// The largest resource taken: 500MB, 20GiB. A larger one is refused, as a problem. Packages of dumps and documents
    /// have limits of their own. Default: 16GiB, or what a fleet's fetchers are configured for
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) max_size: Option<NonZeroU64>,
}

/// What of a Source counts, and what may be concluded from its lists.
#[derive(Debug, Args)]
pub(crate) struct ScopeArgs {
    /// Refuse documents that break the specification instead of tolerating and counting it.
    #[arg(long)]
    pub(crate) strict: bool,

    /// Take HTML also where another media type is listed or was held before. Without it such pages are problems, since bot
    /// defences send them in the place of content.
    #[arg(long)]
    pub(crate) accept_html: bool,

    /// Take only resources whose URI matches this regular expression.
    #[arg(long, value_name = "RE")]
    pub(crate) include: Option<Regex>,

    /// Leave out resources whose URI matches this regular expression.
    #[arg(long, value_name = "RE")]
    pub(crate) exclude: Option<Regex>,

    /// Of which sites resources are taken. any: all that lists and dumps name. same: those of the domain of the URL that
    /// is harvested.
    #[arg(long, value_enum, default_value_t = OriginsArg::Any)]
    pub(crate) origins: OriginsArg,

    /// What becomes of resources that a Resource List does not name any more. confirm: they are deleted when a later list
    /// does not name them either.
    #[arg(long, value_enum, default_value_t = AbsentArg::Confirm)]
    pub(crate) absent: AbsentArg,

    /// The most resources deleted for their absence in one run, in percent of what is held; beyond it all are kept, and the
    /// run asks for your word.
    #[arg(long, value_name = "N%", default_value = "10%", value_parser = percent)]
    pub(crate) max_deletes: u8,
}

/// How much a run reads of the Source's documents at most. What is beyond is a problem, and nothing is deleted for it.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LimitArgs {
    /// The most indexes one above the other: with 3, a list below an index below an index below an index is read.
    #[arg(long, value_name = "N", default_value_t = RunLimits::default().index_levels)]
    max_index_levels: u32,

    /// The most documents that a run reads: lists, dumps, change documents, and indexes of these.
    #[arg(long, value_name = "N", default_value_t = RunLimits::default().documents)]
    max_documents: u64,

    /// The most entries that a run reads, of all documents together.
    #[arg(long, value_name = "N", default_value_t = RunLimits::default().entries)]
    max_entries: u64,

    /// The most bytes that all documents of a run have together, after decompression.
    #[arg(long, value_name = "BYTES", default_value_t = RunLimits::default().document_bytes)]
    max_document_bytes: u64,

    /// How many times its compressed size a document may have after decompression.
    #[arg(long, value_name = "N", default_value_t = RunLimits::default().inflation)]
    max_inflation: u64,
}

impl From<LimitArgs> for RunLimits {
    fn from(args: LimitArgs) -> Self {
        Self {
            index_levels: args.max_index_levels,
            documents: args.max_documents,
            entries: args.max_entries,
            document_bytes: args.max_document_bytes,
            inflation: args.max_inflation,
        }
    }
}

/// How much is asked for at the same time.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct RoomArgs {
    /// Requests open at one origin at the same time.
    #[arg(long, value_name = "N", default_value = "4")]
    pub(crate) concurrency: NonZeroUsize,
}

impl RoomArgs {
    /// How Sources are asked that are entered at `entry`.
    pub(crate) fn web(self, http: &HttpArgs, entry: &Url) -> Result<WebConfig, Failed> {
        Ok(WebConfig { per_origin: self.concurrency.get(), ..http.config(entry)? })
    }
}

/// The way to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    /// What is known decides.
    Auto,
    /// The whole Resource List.
    Baseline,
    /// The Change Lists.
    Incremental,
    /// A comparison of what is held with the lists; nothing is fetched.
    Audit,
}

/// What is read where a Source offers both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PreferArg {
    /// Resource Lists and Change Lists.
    List,
    /// Resource Dumps and Change Dumps.
    Dump,
}

impl From<AbsentArg> for AbsentPolicy {
    fn from(absent: AbsentArg) -> Self {
        match absent {
            AbsentArg::Confirm => Self::Confirm,
            AbsentArg::Delete => Self::Delete,
            AbsentArg::Keep => Self::Keep,
        }
    }
}

/// What becomes of resources that a list does not name any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AbsentArg {
    /// Deleted at the second sighting.
    Confirm,
    /// Deleted at the first.
    Delete,
    /// Kept.
    Keep,
}

/// Of which sites resources are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OriginsArg {
    /// Of all that lists and dumps name.
    Any,
    /// Of the registrable domain of the URL that is harvested.
    Same,
}

pub(crate) fn percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse() {
        Ok(percent) if percent <= 100 => Ok(percent),
        _ => Err("give a whole number of percent from 0% to 100%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read_with_their_sign_or_without() {
        assert_eq!(percent("5%"), Ok(5));
        assert_eq!(percent("100"), Ok(100));
        assert!(percent("101%").is_err());
        assert!(percent("-1%").is_err());
    }
}
