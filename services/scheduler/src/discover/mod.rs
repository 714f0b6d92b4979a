//! What a Source offers: from any way in to its sets of resources.
//!
//! A document that is given directly is taken as it is. From a site or a page the ways of the specification are gone in
//! turn, until one gives sets: the well-known place (RS-20), the links of the page (RS-21), `robots.txt` (RS-22).

mod document;
mod down;
mod error;
mod fetch;
mod found;
mod hint;
mod robots;
mod search;
mod up;

pub use error::DiscoverError;
pub use found::{Discovery, Route, Tried, Unread, Visited};
pub use hint::{Hint, HintKind};

use model::{KnownDocument, Lane};
use resourcesync::{Options, relation};
use url::Url;
use web::{Client, RobotsStanding, WebError};

use crate::begun::Begun;
use document::{Level, Small};
use search::{Page, Search, Step, Visit};

/// Where a host tells of its Source Description (RS-20).
const WELL_KNOWN: &str = "/.well-known/resourcesync";

/// Finds the sets of resources that `entry` leads to. The entry is a site or a page, a Source Description (or its
/// index), a Capability List, or a list itself, which then is a set of its own.
///
/// # Errors
/// When the entry cannot be reached, or leads to nothing.
pub async fn discover(client: &Client, entry: &Url, options: &Options) -> Result<Discovery, DiscoverError> {
    Ok(look(client, entry, options, Vec::new()).await?.0)
}

/// The same, when some of the documents are known from before: for those it asks whether they are still the same. Where the last that was asked for is a
/// list, gives its answer too, to be read or let go of before anything else is asked for.
pub(crate) async fn look(
    client: &Client,
    entry: &Url,
    options: &Options,
    known: Vec<KnownDocument>,
) -> Result<(Discovery, Option<Begun>), DiscoverError> {
    let mut search = Search::new(client, options, known);
    let well_known = entry.join(WELL_KNOWN).ok().filter(|url| url != entry);
    let is_site = matches!(entry.path(), "" | "/") && entry.query().is_none();

    if is_site && let Some(url) = &well_known {
        // Where nobody is there, the same host would not answer the next question either.
        search.well_known(url).await.map_err(DiscoverError::Unreachable)?;
        if search.found.has_sets() {
            return Ok((search.found, search.begun));
        }
    }
    let (why, page) = match search.visit(&Step::first(entry.clone(), Route::Given)).await {
        Ok(Visit::Document(given)) => {
            search.take_given(*given).await;
            return search.end(entry, None);
        }
        Ok(Visit::Again(url)) => (format!("it leads to {url}, which was read already"), None),
        Ok(Visit::Page(page)) => (page.why.to_string(), Some(page)),
        Err(error) if error.is_answer() => (error.to_string(), None),
        Err(error) => return Err(DiscoverError::Unreachable(error)),
    };
    if !is_site && let Some(url) = &well_known {
        // The entry did answer, so this is only one way that leads nowhere.
        if let Err(error) = search.well_known(url).await {
            search.tried(Route::WellKnown, url, &error);
        }
    }
    let is_html = page.as_ref().is_some_and(|page| page.is_html);
    if let Some(page) = page
        && !search.found.has_sets()
    {
        search.page_links(page).await;
    }
    if (is_site || is_html) && !search.found.has_sets() {
        search.robots(entry).await;
    }
    search.end(entry, Some(why))
}

