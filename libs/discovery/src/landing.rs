//! The typed links of a landing page (Signposting): of its `Link` headers, its HTML, and its link sets.

use std::collections::BTreeMap;

use documents::BodyPrefix;
use links::landing::{Finding, Place, TypedLink, Union};
use links::linkset::Format;
use links::{Fault, Faults, Limits, Links, header, html};
use model::Validators;
use url::Url;
use web::{Client, GetRequest, RequestPurpose, Response, WebError};

use crate::found::SeenPage;
use crate::link_set::{SetError, read_set, request_set};
use crate::link_set_memory::{HeldMemory, LinkSetMemory, SMALL};

/// Maximum link sets of a page that are read.
const MOST_SETS: usize = 8;
/// Maximum bytes of a page that are examined.
const MOST_OF_A_PAGE: usize = 256 * 1024;

/// A landing page to read.
#[derive(Debug, Clone)]
pub struct PageRequest {
    /// Its URL.
    pub url: Url,
    /// The version that is known. A server that still has it is not read again.
    pub validators: Validators,
    /// Its link sets, as far as they are known: URL and declared media type. They are read where the page fails.
    pub link_sets: Vec<(Url, Option<String>)>,
    /// Whether a list invites to the page, or only a link leads there.
    pub purpose: RequestPurpose,
}

/// The answer of a landing page.
#[derive(Debug)]
pub enum PageAnswer {
    /// It is the version that is known.
    Unchanged {
        /// Requests made.
        requests: u64,
    },
    /// What it says.
    Read(Box<Landing>),
}

/// What a landing page, or a link set, says. Until it is dropped, no other page that shares its memory can hold large
/// link sets, if it does.
#[derive(Debug)]
pub struct Landing {
    /// Its final URL.
    pub url: Url,
    /// Validators of this version; none if its links were read elsewhere.
    pub validators: Validators,
    /// The links about it and about what it names, in the order in which they were found.
    pub links: Vec<TypedLink>,
    /// Whether it is HTML or a link set. What else stands where a page should, such as a file, is not received.
    pub is_page: bool,
    /// Links about other resources, or beyond the limits.
    pub others: u64,
    /// Link sets that could not be read, and why; and what is beyond a limit.
    pub unread: Vec<(Url, String)>,
    /// Tolerated faults, by name.
    pub faults: BTreeMap<&'static str, u64>,
    /// What is wrong or missing.
    pub findings: Vec<Finding>,
    /// Requests made.
    pub requests: u64,
    _memory: HeldMemory,
}

/// Reads the typed links of a page, and of the link sets that it names. A link set may be given as well; then all of
/// its links count.
///
/// # Errors
/// When the page cannot be requested. A link set that cannot be read is named in the result.
pub async fn landing(client: &Client, page: &Url) -> Result<Landing, WebError> {
    let response = client.get_with_retries(GetRequest::new(page.clone())).await?;
    read_response(client, page, response, LinkSetMemory::default()).await
}

/// The same for a page of which a version may be known. It is one request, and one more for each link set; two for a
/// large one that comes while another page holds the memory for large ones.
///
/// # Errors
/// When the page cannot be requested, and no link set is known instead.
pub async fn read_page(
    client: &Client,
    page: PageRequest,
    memory: LinkSetMemory,
) -> Result<PageAnswer, WebError> {
    let PageRequest { url, validators, link_sets, purpose } = page;
    let request = GetRequest { validators, errand: purpose, ..GetRequest::new(url.clone()) };
    match client.get_with_retries(request).await {
        Ok(response) if response.status() == 304 => {
            Ok(PageAnswer::Unchanged { requests: u64::from(response.requests()) })
        }
        Ok(response) => {
            read_response(client, &url, response, memory).await.map(Box::new).map(PageAnswer::Read)
        }
        Err(error) if may_be_its_header(&error) && !link_sets.is_empty() => {
            let mut reading = Reading::of(Union::new(url), u64::from(error.requests()), memory);
            reading.faults.add(Fault::NoPage);
            reading.sets(client, link_sets).await;
            Ok(PageAnswer::Read(Box::new(reading.end(Validators::default(), false))))
        }
        Err(error) => Err(error),
    }
}

/// Whether a failure may come from a `Link` header that a proxy does not take.
fn may_be_its_header(error: &WebError) -> bool {
    error.status().is_some_and(|status| status == 431 || (500..=599).contains(&status))
}

/// The same for a page that discovery has received: no request, and one for each link set.
pub async fn read_seen(client: &Client, page: SeenPage, memory: LinkSetMemory) -> Landing {
    let SeenPage { requested, url, validators, link_headers, html } = page;
    let mut reading = Reading::of(Union::new(url.clone()).also(requested), 0, memory);
    let headers = header::read(link_headers.iter().map(String::as_str), &Limits::HEADER);
    reading.add(Place::Header, &url, &headers);
    reading.add_head(&url, &html);
    let sets = reading.union.link_sets();
    reading.sets(client, sets).await;
    reading.end(validators, false)
}

