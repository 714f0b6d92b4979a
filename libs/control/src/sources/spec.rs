//! What is wanted of a Source.

use std::fmt;
use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};
use std::str::FromStr;

use model::{Message, Network, SourceId};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::schedule::{PollBounds, Schedule};
use crate::table::Kept;

/// What is wanted of a Source: where it is entered, how it is harvested, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSpec {
    /// Its name, which follows from [`entry`](Self::entry).
    pub id: SourceId,
    /// The way in: a site, a Source Description, a Capability List, or a list itself.
    pub entry: Url,
    /// Whether it is harvested. A run under way ends as it would.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// When it is due. Without, it is harvested when somebody asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Whether it is followed between runs, and how closely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuous: Option<PollBounds>,
    /// The way to go in each run.
    #[serde(default)]
    pub mode: RunMode,
    /// What to take where a Source offers both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefer: Option<Prefer>,
    /// What becomes of resources that a Resource List does not name any more.
    #[serde(default)]
    pub absent: Absent,
    /// The most resources deleted for their absence in one run, in percent of what is held, 0 to 100.
    #[serde(default = "ten")]
    pub max_deletes_percent: u8,
    /// How many versions of each resource are kept beside the one that is held; as before where it is left out, none at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<u32>,
    /// Only resources whose URI matches this regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// Not resources whose URI matches this regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<String>,
    /// Of which sites resources are taken.
    #[serde(default, skip_serializing_if = "Origins::is_any")]
    pub origins: Origins,
    /// Whether what breaks the specification is refused instead of tolerated and counted.
    #[serde(default)]
    pub strict: bool,
    /// Whether HTML is taken also where another media type was declared or held before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept_html: bool,
    /// Requests open at one of its origins at the same time, of the whole fleet. Of Sources with work at one origin, the
    /// strictest counts.
    #[serde(default = "four")]
    pub concurrency: NonZeroU16,
    /// Requests in a second to one of its origins, of the whole fleet. Of Sources entered at one origin, the strictest counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<NonZeroU32>,
    /// The most bytes of one of its resources that is taken; as the fetchers are configured where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_bytes: Option<NonZeroU64>,
    /// What is made of robots.txt.
    #[serde(default)]
    pub robots: Robots,
    /// Whom the Source's operator can turn to: a mail address or a URL, for the `User-Agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// The name of the credential to send, which is found in the configuration of whoever sends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<CredentialName>,
    /// Networks that are not public and may be reached for it, beside those that the fleet is configured to reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_networks: Vec<Network>,
    /// Whether its notifications are subscribed to.
    #[serde(default, skip_serializing_if = "Push::is_auto")]
    pub push: Push,
    /// Who is told when a run has changed what is held of it: pages that have inboxes for Linked Data Notifications.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<Url>,
    /// Where notifications about it are read: an inbox of others (W3C Linked Data Notifications), or a page that tells of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox: Option<Url>,
}

/// Whether a Source's notifications are subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Push {
    /// Where it offers them, and the fleet can be reached by hubs. Only what is signed is taken, and no secret is sent over plain HTTP.
    #[default]
    Auto,
    /// The same, also by a hub over plain HTTP, which is sent no secret. What comes unsigned is a hint that the Source is worth a look, and
    /// nothing more.
    Unsigned,
    /// Never.
    Off,
}

impl Push {
    /// Whether it is left to what is offered.
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// Of which sites resources are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origins {
    /// All that its documents and dumps name: aggregators list files of others.
    #[default]
    Any,
    /// Those of the registrable domain of its entry.
    Same,
}

impl Origins {
    /// Whether all are taken.
    pub fn is_any(&self) -> bool {
        *self == Self::Any
    }
}

/// How a run brings a Source in step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunMode {
    /// What is known of the Source decides.
    #[default]
    Auto,
    /// The whole Resource List (RS-30).
    Baseline,
    /// What changed since (RS-31).
    Incremental,
    /// What is held is compared with what the Source's documents say (RS-32). For single runs: a Source of which nothing but audits are
    /// wanted would never be brought in step.
    Audit,
}

impl RunMode {
    /// Whether a Source can be harvested this way, run after run.
    ///
    /// # Errors
    /// What to ask for instead.
    pub fn check(self) -> Result<(), &'static str> {
        match self {
            Self::Auto | Self::Baseline | Self::Incremental => Ok(()),
            Self::Audit => Err(
                "an audit brings nothing in step; ask for auto, baseline or incremental, and submit single runs as audits",
            ),
        }
    }
}

/// What to take where a Source offers both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prefer {
    /// Lists, and each resource by itself.
    List,
    /// Dumps.
    Dump,
}

/// What becomes of resources that a Resource List does not name any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Absent {
    /// They are deleted when a second list, of a later moment, does not name them either.
    #[default]
    Confirm,
    /// They are deleted at the first sighting.
    Delete,
    /// They are kept.
    Keep,
}

/// What is made of a Source's robots.txt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Robots {
    /// Nothing.
    Ignore,
    /// Its crawl-delay is kept: what a ResourceSync document lists is an invitation.
    #[default]
    Invited,
    /// Its crawl-delay is kept, and what it disallows is not asked for.
    Crawling,
}

/// The name of a credential: 1 to 64 of `a-z`, `0-9`, `-`, `_` and `.`. Never the credential itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CredentialName(String);

/// Why a text is no name of a credential. It does not repeat the text, which may be a secret in the wrong place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "that is no name of a credential: 1 to 64 of a-z, 0-9, -, _ and . name one that stands in the configuration; the \
     secret itself does not belong here"
)]
pub struct CredentialNameError;

impl SourceSpec {
    /// A Source that is harvested when somebody asks for it, with nothing special wanted.
    pub fn new(entry: Url) -> Self {
        Self {
            id: SourceId::of_entry(&entry),
            entry,
            enabled: yes(),
            schedule: None,
            continuous: None,
            mode: RunMode::default(),
            prefer: None,
            absent: Absent::default(),
            max_deletes_percent: ten(),
            history: None,
            include: None,
            exclude: None,
            origins: Origins::default(),
            strict: false,
            accept_html: false,
            concurrency: four(),
            requests_per_second: None,
            largest_bytes: None,
            robots: Robots::default(),
            contact: None,
            credential: None,
            allow_networks: Vec::new(),
            push: Push::default(),
            notify: Vec::new(),
            inbox: None,
        }
    }
}

impl Message for SourceSpec {
    const KIND: &'static str = "source-spec";
    const VERSION: u16 = 1;
}

impl Kept for SourceSpec {
    type Id = SourceId;

    fn key(id: &SourceId) -> String {
        id.to_string()
    }
}

fn yes() -> bool {
    true
}

fn ten() -> u8 {
    10
}

fn four() -> NonZeroU16 {
    const { NonZeroU16::new(4).unwrap() }
}

impl CredentialName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for CredentialName {
    type Error = CredentialNameError;

    fn try_from(text: String) -> Result<Self, CredentialNameError> {
        let named = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.');
        if (1..=64).contains(&text.len()) && text.bytes().all(named) {
            Ok(Self(text))
        } else {
            Err(CredentialNameError)
        }
    }
}

impl FromStr for CredentialName {
    type Err = CredentialNameError;

    fn from_str(text: &str) -> Result<Self, CredentialNameError> {
        text.to_owned().try_into()
    }
}

impl From<CredentialName> for String {
    fn from(name: CredentialName) -> Self {
        name.0
    }
}

impl fmt::Display for CredentialName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
