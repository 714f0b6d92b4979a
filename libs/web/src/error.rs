//! Errors, and whether to retry.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::HeaderMap;
use jiff::SignedDuration;
use model::{Disposition, Evidence, Failure, ProblemReason};
use secrets::redacted;
use url::Url;

use crate::error_kind::ErrorKind;
use crate::redirect::Way;
use crate::wall::Wall;
use crate::{headers, message};

/// A request without a usable response.
///
/// Its text says what happened, where, and what to do, and holds no secrets of the URL. The causes are in
/// that text and not in `source()`, since those of the HTTP library show the URL unredacted.
#[derive(Debug, Clone)]
pub struct WebError(ErrorKind, Box<Details>);

#[derive(Debug, Clone, Default)]
struct Details {
    url: Option<Url>,
    at: Option<Url>,
    retry_after: Option<Duration>,
    detail: Option<String>,
    redirects: Vec<Url>,
    authorized: bool,
    requests: u32,
    expected: Option<String>,
    /// The `User-Agent` that was sent, if a bot defence answered.
    user_agent: Option<String>,
    /// The status and headers of a response that broke off, or whose status is the error.
    answered: Option<u16>,
    headers: BTreeMap<String, String>,
}

impl WebError {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self(kind, Box::default())
    }

    /// Adds the requested URL and the redirects that led to the response or error.
    pub(crate) fn on(mut self, way: &Way) -> Self {
        self.1.at.clone_from(&way.moved);
        self.1.url = Some(way.url.clone());
        self.1.redirects.clone_from(&way.redirects);
        self.1.requests = way.requests;
        self
    }

    /// Adds the status and headers of the response.
    pub(crate) fn answered(mut self, status: u16, headers: &HeaderMap) -> Self {
        self.1.answered = Some(status);
        self.1.headers = headers::that_matter(headers);
        self
    }

    /// Adds the `User-Agent` that was sent.
    pub(crate) fn sent_as(mut self, user_agent: &str) -> Self {
        self.1.user_agent = Some(user_agent.to_owned());
        self
    }

    /// Adds whether a credential was sent to the server that answered.
    pub(crate) fn authorized(mut self, authorized: bool) -> Self {
        self.1.authorized = authorized;
        self
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.1.detail = Some(detail.into());
        self
    }

    /// Adds what was expected of the response, for a problem.
    pub(crate) fn expected(mut self, expected: String) -> Self {
        self.1.expected = Some(expected);
        self
    }

    pub(crate) fn retry_after(mut self, wait: Option<Duration>) -> Self {
        self.1.retry_after = wait;
        self
    }

    pub(crate) fn with_requests(mut self, requests: u32) -> Self {
        self.1.requests = requests;
        self
    }

    /// The kind of fault.
    pub fn kind(&self) -> ErrorKind {
        self.0
    }

    /// The requested URL; none when the client itself could not be built.
    pub fn url(&self) -> Option<&Url> {
        self.1.url.as_ref()
    }

    /// The status, if it is the error.
    pub fn status(&self) -> Option<u16> {
        match self.0 {
            ErrorKind::Status(status) | ErrorKind::Unasked(status) => Some(status),
            _ => None,
        }
    }

    /// Whether the server answered, but not with the requested content: it is up, and the next URL may
    /// succeed.
    pub fn is_answer(&self) -> bool {
        use ErrorKind::{BadRedirect, RedirectLoop, Status, TooManyRedirects, Unasked, Walled};
        matches!(self.0, Status(_) | Walled(_) | Unasked(_) | TooManyRedirects | RedirectLoop | BadRedirect)
    }

    /// The URLs that redirected, in order; empty when the first one failed.
    pub fn redirects(&self) -> &[Url] {
        &self.1.redirects
    }

    /// How many requests were sent: redirects, retries, and a robots.txt that was needed first.
    pub fn requests(&self) -> u32 {
        self.1.requests
    }

    /// Whether to retry, and how long to wait before.
    pub fn disposition(&self) -> Disposition {
        use ErrorKind::{Connect, CoolingDown, Dns, Interrupted, Status, Timeout, TooSlow, Walled};
        let again = match self.0 {
            Dns
            | Connect(_)
            | Timeout(_)
            | Interrupted
            | TooSlow
            | CoolingDown
            | Walled(Wall::Challenge(_)) => true,
            // Of the other 5xx, these say that the server will never do it; the rest, including proxies' own
            // codes, may pass.
            Status(501 | 505 | 506 | 510 | 511) => false,
            Status(status) => matches!(status, 408 | 425 | 429 | 500..=599),
            _ => false,
        };
        if !again {
            return Disposition::Refuse;
        }
        let after = self.1.retry_after.and_then(|wait| SignedDuration::try_from(wait).ok());
        Disposition::Retry { after }
    }

    /// Whether the server understood and refused: a 4xx that will not change later.
    pub fn is_denial(&self) -> bool {
        matches!(self.0, ErrorKind::Status(400..500)) && self.disposition() == Disposition::Refuse
    }

    /// The class of the error, as recorded in problems.
    pub fn reason(&self) -> ProblemReason {
        match self.0 {
            ErrorKind::Dns => ProblemReason::Dns,
            ErrorKind::Connect(_) | ErrorKind::Builder => ProblemReason::Connect,
            ErrorKind::Tls { .. } => ProblemReason::Tls,
            ErrorKind::Timeout(_) => ProblemReason::Timeout,
            ErrorKind::Status(429) | ErrorKind::CoolingDown => ProblemReason::Throttled,
            ErrorKind::Status(503) if self.1.retry_after.is_some() => ProblemReason::Throttled,
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

    /// The error as it is sent in messages and recorded.
    pub fn to_failure(&self) -> Failure {
        let evidence = Evidence {
            final_url: self.1.at.as_ref().map(redacted),
            redirects: self.1.redirects.iter().map(redacted).collect(),
            status: self.status().or(self.1.answered),
            headers: self.1.headers.clone(),
            expected: self.1.expected.clone(),
            user_agent: self.1.user_agent.clone(),
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
        let kind = self.0;
        let Details { url, at, retry_after, detail, authorized, .. } = &*self.1;
        let place = at.as_ref().or(url.as_ref());
        f.write_str(&message::what(kind, place, *retry_after))?;
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
        write!(f, "; {}", message::advice(kind, *authorized))
    }
}

impl std::error::Error for WebError {}

#[cfg(test)]
mod tests;
