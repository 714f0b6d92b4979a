//! The robots.txt of an origin: its rules for crawlers (RFC 9309).

use std::time::Duration;

use url::{Position, Url};

use crate::RequestPurpose;

mod cache;
mod rules;

pub(crate) use cache::RobotsCache;
use rules::Rules;

/// No more of a robots.txt is parsed: RFC 9309, 2.5, requires at least 500 KiB.
pub(crate) const MOST_READ: usize = 512 * 1024;
/// The longest crawl-delay: a longer one is a mistake, or means "no".
const LONGEST_DELAY: Duration = Duration::from_secs(24 * 3600);

/// How robots.txt is obeyed. It is fetched before the first request to an origin that `Disallow` binds for,
/// and before the second where only the crawl-delay counts: one more request per origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsPolicy {
    /// Whether requests to an origin are spaced by its crawl-delay.
    pub crawl_delay: bool,
    /// The longest crawl-delay that is obeyed; a longer one counts as this.
    pub crawl_delay_max: Duration,
    /// Which requests obey `Disallow`.
    pub disallow: Disallow,
}

/// Which requests obey `Disallow`. They are not sent, either, where robots.txt cannot be fetched (RFC 9309,
/// 2.3.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Disallow {
    /// None.
    #[default]
    Ignored,
    /// Those of [`RequestPurpose::Crawling`], and those to other sites than the entry's
    /// ([`WebConfig::entry`](crate::WebConfig::entry)). A ResourceSync document is an invitation to its
    /// owner's site only; other links are not.
    WhereCrawling,
    /// All.
    Everywhere,
}

/// The rules of an origin's robots.txt for this client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Robots {
    fetch: RobotsFetch,
    /// Whether a server answered at all.
    is_answered: bool,
    rules: Rules,
    crawl_delay: Option<Duration>,
    sitemaps: Vec<String>,
    location: Option<Url>,
}

/// How the rules of a [`Robots`] were obtained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RobotsFetch {
    /// From a robots.txt.
    Read,
    /// There is none, by this response: everything is allowed (RFC 9309, 2.3.1.3).
    Absent(String),
    /// It could not be fetched, for this reason. A policy that obeys it sends no requests (RFC 9309,
    /// 2.3.1.4).
    Unreachable(String),
}

/// A group of lines during parsing.
#[derive(Debug, Default)]
struct Group {
    found: bool,
    rules: Rules,
    crawl_delay: Option<Duration>,
}

impl RobotsPolicy {
    /// No robots.txt is fetched.
    pub fn ignore() -> Self {
        Self { crawl_delay: false, crawl_delay_max: Duration::from_secs(60), disallow: Disallow::Ignored }
    }

    /// Obeys crawl-delays up to a minute, and `Disallow` for requests that are not invited.
    pub fn links_only() -> Self {
        Self { crawl_delay: true, disallow: Disallow::WhereCrawling, ..Self::ignore() }
    }

    /// Obeys crawl-delays up to a minute, and `Disallow` for all requests.
    pub fn obey() -> Self {
        Self { disallow: Disallow::Everywhere, ..Self::links_only() }
    }

    /// Whether robots.txt is needed before a request.
    pub(crate) fn asks(&self, errand: RequestPurpose, is_foreign: bool) -> bool {
        self.crawl_delay || self.disallow.binds(errand, is_foreign)
    }
}

impl Disallow {
    /// Whether `Disallow` binds for a request; `is_foreign` if it goes to another site than the entry's.
    pub(crate) fn binds(self, errand: RequestPurpose, is_foreign: bool) -> bool {
        match self {
            Self::Ignored => false,
            Self::WhereCrawling => is_foreign || errand == RequestPurpose::Crawling,
            Self::Everywhere => true,
        }
    }
}

/// Fetches nothing: [`RobotsPolicy::ignore`].
impl Default for RobotsPolicy {
    fn default() -> Self {
        Self::ignore()
    }
}

