//! Identifiers instead of records: to find records that are gone, and to get along with a window that no list of
//! records brings.

use std::sync::Arc;

use catalog::Batch;
use model::{Links, OaiWindow, ProblemReason, ResourceRecord, ResourceUri};
use oaipmh::{BaseUrl, Item, RecordHeader, Step, Token, Trail, Verb};
use planning::ByUri;
use planning::oai::{List, PageEnd};
use resourcesync::{Datetime, Entry, Link};

use crate::error::HarvestError;
use crate::oai::answer::{AnswerStream, Trouble};
use crate::oai::reading::Reading;
use crate::oai::records::{change, entry_context};
use crate::oai::{content, membership, sample};
use crate::planner::Planner;
use crate::run::RunContext;

/// Pages of identifiers of one unit of time.
const PAGES: u32 = 10_000;

/// Plans what identifiers of a sweep tell: records that are not held, or have another datestamp, are asked for one by
/// one, unless the list of changes brings them.
pub(super) async fn plan(
    ctx: &mut RunContext,
    planner: &mut Planner,
    reading: &mut Reading,
    items: Vec<Item>,
) -> Result<(), HarvestError> {
    plan_headers(ctx, planner, reading, items, true).await.map(drop)
}

/// Lists the identifiers of a window of one unit, and plans all its records. Returns what follows from it.
pub(super) async fn one_by_one(
    ctx: &mut RunContext,
    planner: &mut Planner,
    reading: &mut Reading,
    window: &OaiWindow,
) -> Result<Result<PageEnd, Trouble>, HarvestError> {
    let mut trail = Trail::default();
    let mut token: Option<Token> = None;
    let (mut delivered, mut listed) = (0, None);
    for _ in 0..PAGES {
        ctx.check_stop()?;
        let request = reading.request(Verb::ListIdentifiers, window, token.clone());
        let mut stream = match AnswerStream::of(ctx, &request.url(&reading.base), true).await {
            Ok(stream) => stream,
            Err(trouble) => return Ok(Err(of_window(trouble))),
        };
        loop {
            let items = match stream.next().await {
                Ok(items) => items,
                Err(trouble) => return Ok(Err(of_window(trouble))),
            };
            if let Err(trouble) = stream.refusal(&request) {
                return Ok(Err(of_window(trouble)));
            }
            if items.is_empty() {
                break;
            }
            let items = reading.see(window, items);
            delivered += plan_headers(ctx, planner, reading, items, false).await?;
        }
        let answer = stream.answer();
        listed = listed.or(answer.response_date.as_ref().map(Datetime::instant));
        if !answer.complete
            || matches!(trail.step(token.as_ref(), answer), Step::Loop | Step::TooManyEmptyPages)
        {
            let why = "its list of identifiers does not end as it should".to_owned();
            return Ok(Err(Trouble::Server(why)));
        }
        token = answer.resumption.as_ref().and_then(|resumption| resumption.token.clone());
        if token.is_none() {
            let span = reading.span(ctx);
            let mut list = List::of(&mut reading.list.progress, span);
            return Ok(Ok(list.one_by_one(window, delivered, listed)));
        }
    }
    Ok(Err(Trouble::Server(format!("its list of identifiers has more than {PAGES} pages"))))
}

/// A window that cannot be listed either way is a gap. The list goes on behind it, unless the repository is away.
fn of_window(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Hold(failure)
            if matches!(
                failure.reason,
                ProblemReason::WrongKind | ProblemReason::HttpClientError | ProblemReason::Malformed
            ) =>
        {
            Trouble::Server(failure.message)
        }
        Trouble::Argument(why) | Trouble::Token(why) | Trouble::NoRecord(why) => Trouble::Server(why),
        trouble => trouble,
    }
}

