//! A list that is being read: what is asked for, and what is made of each page and each failure.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use catalog::Batch;
use jiff::SignedDuration;
use model::{OaiList, OaiPage, OaiReadingKind, OaiWindow, ProblemReason, SetId};
use oaipmh::{BaseUrl, Granularity, Item, Quirk, Request, Selection, Step, Token, Trail, Verb, Window};
use planning::oai::{List, PageEnd, PageFailure, PageRead, Span};

use crate::error::HarvestError;
use crate::oai::answer::{Trouble, again};
use crate::oai::bounds::Bounds;
use crate::oai::chains::Chains;
use crate::oai::membership;
use crate::oai::page::{PageCame, PageRequest};
use crate::oai::tokens::{self, Tokens};
use crate::run::RunContext;

/// Requests that may fail in a row, each on a window that is smaller or begun anew. Then the server is down. A window
/// of twenty years is halved thirty times until it is a second.
const FAILURES: u32 = 40;

/// How often a window is begun anew until its first token is tried in other ways, where tokens worked before.
const REFUSED: u32 = 2;
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
    pub(super) quirks: BTreeMap<String, u64>,
    /// Requests that failed in a row.
    pub(super) failures: u32,
    /// How the repository reads `from` and `until`.
    pub(super) bounds: Bounds,
    /// How it takes tokens.
    pub(super) tokens: Tokens,
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
            return tokens::request(self.list.progress.tokens, verb, token, &self.list.prefix);
        }
        let selection = Selection {
            set: self.list.set.clone(),
            window: Window { from: window.from, until: window.until },
            ..Selection::all(self.list.prefix.clone())
        };
        Request::List { verb, selection, granularity: self.granularity() }
    }

    /// The next page of a window.
    pub(super) fn page_request(
        &self,
        window: &OaiWindow,
        token: Option<String>,
        trail: Trail,
    ) -> PageRequest {
        let is_sweep = self.kind == OaiReadingKind::Identifiers;
        let verb = if is_sweep { Verb::ListIdentifiers } else { Verb::ListRecords };
        let token = token.as_deref().and_then(Token::new);
        let request = self.request(verb, window, token.clone());
        let url = request.url(&self.base);
        PageRequest { request, url, token, is_patient: window.halvings == 0, trail }
    }

    /// Takes the end of a page. Returns what follows from it.
    pub(super) fn end_page(
        &mut self,
        ctx: &mut RunContext,
        chains: &mut Chains,
        window: &OaiWindow,
        came: PageCame,
    ) -> Result<PageEnd, Trouble> {
        ctx.run.counters.requests += u64::from(came.requests);
        for (quirk, times) in came.quirks.iter() {
            *self.quirks.entry(quirk.as_str().to_owned()).or_default() += times;
        }
        ctx.progress.count_page(came.result.is_ok());
        if came.was_asked_again || matches!(came.result, Err(Trouble::Server(_))) {
            self.ease(ctx);
        }
        let (read, step) = came.result?;
        let end = self.page_ended(ctx, window, read, step)?;
        if end == PageEnd::GoesOn {
            chains.keep(window, came.trail);
        }
        Ok(end)
    }

    /// Takes a page that was received to its end. Returns what follows from it.
    pub(super) fn page_ended(
        &mut self,
        ctx: &RunContext,
        window: &OaiWindow,
        mut read: PageRead,
        step: Step,
    ) -> Result<PageEnd, Trouble> {
        match step {
            Step::Loop => {
                self.quirk(Quirk::TokenLoop);
                let why = "its token leads to a page that was read before, so the list has no end".to_owned();
                return Err(Trouble::Token(why));
            }
            Step::UnchangedToken => self.quirk(Quirk::UnchangedToken),
            // Empty pages are counted with the progress.
            Step::Next | Step::TooManyEmptyPages => {}
        }
        if self.token_of(window).is_some() {
            self.list.progress.tokens_work = true;
            let quirk = self.tokens.worked(self.list.progress.tokens);
            quirk.into_iter().for_each(|quirk| self.quirk(quirk));
        }
        if let Some(failure) = self.beyond(ctx) {
            return Err(Trouble::Hold(Box::new(failure)));
        }
        let delivered = self.token_of(window).map_or(0, |page| page.delivered) + read.records;
        let token = read.token.as_deref().and_then(Token::new);
        read.is_offset = token.is_some_and(|token| token.has_number(delivered));
        let (span, now) = (self.span(ctx), ctx.clock.now());
        Ok(List::of(&mut self.list.progress, span).page(window, read, now))
    }

    /// The failure of a list with more records than a run reads.
    fn beyond(&self, ctx: &RunContext) -> Option<model::Failure> {
        let read = self.list.progress.reading.as_ref().map_or(0, |reading| reading.records);
        let limit = ctx.options.limits.entries;
        (read > limit).then(|| {
            again(ProblemReason::LimitEntries, format!("it has more records than --max-entries {limit}"))
        })
    }

    /// Reads fewer windows at the same time, if the server bears no more.
    fn ease(&mut self, ctx: &RunContext) {
        let span = self.span(ctx);
        if let Some(most) = List::of(&mut self.list.progress, span).ease() {
            tracing::info!(
                document.uri = self.uri,
                most,
                "the server is slow or fails: fewer windows at a time"
            );
        }
    }

    /// Takes what followed from a page, and waits where it failed. Returns the failure of the whole list, if it cannot
    /// go on.
    pub(super) async fn take(
        &mut self,
        ctx: &RunContext,
        window: &OaiWindow,
        taken: Result<PageEnd, Trouble>,
    ) -> Result<Option<model::Failure>, HarvestError> {
        match taken {
            Ok(step) => {
                self.failures = 0;
                self.follow(&step);
            }
            Err(trouble) => {
                if let Some(failure) = self.meet(ctx, window, trouble) {
                    return Ok(Some(failure));
                }
                ctx.wait_until(ctx.clock.now() + self.pause()).await?;
            }
        }
        Ok(None)
    }

    /// Counts a quirk.
    pub(super) fn quirk(&mut self, quirk: Quirk) {
        *self.quirks.entry(quirk.as_str().to_owned()).or_default() += 1;
    }

    /// Takes what followed from a page.
    fn follow(&mut self, step: &PageEnd) {
        match step {
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
            PageEnd::GoesOn | PageEnd::Window { .. } | PageEnd::Anew { .. } => {}
        }
    }

    /// Takes a trouble. Returns the failure of the whole list, if it cannot go on.
    fn meet(&mut self, ctx: &RunContext, window: &OaiWindow, trouble: Trouble) -> Option<model::Failure> {
        self.failures += 1;
        let (kind, why) = match trouble {
            Trouble::Hold(failure) => {
                match failure.reason {
                    ProblemReason::UnexpectedHtml => self.quirk(Quirk::Challenged),
                    // The next comparison lists records.
                    ProblemReason::WrongKind if self.kind == OaiReadingKind::Identifiers => {
                        self.list.progress.without_identifiers = true;
                        self.quirk(Quirk::VerbMissing);
                    }
                    _ => {}
                }
                return Some(*failure);
            }
            Trouble::Token(why) => (PageFailure::Token, why),
            Trouble::Server(why) => (PageFailure::Server, why),
            Trouble::TooLarge(why) => {
                self.quirk(Quirk::WindowTooLarge);
                (PageFailure::Server, why)
            }
            Trouble::Argument(why) => {
                if self.token_of(window).is_some() {
                    (PageFailure::Token, why)
                } else if self.list.by_seconds {
                    // It announced seconds, and refuses them. Days work everywhere.
                    self.list.by_seconds = false;
                    self.quirk(Quirk::GranularityLie);
                    return None;
                } else {
                    return Some(again(ProblemReason::WrongKind, why));
                }
            }
            Trouble::NoRecord(why) => (PageFailure::Server, why),
        };
        if self.failures >= FAILURES {
            let message =
                format!("{FAILURES} requests failed in a row, also of small windows; the last one: {why}");
            return Some(again(ProblemReason::HttpServerError, message));
        }
        let page = self.token_of(window).map(|page| (page.number, page.token.clone()));
        let may_be_refused = !self.list.progress.tokens_work || self.restarts_of(window) >= REFUSED;
        if let Some((1, token)) = &page
            && may_be_refused
            && (kind == PageFailure::Token || self.tokens.are_tried())
            && let Some(other) = self.tokens.other(self.list.progress.tokens, token)
        {
            self.list.progress.tokens = other;
            return None;
        }
        let span = self.span(ctx);
        let step = List::of(&mut self.list.progress, span).failed(window, kind, &why, ctx.clock.now());
        tracing::debug!(document.uri = self.uri, why, ?step, "a page failed");
        match (&page, kind, &step) {
            (Some(_), PageFailure::Server, PageEnd::Halved) => self.quirk(Quirk::DeepPageFails),
            (Some(_), PageFailure::Token, PageEnd::Window { .. }) => self.quirk(Quirk::TokenAfterEnd),
            _ => {}
        }
        self.follow(&step);
        None
    }

    /// How often a window was begun anew.
    fn restarts_of(&self, window: &OaiWindow) -> u32 {
        let mut waiting = self.list.progress.reading.iter().flat_map(|reading| &reading.waiting);
        waiting.find(|other| other.is(window)).map_or(0, |window| window.restarts)
    }

    /// The page that a window goes on with.
    pub(super) fn token_of(&self, window: &OaiWindow) -> Option<&OaiPage> {
        let reading = self.list.progress.reading.as_ref()?;
        reading.waiting.iter().find(|other| other.is(window))?.page.as_ref()
    }

    /// Looks at what came: its datestamps, and whether it is of the set. Returns what is of the set. `is_later`: not
    /// the first page of a window.
    pub(super) fn see<T: Borrow<Item>>(&mut self, items: Vec<T>, is_later: bool) -> Vec<T> {
        self.bounds.see(&items);
        if self.bounds.is_older_than(self.list.earliest) {
            self.quirk(Quirk::LateEarliestDatestamp);
        }
        let Some(set) = &self.list.set else { return items };
        let (items, others) = membership::of_set(items, set);
        if others > 0 {
            let quirk = if is_later { Quirk::TokenLosesSet } else { Quirk::SetIgnored };
            *self.quirks.entry(quirk.as_str().to_owned()).or_default() += others;
        }
        items
    }

    /// Puts the progress into a batch.
    pub(super) fn put(&self, ctx: &mut RunContext, batch: &mut Batch) {
        if let Some(set) = ctx.sets.get_mut(&self.set) {
            set.oai = Some(self.list.clone());
            batch.put_set(&self.set, set);
        }
    }

    pub(super) async fn save(&self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        let mut batch = Batch::new();
        self.put(ctx, &mut batch);
        ctx.commit_next(batch).await
    }
}
