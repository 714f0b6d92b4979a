//! The spec of a Source, as the API represents it.

use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};

use control::{CredentialName, PollInterval, Schedule, SourceSpec};
use model::{Absent, Network, Origins, Prefer, Push, Robots, RunMode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;
use utoipa::ToSchema;
use utoipa::openapi::schema::{
    AdditionalProperties, KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type,
};

use crate::schema::one_of;

/// The spec of a Source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SourceSpec)]
pub struct Spec {
    /// The entry URL: a site, a Source Description, a Capability List, or a list itself. The Source ID is derived from
    /// it.
    #[schema(value_type = String, format = "uri", example = "https://example.org/")]
    pub entry: Url,
    /// Whether the fleet harvests the Source.
    #[serde(default = "yes")]
    #[schema(default = true)]
    pub enabled: bool,
    /// When runs are due. Without a schedule, a run starts only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schedule)]
    pub schedule: Option<Schedule>,
    /// Whether and how closely schedulers follow the changes between runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Follow, required = false)]
    pub follow: Option<Follow>,
    /// The mode of each scheduled run.
    #[serde(default)]
    #[schema(schema_with = mode)]
    pub mode: RunMode,
    /// Whether to prefer lists or dumps where a Source offers both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = prefer)]
    pub prefer: Option<Prefer>,
    /// What happens to absent resources, which no Resource List names any more.
    #[serde(default)]
    #[schema(schema_with = absent)]
    pub absent: Absent,
    /// The most absent resources that one run may delete, in percent of the stored ones.
    #[serde(default = "ten")]
    #[schema(maximum = 100, default = 10)]
    pub max_deletes_percent: u8,
    /// How many kept versions each resource has besides the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_versions: Option<u32>,
    /// Harvest only resources whose URI matches this regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// Skip resources whose URI matches this regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude: Option<String>,
    /// From which origins to accept resources: any, or the registrable domain of the entry URL only.
    #[serde(default, skip_serializing_if = "Origins::is_any")]
    #[schema(schema_with = origins)]
    pub origins: Origins,
    /// Whether to reject documents that break the specification, instead of tolerating and counting the deviations.
    #[serde(default)]
    pub strict: bool,
    /// Whether to accept HTML where another media type was declared or stored before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub accept_html: bool,
    /// Requests open at one origin at the same time, for the whole fleet.
    #[serde(default = "four")]
    #[schema(value_type = u16, minimum = 1, default = 4)]
    pub concurrency: NonZeroU16,
    /// Requests per second to one origin, for the whole fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32, minimum = 1, required = false)]
    pub requests_per_second: Option<NonZeroU32>,
    /// The most bytes of one resource. Where it is left out, the configuration of the fetchers applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64, minimum = 1, required = false)]
    pub max_body_bytes: Option<NonZeroU64>,
    /// How the harvest treats robots.txt.
    #[serde(default)]
    #[schema(schema_with = robots)]
    pub robots: Robots,
    /// Contact for the operator of the Source: a mail address or a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// The name of the credential to send. The services that send it find the secret in their configuration; the spec
    /// never contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub credential: Option<CredentialName>,
    /// Non-public networks that requests for this Source may reach, besides those in the fleet's configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, required = false, max_items = 64, example = json!(["10.1.0.0/16"]))]
    pub allow_networks: Vec<Network>,
    /// Whether to subscribe to the notifications of the Source.
    #[serde(default, skip_serializing_if = "Push::is_auto")]
    #[schema(schema_with = push)]
    pub push: Push,
    /// Pages with inboxes for Linked Data Notifications. The fleet notifies them when a run has changed stored
    /// resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, required = false, max_items = 16)]
    pub notify: Vec<Url>,
    /// The inbox to poll for notifications about the Source: an inbox of others (W3C Linked Data Notifications), or a
    /// page that advertises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = "uri", required = false)]
    pub inbox: Option<Url>,
}

/// The bounds of the pause between two polls of a followed Source. Polls are frequent while the Source changes often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Follow {
    /// The shortest pause, in seconds.
    #[schema(minimum = 1)]
    pub min_seconds: u64,
    /// The longest pause, in seconds, at most a day.
    #[schema(minimum = 1, maximum = 86400)]
    pub max_seconds: u64,
}

impl From<Follow> for PollInterval {
    fn from(follow: Follow) -> Self {
        Self { least_seconds: follow.min_seconds, most_seconds: follow.max_seconds }
    }
}

impl From<PollInterval> for Follow {
    fn from(bounds: PollInterval) -> Self {
        Self { min_seconds: bounds.least_seconds, max_seconds: bounds.most_seconds }
    }
}

impl From<Spec> for SourceSpec {
    fn from(given: Spec) -> Self {
        Self {
            enabled: given.enabled,
            schedule: given.schedule,
            continuous: given.follow.map(PollInterval::from),
            mode: given.mode,
            prefer: given.prefer,
            absent: given.absent,
            max_deletes_percent: given.max_deletes_percent,
            keep_versions: given.keep_versions,
            include: given.include,
            exclude: given.exclude,
            origins: given.origins,
            strict: given.strict,
            accept_html: given.accept_html,
            concurrency: given.concurrency,
            requests_per_second: given.requests_per_second,
            max_body_bytes: given.max_body_bytes,
            robots: given.robots,
            contact: given.contact,
            credential: given.credential,
            allow_networks: given.allow_networks,
            push: given.push,
            notify: given.notify,
            inbox: given.inbox,
            ..Self::new(given.entry)
        }
    }
}

