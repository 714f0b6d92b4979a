//! Fetches one version, and checks that it is the one that was named.

use fixity::Verdict;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use model::{Assurance, Declaration};
use packages::PackageError;
use secrets::redacted;
use store::{Store, StoreError};
use url::Url;
use web::{Client, GetRequest, Response, WebError};

use crate::candidate::Candidate;
use crate::member::Member;
use crate::receive::{Body, receive};
use crate::resource::Resource;

/// How far a version's own time may be from the time under which it is named.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(1);

/// A version whose bytes are here and verified.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) body: Body,
    pub(crate) assurance: Assurance,
    pub(crate) media_type: Option<String>,
    pub(crate) encoding: Option<String>,
    /// Where it came from, without secrets.
    pub(crate) final_url: String,
}

/// Why a version is not used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) is_left_out: bool,
}

/// Fetches a version. Returns the requests made, and the version or why it is not used.
///
/// # Errors
/// Only the store's: everything that a server does is a result.
pub(crate) async fn fetch(
    client: &Client,
    store: &Store,
    resource: &Resource,
    candidate: &Candidate,
    url: &Url,
    any_host: bool,
) -> Result<(u64, Result<Fetched, Refused>), StoreError> {
    let declared = &candidate.declared;
    let may_be_at = |url: &Url| any_host || !declared.digests.is_empty() || is_own_host(resource, url);
    if !may_be_at(url) {
        return Ok((0, Err(other_host(url))));
    }
    let request = GetRequest { encoding: declared.encoding.clone(), ..GetRequest::new(url.clone()) };
    let mut response = match client.get_with_retries(request).await {
        Ok(response) => response,
        Err(error) => return Ok((error.requests().into(), Err(failed(&error)))),
    };
    let requests = response.requests().into();
    if !may_be_at(response.final_url()) {
        return Ok((requests, Err(other_host(response.final_url()))));
    }
    // Before the body: there is no need to receive what is not wanted.
    if let Err(refused) = check_time(&response, candidate).and_then(|()| check_type(&response, resource)) {
        return Ok((requests, Err(refused)));
    }
    let algorithms = declared.digests.iter().map(|digest| digest.algorithm()).collect();
    let body = match receive(&mut response, store, algorithms).await? {
        Ok(body) => body,
        Err(error) => return Ok((requests, Err(failed(&error)))),
    };
    let assurance = match judge(&body, declared) {
        Ok(assurance) => assurance,
        Err(refused) => return Ok((requests, Err(refused))),
    };
    let fetched = Fetched {
        body,
        assurance,
        media_type: response.media_type(),
        encoding: response.content_encoding(),
        final_url: redacted(response.final_url()),
    };
    Ok((requests, Ok(fetched)))
}

/// The requests made, and the version or why it is not used.
type Attempt = Result<(u64, Result<Fetched, Refused>), StoreError>;

/// Fetches a version that is in a package of a dump. Returns the requests made, and the version or why it is not used.
///
/// # Errors
/// Only the store's.
pub(crate) fn fetch_member<'a>(
    store: &'a Store,
    candidate: &'a Candidate,
    member: &'a Member,
) -> BoxFuture<'a, Attempt> {
    Box::pin(async move {
        let fetched = receive_member(store, candidate, member).await;
        let requests = member.close();
        Ok((requests, fetched?))
    })
}

async fn receive_member(
    store: &Store,
    candidate: &Candidate,
    member: &Member,
) -> Result<Result<Fetched, Refused>, StoreError> {
    let declared = &candidate.declared;
    let unreadable = |error: PackageError| refused("package-unreadable", error.to_string());
    let mut reader = match member.open().await {
        Ok(reader) => reader,
        Err(error) => return Ok(Err(unreadable(error))),
    };
    let algorithms = declared.digests.iter().map(|digest| digest.algorithm()).collect();
    let body = match receive(&mut reader, store, algorithms).await? {
        Ok(body) => body,
        Err(error) => return Ok(Err(unreadable(error))),
    };
    Ok(judge(&body, declared).map(|assurance| Fetched {
        body,
        assurance,
        media_type: declared.media_type.clone(),
        encoding: declared.encoding.clone(),
        final_url: redacted(&member.url),
    }))
}

fn is_own_host(resource: &Resource, url: &Url) -> bool {
    resource.url.host() == url.host()
}

fn other_host(url: &Url) -> Refused {
    let host = url.host_str().unwrap_or_default();
    Refused {
        reason: "other-host",
        message: format!(
            "{host} is not the resource's host, and no digest is declared to judge its bytes by; web archives rewrite \
             pages. --any-host takes them all the same"
        ),
        is_left_out: true,
    }
}

fn refused(reason: &'static str, message: String) -> Refused {
    Refused { reason, message, is_left_out: false }
}

fn failed(error: &WebError) -> Refused {
    refused(error.reason().as_str(), error.to_string())
}

/// Checks `Memento-Datetime` (RFC 7089, 2.1.1): a server may answer with the nearest version that it has. Only a
/// declared digest can stand in for it.
fn check_time(response: &Response, candidate: &Candidate) -> Result<(), Refused> {
    let Candidate { time, declared, named_by, .. } = candidate;
    let Some(said) = response.header("memento-datetime") else {
        if !declared.digests.is_empty() {
            return Ok(());
        }
        let message = "the answer has no Memento-Datetime, so it may be any version".to_owned();
        return Err(refused("memento-undated", message));
    };
    match links::parse_http_date(said.trim()) {
        Some(said) if is_near(said, *time) => Ok(()),
        Some(said) => {
            let message = format!("its Memento-Datetime is {said}, and {named_by} names it for {time}");
            Err(refused("memento-misdated", message))
        }
        None => Err(refused("memento-misdated", format!("its Memento-Datetime is no time: {said}"))),
    }
}

fn is_near(one: Timestamp, other: Timestamp) -> bool {
    one.duration_since(other).abs() <= TOLERANCE
}

/// Refuses a page where the stored version is none: archives serve pages in place of what they do not have.
fn check_type(response: &Response, resource: &Resource) -> Result<(), Refused> {
    let Some(stored) = resource.bitstream.media_type.as_deref() else { return Ok(()) };
    let says_other = !stored.contains("html") && stored != "application/octet-stream";
    if !says_other || !response.is_html() {
        return Ok(());
    }
    Err(refused("unexpected-html", format!("an HTML page came, and the stored version is {stored}")))
}

/// Compares the bytes with what is declared of them.
fn judge(body: &Body, declared: &Declaration) -> Result<Assurance, Refused> {
    match fixity::judge(&declared.digests, declared.length, body.computed()) {
        Verdict::Verified { .. } => Ok(Assurance::Digest),
        Verdict::LengthOnly => Ok(Assurance::Length),
        Verdict::NothingDeclared => Ok(Assurance::None),
        Verdict::Mismatch { what } => {
            let reason = match what {
                fixity::Mismatch::Length { .. } => model::ProblemReason::LengthMismatch,
                fixity::Mismatch::Digest { .. } => model::ProblemReason::DigestMismatch,
            };
            Err(refused(reason.as_str(), format!("its bytes are not as declared: {what}")))
        }
    }
}
