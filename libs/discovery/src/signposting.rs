//! The door of Signposting: a host without ResourceSync may name its interfaces in a catalog (FAIRiCat), list its
//! landing pages in a sitemap (Signmap), or be asked for one landing page.

use links::catalog::{self, Kind};
use model::{CapabilityLink, OaiOptions, PageList, SetId, SetRecord};
use oaipmh::Pasted;
use resourcesync::Capability;
use url::Url;
use web::RequestPurpose;

use crate::error::DiscoverError;
use crate::found::{Discovery, FoundInterface, Route, SeenPage, Tried};
use crate::link_set::{SetError, request_set};
use crate::link_set_memory::{HeldMemory, LinkSetMemory};
use crate::oai;
use crate::search::{Search, Step, Visit};

/// The usual place of a sitemap.
const SITEMAP: &str = "/sitemap.xml";
/// The most interfaces of a catalog that are looked at, and catalogs.
const MOST_INTERFACES: usize = 50;
const MOST_CATALOGS: usize = 2;
/// What is known best comes first.
const ORDER: [Kind; 4] = [Kind::ResourceSync, Kind::OaiPmh, Kind::Signmap, Kind::Sitemap];

impl Search<'_> {
    /// Takes the entry page itself as the set: a landing page.
    pub(crate) fn take_page(&mut self, page: Option<Box<SeenPage>>) {
        let Some(seen) = page else { return };
        let page = seen.requested.clone();
        self.found.page = Some(seen);
        let set = SetRecord {
            capabilities: vec![CapabilityLink::new(Capability::ResourceList, page.as_str())],
            pages: Some(PageList::Page),
            ..SetRecord::default()
        };
        self.found.sets.push((SetId::new(page.as_str()), set));
    }

    /// Records that a list is one of landing pages.
    pub(crate) fn mark_pages(&mut self, list: &Url) {
        let id = SetId::new(list.as_str());
        if let Some((_, set)) = self.found.sets.iter_mut().find(|(known, _)| *known == id) {
            set.pages = Some(PageList::Sitemap);
        }
    }

    /// Tries the catalogs of interfaces: those that the page links to, otherwise the one below it, which is the host's
    /// if the page is that of the host (FAIRiCat). Of the interfaces, the one that is known best is used. Returns
    /// another discovery if that is an OAI-PMH repository.
    pub(crate) async fn api_catalog(&mut self, entry: &Url, named: Vec<Url>) -> Option<Discovery> {
        self.prefetched = None;
        let well_known = catalog_below(entry).filter(|_| named.is_empty());
        let mut interfaces = Vec::new();
        let mut memory = HeldMemory::of(LinkSetMemory::default());
        for url in named.into_iter().chain(well_known).take(MOST_CATALOGS) {
            if self.has_seen(&url) || !self.has_room(&url) {
                continue;
            }
            let (requests, read) =
                request_set(self.client, &url, None, RequestPurpose::Invited, &mut memory).await;
            self.found.requests += requests;
            match read {
                Ok((at, links)) => interfaces.extend(catalog::interfaces(&links, &at)),
                // It says what kind of Source the host is: where it may answer tomorrow, that is not known today.
                Err(SetError::Web(error)) => self.tried(Route::ApiCatalog, &url, &error),
                Err(error) => {
                    let why = error.to_string();
                    self.found.tried.push(Tried { route: Route::ApiCatalog, url: url.to_string(), why });
                }
            }
        }
        interfaces.truncate(MOST_INTERFACES);
        let shown = interfaces.iter().map(|one| FoundInterface { url: one.url.to_string(), kind: one.kind });
        self.found.interfaces = shown.collect();
        let has_pages = interfaces.iter().any(|one| one.kind == Kind::Signposting);
        for kind in ORDER {
            for one in interfaces.iter().filter(|one| one.kind == kind) {
                if kind == Kind::OaiPmh {
                    if let Some(found) = self.repository(&one.url, Route::ApiCatalog).await {
                        return Some(found);
                    }
                    continue;
                }
                let lists_pages = self.lists_pages;
                self.lists_pages |= kind == Kind::Signmap || kind == Kind::Sitemap && has_pages;
                self.try_document(&one.url, Route::ApiCatalog).await;
                self.lists_pages = lists_pages;
            }
            if self.found.has_sets() {
                break;
            }
        }
        // What robots.txt names are then landing pages, too.
        self.lists_pages |= has_pages;
        None
    }

    /// The OAI-PMH repository that a catalog names, or a page.
    pub(crate) async fn repository(&mut self, url: &Url, route: Route) -> Option<Discovery> {
        let pasted = Pasted::read(url).ok()?;
        match oai::discover(self.client, &pasted, &OaiOptions::default()).await {
            Ok(mut found) => {
                found.requests += self.found.requests;
                found.interfaces = std::mem::take(&mut self.found.interfaces);
                found.tried = std::mem::take(&mut self.found.tried);
                found.title = self.found.title.take();
                Some(found)
            }
            Err(DiscoverError::Unreachable(error)) => {
                self.found.requests += u64::from(error.requests());
                self.tried(Route::ApiCatalog, url, &error);
                None
            }
            Err(error) => {
                self.found.requests += 1;
                let tried = Tried { route, url: url.to_string(), why: error.to_string() };
                self.found.tried.push(tried);
                None
            }
        }
    }

    /// Tries the usual place of a sitemap.
    pub(crate) async fn usual_sitemap(&mut self, entry: &Url) {
        if let Ok(url) = entry.join(SITEMAP) {
            self.try_document(&url, Route::Sitemap).await;
        }
    }

    /// Uses the document at a URL, if there is one.
    async fn try_document(&mut self, url: &Url, route: Route) {
        if self.has_seen(url) || !self.has_room(url) {
            return;
        }
        match self.visit(&Step::first(url.clone(), route)).await {
            Ok(Visit::Document(small)) => self.follow(*small).await,
            Ok(Visit::Again(_)) => {}
            Ok(Visit::Page(page)) => {
                let why = page.why.to_string();
                self.found.tried.push(Tried { route, url: url.to_string(), why });
            }
            Err(error) => self.tried(route, url, &error),
        }
    }
}

/// The usual place of the catalog of the interfaces behind an entry page. None below a file or a query.
pub(crate) fn catalog_below(entry: &Url) -> Option<Url> {
    let folder = entry.path().trim_end_matches('/');
    let is_file = !entry.path().ends_with('/') && folder.rsplit('/').next()?.contains('.');
    let mut url = entry.clone();
    url.set_path(&format!("{folder}{}", catalog::WELL_KNOWN));
    url.set_fragment(None);
    (!is_file && entry.query().is_none()).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalog_of_an_entry_page_lies_below_it() {
        let below = |entry: &str| catalog_below(&entry.parse().unwrap()).map(String::from);
        for (entry, catalog) in [
            ("http://h", Some("http://h/.well-known/api-catalog")),
            ("http://h/", Some("http://h/.well-known/api-catalog")),
            ("http://h/repo/", Some("http://h/repo/.well-known/api-catalog")),
            ("http://h/repo#top", Some("http://h/repo/.well-known/api-catalog")),
            ("http://h/v1.0/", Some("http://h/v1.0/.well-known/api-catalog")),
            ("http://h/repo/index.html", None),
            ("http://h/repo/?lang=en", None),
        ] {
            assert_eq!(below(entry).as_deref(), catalog, "{entry}");
        }
    }
}
