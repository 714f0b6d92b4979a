//! Options of a Source's spec. The command line, the API and the control store share these types.

use serde::{Deserialize, Serialize};

use crate::TextEncoding;

/// The mode of a requested run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum RunMode {
    /// A baseline first, then changes.
    #[default]
    Auto,
    /// The full Resource List or Resource Dump.
    Baseline,
    /// Only changes.
    Incremental,
    /// Compare the copy with the lists; fetch nothing.
    Audit,
}

/// Lists or dumps, if a Source offers both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Prefer {
    /// Resource Lists and Change Lists: one request per resource.
    List,
    /// Resource Dumps and Change Dumps: one request per package.
    Dump,
}

/// What to do with stored resources that the Source no longer lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Absent {
    /// Delete when two lists of different times omit them.
    #[default]
    Confirm,
    /// Delete when one list omits them.
    Delete,
    /// Keep them.
    Keep,
}

/// Which sites resources may be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Origins {
    /// All sites that lists and dumps name.
    #[default]
    Any,
    /// The registrable domain of the Source's URL.
    Same,
}

/// When to fetch a resource from the mirrors that its entry links to (`duplicate`). Only where a digest is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Mirrors {
    /// Never.
    Off,
    /// When the resource's own URI fails: no answer, a server error, a bot defence, a long pause, or other bytes.
    #[default]
    Fallback,
    /// First. The resource's own URI comes last.
    Prefer,
    /// In turns with the resource's own URI, among the mirrors of the first priority.
    Spread,
}

/// Whether to make a new version from the stored one and a patch that the change links to. Only where a digest of the
/// new version is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Patches {
    /// Where the result can be judged by its digest. In any doubt the resource itself is requested.
    #[default]
    Verified,
    /// Never.
    Off,
}

/// How robots.txt is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Robots {
    /// Obey Disallow and Crawl-delay for every URL.
    Obey,
    /// Obey Crawl-delay. Obey Disallow only for followed links and other sites, not for what the Source publishes.
    #[default]
    LinksOnly,
    /// Do not request it.
    Ignore,
}

/// Whether to subscribe to Change Notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Push {
    /// If the Source offers them and hubs can reach the fleet. Deliveries need a signature; no secret goes to plain HTTP.
    #[default]
    Auto,
    /// As auto, and also with a hub over plain HTTP, which gets no secret. An unsigned delivery only starts a run.
    Unsigned,
    /// Never.
    Off,
}

/// Whether the publisher of a fleet publishes what is stored of a Source, and who may read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Publish {
    /// It is not published.
    #[default]
    Off,
    /// Each reader may read it.
    Public,
    /// Readers need a token of the publisher's file.
    Tokens,
    /// Readers are in one of the networks of the Source's publication.
    Networks,
}

/// What to harvest of an OAI-PMH repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct OaiOptions {
    /// The `metadataPrefix`; none = the richest format that is known, else `oai_dc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_prefix: Option<String>,
    /// The `setSpec`s; none = all records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
    /// The encoding of what is not UTF-8; none = a record with such bytes is a problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<TextEncoding>,
}

impl OaiOptions {
    /// Whether no list is chosen.
    pub fn is_empty(&self) -> bool {
        self.metadata_prefix.is_none() && self.sets.is_empty()
    }
}

impl RunMode {
    /// Checks that this can be the mode of a Source, for all its runs.
    ///
    /// # Errors
    /// What to choose instead.
    pub fn check(self) -> Result<(), &'static str> {
        match self {
            Self::Auto | Self::Baseline | Self::Incremental => Ok(()),
            Self::Audit => Err(
                "an audit does not sync; use auto, baseline or incremental, and submit audits as single runs",
            ),
        }
    }
}

impl Push {
    /// Whether this is the default.
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

impl Mirrors {
    /// Whether this is the default.
    pub fn is_fallback(&self) -> bool {
        *self == Self::Fallback
    }
}

impl Patches {
    /// Whether this is the default.
    pub fn is_verified(&self) -> bool {
        *self == Self::Verified
    }
}

impl Publish {
    /// Whether this is the default.
    pub fn is_off(&self) -> bool {
        *self == Self::Off
    }
}

impl Origins {
    /// Whether this is the default.
    pub fn is_any(&self) -> bool {
        *self == Self::Any
    }
}
