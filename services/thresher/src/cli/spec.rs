//! Options of a Source's spec, shared by `sync` and the commands of a fleet.

use std::num::{NonZeroU16, NonZeroU64, NonZeroUsize};

use clap::Args;
use model::{
    Absent, FollowRule, FollowedRelation, MediaRange, Mirrors, OaiOptions, Only, Origins, Patches, Prefer,
    RunMode, TextEncoding,
};
use planning::RunLimits;
use planning::follow::FollowRules;
use regex::Regex;
use url::Url;
use web::WebConfig;

use crate::exit::Failed;
use crate::http::HttpArgs;
use crate::values::{bytes, percent};

/// What to sync of a Source, and how.
#[derive(Debug, Args)]
pub(crate) struct SpecArgs {
    /// The mode of the run. auto: a baseline first, then changes.
    #[arg(long, value_enum, default_value_t = RunMode::Auto)]
    pub(crate) mode: RunMode,

    /// Prefer lists (one request per resource) or dumps (one request per package). Default: whichever is faster
    #[arg(long, value_enum)]
    pub(crate) prefer: Option<Prefer>,

    #[command(flatten)]
    pub(crate) scope: ScopeArgs,

    #[command(flatten)]
    pub(crate) oai: OaiArgs,

    /// Take the entries of plain sitemaps for landing pages: sync the files and metadata that their typed links
    /// (Signposting) lead to, and not the pages. A sitemap that gives these links itself (Signmap) needs no option.
    #[arg(long)]
    pub(crate) landing_pages: bool,

    /// Keep the last N earlier versions of each resource, for `cat --at` and `ls --at`. Default: as in the last run; 0 at
    /// first
    #[arg(long, value_name = "N")]
    pub(crate) keep_versions: Option<u32>,

    /// The largest resource: 500MB, 20GiB. A larger one becomes a problem. Documents and packages have limits of their
    /// own. Default: 16GiB, or the configuration of a fleet's fetchers
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) max_size: Option<NonZeroU64>,
}

/// What to harvest of an OAI-PMH repository.
#[derive(Debug, Clone, Args)]
pub(crate) struct OaiArgs {
    /// The metadata prefix to harvest of an OAI-PMH repository. Default: the richest format that is known, else oai_dc
    #[arg(long, value_name = "PREFIX")]
    pub(crate) metadata_prefix: Option<String>,

    /// Harvest only this set of an OAI-PMH repository. Repeatable.
    #[arg(long = "set", value_name = "SETSPEC")]
    pub(crate) sets: Vec<String>,

    /// The encoding of records of an OAI-PMH repository that say UTF-8 and are not: windows-1252, iso-8859-2, gbk. By
    /// default such a record is a problem.
    #[arg(long, value_name = "NAME")]
    pub(crate) encoding: Option<TextEncoding>,
}

impl From<OaiArgs> for OaiOptions {
    fn from(args: OaiArgs) -> Self {
        Self { metadata_prefix: args.metadata_prefix, sets: args.sets, encoding: args.encoding }
    }
}

/// Which resources count, and what their absence means.
#[derive(Debug, Args)]
pub(crate) struct ScopeArgs {
    /// Reject documents that deviate from the specification, instead of counting the deviations.
    #[arg(long)]
    pub(crate) strict: bool,

    /// Accept HTML even if the list or the former version has another media type. By default such a page is a problem,
    /// because bot defences send HTML instead of content.
    #[arg(long)]
    pub(crate) accept_html: bool,

    /// Sync only resources whose URI matches this regular expression.
    #[arg(long, value_name = "RE")]
    pub(crate) include: Option<Regex>,

    /// Skip resources whose URI matches this regular expression.
    #[arg(long, value_name = "RE")]
    pub(crate) exclude: Option<Regex>,

    /// Which sites resources may be on. same: only the registrable domain of the Source's URL.
    #[arg(long, value_enum, default_value_t = Origins::Any)]
    pub(crate) origins: Origins,

    /// When to fetch from the mirrors that an entry names, where it declares a digest. fallback: when the resource's
    /// own URI fails. prefer: before it. spread: in turns with it.
    #[arg(long, value_enum, default_value_t = Mirrors::Fallback)]
    pub(crate) mirrors: Mirrors,

    /// Whether to make a new version from the stored one and a patch that the change links to. verified: where the
    /// result can be judged by its digest; in any doubt the resource itself is requested.
    #[arg(long, value_enum, default_value_t = Patches::Verified)]
    pub(crate) patches: Patches,

    /// Sync only resources whose entries have this media type or link: type=application/pdf, type=text/*, a relation
    /// (describes), or a relation and its target (profile=URI, collection=URI). Repeatable: conditions on the same
    /// relation, or on the type, are alternatives; others must all hold.
    #[arg(long, value_name = "CONDITION")]
    pub(crate) only: Vec<Only>,

    #[command(flatten)]
    pub(crate) follow: FollowArgs,