impl From<&SourceSpec> for Spec {
    fn from(spec: &SourceSpec) -> Self {
        let spec = spec.clone();
        Self {
            entry: spec.entry,
            enabled: spec.enabled,
            schedule: spec.schedule,
            follow: spec.continuous.map(Follow::from),
            mode: spec.mode,
            prefer: spec.prefer,
            absent: spec.absent,
            max_deletes_percent: spec.max_deletes_percent,
            keep_versions: spec.keep_versions,
            include: spec.include,
            exclude: spec.exclude,
            origins: spec.origins,
            strict: spec.strict,
            accept_html: spec.accept_html,
            concurrency: spec.concurrency,
            requests_per_second: spec.requests_per_second,
            max_body_bytes: spec.max_body_bytes,
            robots: spec.robots,
            contact: spec.contact,
            credential: spec.credential,
            allow_networks: spec.allow_networks,
            push: spec.push,
            notify: spec.notify,
            inbox: spec.inbox,
        }
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

fn seconds(least: u64) -> ObjectBuilder {
    let number = ObjectBuilder::new().schema_type(Type::Integer);
    number.format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64))).minimum(Some(least))
}

fn schedule() -> Schema {
    let closed =
        || ObjectBuilder::new().additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
    let every = closed().property("every_seconds", seconds(10)).required("every_seconds");
    let cron = closed().property("cron", ObjectBuilder::new().schema_type(Type::String)).required("cron");
    let cron = cron.description(Some("Minute, hour, day of month, month, day of week; in UTC."));
    let times = OneOfBuilder::new().item(every).item(cron);
    let schedule = ObjectBuilder::new().property("times", times).required("times");
    schedule
        .property("jitter_seconds", seconds(0))
        .examples([json!({"times": {"every_seconds": 3600}})])
        .build()
        .into()
}

fn mode() -> Schema {
    one_of(&["auto", "baseline", "incremental"])
}

fn prefer() -> Schema {
    one_of(&["list", "dump"])
}

fn absent() -> Schema {
    one_of(&["confirm", "delete", "keep"])
}

fn origins() -> Schema {
    one_of(&["any", "same"])
}

fn push() -> Schema {
    one_of(&["auto", "unsigned", "off"])
}

fn robots() -> Schema {
    one_of(&["obey", "links-only", "ignore"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_what_a_plain_source_has() {
        let given: Spec = serde_json::from_value(json!({"entry": "https://example.org/"})).unwrap();
        let spec = SourceSpec::new("https://example.org/".parse().unwrap());
        assert_eq!(SourceSpec::from(given.clone()), spec);
        assert_eq!(Spec::from(&spec), given);
    }

    #[test]
    fn every_field_goes_there_and_back_again() {
        let all = json!({
            "entry": "https://example.org/", "enabled": false, "schedule": {"times": {"cron": "0 3 * * *"}, "jitter_seconds": 60},
            "follow": {"min_seconds": 5, "max_seconds": 60}, "mode": "baseline", "prefer": "dump", "absent": "keep",
            "max_deletes_percent": 3, "keep_versions": 2, "include": "a", "exclude": "b", "origins": "same", "strict": true, "accept_html": true, "concurrency": 7,
            "requests_per_second": 9, "robots": "obey", "contact": "mailto:a@example.org", "credential": "one",
            "allow_networks": ["10.1.0.0/16", "fd00:1::7/128"],
            "push": "off", "max_body_bytes": 1_048_576, "notify": ["https://index.example.com/"],
            "inbox": "https://registry.example.com/inbox/",
        });
        let given: Spec = serde_json::from_value(all.clone()).unwrap();
        let spec = SourceSpec::from(given);
        assert_eq!(serde_json::to_value(Spec::from(&spec)).unwrap(), all);
        // The mapping must not drop any field of a Source.
        let mut kept = serde_json::to_value(&spec).unwrap();
        let fields = kept.as_object_mut().unwrap();
        fields.remove("id");
        let bounds = fields.remove("continuous").unwrap();
        let follow = json!({"min_seconds": bounds["least_seconds"], "max_seconds": bounds["most_seconds"]});
        fields.insert("follow".to_owned(), follow);
        assert_eq!(kept, all);
    }

    #[test]
    fn the_names_in_the_description_are_those_that_are_understood() {
        for (field, schema) in [
            ("mode", mode()),
            ("prefer", prefer()),
            ("absent", absent()),
            ("origins", origins()),
            ("robots", robots()),
            ("push", push()),
        ] {
            let names = serde_json::to_value(schema).unwrap();
            for name in names["enum"].as_array().unwrap() {
                let body = json!({"entry": "https://example.org/", field: name});
                assert!(serde_json::from_value::<Spec>(body).is_ok(), "{field}: {name}");
            }
        }
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let body = json!({"entry": "https://example.org/", "shedule": {}});
        assert!(serde_json::from_value::<Spec>(body).unwrap_err().to_string().contains("shedule"));
    }
}
