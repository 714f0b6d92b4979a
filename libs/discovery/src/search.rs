//! State of one discovery: its requests and their results.

use std::collections::{HashMap, HashSet};

use documents::{DocumentError, Prefetched};
use links::{Limits, header, html};
use model::{KnownDocument, Validators};
use resourcesync::{Capability, Options, relation};
use url::Url;
use web::{Client, GetRequest, WebError};

use super::document::{Level, MOST_ENTRIES, Parsed, Small};
use super::fetch::{self, Answer};
use super::found::{Discovery, Route, SeenPage, Tried, Visited};
use super::hint::{Hint, HintKind};
use super::oai;

/// Maximum requests of one discovery; more mean a loop or an attack.
const MOST_DOCUMENTS: usize = 1_000;
/// Maximum nesting of documents. The specification has three levels; many more mean an endless chain.
pub(crate) const MOST_LEVELS: usize = 8;

/// The most characters of a title, as of one that an operator sets.
const LONGEST_TITLE: usize = 200;

/// Maximum entries cached of all documents of one discovery. Documents beyond it are read again each time.
const MOST_REMEMBERED: usize = 10_000;

/// One discovery.
pub(crate) struct Search<'a> {
    pub(crate) client: &'a Client,
    options: &'a Options,
    pub(crate) found: Discovery,
    /// The open response of the last list, if there was no request since. A response that is not read to its end
    /// keeps others waiting.
    pub(crate) prefetched: Option<Prefetched>,
    /// URLs that were requested or that answered.
    seen: HashSet<Url>,
    /// Documents read while ascending, for use while descending.
    pub(crate) climbed: HashMap<Url, Small>,
    /// Cached documents, by requested URL.
    known: HashMap<String, KnownDocument>,
    /// Entries cached so far.
    remembered: usize,
    asked: usize,
    is_full: bool,
    /// Whether the entries of plain sitemaps are landing pages.
    pub(crate) lists_pages: bool,
}

/// A document to request.
pub(crate) struct Step {
    pub(crate) url: Url,
    pub(crate) route: Route,
    /// The document above it.
    pub(crate) parent: Option<Url>,
    /// Documents between it and the entry URL.
    pub(crate) depth: usize,
    /// Whether the document above it says that it is a Capability List.
    pub(crate) is_announced: bool,
}

/// Result of a visit.
pub(crate) enum Visit {
    Document(Box<Small>),
    Page(Page),
    /// A document that was read before, under another URL.
    Again(Url),
}

/// A response that is not a document.
pub(crate) struct Page {
    pub(crate) why: DocumentError,
    pub(crate) is_html: bool,
    /// Targets of its `resourcesync` links (RS-21).
    pub(crate) links: Vec<(Route, Url)>,
    /// Its title.
    pub(crate) title: Option<String>,
    /// Its catalogs of interfaces (RFC 9727).
    pub(crate) catalogs: Vec<Url>,
    /// OAI-PMH repositories of its host that it links to.
    pub(crate) repositories: Vec<Url>,
    /// What it says, if it is a landing page with typed links (Signposting).
    pub(crate) landing: Option<Box<SeenPage>>,
}

impl Step {
    /// The entry URL as a step.
    pub(crate) fn first(url: Url, route: Route) -> Self {
        Self { url, route, parent: None, depth: 0, is_announced: false }
    }
}

impl<'a> Search<'a> {
    pub(crate) fn new(client: &'a Client, options: &'a Options, known: Vec<KnownDocument>) -> Self {
        Self {
            client,
            options,
            found: Discovery::default(),
            prefetched: None,
            seen: HashSet::new(),
            climbed: HashMap::new(),
            known: known.into_iter().map(|known| (known.url.clone(), known)).collect(),
            remembered: 0,
            asked: 0,
            is_full: false,
            lists_pages: false,
        }
    }

    pub(crate) fn has_seen(&self, url: &Url) -> bool {
        self.seen.contains(url)
    }

