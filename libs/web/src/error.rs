//! What went wrong, and whether to try again.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::HeaderMap;
use jiff::SignedDuration;
use model::{Disposition, Evidence, Failure, ProblemReason};
use url::Url;

use crate::response::Way;
use crate::{Wall, headers, message, redacted};

/// A request that brought nothing of use.
///
/// Its text says what happened, where, and what to do, and holds no secrets of the URL. The causes are in that text
/// and not in `source()`, since those of the HTTP library show the URL as it is.
#[derive(Debug, Clone)]
pub struct WebError(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    kind: ErrorKind,
    url: Option<Url>,
    at: Option<Url>,
    retry_after: Option<Duration>,
    detail: Option<String>,
    redirects: Vec<Url>,
    authorized: bool,
    requests: u32,
    expected: Option<String>,
    /// The `User-Agent` that was sent, where a bot defence answered.
    user_agent: Option<String>,
    /// The status and the headers of an answer that broke off, or whose status is the fault.
    answered: Option<u16>,
    headers: BTreeMap<String, String>,
}

/// What kind of fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The host name has no address.
    Dns,
    /// No connection.
    Connect(ConnectFault),
    /// No secure connection.
    Tls {
        /// Whether it is the server's certificate that is not accepted.
        certificate: bool,
    },
    /// Nothing came in time.
    Timeout(Phase),
    /// The server answered with this status, which carries nothing to keep.
    Status(u16),
    /// The server answered a question that was not asked: 304 without a condition, 206 without a range, or another
    /// range than the one asked for.
    Unasked(u16),
    /// A bot defence, or a form to log in, answered in the place of what was asked for.
    Walled(Wall),
    /// The answer broke off.
    Interrupted,
    /// The body is larger than [`BodyLimits`](crate::BodyLimits) or the request allows.
    TooLarge,
    /// The body comes more slowly than [`BodyLimits`](crate::BodyLimits) allow.
    TooSlow,
    /// More redirects than allowed.
    TooManyRedirects,
    /// A redirect leads back to where it came from.
    RedirectLoop,
    /// A redirect leads nowhere.
    BadRedirect,
    /// Not a URL that can be requested.
    BadUrl,
    /// The origin wants its rest for longer than a request waits; nothing was sent.
    Resting,
    /// The host lies at an address that [`AddressPolicy`](crate::AddressPolicy) does not allow.
    RefusedAddress,
    /// The URL names a port that browsers refuse, since another service than HTTP listens there, and that is not the
    /// entry's.
    RefusedPort,
    /// The origin's robots.txt disallows it, and [`RobotsPolicy`](crate::RobotsPolicy) keeps to that.
    Disallowed,
    /// The origin's robots.txt could not be had, so that nobody knows what it disallows, and
    /// [`RobotsPolicy`](crate::RobotsPolicy) keeps to that (RFC 9309, 2.3.1.4). It is not asked for again for a while.
    RobotsUnreachable,
    /// The client could not be made from its configuration.
    Builder,
}

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectFault {
    /// The machine is there, and nothing listens at that port.
    Refused,
    /// No way leads to the machine.
    Unreachable,
    /// Broken while it was made, or for a reason of this machine.
    Other,
}

/// What was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The connection.
    Connect,
    /// The head of the answer.
    FirstByte,
    /// The next piece of the body.
    Body,
}

