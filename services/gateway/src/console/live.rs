//! One pass over the live views: each Source with its current or last run.

use std::sync::Arc;

use control::{LeaseTerm, Run, SourceSpec};

use crate::state::Gateway;
use crate::tokens::Caller;

/// Calls `each` with every Source that the caller sees (all without a caller), its run and the term of its lease, in
/// the order of the Source IDs. It sends no request and opens no catalog. `each` must not block.
pub(super) fn for_each_source(
    gateway: &Gateway,
    caller: Option<&Caller>,
    mut each: impl FnMut(&SourceSpec, Option<&Arc<Run>>, Option<&LeaseTerm>),
) {
    let views = &gateway.views;
    views.sources.for_each(|spec| {
        if caller.is_some_and(|caller| !caller.sees(spec)) {
            return;
        }
        let run = views.runs.get(&spec.id);
        let term = views.leases.get(&spec.id).map(|lease| lease.term());
        each(spec, run.as_ref().map(|run| &run.value), term.as_ref());
    });
}
