//! The spec of a Source, and a Source as it is stored.

use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};
use std::ops::{Deref, DerefMut};
use std::str::FromStr;

use model::{
    Absent, Archive, FollowRule, FollowedRelation, MediaRange, Message, Mirrors, Network, Only, Origins,
    Patches, Persisted, Prefer, Publish, Push, Robots, RunMode, SetRule, SourceId, TextEncoding,
};
use serde::{Deserialize, Serialize};
use url::Url;

use super::label::{LabelKey, LabelValue};
use super::name::SourceName;
use crate::kept::Kept;
use crate::schedule::{PollInterval, Schedule};
#[cfg(feature = "openapi")]
use crate::schema;

/// The spec of a Source: its entry URL, and how and when to harvest it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SourceSpec))]
pub struct Spec {
    /// The entry URL: a site, a Source Description, a Capability List, or a list itself. The Source ID is derived from
    /// it.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uri", example = "https://example.org/"))]
    pub entry: Url,
    /// The name that people use for the Source. No two Sources of a fleet have the same. It can change; the ID cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = false, max_length = 64, example = "zenodo"))]
    pub name: Option<SourceName>,
    /// The title that pages show: 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, max_length = 200))]
    pub title: Option<String>,
    /// Labels to select Sources by: at most 16, with keys and values by the rules of Kubernetes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, String>, required = false, example = json!({"country": "jp"})))]
    pub labels: BTreeMap<LabelKey, LabelValue>,
    /// Notes of the operators: at most 2,000 characters on one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, max_length = 2000))]
    pub notes: Option<String>,
    /// Whom to ask at the Source: 1 to 200 characters. No request contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, max_length = 200))]
    pub source_contact: Option<String>,
    /// Whether the fleet harvests the Source.
    #[serde(default = "yes")]
    #[cfg_attr(feature = "openapi", schema(default = true))]
    pub enabled: bool,
    /// When runs are due. Without a schedule, a run starts only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = schema::schedule))]
    pub schedule: Option<Schedule>,
    /// Whether and how closely schedulers follow the changes between runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = PollInterval, required = false))]
    pub follow: Option<PollInterval>,
    /// The mode of each scheduled run.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(schema_with = schema::mode))]
    pub mode: RunMode,
    /// Whether to prefer lists or dumps where a Source offers both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(schema_with = schema::prefer))]
    pub prefer: Option<Prefer>,
    /// What happens to absent resources, which no Resource List names any more.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(schema_with = schema::absent))]
    pub absent: Absent,
    /// The most absent resources that one run may delete, in percent of the stored ones.
    #[serde(default = "ten")]
    #[cfg_attr(feature = "openapi", schema(maximum = 100, default = 10))]
    pub max_deletes_percent: u8,
    /// How many kept versions each resource has besides the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_versions: Option<u32>,
    /// The `metadataPrefix` to harvest of an OAI-PMH repository; none = the richest format that is known, else `oai_dc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, max_length = 200, example = "oai_dc"))]
    pub metadata_prefix: Option<String>,
    /// The `setSpec`s to harvest of an OAI-PMH repository; none = all records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(required = false, max_items = 64))]
    pub sets: Vec<String>,
    /// The encoding of records of an OAI-PMH repository that say UTF-8 and are not, by its name in the Encoding
    /// Standard; none = such a record is a problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required = false, example = "windows-1252"))]
    pub encoding: Option<TextEncoding>,
    /// Whether to take the entries of plain sitemaps for landing pages: harvest what their typed links (Signposting)
    /// lead to, and not the pages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub landing_pages: bool,
    /// Harvest only resources whose URI matches this regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// Skip resources whose URI matches this regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<String>,
    /// From which origins to accept resources: any, or the registrable domain of the entry URL only.
    #[serde(default, skip_serializing_if = "Origins::is_any")]
    #[cfg_attr(feature = "openapi", schema(schema_with = schema::origins))]
    pub origins: Origins,
    /// When to fetch from the mirrors that an entry names, where it declares a digest: never, when the resource's own
    /// URI fails, before it, or in turns with it.
    #[serde(default, skip_serializing_if = "Mirrors::is_fallback")]
    #[cfg_attr(feature = "openapi", schema(schema_with = schema::mirrors))]
    pub mirrors: Mirrors,
    /// Whether to make a new version from the stored one and a patch that the change links to, where a digest of the new
    /// version is declared: `verified`, or `off`.
    #[serde(default, skip_serializing_if = "Patches::is_verified")]
    #[cfg_attr(feature = "openapi", schema(schema_with = schema::patches))]
    pub patches: Patches,
    /// Harvest only resources whose entries meet these conditions: `type=application/pdf`, `type=text/*`, a relation of
    /// their links (`describes`), or a relation and its target (`collection=https://example.org/c`). Conditions on the
    /// same relation, or on the type, are alternatives; others must all hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, required = false, max_items = 32))]
    pub only: Vec<Only>,
    /// Harvest also what links of these relations lead to, although no list names it: `item`, `describedby`,
    /// `alternate`, or a URI. `landing-page` is `item`, and asks for the landing page of each OAI-PMH record that names
    /// no file. It is deleted with the resource that has the link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, required = false, max_items = 32, example = json!(["item", "describedby"])))]
    pub follow_links: Vec<FollowedRelation>,
    /// Follow only links that declare one of these media types: `application/pdf`, `text/*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, required = false, max_items = 32, example = json!(["application/pdf"])))]
    pub follow_types: Vec<MediaRange>,
    /// The most links of one entry that are followed. Where it is left out: 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = u16, minimum = 1, required = false))]
    pub follow_max: Option<NonZeroU16>,
    /// Harvest also what links lead to, by rules with conditions and limits of their own:
    /// `rel=alternate,type=application/pdf,host=files.example.org,profile=https://example.org/p,max=5,instead`. All but
    /// the relation may be left out. With `instead`, the resource that has the link is not fetched. The first rule that
    /// selects a link counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, required = false, max_items = 32, example = json!(["rel=alternate,type=application/pdf,instead"])))]
    pub follow_rules: Vec<FollowRule>,
    /// Whether to reject documents that break the specification, instead of tolerating and counting the deviations.
    #[serde(default)]
    pub strict: bool,
    /// Whether to accept HTML where another media type was declared or stored before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub accept_html: bool,
    /// Requests open at one origin at the same time, for the whole fleet.
    #[serde(default = "four")]
    #[cfg_attr(feature = "openapi", schema(value_type = u16, minimum = 1, default = 4))]
    pub concurrency: NonZeroU16,
    /// Requests per second to one origin, for the whole fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = u32, minimum = 1, required = false))]
    pub requests_per_second: Option<NonZeroU32>,
    /// The most bytes of one resource. Where it is left out, the configuration of the fetchers applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = u64, minimum = 1, required = false))]
    pub max_body_bytes: Option<NonZeroU64>,
    /// How the harvest treats robots.txt.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(schema_with = schema::robots))]
    pub robots: Robots,
    /// Our own contact for the operator of the Source, sent with each request: a mail address or a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// The name of the credential to send. The services that send it find the secret in their configuration; the spec
    /// never contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = false))]
    pub credential: Option<CredentialName>,
    /// Non-public networks that requests for this Source may reach, besides those in the fleet's configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, required = false, max_items = 64, example = json!(["10.1.0.0/16"])))]
    pub allow_networks: Vec<Network>,
    /// Whether to subscribe to the notifications of the Source.
    #[serde(default, skip_serializing_if = "Push::is_auto")]
    #[cfg_attr(feature = "openapi", schema(schema_with = schema::push))]
    pub push: Push,
    /// Pages with inboxes for Linked Data Notifications. The fleet notifies them when a run has changed stored
    /// resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, required = false, max_items = 16))]
    pub notify: Vec<Url>,
    /// The inbox to poll for notifications about the Source: an inbox of others (W3C Linked Data Notifications), or a
    /// page that advertises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = "uri", required = false))]
    pub inbox: Option<Url>,
    /// Whether the publisher publishes what is stored of the Source, and who may read it: `off`, `public`, `tokens` (those
    /// with a token of the publisher's file), or `networks` (those in `publish_networks`).
    #[serde(default, skip_serializing_if = "Publish::is_off")]
    #[cfg_attr(feature = "openapi", schema(schema_with = schema::publish))]
    pub publish: Publish,
    /// The networks whose readers get the publication, where `publish` is `networks`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, required = false, max_items = 64, example = json!(["10.2.0.0/16"])))]
    pub publish_networks: Vec<Network>,
    /// How long lists of the past of the publication stay, in ResourceSync Archives: a time such as `1y`, or `all`, or
    /// `off`. Where it is left out, the configuration of the publisher applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = false, example = "1y"))]
    pub publish_archive: Option<Archive>,
    /// Sets by rule of the publication: a name and a regular expression that the URIs of its resources match. Each has
    /// lists of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>, required = false, max_items = 32, example = json!(["theses=/theses/"])))]
    pub publish_sets: Vec<SetRule>,
}