/// Plans records by their headers, and returns their number. An equal datestamp settles a record only where it
/// `tells_versions`: within one day, a record may change twice.
async fn plan_headers(
    ctx: &mut RunContext,
    planner: &mut Planner,
    reading: &mut Reading,
    items: Vec<Item>,
    tells_versions: bool,
) -> Result<u64, HarvestError> {
    let context = entry_context(ctx, Arc::from(reading.uri.as_str()), reading.set.clone());
    let mut batch = Batch::new();
    let mut headers = Vec::with_capacity(items.len());
    for item in items {
        let header = match item {
            Item::Header(header) => *header,
            Item::Bad(bad) => {
                // Whatever it names is listed all the same.
                planner.reconciler.ignore_absences(&reading.set);
                match bad.header {
                    Some(header) => header,
                    None => {
                        let at = format!("{}#{}:{}", reading.uri, bad.position.line, bad.position.column);
                        let message = format!("an identifier was left out: {}", bad.reason);
                        ctx.entry_problem(&mut batch, at, ProblemReason::Malformed, &message);
                        continue;
                    }
                }
            }
            Item::Record(_) | Item::Set(_) | Item::Format(_) => continue,
        };
        let loc = reading.base.record_uri(&header.identifier, &reading.list.prefix);
        headers.push((header, ResourceUri::try_from(loc).ok()));
    }
    let uris: Vec<ResourceUri> = headers.iter().filter_map(|(_, uri)| uri.clone()).collect();
    let mut records = ctx.records_of(&uris).await?.into_iter();
    let mut entries = Vec::with_capacity(headers.len());
    let mut known = ByUri::default();
    let mut sampled = Vec::new();
    for (header, uri) in headers {
        let is_deleted = header.is_deleted();
        let held = uri.as_ref().and_then(|_| records.next().flatten());
        let is_sampled = tells_versions
            && !is_deleted
            && uri.as_ref().zip(held.as_deref()).is_some_and(|(uri, held)| {
                ctx.options.filter.takes(uri.as_str())
                    && !ctx.may_be_pending(uri)
                    && reading.sample.draws(held, header.datestamp.as_ref(), uri)
            });
        let mut entry = entry(&reading.base, &reading.list.prefix, header, tells_versions);
        let (links, named) = beside_held(entry.links, held.as_deref());
        entry.links = links;
        if let Some(uri) = uri {
            if reading.notes_names && !is_deleted {
                planner.reconciler.note_name(ctx, &reading.uri, &reading.set, &uri);
                planner.name_targets(ctx, &reading.uri, &reading.set, Links::of(&named).as_ref());
            }
            if is_sampled {
                sampled.extend(context.read(entry));
                continue;
            }
            known.insert(uri, held);
        }
        entries.push(resourcesync::Item::Entry(Box::new(entry)));
    }
    let count = (entries.len() + sampled.len()) as u64;
    for entry in sampled {
        sample::plan(ctx, &mut batch, entry);
    }
    planner.plan_entries_beside(ctx, &mut batch, &context, entries, known).await?;
    planner.reconciler.make_room(ctx).await;
    ctx.commit(batch).await?;
    Ok(count)
}

/// The links that the header of a record gives, and those to the content of the record that is held. A header names sets
/// only: where they are what is held, it says nothing new of the links.
fn beside_held(of_sets: Vec<Link>, held: Option<&ResourceRecord>) -> (Vec<Link>, Vec<Link>) {
    let held = held.filter(|held| held.is_present()).and_then(|held| held.listing.links.as_ref());
    let (sets, named) = content::parted(held);
    if named.is_empty() {
        return (of_sets, named);
    }
    if of_sets == sets || of_sets.is_empty() {
        return (Vec::new(), named);
    }
    (of_sets.into_iter().chain(named.iter().cloned()).collect(), named)
}

/// A header as an entry. An equal datestamp settles a record where it `tells_versions`.
pub(crate) fn entry(base: &BaseUrl, prefix: &str, header: RecordHeader, tells_versions: bool) -> Entry {
    let is_deleted = header.is_deleted();
    let RecordHeader { identifier, datestamp, sets, .. } = header;
    let (links, _) = membership::links(base, prefix, &sets);
    Entry {
        lastmod: datestamp.filter(|_| tells_versions && !is_deleted),
        metadata: change(datestamp, is_deleted),
        links,
        ..Entry::new(base.record_uri(&identifier, prefix))
    }
}
