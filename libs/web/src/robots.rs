//! What an origin's robots.txt asks of those who come without being asked (RFC 9309).

use std::time::Duration;

use url::{Position, Url};

use crate::Errand;

mod cache;
mod fetch;
mod rules;

pub(crate) use cache::RobotsCache;
use rules::Rules;

/// No more of a robots.txt is read: RFC 9309, 2.5, asks for at least 500 KiB.
const MOST_READ: usize = 512 * 1024;
/// A crawl-delay is at most that: what is longer is a mistake, or a way to say no.
const LONGEST_DELAY: Duration = Duration::from_secs(24 * 3600);

/// What is made of robots.txt. It is fetched before the first request to an origin that keeps to what is disallowed, and before
/// the second where only the crawl-delay counts: one more request for each origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsPolicy {
    /// Whether requests to an origin are spaced by its crawl-delay.
    pub crawl_delay: bool,
    /// The longest crawl-delay that is kept; a longer one counts as this.
    pub crawl_delay_max: Duration,
    /// Which requests keep to what is disallowed.
    pub disallow: Disallow,
}

/// Which requests keep to what robots.txt disallows. They also stay away where it cannot be had (RFC 9309, 2.3.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Disallow {
    /// None.
    #[default]
    Ignored,
    /// Those of [`Errand::Crawling`], and those to other sites than the entry's
    /// ([`WebConfig::entry`](crate::WebConfig::entry)): a ResourceSync publication is an invitation to the site of its
    /// owner, any other link is none.
    WhereCrawling,
    /// All.
    Everywhere,
}

/// What the robots.txt of an origin says to us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Robots {
    standing: RobotsStanding,
    /// Whether a server answered at all.
    is_answered: bool,
    rules: Rules,
    crawl_delay: Option<Duration>,
    sitemaps: Vec<String>,
    location: Option<Url>,
}

/// Where the word of a [`Robots`] comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RobotsStanding {
    /// From a robots.txt.
    Read,
    /// There is none, as this answer says: everything is allowed (RFC 9309, 2.3.1.3).
    Absent(String),
    /// It could not be had, for this reason: whoever keeps to it stays away (RFC 9309, 2.3.1.4).
    Unreachable(String),
}

/// A group of lines while it is read.
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

    /// The crawl-delay is kept, up to a minute, and where no invitation leads, what is disallowed is refused.
    pub fn invited() -> Self {
        Self { crawl_delay: true, disallow: Disallow::WhereCrawling, ..Self::ignore() }
    }

    /// The crawl-delay is kept, up to a minute, and what is disallowed is refused, whatever leads there.
    pub fn obey() -> Self {
        Self { disallow: Disallow::Everywhere, ..Self::invited() }
    }

    /// Whether robots.txt has to be known before a request.
    pub(crate) fn asks(&self, errand: Errand, is_foreign: bool) -> bool {
        self.crawl_delay || self.disallow.binds(errand, is_foreign)
    }
}

impl Disallow {
    /// Whether a request keeps to what is disallowed; `is_foreign` where it goes to another site than the entry's.
    pub(crate) fn binds(self, errand: Errand, is_foreign: bool) -> bool {
        match self {
            Self::Ignored => false,
            Self::WhereCrawling => is_foreign || errand == Errand::Crawling,
            Self::Everywhere => true,
        }
    }
}

/// Nothing is fetched: [`RobotsPolicy::ignore`].
impl Default for RobotsPolicy {
    fn default() -> Self {
        Self::ignore()
    }
}

impl Robots {
    /// Reads a robots.txt as the reader who calls itself `agent` (its name, with or without `/version`). Any bytes
    /// can be read; lines that say nothing known are passed over. Beyond 512 KiB nothing is read, nor is the line
    /// that is cut there.
    pub fn parse(text: &[u8], agent: &str) -> Self {
        let agent = product(agent.as_bytes());
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let text = match text.get(..MOST_READ) {
            Some(head) if head.len() < text.len() => {
                &head[..head.iter().rposition(|&byte| is_line_end(byte)).unwrap_or(0)]
            }
            _ => text,
        };
        let (mut ours, mut everybodys) = (Group::default(), Group::default());
        let mut sitemaps = Vec::new();
        // For whom the present lines are, and whether more readers may still be named.
        let (mut for_us, mut for_all, mut naming) = (false, false, false);
        for (name, value) in text.split(|&byte| is_line_end(byte)).filter_map(line) {
            if name.eq_ignore_ascii_case(b"user-agent") {
                if !naming {
                    (for_us, for_all, naming) = (false, false, true);
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
                // Of the whole file, wherever it stands; ends no list of readers.
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
        Self {
            standing: RobotsStanding::Read,
            is_answered: true,
            rules,
            crawl_delay,
            sitemaps,
            location: None,
        }
    }

    /// What there is to say of an origin whose robots.txt was not read: everything may be fetched, if anything.
    pub(crate) fn unread(standing: RobotsStanding, is_answered: bool) -> Self {
        let rules = Rules::default();
        Self { standing, is_answered, rules, crawl_delay: None, sitemaps: Vec::new(), location: None }
    }

    pub(crate) fn read_at(mut self, location: Url) -> Self {
        self.location = Some(location);
        self
    }

    /// Whether nothing answered where it was asked for, so that a request will fail there by itself.
    pub(crate) fn is_silent(&self) -> bool {
        !self.is_answered
    }

    /// Where this comes from.
    pub fn standing(&self) -> &RobotsStanding {
        &self.standing
    }

    /// The time to leave between two requests, as it is asked for, at most a day. Not of the RFC, but widely used.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// Whether a URL of this origin may be fetched by one who was not invited.
    pub fn allows(&self, url: &Url) -> bool {
        self.rules.allow(&url[Position::BeforePath..Position::AfterQuery])
    }

    /// Where it was read, after redirects; none where it was not.
    pub fn location(&self) -> Option<&Url> {
        self.location.as_ref()
    }

    /// The URLs of its `Sitemap` lines, as they are written.
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }

    /// Bytes held, roughly.
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

/// The name of a reader without its version.
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