async fn read_response(
    client: &Client,
    page: &Url,
    mut response: Response,
    memory: LinkSetMemory,
) -> Result<Landing, WebError> {
    let url = response.final_url().clone();
    let validators = response.validators();
    let union = Union::new(url.clone()).also(page.clone());
    let mut reading = Reading::of(union, u64::from(response.requests()), memory);
    let headers = header::read(response.header_values("link"), &Limits::HEADER);
    reading.add(Place::Header, &url, &headers);
    let is_set = response.media_type().and_then(|said| Format::of(&said)).is_some();
    let mut own = None;
    if is_set {
        own = Some(read_set(&mut response, None, &mut reading.memory).await);
    } else if response.is_html() {
        let html = beginning(&mut response).await?;
        reading.add_head(&url, &html);
    } else {
        reading.is_page = false;
    }
    // An open response takes a permit of its origin.
    drop(response);
    match own {
        Some(Err(SetError::NoMemory)) => reading.sets(client, vec![(url.clone(), None)]).await,
        Some(read) => reading.take_set(&url, read.map(|links| (url.clone(), links))).await,
        None => {}
    }
    let sets = reading.union.link_sets();
    reading.sets(client, sets).await;
    Ok(reading.end(validators, is_set))
}

/// A page that is being read.
struct Reading {
    union: Union,
    is_page: bool,
    faults: Faults,
    unread: Vec<(Url, String)>,
    requests: u64,
    /// A place with more links than are read: a link set, if there is one.
    beyond: Option<(Place, Url)>,
    /// Whether a link set was read.
    has_set: bool,
    memory: HeldMemory,
}

impl Reading {
    fn of(union: Union, requests: u64, memory: LinkSetMemory) -> Self {
        let (faults, unread, memory) = (Faults::default(), Vec::new(), HeldMemory::of(memory));
        Self { union, is_page: true, faults, unread, requests, beyond: None, has_set: false, memory }
    }

    fn add(&mut self, place: Place, base: &Url, links: &Links) {
        self.faults.merge(&links.faults);
        let is_cut =
            [Fault::TooManyLinks, Fault::TooManyBytes].iter().any(|fault| links.faults.count(*fault) > 0);
        let is_set = place == Place::LinkSet;
        self.has_set |= is_set;
        let had_room = self.union.add(place, base, links);
        if (is_cut || !had_room) && (is_set || self.beyond.is_none()) {
            self.beyond = Some((place, base.clone()));
        }
    }

    /// Adds the links of the head of an HTML page at `url`.
    fn add_head(&mut self, url: &Url, html: &str) {
        let head = html::scan(html);
        let base = head.base.and_then(|base| url.join(&base).ok());
        self.add(Place::Head, base.as_ref().unwrap_or(url), &head.links);
    }

    async fn sets(&mut self, client: &Client, mut sets: Vec<(Url, Option<String>)>) {
        for (set, _) in sets.split_off(sets.len().min(MOST_SETS)) {
            self.unread.push((set, format!("at most {MOST_SETS} link sets of a page are read")));
        }
        for (set, declared) in sets {
            let crawling = RequestPurpose::Crawling;
            let (made, read) =
                request_set(client, &set, declared.as_deref(), crawling, &mut self.memory).await;
            self.requests += made;
            self.take_set(&set, read).await;
        }
    }

    /// Takes what was read of a link set. No response may be open.
    async fn take_set(&mut self, set: &Url, read: Result<(Url, Links), SetError>) {
        match read {
            Ok((at, links)) => {
                if links.size() > SMALL {
                    self.memory.grow().await;
                }
                self.add(Place::LinkSet, &at, &links);
            }
            Err(error) => self.unread.push((set.clone(), error.to_string())),
        }
    }

    fn end(self, validators: Validators, is_set: bool) -> Landing {
        let Self { union, is_page, faults, mut unread, requests, beyond, has_set, memory } = self;
        let links: Vec<_> = if is_set { union.links().to_vec() } else { union.counting().cloned().collect() };
        // A link set completes what is cut elsewhere.
        if let Some((_, url)) = beyond.filter(|(place, _)| *place == Place::LinkSet || !has_set) {
            unread.push((url, "it has more links than are read".to_owned()));
        }
        Landing {
            url: union.page().clone(),
            validators,
            others: union.left_out() + (union.links().len() - links.len()) as u64,
            links,
            is_page,
            unread,
            faults: faults.iter().map(|(fault, times)| (fault.as_str(), times)).collect(),
            findings: if is_set { Vec::new() } else { union.findings().into_iter().collect() },
            requests,
            _memory: memory,
        }
    }
}

/// The beginning of a page.
async fn beginning(response: &mut Response) -> Result<String, WebError> {
    let mut prefix = BodyPrefix::default();
    while prefix.kept_bytes() < MOST_OF_A_PAGE {
        let Some(chunk) = response.chunk().await? else { break };
        prefix.add(&chunk);
    }
    Ok(prefix.text(MOST_OF_A_PAGE))
}
