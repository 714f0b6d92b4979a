//! A list that is being read: what is asked for, and what is made of each page and each failure.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};

use catalog::Batch;
use jiff::Timestamp;
use model::{OaiList, OaiPage, OaiReadingKind, OaiWindow, ProblemReason, SetId};
use oaipmh::{BaseUrl, Granularity, Item, Quirk, Request, Selection, Step, Token, Verb, Window};
use planning::oai::{List, PageEnd, PageRead, Span};

use crate::error::HarvestError;
use crate::oai::answer::{Trouble, again};
use crate::oai::bounds::Bounds;
use crate::oai::chains::Chains;
use crate::oai::membership;
use crate::oai::page::{Before, PageCame, PageRequest};
use crate::oai::sample::Sample;
use crate::oai::signs::{self, Signs};
use crate::oai::tokens::{self, Tokens};
use crate::run::RunContext;

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
    /// What is odd about the whole list.
    pub(super) signs: Signs,
    /// The records of the last batch: the datestamp of each, and whether it is deleted.
    pub(super) recent: HashMap<String, (Option<Timestamp>, bool)>,
    /// Which records are asked for although nothing says that they changed.
    pub(super) sample: Sample,
}

impl Reading {
    pub(super) fn span(&self, ctx: &RunContext) -> Span {
        Span { earliest: self.list.earliest, now: ctx.clock.now(), by_seconds: self.list.by_seconds }
    }

    fn granularity(&self) -> Granularity {
        if self.list.by_seconds { Granularity::Second } else { Granularity::Day }
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
        before: Before,
    ) -> PageRequest {
        let is_sweep = self.kind == OaiReadingKind::Identifiers;
        let verb = if is_sweep { Verb::ListIdentifiers } else { Verb::ListRecords };
        let token = token.as_deref().and_then(Token::new);
        let request = self.request(verb, window, token.clone());
        let url = request.url(&self.base);
        let (is_patient, is_compressed) = (window.halvings == 0, !self.list.progress.uncompressed);
        PageRequest { request, url, token, is_patient, is_compressed, before }
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
        if let Some(progress) = self.list.progress.reading.as_mut() {
            progress.doubtful |= signs::CAST_DOUBT.iter().any(|quirk| came.quirks.count(*quirk) > 0);
        }
        ctx.progress.count_page(came.result.is_ok());
        if came.was_asked_again || matches!(came.result, Err(Trouble::Server(_))) {
            self.ease(ctx);
        }
        let (read, step) = came.result?;
        let (has_element, has_resent) = (read.has_token_element, came.before.has_resent);
        let end = self.page_ended(ctx, window, read, step)?;
        self.count_short(&end, has_element, has_resent);
        if end == PageEnd::GoesOn {
            chains.keep(window, came.before);
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
        if read.repeated > 0 {
            self.quirk(Quirk::RepeatedRecord);
        }
        if std::mem::take(&mut self.signs.tries_uncompressed) {
            self.quirk(Quirk::NoCompression);
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

    /// Counts a quirk.
    pub(super) fn quirk(&mut self, quirk: Quirk) {
        *self.quirks.entry(quirk.as_str().to_owned()).or_default() += 1;
    }

    /// The page that a window goes on with.
    pub(super) fn token_of(&self, window: &OaiWindow) -> Option<&OaiPage> {
        let reading = self.list.progress.reading.as_ref()?;
        reading.waiting.iter().find(|other| other.is(window))?.page.as_ref()
    }

    /// Looks at what came of a window: its datestamps, and whether it is of the set. Returns what is of the set.
    pub(super) fn see<T: Borrow<Item>>(&mut self, window: &OaiWindow, items: Vec<T>) -> Vec<T> {
        self.bounds.see(&items);
        self.signs.see(window, &items, self.list.by_seconds);
        if self.bounds.is_older_than(self.list.earliest) {
            self.quirk(Quirk::LateEarliestDatestamp);
        }
        let Some(set) = &self.list.set else { return items };
        let (items, others) = membership::of_set(items, set);
        if others > 0 {
            let is_later = self.token_of(window).is_some();
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
