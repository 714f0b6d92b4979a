//! What all paths of inboxes have in common, and who may read.

use std::collections::BTreeMap;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use control::NotificationId;
use model::SourceId;
use tokio::time::Instant;

use super::place::Places;
use super::senders::Sender;
use super::{Inbox, advertised};
use crate::ask;
use crate::client::ClientAddress;
use crate::door::{ELSEWHERE, bearer, may_show_token, token_was_wrong};
use crate::host;
use crate::refusal::{Refusal, render};
use crate::state::Gateway;
use crate::wrong_tokens::Door as Entrance;

/// What the handlers are made from.
pub(super) type Both = (Gateway, Inbox);

/// What stands in a path.
pub(super) type Named = BTreeMap<String, String>;

/// What every answer says: what is handed out was written by strangers, and is no page of ours.
fn always() -> [(HeaderName, &'static str); 3] {
    [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox; frame-ancestors 'none'"),
        (header::CACHE_CONTROL, "no-store"),
    ]
}

/// Has a request answered, gives the answer its form, and counts it.
pub(super) async fn door(State((gateway, inbox)): State<Both>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or(ELSEWHERE, MatchedPath::as_str);
    let constraints = Places::of(&inbox, &gateway, request.headers()).constraints();
    let mut response = render(next.run(request).await, &path);
    let headers = response.headers_mut();
    let constrained = format!("<{constraints}>; rel=\"{}\"", ldn::terms::CONSTRAINED_BY);
    headers.extend(HeaderValue::try_from(constrained).map(|link| (header::LINK, link)));
    headers.extend(always().map(|(name, value)| (name, HeaderValue::from_static(value))));
    gateway.metrics().count(&method, route, response.status(), began.elapsed());
    response
}

/// Who reads.
pub(super) enum Reader {
    /// An operator: everything.
    Operator,
    /// A sender: what it has sent itself.
    Sender(Sender),
}

/// Who reads, by the token that is shown.
///
/// # Errors
/// [`Refusal::unauthorized`], [`Refusal::too_many`].
pub(super) fn reader(
    (gateway, inbox): &Both,
    client: ClientAddress,
    headers: &HeaderMap,
) -> Result<Reader, Refusal> {
    host::check(gateway, headers)?;
    let token = bearer(headers);
    if token.is_some() {
        may_show_token(gateway, Entrance::Inbox, client)?;
    }
    if let Some(sender) = token.and_then(|token| inbox.senders().with_token(token)) {
        sender.count().map_err(|seconds| too_many(sender.name(), seconds))?;
        return Ok(Reader::Sender(sender));
    }
    let caller = gateway.tokens().find(token).ok_or_else(|| {
        if token.is_some() {
            token_was_wrong(gateway, Entrance::Inbox, client);
        }
        unknown(token.is_some())
    })?;
    caller.count_request().map_err(|seconds| too_many(caller.name(), seconds))?;
    Ok(Reader::Operator)
}

/// Nobody knows who this is.
pub(super) fn unknown(shown: bool) -> Refusal {
    let (said, challenge) = match shown {
        true => (
            "this token is not known here, or not any more",
            "Bearer realm=\"thresher notifications\", error=\"invalid_token\"",
        ),
        false => (
            "send a token: Authorization: Bearer …; whoever runs this harvester gives you one",
            "Bearer realm=\"thresher notifications\"",
        ),
    };
    Refusal::unauthorized(said).header(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
}

/// That was one too many.
pub(super) fn too_many(who: &str, seconds: u64) -> Refusal {
    let said = format!("{who} has sent more requests than are taken; come again in {seconds} s");
    Refusal::too_many(said).after_seconds(seconds)
}

/// Whose inbox a path names: one of a Source that is there, or the one for all.
///
/// # Errors
/// [`Refusal::not_found`]; that the control store cannot be asked.
pub(super) async fn whose(gateway: &Gateway, named: &Named) -> Result<Option<SourceId>, Refusal> {
    let Some(source) = source(named)? else { return Ok(None) };
    // A sender takes a 404 for the last word, also right after the Source was added.
    match gateway.control().sources().is_there(&source, &gateway.views().sources).await? {
        true => Ok(Some(source)),
        false => Err(Refusal::not_found(format!("there is no source {source}, and so no inbox of it"))),
    }
}

/// The Source that a path names, whether it is there or not.
///
/// # Errors
/// [`Refusal::not_found`].
pub(super) fn source(named: &Named) -> Result<Option<SourceId>, Refusal> {
    named.get("source").map(|source| ask::source(source)).transpose()
}

/// The notification that a path names.
///
/// # Errors
/// [`Refusal::not_found`].
pub(super) fn notification(named: &Named) -> Result<NotificationId, Refusal> {
    let id = named.get("notification").and_then(|id| id.parse().ok());
    id.ok_or_else(|| Refusal::not_found("there is no such notification"))
}

/// The headers of an inbox, beside what every answer says.
pub(super) fn of_container(headers: &mut HeaderMap) {
    let types = [ldn::terms::RESOURCE, ldn::terms::BASIC_CONTAINER];
    for link in types.map(|iri| HeaderValue::try_from(format!("<{iri}>; rel=\"type\""))) {
        headers.extend(link.map(|link| (header::LINK, link)));
    }
    headers.insert("accept-post", HeaderValue::from_static(ldn::ACCEPT_POST));
    headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS, POST"));
}

/// The header by which a resource tells of its inbox.
pub(super) fn tells_of_inbox(
    gateway: &Gateway,
    asked: &HeaderMap,
    source: Option<&SourceId>,
    headers: &mut HeaderMap,
) {
    headers.extend(advertised(gateway, asked, source));
}
