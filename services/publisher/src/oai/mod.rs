//! Repositories of OAI-PMH (ADR 0083): of the records of one Source beside its set, and of all sets beside these.

mod list;
mod member;
mod repository;

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use model::{Clock as _, SystemClock};
use publish::{LATEST_COMMIT, PublishError};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use self::member::Member;
use self::repository::{Answered, Repository};
use crate::answers::{later, said, unavailable};
use crate::form;
use crate::harvest::is_missing;
use crate::metrics::PublisherMetrics;
use crate::shared::Shared;

/// The longest arguments: a token, and what its escapes take.
const MOST_BYTES: usize = 64 * 1024;
/// How long a request waits for its turn.
const TURN: Duration = Duration::from_secs(30);

/// What is served as one repository.
pub(crate) struct Site<'s> {
    /// Its URL.
    pub(crate) url: String,
    /// The mail address of its administrator.
    pub(crate) contact: &'s str,
    /// The sets, in the order of their IDs.
    pub(crate) sets: Vec<&'s Shared>,
    /// Whether it is that of one set.
    pub(crate) is_of_one: bool,
    /// Turns of its requests.
    pub(crate) turns: &'s Semaphore,
    /// Turns of the requests for all repositories of the server: each may have a page in memory.
    pub(crate) server_turns: &'s Semaphore,
    pub(crate) metrics: &'s PublisherMetrics,
}

/// Answers a request of OAI-PMH, by GET or by POST.
pub(crate) async fn answer(
    site: &Site<'_>,
    method: &Method,
    query: Option<&str>,
    headers: &HeaderMap,
    body: Body,
) -> Response {
    let arguments = match *method {
        Method::POST => match form::read(headers, body, MOST_BYTES).await {
            Ok(form) => form,
            Err(refusal) => return refusal,
        },
        _ => query.unwrap_or_default().to_owned(),
    };
    if arguments.len() > MOST_BYTES {
        return said(StatusCode::URI_TOO_LONG, "the request is too long");
    }
    // Its own turn first: a repository that many ask leaves turns of the server to others.
    let turns = async { (site.turns.acquire().await, site.server_turns.acquire().await) };
    let Ok((Ok(_own), Ok(_turn))) = timeout(TURN, turns).await else {
        site.metrics.oai_answered("busy");
        return later("Many ask for lists now.");
    };
    // Its steps are large: none of them is to be a part of the server's stack.
    match Box::pin(respond(site, &arguments)).await {
        Ok(Some(Answered::Content(text) | Answered::Refused(text))) => sent(text, method),
        Ok(Some(Answered::Later)) => later("What this needs is being collected."),
        Ok(None) => {
            said(StatusCode::NOT_FOUND, "Nothing here has records: no Source of it is an OAI-PMH repository.")
        }
        Err(error) => {
            site.metrics.oai_answered("failed");
            tracing::error!(%error, "a request of OAI-PMH cannot be answered");
            unavailable()
        }
    }
}

/// The answer as XML. None if no Source is an OAI-PMH repository.
async fn respond(site: &Site<'_>, arguments: &str) -> Result<Option<Answered>, PublishError> {
    let now = SystemClock.now();
    let mut members = Vec::with_capacity(site.sets.len());
    let mut others = now;
    for shared in &site.sets {
        match Member::of(shared, site.is_of_one).await {
            Ok(member) => members.extend(member),
            // Its first run may store something at any moment: that is later than this.
            Err(error) if is_missing(&error) => others = now.checked_sub(LATEST_COMMIT).unwrap_or(now),
            Err(error) => return Err(error),
        }
    }
    if members.is_empty() {
        let is_empty_yet = others < now;
        if is_empty_yet {
            site.metrics.oai_answered("busy");
        }
        return Ok(is_empty_yet.then_some(Answered::Later));
    }
    let repository = Repository::new(site.url.clone(), site.contact, members, now, others).await?;
    let answered = repository.answer(arguments).await?;
    site.metrics.oai_answered(match answered {
        Answered::Content(_) => "answered",
        Answered::Refused(_) => "refused",
        Answered::Later => "busy",
    });
    Ok(Some(answered))
}

fn sent(text: String, method: &Method) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/xml; charset=utf-8"));
    // The next request may get another answer.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, no-cache"));
    headers.insert(header::CONTENT_LENGTH, text.len().into());
    let body = if *method == Method::HEAD { Body::empty() } else { Body::from(text) };
    (headers, body).into_response()
}