impl WebError {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self(Box::new(Inner {
            kind,
            url: None,
            at: None,
            retry_after: None,
            detail: None,
            redirects: Vec::new(),
            authorized: false,
            requests: 0,
            expected: None,
            user_agent: None,
            answered: None,
            headers: BTreeMap::new(),
        }))
    }

    /// What was asked for, and which way led to the answer or the fault.
    pub(crate) fn on(mut self, way: &Way) -> Self {
        self.0.at.clone_from(&way.moved);
        self.0.url = Some(way.url.clone());
        self.0.redirects.clone_from(&way.redirects);
        self.0.requests = way.requests;
        self
    }

    /// What the server said around its answer.
    pub(crate) fn answered(mut self, status: u16, headers: &HeaderMap) -> Self {
        self.0.answered = Some(status);
        self.0.headers = headers::that_matter(headers);
        self
    }

    /// How the request named its sender.
    pub(crate) fn sent_as(mut self, user_agent: &str) -> Self {
        self.0.user_agent = Some(user_agent.to_owned());
        self
    }

    /// Whether a credential was sent to the server that answered.
    pub(crate) fn authorized(mut self, authorized: bool) -> Self {
        self.0.authorized = authorized;
        self
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// What was asked of the answer, for those who look at the problem.
    pub(crate) fn expected(mut self, expected: String) -> Self {
        self.0.expected = Some(expected);
        self
    }

    pub(crate) fn retry_after(mut self, wait: Option<Duration>) -> Self {
        self.0.retry_after = wait;
        self
    }

    pub(crate) fn with_requests(mut self, requests: u32) -> Self {
        self.0.requests = requests;
        self
    }

    /// The kind of fault.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What was asked for; none when the client itself could not be made.
    pub fn url(&self) -> Option<&Url> {
        self.0.url.as_ref()
    }

    /// The status, where the server answered with one that is the fault.
    pub fn status(&self) -> Option<u16> {
        match self.0.kind {
            ErrorKind::Status(status) | ErrorKind::Unasked(status) => Some(status),
            _ => None,
        }
    }

    /// Whether the server did answer, only not with what was asked for: it is there, and the next URL may be better.
    pub fn is_answer(&self) -> bool {
        use ErrorKind::{BadRedirect, RedirectLoop, Status, TooManyRedirects, Unasked, Walled};
        matches!(
            self.0.kind,
            Status(_) | Walled(_) | Unasked(_) | TooManyRedirects | RedirectLoop | BadRedirect
        )
    }

    /// The URLs that sent the request on, in order; empty when the first one was at fault.
    pub fn redirects(&self) -> &[Url] {
        &self.0.redirects
    }

    /// How many requests were made: redirects, retries, and a robots.txt that had to be known before.
    pub fn requests(&self) -> u32 {
        self.0.requests
    }

    /// Whether another attempt makes sense, and how long the server wants to be left alone before.
    pub fn disposition(&self) -> Disposition {
        use ErrorKind::{Connect, Dns, Interrupted, Resting, Status, Timeout, TooSlow, Walled};
        let again = match self.0.kind {
            Dns | Connect(_) | Timeout(_) | Interrupted | TooSlow | Resting | Walled(Wall::Challenge(_)) => {
                true
            }
            // Of the other 5xx, these say that the server will never do it; the rest, proxies' own numbers
            // included, tell of a passing trouble.
            Status(501 | 505 | 506 | 510 | 511) => false,
            Status(status) => matches!(status, 408 | 425 | 429 | 500..=599),
            _ => false,
        };
        if !again {
            return Disposition::Refuse;
        }
        let after = self.0.retry_after.and_then(|wait| SignedDuration::try_from(wait).ok());
        Disposition::Retry { after }
    }

    /// Whether the other side has understood and said no: a 4xx that will be no better at another time.
    pub fn is_denial(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Status(400..500)) && self.disposition() == Disposition::Refuse
    }

    /// The class of the fault, as problems are recorded.
    pub fn reason(&self) -> ProblemReason {
        match self.0.kind {
            ErrorKind::Dns => ProblemReason::Dns,
            ErrorKind::Connect(_) | ErrorKind::Builder => ProblemReason::Connect,
            ErrorKind::Tls { .. } => ProblemReason::Tls,
            ErrorKind::Timeout(_) => ProblemReason::Timeout,
            ErrorKind::Status(429) | ErrorKind::Resting => ProblemReason::Throttled,
            ErrorKind::Status(503) if self.0.retry_after.is_some() => ProblemReason::Throttled,
            ErrorKind::Status(400..=499) => ProblemReason::HttpClientError,
            ErrorKind::Status(500..=599) => ProblemReason::HttpServerError,
            ErrorKind::Status(_) | ErrorKind::Unasked(_) => ProblemReason::HttpUnexpected,
            ErrorKind::Walled(Wall::Challenge(_) | Wall::Refusal(_)) => ProblemReason::Challenged,
            ErrorKind::Walled(Wall::Login) => ProblemReason::LoginPage,
            ErrorKind::Interrupted => ProblemReason::Interrupted,
            ErrorKind::TooLarge => ProblemReason::TooLarge,
            ErrorKind::TooSlow => ProblemReason::TooSlow,
            ErrorKind::TooManyRedirects | ErrorKind::RedirectLoop | ErrorKind::BadRedirect => {
                ProblemReason::Redirect
            }
            ErrorKind::BadUrl => ProblemReason::BadUri,
            ErrorKind::RefusedAddress => ProblemReason::RefusedAddress,
            ErrorKind::RefusedPort => ProblemReason::RefusedPort,
            ErrorKind::Disallowed | ErrorKind::RobotsUnreachable => ProblemReason::Disallowed,
        }
    }

    /// The fault as it is sent on and recorded.
    pub fn to_failure(&self) -> Failure {
        let evidence = Evidence {
            final_url: self.0.at.as_ref().map(redacted),
            redirects: self.0.redirects.iter().map(redacted).collect(),
            status: self.status().or(self.0.answered),
            headers: self.0.headers.clone(),
            expected: self.0.expected.clone(),
            user_agent: self.0.user_agent.clone(),
            ..Evidence::default()
        };
        Failure {
            reason: self.reason(),
            message: self.to_string(),
            disposition: self.disposition(),
            evidence,
        }
    }

    /// See [`WebError::to_failure`].
    pub fn into_failure(self) -> Failure {
        self.to_failure()
    }
}

impl fmt::Display for WebError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, url, at, retry_after, detail, authorized, .. } = &*self.0;
        let place = at.as_ref().or(url.as_ref());
        f.write_str(&message::what(*kind, place, *retry_after))?;
        if let ErrorKind::Status(401 | 403 | 407 | 500) = kind
            && *authorized
        {
            f.write_str(", though the credential for it was sent")?;
        }
        if let Some(detail) = detail {
            write!(f, " ({detail})")?;
        }
        if let Some(place) = place {
            write!(f, "; asked for {}", redacted(place))?;
        }
        if let (Some(url), Some(_)) = (url, at) {
            write!(f, ", where {} had led", redacted(url))?;
        }
        write!(f, "; {}", message::advice(*kind, *authorized))
    }
}

impl std::error::Error for WebError {}

#[cfg(test)]
mod tests;
