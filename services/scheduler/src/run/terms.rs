//! The terms of a Source's requests in this fleet.

use std::sync::Arc;

use control::SourceSpec;
use planning::HarvestOptions;
use web::{Client, Terms};

use crate::context::SchedulerContext;
use crate::origin_permits::CappedPermits;

/// The same terms, with the rate of the strictest Source at this origin and the fleet's limits, and within this
/// scheduler's limits.
pub(crate) fn with_neighbours(
    context: &SchedulerContext,
    source: &SourceSpec,
    mut options: HarvestOptions,
) -> HarvestOptions {
    options.window.origins = context.settings.max_open_origins;
    options.limits = context.settings.limits;
    options.terms.requests_per_second = context.rates.of(source);
    options
}

/// The client for a Source's documents: each request takes a permit of its origin in the whole fleet.
pub(crate) fn client(context: &SchedulerContext, options: &HarvestOptions) -> anyhow::Result<Client> {
    let places = CappedPermits { places: Arc::clone(&context.permits), limit: options.jobs_per_origin };
    let terms = context.credentials.terms(&options.terms)?;
    Ok(context.client.on(Terms { places: Some(Arc::new(places)), ..terms })?)
}
