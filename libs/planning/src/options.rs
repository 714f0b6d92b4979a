//! Options that the operator may set for a run.

use std::num::NonZeroUsize;
use std::time::Duration;

use model::{Absent, Mirrors, Mode, OaiOptions, Patches, Prefer, Terms};
use regex::Regex;

use crate::filter::Filter;
use crate::follow::FollowRules;
use crate::limits::RunLimits;
use crate::retry::RetryPolicy;
use crate::unreported::Channels;

/// Options that the operator may set for a run.
#[derive(Debug, Clone)]
pub struct HarvestOptions {
    /// The mode; chosen by the state of the sets if the operator sets none.
    pub mode: Option<Mode>,
    /// Whether to read lists or dumps, if a Source offers both.
    pub prefer: Option<Prefer>,
    /// Whether an audit queues the differences for repair.
    pub repair: bool,
    /// Records of a repository that an audit asks for by themselves.
    pub sample: usize,
    /// Reject deviations that are tolerated by default.
    pub strict: bool,
    /// Which resources to harvest.
    pub filter: Filter,
    /// Fetch jobs in flight for one origin.
    pub jobs_per_origin: NonZeroUsize,
    /// Bounds on the part of a run that is in memory and at the bus.
    pub window: WindowLimits,
    /// When to retry.
    pub retries: RetryPolicy,
    /// Run discovery even if cached discovery has not expired.
    pub rediscover: bool,
    /// Age at which cached discovery expires.
    pub rediscover_after: Duration,
    /// Request limits and identity towards the Source.
    pub terms: Terms,
    /// What to do with absent resources: those that a list no longer contains.
    pub absent: Absent,
    /// Maximum deletions of absent resources in one run, in percent of a set's stored resources.
    pub max_deletes_percent: u8,
    /// Number of earlier versions to keep of each resource; unchanged if the operator sets none.
    pub keep_versions: Option<u32>,
    /// Plan from Change Notifications, and read the Source's documents only if those are not enough.
    pub notified: bool,
    /// The channels by which hubs should report changes.
    pub channels: Channels,
    /// What to harvest of an OAI-PMH repository.
    pub oai: OaiOptions,
    /// Limits on how much the run reads of the Source's documents.
    pub limits: RunLimits,
    /// When to fetch from mirrors.
    pub mirrors: Mirrors,
    /// Whether to apply patches.
    pub patches: Patches,
    /// Which links lead to resources that are fetched too.
    pub follow: FollowRules,
    /// Whether the entries of plain sitemaps are landing pages, whose typed links lead to the resources.
    pub landing_pages: bool,
}

/// Pending records that a run reads ahead of its jobs, over all origins.
pub const READ_AHEAD: usize = 4_096;
/// Maximum number of origin queues of a run.
const ORIGINS_AT_A_TIME: usize = 1_000;

/// Bounds on the part of a run that is in memory and at the bus, whatever its documents list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimits {
    /// Resources that are ready to be sent.
    pub resources: NonZeroUsize,
    /// Origins with a queue. The pending records of other origins wait in the catalog.
    pub origins: NonZeroUsize,
}

impl Default for WindowLimits {
    fn default() -> Self {
        let positive = |number| NonZeroUsize::new(number).expect("a number that is not 0");
        Self { resources: positive(READ_AHEAD), origins: positive(ORIGINS_AT_A_TIME) }
    }
}

impl Default for HarvestOptions {
    fn default() -> Self {
        Self {
            mode: None,
            prefer: None,
            repair: false,
            sample: 0,
            strict: false,
            filter: Filter::default(),
            jobs_per_origin: NonZeroUsize::new(4).expect("4 is not 0"),
            window: WindowLimits::default(),
            retries: RetryPolicy::default(),
            rediscover: false,
            rediscover_after: Duration::from_secs(3_600),
            terms: Terms::default(),
            absent: Absent::default(),
            max_deletes_percent: 10,
            keep_versions: None,
            notified: false,
            channels: Channels::default(),
            oai: OaiOptions::default(),
            limits: RunLimits::default(),
            mirrors: Mirrors::default(),
            patches: Patches::default(),
            follow: FollowRules::default(),
            landing_pages: false,
        }
    }
}

impl HarvestOptions {
    /// A text that changes when other entries would be selected. Documents that were read with another text must be
    /// read again.
    pub fn fingerprint(&self) -> String {
        let text = |regex: &Option<Regex>| regex.as_ref().map_or(String::new(), |r| r.as_str().to_owned());
        // What is published here changes nothing about what was read before.
        let Filter { include, exclude, only_of, only, published: _ } = &self.filter;
        let mut only: Vec<String> = only.iter().map(|only| format!(" only {only}")).collect();
        only.sort_unstable();
        let only = only.concat();
        // If all sites are wanted, nothing is added, so that the text is the same as before this option existed.
        let origins = if only_of.is_some() { " origins same" } else { "" };
        // As with origins. Sets are lists of their own, each with its own progress.
        let prefix =
            self.oai.metadata_prefix.as_ref().map_or(String::new(), |prefix| format!(" prefix {prefix:?}"));
        let encoding = self.oai.encoding.map_or(String::new(), |encoding| format!(" encoding {encoding}"));
        let (include, exclude) = (text(include), text(exclude));
        let follow = self.follow.fingerprint();
        let pages = if self.landing_pages { " landing pages" } else { "" };
        format!(
            "include {include:?} exclude {exclude:?} strict {}{origins}{prefix}{encoding}{only}{follow}{pages}",
            self.strict
        )
    }
}
