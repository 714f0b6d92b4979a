//! All headers of a list, for an audit. Windows that fail are halved, as in a harvest; nothing is kept in the catalog.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use model::{OaiList, OaiProgress, OaiReadingKind, OaiWindow, SetId};
use oaipmh::{BaseUrl, Item, Request, Step, Token};
use planning::oai::{List, Next, PageRead};
use url::Url;

use crate::error::HarvestError;
use crate::oai::answer::{AnswerStream, Trouble};
use crate::oai::bounds::{self, Bounds};
use crate::oai::page::{self, Before, Seen};
use crate::oai::reading::Reading;
use crate::oai::sample::Sample;
use crate::oai::signs::Signs;
use crate::oai::tokens::Tokens;
use crate::run::RunContext;

/// The headers of a list, as they come.
pub(crate) struct Headers {
    reading: Reading,
    /// The pages of the window so far.
    before: Before,
    page: Option<Page>,
    /// Why the list was left.
    failure: Option<String>,
}

/// A page that is being received.
struct Page {
    window: OaiWindow,
    request: Request,
    token: Option<Token>,
    stream: AnswerStream,
    seen: Seen,
}

/// What is to be said of a list when it was read.
pub(crate) struct Read {
    /// The `responseDate` of its first page.
    pub(crate) started: Option<Timestamp>,
    /// Why a part of it may be missing.
    pub(crate) unread: Option<String>,
    pub(crate) quirks: BTreeMap<String, u64>,
}

impl Headers {
    /// Begins to read. `known` is what the catalog knows of the list; none if its base URL is no URL.
    pub(crate) fn of(
        ctx: &RunContext,
        set: &SetId,
        list: &OaiList,
        known: Option<&OaiProgress>,
    ) -> Option<Self> {
        let base = BaseUrl::new(Url::parse(&list.base).ok()?).ok()?;
        let progress = OaiProgress {
            miscounts: known.is_some_and(|known| known.miscounts),
            uncompressed: known.is_some_and(|known| known.uncompressed),
            inclusive_bounds: known.is_some_and(|known| known.inclusive_bounds),
            tokens: known.map(|known| known.tokens).unwrap_or_default(),
            tokens_work: known.is_some_and(|known| known.tokens_work),
            ..OaiProgress::default()
        };
        let mut reading = Reading {
            uri: set.as_str().to_owned(),
            set: set.clone(),
            kind: OaiReadingKind::Identifiers,
            list: Box::new(OaiList { progress, ..list.clone() }),
            base,
            notes_names: false,
            quirks: BTreeMap::new(),
            failures: 0,
            bounds: Bounds::default(),
            tokens: Tokens::default(),
            signs: Signs::default(),
            recent: HashMap::new(),
            sample: Sample::of(&OaiProgress::default(), ctx.clock.now()),
        };
        let span = reading.span(ctx);
        List::of(&mut reading.list.progress, span).begin(reading.kind, ctx.selection.id());
        Some(Self { reading, before: Before::default(), page: None, failure: None })
    }

    /// The base URL of its records.
    pub(crate) fn base(&self) -> &BaseUrl {
        &self.reading.base
    }

    /// The metadata format of its records.
    pub(crate) fn prefix(&self) -> &str {
        &self.reading.list.prefix
    }

    /// The next headers, a bounded number; none at the end. Those of a page that failed may come again.
    ///
    /// # Errors
    /// When the harvest is stopped.
    pub(crate) async fn next(&mut self, ctx: &mut RunContext) -> Result<Option<Vec<Item>>, HarvestError> {
        loop {
            ctx.check_stop()?;
            let Some(mut page) = self.page.take() else {
                let span = self.reading.span(ctx);
                let next = List::of(&mut self.reading.list.progress, span).next(&[]);
                let Next::Page { window, token } = next else { return Ok(None) };
                match self.open(ctx, window.clone(), token).await {
                    Ok(page) => self.page = Some(page),
                    Err(trouble) => {
                        if !self.bears(ctx, &window, Err(trouble)).await? {
                            return Ok(None);
                        }
                    }
                }
                continue;
            };
            let ended = match page.items().await {
                Ok(Some(items)) => {
                    let items = self.reading.see(&page.window, items);
                    self.page = Some(page);
                    return Ok(Some(items));
                }
                Ok(None) => {
                    let Page { token, stream, seen, .. } = &mut page;
                    page::end(stream.answer(), token.as_ref(), &mut self.before, std::mem::take(seen))
                }
                Err(trouble) => Err(trouble),
            };
            let ended = ended.map_err(|trouble| page.stream.judged(trouble));
            let window = page.window.clone();
            // Its response takes a permit of the origin.
            drop(page);
            if !self.bears(ctx, &window, ended).await? {
                return Ok(None);
            }
        }
    }

    /// Sends the request for a page.
    async fn open(
        &mut self,
        ctx: &mut RunContext,
        window: OaiWindow,
        token: Option<String>,
    ) -> Result<Page, Trouble> {
        if token.is_none() {
            self.before = Before::default();
        }
        let page = self.reading.page_request(&window, token, Before::default());
        let stream = AnswerStream::of_page(ctx, &page.url, page.asked()).await?;
        let seen = Seen::after(&self.before);
        Ok(Page { window, request: page.request, token: page.token, stream, seen })
    }

    /// Takes the end of a page. Returns whether the list goes on.
    async fn bears(
        &mut self,
        ctx: &mut RunContext,
        window: &OaiWindow,
        ended: Result<(PageRead, Step), Trouble>,
    ) -> Result<bool, HarvestError> {
        let taken = match ended {
            Ok((read, step)) => self.reading.page_ended(ctx, window, read, step),
            Err(trouble) => Err(trouble),
        };
        if taken.as_ref().err().is_some_and(|trouble| !trouble.holds()) {
            bounds::learn(ctx, &mut self.reading, window).await;
        }
        self.failure = self.reading.take(ctx, window, taken).await?.map(|failure| failure.message);
        Ok(self.failure.is_none())
    }

    /// What is to be said of it.
    pub(crate) fn end(self) -> Read {
        let read = self.reading.list.progress.reading;
        let is_doubtful = read.as_ref().is_some_and(|read| read.doubtful);
        let windows = "some of its identifiers could not be listed".to_owned();
        Read {
            started: read.and_then(|read| read.started),
            unread: self.failure.or(is_doubtful.then_some(windows)),
            quirks: self.reading.quirks,
        }
    }
}

impl Page {
    /// Its next headers; none at its end.
    async fn items(&mut self) -> Result<Option<Vec<Item>>, Trouble> {
        let items = self.stream.next().await?;
        self.stream.refusal(&self.request)?;
        if items.is_empty() {
            self.stream.proves(&self.request)?;
        }
        self.seen.add(&items);
        Ok((!items.is_empty()).then_some(items))
    }
}