    pub(crate) fn hint(&mut self, url: &Url, kind: HintKind) {
        self.found.hint(Hint { url: url.to_string(), kind });
    }

    /// Records a route that led nowhere. A server failure counts as a failure instead, because the route may work
    /// tomorrow.
    pub(crate) fn tried(&mut self, route: Route, url: &Url, error: &WebError) {
        if matches!(error.disposition(), model::Disposition::Retry { .. }) {
            self.found.fail(url.as_str(), error);
        } else {
            self.found.tried.push(Tried { route, url: url.to_string(), why: error.to_string() });
        }
    }

    /// Whether another request is allowed. Notes it once if not.
    pub(crate) fn has_room(&mut self, url: &Url) -> bool {
        self.has_room_behind(0, url)
    }

    /// Whether another document may be queued behind `queued` others.
    pub(crate) fn has_room_behind(&mut self, queued: usize, url: &Url) -> bool {
        // Once a document was left out, no more are queued: a document could list others without end.
        if self.asked + queued < MOST_DOCUMENTS && (queued == 0 || !self.is_full) {
            return true;
        }
        if !self.is_full {
            self.is_full = true;
            self.found.fail(
                url.as_str(),
                format!(
                    "this one and what follows was not read: one discovery reads at most {MOST_DOCUMENTS} documents. \
                     Give a Capability List, to harvest one set at a time"
                ),
            );
        }
        false
    }

    /// Whether a document is `above` or somewhere below it.
    pub(crate) fn is_below(&self, document: &str, above: &str) -> bool {
        let mut at = Some(document);
        // Each step goes up by one document. The number of documents bounds a circle of parents.
        for _ in 0..=self.found.documents.len() {
            let Some(here) = at else { return false };
            if here == above {
                return true;
            }
            at = self.found.document(here).and_then(|document| document.parent.as_deref());
        }
        false
    }

    /// Requests a document.
    pub(crate) async fn visit(&mut self, step: &Step) -> Result<Visit, WebError> {
        self.asked += 1;
        self.prefetched = None;
        self.seen.insert(step.url.clone());
        let known = self.known.get(step.url.as_str());
        let request = GetRequest { errand: step.route.errand(), ..GetRequest::new(step.url.clone()) };
        let answer = fetch::document(self.client, request, self.options, known).await;
        self.found.requests += u64::from(match &answer {
            Ok(answer) => answer.requests,
            Err(error) => error.requests(),
        });
        let answer = answer?;
        if answer.url != step.url && self.found.document(answer.url.as_str()).is_some() {
            return Ok(Visit::Again(answer.url));
        }
        self.seen.insert(answer.url.clone());
        let PageLinks { resourcesync: links, catalogs, repositories, is_landing } = page_links(&answer);
        let Answer { url, parsed, validators, content_length, page, prefetched, link_headers, .. } = answer;
        self.prefetched = prefetched;
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(why) => {
                let title = html::title(&page).map(|title| shortened(&title));
                let is_html = !page.is_empty();
                let requested = step.url.clone();
                let seen = SeenPage { requested, url, validators, link_headers, html: page };
                let landing = is_landing.then(|| Box::new(seen));
                return Ok(Visit::Page(Page { why, is_html, links, title, catalogs, repositories, landing }));
            }
        };
        self.remember(&step.url, &url, &validators, &parsed);
        let header = &parsed.header;
        let small_link = |rel| Some(url.join(&header.link(rel)?.href).ok()?.to_string());
        self.found.documents.push(Visited {
            url: url.to_string(),
            route: step.route,
            parent: step.parent.as_ref().map(Url::to_string),
            capability: header.capability.clone(),
            root: header.root,
            entries: (parsed.level > Level::List).then_some(parsed.named.len() as u64),
            at: header.at.or(header.from).map(|time| time.to_string()),
            up: small_link(relation::UP),
            index: small_link(relation::INDEX),
            validators,
            content_length,
            quirks: parsed.quirks.clone(),
            links: parsed.own_links(&url),
        });
        if step.route == Route::Given {
            for (_, link) in links {
                self.hint(&url, HintKind::LinkHeader(link.into()));
            }
        }
        self.remark(&url, &parsed);
        Ok(Visit::Document(Box::new(Small { url, parsed, depth: step.depth })))
    }

    /// Caches a document that was read whole and is free of doubt, so that "not modified" can replace its text.
    fn remember(&mut self, url: &Url, answered_by: &Url, validators: &Validators, parsed: &Parsed) {
        let room = MOST_REMEMBERED - self.remembered;
        if validators.is_empty() || !parsed.is_certain() || parsed.named.len() > room {
            return;
        }
        self.remembered += parsed.named.len();
        self.found.known.push(parsed.to_known(url, answered_by, validators));
    }

    /// Adds the notes on one document.
    fn remark(&mut self, url: &Url, parsed: &Parsed) {
        let header = &parsed.header;
        if let Some(error) = &parsed.broken {
            self.found.fail(url.as_str(), error);
        }
        if parsed.has_more {
            self.found.fail(
                url.as_str(),
                format!("it has more than {MOST_ENTRIES} entries; what follows them was not read"),
            );
        }
        if parsed.bad > 0 {
            self.hint(url, HintKind::BadEntries(parsed.bad));
        }
        if parsed.is_guess {
            self.hint(url, HintKind::NoCapability { taken_as: parsed.level.as_str() });
        }
        if parsed.level > Level::List && parsed.named.is_empty() {
            self.hint(url, HintKind::NoEntries);
        }
        match &header.capability {
            None if parsed.level == Level::List && (parsed.is_signmap || self.lists_pages) => {}
            None if parsed.level == Level::List => self.hint(url, HintKind::PlainSitemap),
            Some(Capability::ResourceList | Capability::ResourceDump) if header.at.is_none() => {
                self.hint(url, HintKind::NoAt);
            }
            Some(Capability::ChangeList | Capability::ChangeDump) if header.from.is_none() => {
                self.hint(url, HintKind::NoFrom);
            }
            _ => {}
        }
    }
}

