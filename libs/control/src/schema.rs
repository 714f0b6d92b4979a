//! OpenAPI schemas of settings.

use serde_json::json;
use utoipa::openapi::schema::{
    AdditionalProperties, KnownFormat, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type,
};

/// Schema of a string that is one of these names.
pub fn one_of(names: &[&str]) -> Schema {
    names_of(names).build().into()
}

/// The same as [`one_of`], as a builder for use within another schema.
pub fn names_of(names: &[&str]) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names.iter().copied()))
}

fn seconds(least: u64) -> ObjectBuilder {
    let number = ObjectBuilder::new().schema_type(Type::Integer);
    number.format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64))).minimum(Some(least))
}

pub(crate) fn schedule() -> Schema {
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

pub(crate) fn mode() -> Schema {
    one_of(&["auto", "baseline", "incremental"])
}

pub(crate) fn prefer() -> Schema {
    one_of(&["list", "dump"])
}

pub(crate) fn absent() -> Schema {
    one_of(&["confirm", "delete", "keep"])
}

pub(crate) fn origins() -> Schema {
    one_of(&["any", "same"])
}

pub(crate) fn mirrors() -> Schema {
    one_of(&["off", "fallback", "prefer", "spread"])
}

pub(crate) fn patches() -> Schema {
    one_of(&["verified", "off"])
}

pub(crate) fn publish() -> Schema {
    one_of(&["off", "public", "tokens", "networks"])
}

pub(crate) fn push() -> Schema {
    one_of(&["auto", "unsigned", "off"])
}

pub(crate) fn robots() -> Schema {
    one_of(&["obey", "links-only", "ignore"])
}
