//! What was found, and how.

use std::fmt;

use model::{KnownDocument, SetId, SetRecord, Validators};
use resourcesync::{Capability, Quirks, Root};
use serde::Serialize;
use web::Errand;

use super::hint::Hint;

/// Failures kept, and hints: nobody reads more, and a document can be made to give one by entry.
const MOST_REMARKS: usize = 1_000;

/// What was found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Discovery {
    /// Every document that was read on the way, in order.
    pub documents: Vec<Visited>,
    /// The sets of resources.
    pub sets: Vec<(SetId, SetRecord)>,
    /// Documents that should have been read, and why they were not; and what they say that cannot be true. The first
    /// 1,000.
    pub failures: Vec<Unread>,
    /// Ways that led nowhere. That is no fault: a Source need not offer each of them.
    pub tried: Vec<Tried>,
    /// What is missing or odd, for a person to see. The first 1,000.
    pub hints: Vec<Hint>,
    /// Requests made.
    pub requests: u64,
    /// What to remember of the documents, to ask next time whether they are still the same.
    #[serde(skip)]
    pub(crate) known: Vec<KnownDocument>,
}

/// A document on the way.
#[derive(Debug, Clone, Serialize)]
pub struct Visited {
    /// Its URL, after redirects.
    pub url: String,
    /// How it was found.
    pub route: Route,
    /// The document above it: the one that lists it, or that its own `up` or `index` leads to.
    pub parent: Option<String>,
    /// Its capability, where it names one.
    pub capability: Option<Capability>,
    /// Its root element.
    pub root: Root,
    /// Entries that can be used. None of a list, of which only the head is read.
    pub entries: Option<u64>,
    /// When its snapshot began, in its own words.
    pub at: Option<String>,
    /// Where its `up` leads.
    pub up: Option<String>,
    /// Where its `index` leads.
    pub index: Option<String>,
    /// What to recognise this version by.
    pub validators: Validators,
    /// Its size in bytes as it is sent, where the server tells.
    pub content_length: Option<u64>,
    /// What is odd in as much of it as was read, by name.
    pub quirks: Quirks,
}

/// A document that could not be read, or is not what it was said to be.
#[derive(Debug, Clone, Serialize)]
pub struct Unread {
    /// Its URL.
    pub url: String,
    /// What happened.
    pub why: String,
}

/// A way that led nowhere.
#[derive(Debug, Clone, Serialize)]
pub struct Tried {
    /// The way.
    pub route: Route,
    /// Where it was looked for.
    pub url: String,
    /// What was there instead.
    pub why: String,
}

/// How a document was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// It is the way in that was given.
    Given,
    /// At the host's well-known place (RS-20).
    WellKnown,
    /// By a `Link` header of the way in (RS-21).
    LinkHeader,
    /// By a `<link>` of the page that is the way in (RS-21).
    HtmlLink,
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
    /// Whether it is an invitation. A page and a `robots.txt` are for everybody, and what leads upwards from there was asked for by
    /// nobody; what the specification's own places and documents name is meant for us.
    pub(super) fn errand(self) -> Errand {
        match self {
            Self::Given | Self::WellKnown | Self::Listed => Errand::Invited,
            Self::LinkHeader | Self::HtmlLink | Self::Robots | Self::Up | Self::Index => Errand::Crawling,
        }
    }

    /// The name that `--json` uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::WellKnown => "well-known",
            Self::LinkHeader => "link-header",
            Self::HtmlLink => "html-link",
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
    /// Whether there is a set with anything in it.
    pub(super) fn has_sets(&self) -> bool {
        self.sets.iter().any(|(_, set)| !set.capabilities.is_empty())
    }

    pub(super) fn document(&self, url: &str) -> Option<&Visited> {
        self.documents.iter().find(|document| document.url == url)
    }

    pub(super) fn fail(&mut self, url: impl Into<String>, why: impl ToString) {
        if self.failures.len() < MOST_REMARKS {
            self.failures.push(Unread { url: url.into(), why: why.to_string() });
        }
    }

    pub(super) fn hint(&mut self, hint: Hint) {
        if self.hints.len() < MOST_REMARKS && !self.hints.contains(&hint) {
            self.hints.push(hint);
        }
    }
}
