//! Reads one list, window by window and page by page.

use std::collections::BTreeMap;

use catalog::Batch;
use jiff::SignedDuration;
use model::{DocumentRecord, DocumentState, Mode, OaiList, OaiReadingKind, OaiWindow, SetId};
use oaipmh::{BaseUrl, Granularity, Quirk, Request, Selection, Token, Trail, Verb, Window};
use planning::oai::{List, Next, PageEnd, PageFailure, Span};
use url::Url;

use crate::error::HarvestError;
use crate::oai::answer::{Trouble, again};
use crate::oai::{end, names, page};
use crate::planner::Planner;
use crate::run::RunContext;
use crate::settler::Settler;

/// Requests that may fail in a row, each on a window that is smaller or begun anew. Then the server is down. A window
/// of twenty years is halved thirty times until it is a second.
const FAILURES: u32 = 40;

/// Failures in a row before the first pause.
const PATIENCE: u32 = 2;
/// The longest pause, in fifths of a second.
const LONGEST_PAUSE: u32 = 25;

/// A list that is being read.
pub(super) struct Reading {
    /// The document.
    pub(super) uri: String,
    pub(super) set: SetId,
    pub(super) kind: OaiReadingKind,
    pub(super) list: Box<OaiList>,
    pub(super) base: BaseUrl,
    /// Whether its names are recorded, to find resources that it omits.
    pub(super) notes_names: bool,
    pub(super) trail: Trail,
    pub(super) quirks: BTreeMap<String, u64>,
    failures: u32,
}

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
    loop {
        ctx.check_stop()?;
        let span = reading.span(ctx);
        let taken = match List::of(&mut reading.list.progress, span).next() {
            Next::End => return end::end(ctx, planner, reading, record).await,
            Next::Page { window, token } => {
                page::read_page(ctx, planner, settler, &mut reading, &window, token).await?
            }
            Next::OneByOne(window) => names::one_by_one(ctx, planner, &mut reading, &window).await?,
        };
        match taken {
            Ok(step) => {
                reading.failures = 0;
                reading.follow(&step);
            }
            Err(trouble) => {
                if let Some(failure) = reading.meet(ctx, trouble) {
                    return end::hold(ctx, planner, reading, record, failure).await;
                }
                ctx.wait_until(ctx.clock.now() + reading.pause()).await?;
            }
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
        if is_told || all.is_some() && list.progress.cursor.is_none() {
            return Ok(None);
        }
        OaiReadingKind::Changes
    } else if has_baseline && ctx.options.mode != Some(Mode::Baseline) {
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
    let trail = Trail::default();
    let quirks = BTreeMap::new();
    Ok(Some(Reading { uri, set, kind, list, base, notes_names, trail, quirks, failures: 0 }))
}

impl Reading {
    pub(super) fn span(&self, ctx: &RunContext) -> Span {
        Span { earliest: self.list.earliest, now: ctx.clock.now(), by_seconds: self.list.by_seconds }
    }

    fn granularity(&self) -> Granularity {
        if self.list.by_seconds { Granularity::Second } else { Granularity::Day }
    }

    /// The pause before the next request: failures in a row may mean that the server is overloaded.
    fn pause(&self) -> SignedDuration {
        let beyond = self.failures.saturating_sub(PATIENCE).min(LONGEST_PAUSE);
        SignedDuration::from_millis(200 * i64::from(beyond))
    }

    /// The request for a page of records, or of identifiers.
    pub(super) fn request(&self, verb: Verb, window: &OaiWindow, token: Option<Token>) -> Request {
        if let Some(token) = token {
            return Request::resume(verb, token);
        }
        let selection = Selection {
            set: self.list.set.clone(),
            window: Window { from: window.from, until: window.until },
            ..Selection::all(self.list.prefix.clone())
        };
        Request::List { verb, selection, granularity: self.granularity() }
    }

    /// Counts a quirk.
    pub(super) fn quirk(&mut self, quirk: Quirk) {
        *self.quirks.entry(quirk.as_str().to_owned()).or_default() += 1;
    }

    /// Takes what followed from a page.
    fn follow(&mut self, step: &PageEnd) {
        match step {
            PageEnd::GoesOn => return,
            PageEnd::Window { miscounted: Some(_) } => self.quirk(Quirk::WrongCompleteListSize),
            PageEnd::Anew { short: Some((delivered, promised)) } => {
                self.quirk(Quirk::ShortList);
                tracing::warn!(
                    document.uri = self.uri,
                    delivered,
                    promised,
                    "fewer records than promised; the window is read again"
                );
            }
            PageEnd::Gap(gap) => {
                tracing::warn!(
                    document.uri = self.uri,
                    why = gap.why,
                    "a window could not be read; each run tries it again"
                );
            }
            PageEnd::Halved => tracing::info!(document.uri = self.uri, "a window failed and is halved"),
            PageEnd::OneByOne => tracing::info!(
                document.uri = self.uri,
                "a window failed; its records are asked for one by one"
            ),
            PageEnd::Window { .. } | PageEnd::Anew { .. } => {}
        }
        self.trail = Trail::default();
    }

    /// Takes a trouble. Returns the failure of the whole list, if it cannot go on.
    fn meet(&mut self, ctx: &RunContext, trouble: Trouble) -> Option<model::Failure> {
        self.failures += 1;
        let (kind, why) = match trouble {
            Trouble::Hold(failure) => return Some(*failure),
            Trouble::Token(why) => (PageFailure::Token, why),
            Trouble::Server(why) => (PageFailure::Server, why),
            Trouble::Argument(why) => {
                let reading = self.list.progress.reading.as_ref();
                if reading.is_some_and(|reading| reading.page.is_some()) {
                    (PageFailure::Token, why)
                } else if self.list.by_seconds {
                    // It announced seconds, and refuses them. Days work everywhere.
                    self.list.by_seconds = false;
                    self.quirk(Quirk::GranularityLie);
                    return None;
                } else {
                    return Some(again(model::ProblemReason::WrongKind, why));
                }
            }
            Trouble::NoRecord(why) => (PageFailure::Server, why),
        };
        if self.failures >= FAILURES {
            let message =
                format!("{FAILURES} requests failed in a row, also of small windows; the last one: {why}");
            return Some(again(model::ProblemReason::HttpServerError, message));
        }
        let span = self.span(ctx);
        let step = List::of(&mut self.list.progress, span).failed(kind, &why, ctx.clock.now());
        tracing::debug!(document.uri = self.uri, why, ?step, "a page failed");
        self.follow(&step);
        None
    }

    /// Puts the progress into a batch.
    pub(super) fn put(&self, ctx: &mut RunContext, batch: &mut Batch) {
        if let Some(set) = ctx.sets.get_mut(&self.set) {
            set.oai = Some(self.list.clone());
            batch.put_set(&self.set, set);
        }
    }

    async fn save(&self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        let mut batch = Batch::new();
        self.put(ctx, &mut batch);
        ctx.commit_behind(batch).await
    }
}