/// A title without control characters, and not too long to be shown.
fn shortened(title: &str) -> String {
    title.chars().filter(|c| !c.is_control()).take(LONGEST_TITLE).collect()
}

/// What the links of a response lead to.
struct PageLinks {
    /// Targets of its `resourcesync` links: first those of its headers, then those of its page.
    resourcesync: Vec<(Route, Url)>,
    /// Targets of its `api-catalog` links.
    catalogs: Vec<Url>,
    /// OAI-PMH repositories of its host that it links to.
    repositories: Vec<Url>,
    /// Whether it has the links of a landing page.
    is_landing: bool,
}

fn page_links(answer: &Answer) -> PageLinks {
    let headers = header::read(answer.link_headers.iter().map(String::as_str), &Limits::HEADER);
    let head = html::scan(&answer.page);
    let base = head.base.and_then(|base| answer.url.join(&base).ok());
    let base = base.as_ref().unwrap_or(&answer.url);
    // A link with another context says nothing about this resource.
    let of_header = headers.links.iter().filter(|link| link.is_about(&answer.url));
    let of_header = of_header.map(|link| (Route::LinkHeader, link, link.target_at(&answer.url)));
    let of_head = head.links.links.iter().map(|link| (Route::HtmlLink, link, link.target_at(base)));
    let repositories = oai::linked(&answer.page, base);
    let mut found =
        PageLinks { resourcesync: Vec::new(), catalogs: Vec::new(), repositories, is_landing: false };
    let mut relations: Vec<&str> = Vec::new();
    for (route, link, url) in of_header.chain(of_head) {
        let Some(url) = url else { continue };
        relations.extend(link.relations());
        if link.is("resourcesync") && !found.resourcesync.iter().any(|(_, known)| *known == url) {
            found.resourcesync.push((route, url));
        } else if link.is("api-catalog") && !found.catalogs.contains(&url) {
            found.catalogs.push(url);
        }
    }
    found.is_landing = links::landing::is_landing(relations.into_iter());
    found
}
