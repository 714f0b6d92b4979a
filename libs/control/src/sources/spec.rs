//! The spec of a Source.

use std::fmt;
use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};
use std::str::FromStr;

use model::{Absent, Message, Network, Origins, Prefer, Push, Robots, RunMode, SourceId};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::kept::Kept;
use crate::schedule::{PollInterval, Schedule};

/// The spec of a Source: its entry URL, and how and when to harvest it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSpec {
    /// The Source ID, derived from [`entry`](Self::entry).
    pub id: SourceId,
    /// The entry URL: a site, a Source Description, a Capability List, or a list itself.
    pub entry: Url,
    /// Whether the fleet harvests the Source. Disabling it does not stop its current run.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// When runs are due. Without a schedule, a run starts only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Whether and how closely schedulers follow the changes between runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuous: Option<PollInterval>,
    /// The mode of each scheduled run.
    #[serde(default)]
    pub mode: RunMode,
    /// Whether to prefer lists or dumps where a Source offers both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefer: Option<Prefer>,
    /// What happens to absent resources, which no Resource List names any more.
    #[serde(default)]
    pub absent: Absent,
    /// The most absent resources that one run may delete, in percent of the stored ones, 0 to 100.
    #[serde(default = "ten")]
    pub max_deletes_percent: u8,
    /// How many kept versions each resource has besides the current one. If left out, the number stays as before; at
    /// first it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_versions: Option<u32>,
    /// Harvest only resources whose URI matches this regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// Skip resources whose URI matches this regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<String>,
    /// The origins from which to accept resources.
    #[serde(default, skip_serializing_if = "Origins::is_any")]
    pub origins: Origins,
    /// Whether to reject documents that break the specification, instead of tolerating and counting the deviations.
    #[serde(default)]
    pub strict: bool,
    /// Whether to accept HTML where another media type was declared or stored before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept_html: bool,
    /// Requests open at one origin at the same time, for the whole fleet. If several Sources have work at one origin,
    /// the strictest limit applies.
    #[serde(default = "four")]
    pub concurrency: NonZeroU16,
    /// Requests per second to one origin, for the whole fleet. If several Sources have their entry URL at one origin,
    /// the strictest limit applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<NonZeroU32>,
    /// The most bytes of one resource. If left out, the configuration of the fetchers applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_body_bytes: Option<NonZeroU64>,
    /// How the harvest treats robots.txt.
    #[serde(default)]
    pub robots: Robots,
    /// Contact for the operator of the Source, for the `User-Agent`: a mail address or a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// The name of the credential to send. The services that send it find the secret in their configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<CredentialName>,
    /// Non-public networks that requests for this Source may reach, besides those in the fleet's configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_networks: Vec<Network>,
    /// Whether to subscribe to the notifications of the Source.
    #[serde(default, skip_serializing_if = "Push::is_auto")]
    pub push: Push,
    /// Pages with inboxes for Linked Data Notifications. The fleet notifies them when a run has changed stored
    /// resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<Url>,
    /// The inbox to poll for notifications about the Source: an inbox of others (W3C Linked Data Notifications), or a
    /// page that advertises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox: Option<Url>,
}

/// The name of a credential: 1 to 64 of `a-z`, `0-9`, `-`, `_` and `.`. Never the credential itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CredentialName(String);

/// Why a text is no credential name. The message does not repeat the text, which may be a misplaced secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "that is no name of a credential: 1 to 64 of a-z, 0-9, -, _ and . name one that stands in the configuration; the \
     secret itself does not belong here"
)]
pub struct CredentialNameError;

impl SourceSpec {
    /// A Source with default settings, which runs only on request.
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
            keep_versions: None,
            include: None,
            exclude: None,
            origins: Origins::default(),
            strict: false,
            accept_html: false,
            concurrency: four(),
            requests_per_second: None,
            max_body_bytes: None,
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

    fn describe(id: &SourceId) -> String {
        format!("source {id}")
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
