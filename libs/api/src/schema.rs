//! OpenAPI schemas of values that come from a fixed list of names.

use model::{ProblemReason, Subject};
use utoipa::openapi::schema::{ArrayBuilder, Schema};

pub use control::schema::{names_of, one_of};

/// The states of a run.
pub const STATES: [&str; 8] =
    ["queued", "waiting", "running", "interrupted", "paused", "finished", "failed", "cancelled"];

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
