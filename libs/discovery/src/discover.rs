//! Discovery: from an entry URL to the Source's sets of resources.
//!
//! A document at the entry URL is used directly. From a site or a page, discovery tries the methods of the
//! specification in order until one gives sets: the well-known URI (RS-20), the links of the page (RS-21), the catalog
//! of the host's interfaces (FAIRiCat), `robots.txt` (RS-22), `/sitemap.xml`. A landing page with typed links
//! (Signposting) is a set of its own.

use documents::Prefetched;
use futures::future::BoxFuture;
use model::{KnownDocument, Origin};
use resourcesync::{Options, relation};
use url::Url;
use web::{Client, RobotsFetch, WebError};

use crate::document::{Level, Small};
use crate::error::{DiscoverError, WELL_KNOWN};
use crate::found::{Discovery, Route, Tried};
use crate::hint::HintKind;
use crate::onward::is_closed_change_document;
use crate::robots;
use crate::search::{Page, Search, Step, Visit};

/// Finds the sets of resources that `entry` leads to. The entry is a site or a page, a Source Description (or its
/// index), a Capability List, or a list. A list is then a set of its own.
///
/// # Errors
/// When the entry cannot be reached, or leads to nothing.
pub async fn discover(client: &Client, entry: &Url, options: &Options) -> Result<Discovery, DiscoverError> {
    Ok(rediscover(client, entry, options, Vec::new()).await?.0)
}

/// The same with cached documents, which are requested conditionally. If the last request was for a list, also
/// returns its open response. Read or drop that before any other request.
pub fn rediscover<'a>(
    client: &'a Client,
    entry: &'a Url,
    options: &'a Options,
    known: Vec<KnownDocument>,
) -> BoxFuture<'a, Result<(Discovery, Option<Prefetched>), DiscoverError>> {
    // Boxed here, so that the search is compiled in this crate, and not once more in each of its users.
    Box::pin(find(client, entry, options, known, false))
}

/// As [`rediscover`]. With `lists_pages`, the entries of plain sitemaps are landing pages.
pub(crate) async fn find(
    client: &Client,
    entry: &Url,
    options: &Options,
    known: Vec<KnownDocument>,
    lists_pages: bool,
) -> Result<(Discovery, Option<Prefetched>), DiscoverError> {
    let mut search = Search::new(client, options, known);
    search.lists_pages = lists_pages;
    let well_known = entry.join(WELL_KNOWN).ok().filter(|url| url != entry);
    let is_site = matches!(entry.path(), "" | "/") && entry.query().is_none();

    if is_site && let Some(url) = &well_known {
        // If the host is unreachable, it would not answer the next request either.
        search.well_known(url).await.map_err(DiscoverError::Unreachable)?;
        if search.found.has_sets() {
            return Ok((search.found, search.prefetched));
        }
    }
    let (why, page) = match search.visit(&Step::first(entry.clone(), Route::Given)).await {
        Ok(Visit::Document(given)) => {
            search.take_given(*given).await;
            return search.end(entry, None);
        }
        Ok(Visit::Again(url)) => (format!("it leads to {url}, which was read already"), None),
        Ok(Visit::Page(mut page)) => {
            search.found.title = page.title.take();
            (page.why.to_string(), Some(page))
        }
        Err(error) if error.is_answer() => (error.to_string(), None),
        Err(error) => return Err(DiscoverError::Unreachable(error)),
    };
    if !is_site && let Some(url) = &well_known {
        // The entry URL did answer, so this is only one route that leads nowhere.
        if let Err(error) = search.well_known(url).await {
            search.tried(Route::WellKnown, url, &error);
        }
    }
    let is_html = page.as_ref().is_some_and(|page| page.is_html);
    let (mut catalogs, mut landing, mut repositories) = (Vec::new(), None, Vec::new());
    if let Some(mut page) = page
        && !search.found.has_sets()
    {
        (catalogs, landing) = (std::mem::take(&mut page.catalogs), page.landing.take());
        repositories = std::mem::take(&mut page.repositories);
        search.page_links(page).await;
    }
    // A landing page that the operator gives stands for itself, and not for all of its host.
    if !is_site && !search.found.has_sets() && landing.is_some() {
        search.take_page(landing);
        return search.end(entry, None);
    }
    if (is_site || is_html || !catalogs.is_empty())
        && !search.found.has_sets()
        && let Some(repository) = search.api_catalog(entry, catalogs).await
    {
        return Ok((repository, None));
    }
    if !search.found.has_sets() {
        for url in repositories {
            if let Some(repository) = search.repository(&url, Route::HtmlLink).await {
                return Ok((repository, None));
            }
        }
    }
    if (is_site || is_html) && !search.found.has_sets() {
        search.robots(entry).await;
    }
    if is_site && !search.found.has_sets() {
        search.usual_sitemap(entry).await;
    }
    if !search.found.has_sets() {
        search.take_page(landing);
    }
    search.end(entry, Some(why))
}

impl Search<'_> {
    /// Tries the host's well-known URI. Fails if the host does not answer.
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

    /// Uses a document that is given directly. What it is a part of is only noted, unless it is closed: then only other
    /// documents tell later changes.
    async fn take_given(&mut self, given: Small) {
        if is_closed_change_document(&given) {
            return self.go_on(given).await;
        }
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

    /// Tries the Capability Lists that the page links to.
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

    /// Tries the host's `robots.txt`.
    async fn robots(&mut self, entry: &Url) {
        self.prefetched = None;
        let (Ok(url), Ok(origin)) = (entry.join("/robots.txt"), Origin::of(entry)) else { return };
        let (robots, requests) = self.client.robots(&origin).await;
        self.found.requests += u64::from(requests);
        match robots.fetch() {
            RobotsFetch::Read => {}
            RobotsFetch::Absent(why) => {
                let tried = Tried { route: Route::Robots, url: url.to_string(), why: why.clone() };
                return self.found.tried.push(tried);
            }
            RobotsFetch::Unreachable(why) => return self.found.fail(url, why),
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

    /// The result, if there is any.
    fn end(self, entry: &Url, why: Option<String>) -> Result<(Discovery, Option<Prefetched>), DiscoverError> {
        let found = self.found;
        if !found.sets.is_empty() {
            return Ok((found, self.prefetched));
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
        let has_documents = !found.documents.is_empty();
        Err(DiscoverError::Nothing { url: Box::new(entry.clone()), why, has_documents })
    }
}