    /// What to do with stored resources that the Source no longer lists. confirm: delete them when a second, later list
    /// omits them too.
    #[arg(long, value_enum, default_value_t = Absent::Confirm)]
    pub(crate) absent: Absent,

    /// The deletion guard: the maximum share of stored resources that one run may delete because they are absent. If
    /// there are more, the run deletes none and waits for approval.
    #[arg(long, value_name = "N%", default_value = "10%", value_parser = percent)]
    pub(crate) max_deletes: u8,
}

/// Which links lead to resources that are synced too.
#[derive(Debug, Clone, Args)]
pub(crate) struct FollowArgs {
    /// Sync also what links of these relations lead to, although no list names it: item, describedby, alternate, or a
    /// URI. `content` is item: the files of OAI-PMH records. `landing-page` is that too, and for records that name no file
    /// the files that their landing pages name: one request more for each such record. Repeatable, or with commas. What
    /// a link leads to is deleted with the resource that has the link.
    #[arg(long, value_name = "RELATION", value_delimiter = ',')]
    pub(crate) follow_links: Vec<FollowedRelation>,

    /// Follow only links that declare this media type: application/pdf, text/*. Repeatable, or with commas.
    #[arg(long, value_name = "TYPE", value_delimiter = ',', requires = "follow_links")]
    pub(crate) follow_type: Vec<MediaRange>,

    /// The most links of one entry that are followed. Default: 20
    #[arg(long, value_name = "N", requires = "follow_links")]
    pub(crate) follow_max: Option<NonZeroU16>,

    /// Sync also what links lead to, by a rule with conditions and a limit of its own:
    /// rel=RELATION,type=TYPE,host=HOST,profile=URI,max=N,instead. All but the relation may be left out. With
    /// `instead`, the resource that has the link is not fetched. Repeatable: the first rule that selects a link counts.
    #[arg(long, value_name = "RULE")]
    pub(crate) follow_rule: Vec<FollowRule>,
}

impl From<FollowArgs> for FollowRules {
    fn from(args: FollowArgs) -> Self {
        let most = args.follow_max.unwrap_or(Self::default().most);
        Self { relations: args.follow_links, types: args.follow_type, most, rules: args.follow_rule }
    }
}

/// Limits of a run. What exceeds them is a problem, and nothing is deleted because of it.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LimitArgs {
    /// Maximum depth of indexes: with 3, a list under three nested indexes is read.
    #[arg(long, value_name = "N", default_value_t = RunLimits::default().index_levels)]
    max_index_levels: u32,

    /// Maximum number of documents of a run: lists, dumps, change documents, and their indexes.
    #[arg(long, value_name = "N", default_value_t = RunLimits::default().documents)]
    max_documents: u64,

    /// Maximum number of entries of a run, over all documents.
    #[arg(long, value_name = "N", default_value_t = RunLimits::default().entries)]
    max_entries: u64,

    /// Maximum bytes of all documents of a run, after decompression, such as 20GiB.
    #[arg(long, value_name = "BYTES", default_value = "512GiB", value_parser = bytes)]
    max_document_bytes: NonZeroU64,

    /// Maximum ratio of a document's decompressed size to its compressed size.
    #[arg(long, value_name = "N", default_value_t = RunLimits::default().inflation)]
    max_inflation: u64,

    /// Maximum number of links that a run follows (--follow-links), over all entries.
    #[arg(long, value_name = "N", default_value_t = RunLimits::default().links)]
    max_links: u64,
}

impl From<LimitArgs> for RunLimits {
    fn from(args: LimitArgs) -> Self {
        Self {
            index_levels: args.max_index_levels,
            documents: args.max_documents,
            entries: args.max_entries,
            document_bytes: args.max_document_bytes.get(),
            inflation: args.max_inflation,
            links: args.max_links,
        }
    }
}

/// How many requests may be open.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ConcurrencyArgs {
    /// Maximum open requests per origin.
    #[arg(long, value_name = "N", default_value = "4")]
    pub(crate) concurrency: NonZeroUsize,
}

impl ConcurrencyArgs {
    /// The HTTP configuration for a Source with this entry URL.
    pub(crate) fn web(self, http: &HttpArgs, entry: &Url) -> Result<WebConfig, Failed> {
        Ok(WebConfig { per_origin: self.concurrency.get(), ..http.config(entry)? })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        limits: LimitArgs,
    }

    fn limits(words: &[&str]) -> Option<RunLimits> {
        Some(Line::try_parse_from([&["thresher"], words].concat()).ok()?.limits.into())
    }

    #[test]
    fn limits_are_those_of_a_run_and_bytes_have_a_unit() {
        assert_eq!(limits(&[]), Some(RunLimits::default()));
        for text in ["20GiB", "21474836480"] {
            let read = limits(&["--max-document-bytes", text]).map(|limits| limits.document_bytes);
            assert_eq!(read, Some(20 << 30), "{text}");
        }
        assert_eq!(limits(&["--max-document-bytes", "0"]), None);
    }
}
