//! OpenAPI schemas of values that come from a fixed list of names.

use model::{ProblemReason, Subject};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};

/// The states of a run.
pub const STATES: [&str; 7] =
    ["queued", "running", "interrupted", "paused", "finished", "failed", "cancelled"];

/// Schema of a string that is one of these names.
pub fn one_of(names: &[&str]) -> Schema {
    names_of(names).build().into()
}

/// The same as [`one_of`], as a builder for use within another schema.
pub fn names_of(names: &[&str]) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names.iter().copied()))
}

/// Schema of the state of a run.
pub fn state() -> Schema {
    one_of(&STATES)
}

/// Schema of the kind of subject of a problem.
pub(crate) fn kind() -> Schema {
    one_of(&Subject::KINDS)
}

fn reason_names() -> Vec<&'static str> {
    ProblemReason::ALL.iter().map(|reason| reason.as_str()).collect()
}

/// Schema of the reason of a problem.
pub(crate) fn reason() -> Schema {
    one_of(&reason_names())
}

/// Schema of a list of reasons.
pub(crate) fn reasons() -> Schema {
    ArrayBuilder::new().items(names_of(&reason_names())).build().into()
}

/// Schema of a list of kinds.
pub(crate) fn kinds() -> Schema {
    ArrayBuilder::new().items(names_of(&Subject::KINDS)).build().into()
}
