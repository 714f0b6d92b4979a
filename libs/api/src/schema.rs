//! How values are described that are one of some names.

use model::{ProblemReason, Subject};
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, Type};

/// The states of a run.
pub const STATES: [&str; 7] =
    ["queued", "running", "interrupted", "paused", "finished", "failed", "cancelled"];

/// One of these names.
pub fn one_of(names: &[&str]) -> Schema {
    names_of(names).build().into()
}

/// The same, to be a part of something.
pub fn names_of(names: &[&str]) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names.iter().copied()))
}

/// A state of a run.
pub fn state() -> Schema {
    one_of(&STATES)
}

/// What kind of thing a problem is about.
pub(crate) fn kind() -> Schema {
    one_of(&Subject::KINDS)
}

/// Why something is a problem.
pub(crate) fn reason() -> Schema {
    one_of(&ProblemReason::ALL.map(ProblemReason::as_str))
}

/// Several reasons.
pub(crate) fn reasons() -> Schema {
    ArrayBuilder::new().items(names_of(&ProblemReason::ALL.map(ProblemReason::as_str))).build().into()
}

/// Several kinds of things.
pub(crate) fn kinds() -> Schema {
    ArrayBuilder::new().items(names_of(&Subject::KINDS)).build().into()
}
