//! Reads one page of a list.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use model::{OaiReadingKind, OaiWindow, ProblemReason};
use oaipmh::{Item, Quirk, Step, Token, Verb};
use planning::oai::{List, PageEnd, PageRead};

use crate::error::HarvestError;
use crate::oai::answer::{AnswerStream, Trouble, again};
use crate::oai::list::Reading;
use crate::oai::{names, records};
use crate::planner::Planner;
use crate::run::RunContext;
use crate::settler::Settler;

/// Reads a page. Its records are settled as they come, so a page that breaks off has brought those before the break.
/// Returns what follows from it.
pub(super) async fn read_page(
    ctx: &mut RunContext,
    planner: &mut Planner,
    settler: &mut Settler,
    reading: &mut Reading,
    window: &OaiWindow,
    token: Option<String>,
) -> Result<Result<PageEnd, Trouble>, HarvestError> {
    let is_sweep = reading.kind == OaiReadingKind::Identifiers;
    let verb = if is_sweep { Verb::ListIdentifiers } else { Verb::ListRecords };
    let token = token.as_deref().and_then(Token::new);
    let request = reading.request(verb, window, token.clone());
    let url = request.url(&reading.base);
    let mut stream = match AnswerStream::open(ctx, &url, window.halvings == 0).await {
        Ok(stream) => stream,
        Err(trouble) => return Ok(Err(trouble)),
    };
    let mut seen = Seen::default();
    loop {
        let items = match stream.next().await {
            Ok(items) => items,
            Err(trouble) => return Ok(Err(trouble)),
        };
        if let Err(trouble) = stream.refusal(&request) {
            return Ok(Err(trouble));
        }
        if items.is_empty() {
            break;
        }
        ctx.check_stop()?;
        seen.add(&items);
        if is_sweep {
            names::plan(ctx, planner, reading, items).await?;
        } else {
            records::take(ctx, planner, settler, reading, items).await?;
        }
    }
    let answer = stream.answer();
    for (quirk, times) in answer.quirks.iter() {
        *reading.quirks.entry(quirk.as_str().to_owned()).or_default() += times;
    }
    if !answer.complete {
        return Ok(Err(Trouble::Server("the answer ends before its root element does".to_owned())));
    }
    match reading.trail.step(token.as_ref(), answer) {
        Step::Loop => {
            reading.quirk(Quirk::TokenLoop);
            let why = "its token leads to a page that was read before, so the list has no end".to_owned();
            return Ok(Err(Trouble::Token(why)));
        }
        Step::UnchangedToken => reading.quirk(Quirk::UnchangedToken),
        // Empty pages are counted with the progress.
        Step::Next | Step::TooManyEmptyPages => {}
    }
    let resumption = answer.resumption.as_ref();
    let read = PageRead {
        records: seen.records,
        token: resumption
            .and_then(|resumption| resumption.token.as_ref())
            .map(|token| token.as_str().to_owned()),
        complete: resumption.and_then(|resumption| resumption.complete_list_size),
        response_date: answer.response_date.as_ref().map(|date| date.instant()),
    };
    if let Some(failure) = beyond(ctx, reading) {
        return Ok(Err(Trouble::Hold(Box::new(failure))));
    }
    let span = reading.span(ctx);
    let now = ctx.clock.now();
    Ok(Ok(List::of(&mut reading.list.progress, span).page(read, now)))
}

/// The failure of a list with more records than a run reads.
fn beyond(ctx: &RunContext, reading: &Reading) -> Option<model::Failure> {
    let read = reading.list.progress.reading.as_ref().map_or(0, |reading| reading.records);
    let limit = ctx.options.limits.entries;
    (read > limit).then(|| {
        again(ProblemReason::LimitEntries, format!("it has more records than --max-entries {limit}"))
    })
}

/// The identifiers of a page, to count each once.
#[derive(Default)]
struct Seen {
    hashes: HashSet<u64>,
    state: RandomState,
    records: u64,
}

impl Seen {
    fn add(&mut self, items: &[Item]) {
        for item in items {
            let header = match item {
                Item::Record(record) => Some(&record.header),
                Item::Header(header) => Some(&**header),
                Item::Bad(bad) => bad.header.as_ref(),
                Item::Set(_) | Item::Format(_) => continue,
            };
            let is_new =
                header.is_none_or(|header| self.hashes.insert(self.state.hash_one(&header.identifier)));
            self.records += u64::from(is_new);
        }
    }
}
