//! Splits a list with many pages into windows that are read at the same time. The first page of each window's
//! identifiers tells its size.

use model::OaiWindow;
use oaipmh::{Item, Verb};
use planning::oai::{List, most_open};

use crate::error::HarvestError;
use crate::oai::answer::{AnswerStream, Trouble};
use crate::oai::reading::Reading;
use crate::run::RunContext;

/// Splits a window of which the first page came, if it is worth it.
pub(super) async fn split(
    ctx: &mut RunContext,
    reading: &mut Reading,
    window: &OaiWindow,
) -> Result<(), HarvestError> {
    let most = most_open(ctx.options.jobs_per_origin.get());
    let span = reading.span(ctx);
    let Some(mut split) = List::of(&mut reading.list.progress, span).split(window, most) else {
        return Ok(());
    };
    while let Some(halves) = split.halve() {
        ctx.check_stop()?;
        let sizes = measured(ctx, reading, &halves).await;
        if let Err(trouble) = &sizes {
            tracing::debug!(document.uri = reading.uri, ?trouble, "a window cannot be measured");
        }
        split.measured(halves, sizes.ok().flatten());
    }
    let windows = split.windows();
    let number = windows.as_ref().map_or(1, Vec::len);
    tracing::info!(document.uri = reading.uri, windows = number, at_a_time = most, "a list of many pages");
    List::of(&mut reading.list.progress, span).replace(window, windows, most);
    Ok(())
}

/// The sizes of two windows, if the repository tells them.
async fn measured(
    ctx: &mut RunContext,
    reading: &Reading,
    halves: &[OaiWindow; 2],
) -> Result<Option<[u64; 2]>, Trouble> {
    let [older, newer] = halves;
    let Some(older) = size(ctx, reading, older).await? else { return Ok(None) };
    Ok(size(ctx, reading, newer).await?.map(|newer| [older, newer]))
}

/// The number of records of a window. It is asked for once: a list can be read without it.
async fn size(ctx: &mut RunContext, reading: &Reading, window: &OaiWindow) -> Result<Option<u64>, Trouble> {
    let request = reading.request(Verb::ListIdentifiers, window, None);
    let mut stream = AnswerStream::of(ctx, &request.url(&reading.base), false).await?;
    let mut on_page = 0;
    loop {
        let items = stream.next().await?;
        stream.refusal(&request)?;
        if items.is_empty() {
            break;
        }
        on_page += items.iter().filter(|item| matches!(item, Item::Header(_) | Item::Bad(_))).count() as u64;
    }
    let answer = stream.answer();
    if !answer.complete {
        return Ok(None);
    }
    Ok(match &answer.resumption {
        Some(resumption) if resumption.token.is_some() => resumption.complete_list_size,
        _ => Some(on_page),
    })
}