/// A Source: its ID and its spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct SourceSpec {
    /// The Source ID, derived from the entry URL.
    pub id: SourceId,
    /// The spec.
    pub spec: Spec,
}

/// A Source as it is stored. A later version may add fields, which this version skips. The bounds of the pause have
/// other names than in [`Spec`].
#[derive(Serialize, Deserialize)]
struct Stored {
    id: SourceId,
    #[serde(flatten)]
    spec: Spec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    continuous: Option<StoredInterval>,
}

#[derive(Serialize, Deserialize)]
struct StoredInterval {
    least_seconds: u64,
    most_seconds: u64,
}

impl From<SourceSpec> for Stored {
    fn from(source: SourceSpec) -> Self {
        let continuous = source.spec.follow.map(|interval| StoredInterval {
            least_seconds: interval.min_seconds,
            most_seconds: interval.max_seconds,
        });
        Self { id: source.id, spec: Spec { follow: None, ..source.spec }, continuous }
    }
}

impl From<Stored> for SourceSpec {
    fn from(stored: Stored) -> Self {
        let follow = stored.continuous.map(|interval| PollInterval {
            min_seconds: interval.least_seconds,
            max_seconds: interval.most_seconds,
        });
        Self { id: stored.id, spec: Spec { follow, ..stored.spec } }
    }
}

