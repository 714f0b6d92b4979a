//! Lists of an OAI-PMH repository (docs/adr/0060): how they are read, and how their records become entries. Past the
//! entries, they are like those of a package.
//!
//! One list is one document of the run. Its pages are requested one after the other, since each names the next one; a
//! list of many pages is split into windows, which are read at the same time (docs/adr/0066). A record's metadata is
//! stored as the page brings it, without a request of its own. Records that a page cannot bring are pending, and asked
//! for one by one at the end of planning.

mod answer;
mod bounds;
mod came;
mod chains;
mod content;
mod end;
mod failures;
mod guard;
mod headers;
mod list;
mod membership;
mod mend;
mod names;
mod page;
mod reading;
mod records;
mod same_form;
mod sample;
mod signs;
mod split;
mod tokens;

use model::SetId;

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::{RunContext, document_queue};
use crate::settler::Settler;

pub(crate) use guard::guard_deletions;
pub(crate) use headers::Headers;
pub(crate) use mend::{Given, give, mend};
pub(crate) use names::entry;
pub(crate) use records::entry_context;
pub(crate) use same_form::is_same;

/// Records per batch.
const BATCH: usize = 500;

/// Whether a set is a list of an OAI-PMH repository.
fn is_list(ctx: &RunContext, set: &SetId) -> bool {
    ctx.sets.get(set).is_some_and(|set| set.oai.is_some())
}

/// Reads the queued lists of this run.
pub(crate) async fn read_lists(
    ctx: &mut RunContext,
    planner: &mut Planner,
    settler: &mut Settler,
) -> Result<(), HarvestError> {
    if ctx.sets.values().all(|set| set.oai.is_none()) {
        return Ok(());
    }
    loop {
        let queued = document_queue::next_documents(&*ctx.catalog().await?, ctx.run.id, |_| false).await?;
        let Some((uri, record)) = queued.into_iter().find(|(_, record)| is_list(ctx, &record.set)) else {
            return Ok(());
        };
        ctx.check_stop()?;
        ctx.progress.show_document(&uri);
        Box::pin(list::read_list(ctx, planner, settler, &uri, record)).await?;
    }
}
