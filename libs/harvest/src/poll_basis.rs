//! What a poll compares, taken from a finished run and its catalog.

use std::collections::HashSet;

use catalog::Catalog;
use model::{PollBasis, PollDocument};
use planning::{NoPoll, POLL_DOCUMENTS, RunEnd};

use crate::error::HarvestError;
use crate::run::{RunContext, document_queue};

/// The basis of a poll that may replace the next run; none if that run has to come. `unsettled` counts problems
/// and reports of the deletion guard. `redirected` are documents that another URL answered for.
pub(crate) async fn poll_basis(
    ctx: &RunContext,
    catalog: &Catalog,
    unsettled: u64,
    redirected: &HashSet<String>,
) -> Result<Option<PollBasis>, HarvestError> {
    let discovery = catalog.discovery().await?;
    let end = RunEnd {
        run: &ctx.run,
        entry: ctx.entry.as_str(),
        options: &ctx.options,
        discovery: discovery.as_ref(),
        sets: &ctx.sets,
        unsettled,
        now: ctx.clock.now(),
    };
    let found = match end.next_run() {
        Ok(next) => documents(catalog, &end, next.documents, redirected)
            .await?
            .map(|documents| PollBasis { documents, valid_until: next.until }),
        Err(why) => Err(why),
    };
    if let Err(why) = &found {
        tracing::debug!(?why, "the next look at the Source is a run");
    }
    Ok(found.ok())
}

/// The documents that the next run requests: `first`, and those that unchanged indexes among them lead to.
async fn documents(
    catalog: &Catalog,
    end: &RunEnd<'_>,
    first: Vec<String>,
    redirected: &HashSet<String>,
) -> Result<Result<Vec<PollDocument>, NoPoll>, HarvestError> {
    let mut found: Vec<PollDocument> = Vec::new();
    let mut left = first;
    while let Some(uri) = left.pop() {
        if found.iter().any(|known| known.uri == uri) {
            continue;
        }
        if found.len() == POLL_DOCUMENTS {
            return Ok(Err(NoPoll::TooMany));
        }
        if redirected.contains(&uri) {
            return Ok(Err(NoPoll::Redirected));
        }
        let Some(record) = catalog.document(&uri).await? else { return Ok(Err(NoPoll::NotRead)) };
        match end.document(&uri, &record) {
            Ok(document) => found.push(document),
            Err(why) => return Ok(Err(why)),
        }
        if record.leads_to_documents() {
            let parts = document_queue::children(catalog, &uri).await?;
            left.extend(
                parts.into_iter().filter(|(_, part)| end.is_requested_again(part)).map(|(uri, _)| uri),
            );
        }
    }
    Ok(Ok(found))
}

#[cfg(test)]
mod tests;
