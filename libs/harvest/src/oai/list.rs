//! Reads one list: pages of one window after the other, or of several at the same time.

use std::collections::{BTreeMap, HashMap};

use catalog::Batch;
use model::{DocumentRecord, DocumentState, Mode, OaiReadingKind};
use oaipmh::BaseUrl;
use planning::oai::{List, Next, Span};
use url::Url;

use crate::error::HarvestError;
use crate::oai::bounds::Bounds;
use crate::oai::chains::Chains;
use crate::oai::page::Event;
use crate::oai::reading::Reading;
use crate::oai::sample::Sample;
use crate::oai::signs::Signs;
use crate::oai::tokens::Tokens;
use crate::oai::{bounds, end, names, records, split};
use crate::planner::Planner;
use crate::run::RunContext;
use crate::settler::Settler;

/// Reads a list to its end, or as far as the server lets it.
pub(super) async fn read_list(
    ctx: &mut RunContext,
    planner: &mut Planner,
    settler: &mut Settler,
    uri: &str,
    record: DocumentRecord,
) -> Result<(), HarvestError> {
    let Some(mut reading) = take_up(ctx, planner, uri, &record).await? else {
        // All records were asked for in this run, so no change is left.
        let mut batch = Batch::new();
        batch.delete_document(uri);
        return ctx.commit(batch).await;
    };
    let mut chains = Chains::new(ctx);
    loop {
        ctx.check_stop()?;
        let span = reading.span(ctx);
        match List::of(&mut reading.list.progress, span).next(chains.open()) {
            Next::End => return end::end(ctx, planner, reading, record).await,
            Next::Page { window, token } => {
                let page = reading.page_request(&window, token, chains.before(&window));
                chains.start(window, page);
                continue;
            }
            Next::OneByOne(window) => {
                let taken = names::one_by_one(ctx, planner, &mut reading, &window).await?;
                if let Some(failure) = reading.take(ctx, &window, taken).await? {
                    return end::hold(ctx, planner, reading, record, failure).await;
                }
            }
            Next::Wait => match chains.next(ctx).await? {
                (window, Event::Items(items)) if reading.kind == OaiReadingKind::Identifiers => {
                    let items = reading.see(&window, items).into_iter().map(|received| received.item);
                    let items = items.collect();
                    names::plan(ctx, planner, &mut reading, items).await?;
                    continue;
                }
                (window, Event::Items(items)) => {
                    let items = reading.see(&window, items);
                    records::take(ctx, planner, settler, &mut reading, items).await?;
                    continue;
                }
                (window, Event::End(came)) => {
                    let taken = reading.end_page(ctx, &mut chains, &window, *came);
                    let is_read = taken.is_ok();
                    let may_be_halved = taken.as_ref().err().is_some_and(|trouble| !trouble.holds());
                    // While windows are open, both could wait for each other's permits.
                    if may_be_halved && chains.open().is_empty() {
                        bounds::learn(ctx, &mut reading, &window).await;
                    }
                    if let Some(failure) = reading.take(ctx, &window, taken).await? {
                        return end::hold(ctx, planner, reading, record, failure).await;
                    }
                    if is_read {
                        split::split(ctx, &mut reading, &window).await?;
                    }
                }
            },
        }
        reading.save(ctx).await?;
    }
}

/// What is to be read of a list; none if another list of this run had it all.
async fn take_up(
    ctx: &mut RunContext,
    planner: &mut Planner,
    uri: &str,
    record: &DocumentRecord,
) -> Result<Option<Reading>, HarvestError> {
    let set = record.set.clone();
    let known = ctx
        .sets
        .get(&set)
        .map(|known| (known.oai.clone(), known.has_baseline && ctx.selection.covers(known.selection)));
    let Some((Some(mut list), has_baseline)) = known else { return Ok(None) };
    let Some(base) = Url::parse(&list.base).ok().and_then(|base| BaseUrl::new(base).ok()) else {
        return Ok(None);
    };
    let kind = if record.tells_changes() {
        let all = ctx.catalog().await?.document(set.as_str()).await?.filter(|all| all.run == ctx.run.id);
        // A list of identifiers has no `at_latest`: it says nothing about changes.
        let is_told =
            all.as_ref().is_some_and(|all| all.state == DocumentState::Done && all.at_latest.is_some());
        // Without a cursor, changes are all records. A list of records of this run had them, and one of identifiers not.
        let are_read = !has_baseline || ctx.options.mode == Some(Mode::Baseline);
        if is_told || all.is_some() && are_read && list.progress.cursor.is_none() {
            return Ok(None);
        }
        OaiReadingKind::Changes
    } else if has_baseline
        && ctx.options.mode != Some(Mode::Baseline)
        && !list.progress.without_identifiers
        && !list.progress.records_soon
    {
        OaiReadingKind::Identifiers
    } else {
        OaiReadingKind::Records
    };
    let span = Span { earliest: list.earliest, now: ctx.clock.now(), by_seconds: list.by_seconds };
    let begins = List::of(&mut list.progress, span).begin(kind, ctx.selection.id());
    ctx.remember_entry_problems(uri, begins).await?;
    if begins && kind != OaiReadingKind::Changes {
        planner.reading.whole.insert(uri.to_owned());
        planner.expect_names(ctx, record);
    } else if kind != OaiReadingKind::Changes {
        // The names of its first pages are not known any more.
        planner.reconciler.ignore_absences(&set);
    }
    let notes_names = planner.reconciler.records_names_of(&set) && kind != OaiReadingKind::Changes;
    let uri = uri.to_owned();
    let quirks = BTreeMap::new();
    let (bounds, tokens, signs) = (Bounds::default(), Tokens::default(), Signs::of(begins));
    let sample = Sample::of(&list.progress, ctx.clock.now());
    Ok(Some(Reading {
        uri,
        set,
        kind,
        list,
        base,
        notes_names,
        quirks,
        failures: 0,
        bounds,
        tokens,
        signs,
        recent: HashMap::new(),
        sample,
    }))
}
