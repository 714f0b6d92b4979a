//! The result of discovery.

use std::fmt;

use model::{KnownDocument, OaiRepository, SetId, SetRecord, Validators};
use resourcesync::{Capability, Link, Quirks, Root};
use serde::Serialize;
use url::Url;
use web::RequestPurpose;

use super::archives::Archive;
use super::hint::Hint;

/// Maximum failures kept, and hints. More are not useful to a reader, and a document can cause one per entry.
const MOST_REMARKS: usize = 1_000;

/// The result of discovery.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Discovery {
    /// Every document that was read on the way, in order.
    pub documents: Vec<Visited>,
    /// The sets of resources.
    pub sets: Vec<(SetId, SetRecord)>,
    /// Documents that should have been read, and why they were not; and false statements in documents. The first
    /// 1,000.
    pub failures: Vec<Unread>,
    /// Routes that led nowhere. That is no fault: a Source need not offer each route.
    pub tried: Vec<Tried>,
    /// Missing or odd things, for display. The first 1,000.
    pub hints: Vec<Hint>,
    /// The title of the page at the entry URL, if that was read: a proposal for the Source's. At most 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The Archives of the sets, where they were read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub archives: Vec<Archive>,
    /// What the repository says about itself, if it is one of OAI-PMH.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oai: Option<Box<OaiRepository>>,
    /// The interfaces that the host's catalog names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<FoundInterface>,
    /// The landing page at the entry URL, if that is the set: its links are read of this.
    #[serde(skip)]
    pub page: Option<Box<SeenPage>>,
    /// Requests made.
    pub requests: u64,
    /// Documents to cache, so that the next discovery can make conditional requests.
    #[serde(skip)]
    pub known: Vec<KnownDocument>,
}

/// A document on the way.
#[derive(Debug, Clone, Serialize)]
pub struct Visited {
    /// Its final URL, after redirects.
    pub url: String,
    /// How it was found.
    pub route: Route,
    /// The document above it: the one that lists it, or the target of its own `up` or `index`.
    pub parent: Option<String>,
    /// Its capability, where it names one.
    pub capability: Option<Capability>,
    /// Its root element.
    pub root: Root,
    /// Number of usable entries. None of a list, of which only the header is read.
    pub entries: Option<u64>,
    /// When its snapshot began, as written in the document.
    pub at: Option<String>,
    /// Target of its `up`.
    pub up: Option<String>,
    /// Target of its `index`.
    pub index: Option<String>,
    /// Validators of this version.
    pub validators: Validators,
    /// Its size in bytes as sent, if the server gives it.
    pub content_length: Option<u64>,
    /// Its quirks in the part that was read, by name.
    pub quirks: Quirks,
    /// Its own links beside those to other documents of the Source: its description, licence, contact and others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
}

/// A document that could not be read, or is not what another document says it is.
#[derive(Debug, Clone, Serialize)]
pub struct Unread {
    /// Its URL.
    pub url: String,
    /// Reason.
    pub why: String,
}

/// A landing page as discovery received it. Its links are not read yet.
#[derive(Debug, Clone)]
pub struct SeenPage {
    /// The requested URL.
    pub requested: Url,
    /// Its final URL.
    pub url: Url,
    /// Validators of this version.
    pub validators: Validators,
    /// Its `Link` headers.
    pub link_headers: Vec<String>,
    /// The beginning of its HTML.
    pub html: String,
}

/// An interface of a host (RFC 9727, FAIRiCat).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundInterface {
    /// Its URL.
    pub url: String,
    /// Its kind, as the catalog documents it.
    pub kind: links::catalog::Kind,
}

/// A route that led nowhere.
#[derive(Debug, Clone, Serialize)]
pub struct Tried {
    /// The route.
    pub route: Route,
    /// URL that was tried.
    pub url: String,
    /// What was found there instead.
    pub why: String,
}

/// How a document was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// It is the given entry URL.
    Given,
    /// At the host's well-known URI (RS-20).
    WellKnown,
    /// By a `Link` header of the entry URL (RS-21).
    LinkHeader,
    /// By a `<link>` of the page at the entry URL (RS-21).
    HtmlLink,
    /// In the host's catalog of interfaces, `/.well-known/api-catalog` (RFC 9727, FAIRiCat).
    ApiCatalog,
    /// At the usual place of a sitemap.
    Sitemap,
    /// By a `Sitemap` line of `robots.txt` (RS-22).
    Robots,
    /// By the `up` of a document below it (RS-23).
    Up,
    /// By the `index` of one of its parts (RS-23).
    Index,
    /// By an entry of the document above it (RS-23).
    Listed,
}

impl Route {
    /// Purpose of the request: whether the Source published the URL for harvesters. A page, a `robots.txt`, and what
    /// is reached upwards from there were not written for harvesters. The specification's own locations and documents
    /// were.
    pub(crate) fn errand(self) -> RequestPurpose {
        match self {
            Self::Given | Self::WellKnown | Self::Listed => RequestPurpose::Invited,
            Self::LinkHeader
            | Self::HtmlLink
            | Self::Robots
            | Self::Up
            | Self::Index
            | Self::ApiCatalog
            | Self::Sitemap => RequestPurpose::Crawling,
        }
    }

    /// The name in `--json` output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::WellKnown => "well-known",
            Self::LinkHeader => "link-header",
            Self::HtmlLink => "html-link",
            Self::ApiCatalog => "api-catalog",
            Self::Sitemap => "sitemap",
            Self::Robots => "robots",
            Self::Up => "up",
            Self::Index => "index",
            Self::Listed => "listed",
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Discovery {
    /// Whether any set is not empty.
    pub(crate) fn has_sets(&self) -> bool {
        self.sets.iter().any(|(_, set)| !set.capabilities.is_empty())
    }

    pub(crate) fn document(&self, url: &str) -> Option<&Visited> {
        self.documents.iter().find(|document| document.url == url)
    }

    pub(crate) fn fail(&mut self, url: impl Into<String>, why: impl ToString) {
        if self.failures.len() < MOST_REMARKS {
            self.failures.push(Unread { url: url.into(), why: why.to_string() });
        }
    }

    pub(crate) fn hint(&mut self, hint: Hint) {
        if self.hints.len() < MOST_REMARKS && !self.hints.contains(&hint) {
            self.hints.push(hint);
        }
    }
}