impl Search<'_> {
    /// The host's well-known place. The error is that nobody answered.
    async fn well_known(&mut self, url: &Url) -> Result<(), WebError> {
        match self.visit(&Step::first(url.clone(), Route::WellKnown)).await {
            Ok(Visit::Document(small)) => {
                self.expect(&small, Level::Description);
                self.follow(*small).await;
            }
            Ok(Visit::Page(page)) => self.tried_page(Route::WellKnown, url, &page),
            Ok(Visit::Again(_)) => {}
            Err(error) if error.is_answer() => self.tried(Route::WellKnown, url, &error),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// A document that is given is what is wanted; what it is a part of is only said.
    async fn take_given(&mut self, given: Small) {
        if given.parsed.level < Level::Description
            && let Some(url) = given.link(relation::UP)
        {
            self.hint(&given.url, HintKind::Up(url.into()));
        }
        if let Some(url) = given.link(relation::INDEX).filter(|url| *url != given.url) {
            self.hint(&given.url, HintKind::Index(url.into()));
        }
        self.follow(given).await;
    }

    /// What the page says its Capability Lists are.
    async fn page_links(&mut self, page: Page) {
        for (route, url) in page.links {
            if self.has_seen(&url) || !self.has_room(&url) {
                continue;
            }
            match self.visit(&Step::first(url.clone(), route)).await {
                Ok(Visit::Document(small)) => {
                    self.expect(&small, Level::Set);
                    self.follow(*small).await;
                }
                Ok(Visit::Again(_)) => {}
                Ok(Visit::Page(page)) => self.found.fail(url, page.why),
                Err(error) => self.found.fail(url, error),
            }
        }
    }

    /// What the host tells all crawlers.
    async fn robots(&mut self, entry: &Url) {
        self.begun = None;
        let (Ok(url), Ok(lane)) = (entry.join("/robots.txt"), Lane::of(entry)) else { return };
        let (robots, requests) = self.client.robots(&lane).await;
        self.found.requests += u64::from(requests);
        match robots.standing() {
            RobotsStanding::Read => {}
            RobotsStanding::Absent(why) => {
                let tried = Tried { route: Route::Robots, url: url.to_string(), why: why.clone() };
                return self.found.tried.push(tried);
            }
            RobotsStanding::Unreachable(why) => return self.found.fail(url, why),
        }
        let sitemaps = robots::sitemaps(robots.sitemaps(), robots.location().unwrap_or(&url));
        if sitemaps.is_empty() {
            let why = "it names no Sitemap".to_owned();
            self.found.tried.push(Tried { route: Route::Robots, url: url.to_string(), why });
        }
        for url in sitemaps {
            if self.has_seen(&url) || !self.has_room(&url) {
                continue;
            }
            match self.visit(&Step::first(url.clone(), Route::Robots)).await {
                Ok(Visit::Document(small)) => self.climb(*small).await,
                Ok(Visit::Again(_)) => {}
                Ok(Visit::Page(page)) => self.found.fail(url, page.why),
                Err(error) => self.found.fail(url, error),
            }
        }
    }

    fn expect(&mut self, small: &Small, expected: Level) {
        if small.parsed.level != expected {
            let kind = HintKind::OtherKind { expected: expected.as_str(), found: small.kind() };
            self.hint(&small.url, kind);
        }
    }

    fn tried_page(&mut self, route: Route, url: &Url, page: &Page) {
        self.found.tried.push(Tried { route, url: url.to_string(), why: page.why.to_string() });
    }

    /// What was found, if anything was.
    fn end(self, entry: &Url, why: Option<String>) -> Result<(Discovery, Option<Begun>), DiscoverError> {
        let found = self.found;
        if !found.sets.is_empty() {
            return Ok((found, self.begun));
        }
        let failure = found.failures.first().map(|unread| format!("{}: {}", unread.url, unread.why));
        let mut why = match (why, failure) {
            (Some(why), Some(failure)) => format!("{why}; {failure}"),
            (Some(why), None) => why,
            (None, Some(failure)) => failure,
            (None, None) => {
                let first = found.documents.first().map_or(entry.as_str(), |document| document.url.as_str());
                format!("{first} names no Capability List and no list of resources")
            }
        };
        if !found.tried.is_empty() {
            let tried: Vec<_> = found.tried.iter().map(|tried| tried.url.as_str()).collect();
            why = format!("{why} (nothing either at {})", tried.join(", "));
        }
        Err(DiscoverError::Nothing { url: entry.clone(), why })
    }
}