impl Robots {
    /// Parses a robots.txt for `agent` (its name, with or without `/version`). Any bytes are accepted;
    /// unknown lines are skipped. Nothing is parsed beyond 512 KiB, nor the line that is cut there.
    pub fn parse(text: &[u8], agent: &str) -> Self {
        let agent = product(agent.as_bytes());
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let text = match text.get(..MOST_READ) {
            Some(head) if head.len() < text.len() => {
                &head[..head.iter().rposition(|&byte| is_line_end(byte)).unwrap_or(0)]
            }
            _ => text,
        };
        let mut ours = Group::default();
        let mut everybodys = Group::default();
        let mut sitemaps = Vec::new();
        // The agents of the present lines, and whether more agent lines may follow.
        let mut for_us = false;
        let mut for_all = false;
        let mut naming = false;
        for (name, value) in text.split(|&byte| is_line_end(byte)).filter_map(line) {
            if name.eq_ignore_ascii_case(b"user-agent") {
                if !naming {
                    for_us = false;
                    for_all = false;
                    naming = true;
                }
                let named = product(value);
                for_all |= value == b"*";
                for_us |= !agent.is_empty() && named.eq_ignore_ascii_case(agent);
                ours.found |= for_us;
                continue;
            }
            let groups = [(for_us, &mut ours), (for_all, &mut everybodys)];
            let groups = groups.into_iter().filter_map(|(is_for, group)| is_for.then_some(group));
            if name.eq_ignore_ascii_case(b"sitemap") {
                // Belongs to the whole file, wherever it stands; it does not end the agent lines.
                if let Ok(url) = std::str::from_utf8(value)
                    && !url.is_empty()
                {
                    sitemaps.push(url.to_owned());
                }
            } else if name.eq_ignore_ascii_case(b"allow") || name.eq_ignore_ascii_case(b"disallow") {
                naming = false;
                groups.for_each(|group| group.rules.add(name.len() == "allow".len(), value));
            } else if name.eq_ignore_ascii_case(b"crawl-delay") {
                naming = false;
                let delay = delay(value);
                groups.for_each(|group| group.crawl_delay = group.crawl_delay.max(delay));
            }
        }
        let group = if ours.found { ours } else { everybodys };
        let Group { rules, crawl_delay, .. } = group;
        Self { fetch: RobotsFetch::Read, is_answered: true, rules, crawl_delay, sitemaps, location: None }
    }

    /// The result for an origin whose robots.txt was not read: it has no rules.
    pub(crate) fn unread(fetch: RobotsFetch, is_answered: bool) -> Self {
        let rules = Rules::default();
        Self { fetch, is_answered, rules, crawl_delay: None, sitemaps: Vec::new(), location: None }
    }

    pub(crate) fn read_at(mut self, location: Url) -> Self {
        self.location = Some(location);
        self
    }

    /// Whether no server answered at its URL, so that a request there fails by itself.
    pub(crate) fn is_silent(&self) -> bool {
        !self.is_answered
    }

    /// How the rules were obtained.
    pub fn fetch(&self) -> &RobotsFetch {
        &self.fetch
    }

    /// The requested interval between two requests, at most a day. Not part of the RFC, but widely used.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// Whether a crawler may fetch a URL of this origin.
    pub fn allows(&self, url: &Url) -> bool {
        self.rules.allow(&url[Position::BeforePath..Position::AfterQuery])
    }

    /// Its URL after redirects; none if it was not read.
    pub fn location(&self) -> Option<&Url> {
        self.location.as_ref()
    }

    /// The URLs of its `Sitemap` lines, as written.
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }

    /// Estimated bytes in memory.
    pub(crate) fn size(&self) -> usize {
        let sitemaps: usize = self.sitemaps.iter().map(|url| url.len() + size_of::<String>()).sum();
        size_of::<Self>() + self.rules.size() + sitemaps
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// The two sides of a line, without comment and white space.
fn line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.split(|&byte| byte == b'#').next()?;
    let colon = line.iter().position(|&byte| byte == b':')?;
    Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()))
}

/// The name of an agent without its version.
fn product(agent: &[u8]) -> &[u8] {
    agent.split(|&byte| byte == b'/' || byte.is_ascii_whitespace()).next().unwrap_or_default()
}

/// Seconds, with or without a fraction.
fn delay(value: &[u8]) -> Option<Duration> {
    let digits = value.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let seconds: f64 = std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()?;
    Some(Duration::try_from_secs_f64(seconds).map_or(LONGEST_DELAY, |delay| delay.min(LONGEST_DELAY)))
}

#[cfg(test)]
mod tests;