impl From<Spec> for SourceSpec {
    fn from(spec: Spec) -> Self {
        Self { id: SourceId::of_entry(&spec.entry), spec }
    }
}

impl Deref for SourceSpec {
    type Target = Spec;

    fn deref(&self) -> &Spec {
        &self.spec
    }
}

impl DerefMut for SourceSpec {
    fn deref_mut(&mut self) -> &mut Spec {
        &mut self.spec
    }
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

impl Spec {
    /// The default settings: a Source that runs only on request.
    pub fn new(entry: Url) -> Self {
        Self {
            entry,
            name: None,
            title: None,
            labels: BTreeMap::new(),
            notes: None,
            source_contact: None,
            enabled: yes(),
            schedule: None,
            follow: None,
            mode: RunMode::default(),
            prefer: None,
            absent: Absent::default(),
            max_deletes_percent: ten(),
            keep_versions: None,
            metadata_prefix: None,
            sets: Vec::new(),
            encoding: None,
            landing_pages: false,
            include: None,
            exclude: None,
            origins: Origins::default(),
            mirrors: Mirrors::default(),
            patches: Patches::default(),
            only: Vec::new(),
            follow_links: Vec::new(),
            follow_types: Vec::new(),
            follow_rules: Vec::new(),
            follow_max: None,
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
            publish: Publish::default(),
            publish_networks: Vec::new(),
            publish_archive: None,
            publish_sets: Vec::new(),
        }
    }
}

impl SourceSpec {
    /// A Source with default settings, which runs only on request.
    pub fn new(entry: Url) -> Self {
        Spec::new(entry).into()
    }
}

impl Message for SourceSpec {
    const KIND: &'static str = "source-spec";
    const VERSION: u16 = Persisted::SourceSpecs.version();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_source_may_have_fields_of_a_later_version() {
        let stored = r#"{"id": "example-org-8198d1bac40a", "entry": "https://example.org/", "new": 1}"#;
        let source: SourceSpec = serde_json::from_str(stored).unwrap();
        assert_eq!(source, SourceSpec::new("https://example.org/".parse().unwrap()));
        assert!(serde_json::from_str::<Spec>(r#"{"entry": "https://example.org/", "new": 1}"#).is_err());
    }
}
