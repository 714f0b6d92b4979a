//! Code that all inbox routes share, and the authentication of readers.

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
use crate::door::{UNMATCHED, bearer, may_show_token, token_was_wrong};
use crate::host;
use crate::refusal::{Refusal, render};
use crate::state::Gateway;
use crate::wrong_tokens::Door as Entrance;

/// The state of the handlers.
pub(super) type Both = (Gateway, Inbox);

/// The parameters in a path.
pub(super) type Named = BTreeMap<String, String>;

/// Headers of every response. The content was written by untrusted senders, and must not act as a page of the gateway.
fn always() -> [(HeaderName, &'static str); 3] {
    [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox; frame-ancestors 'none'"),
        (header::CACHE_CONTROL, "no-store"),
    ]
}

/// Runs the handler, gives its response the common form, and counts it.
pub(super) async fn door(State((gateway, inbox)): State<Both>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
    let constraints = Places::of(&inbox, &gateway, request.headers()).constraints();
    let mut response = render(next.run(request).await, &path);
    let headers = response.headers_mut();
    let constrained = format!("<{constraints}>; rel=\"{}\"", ldn::terms::CONSTRAINED_BY);
    headers.extend(HeaderValue::try_from(constrained).map(|link| (header::LINK, link)));
    headers.extend(always().map(|(name, value)| (name, HeaderValue::from_static(value))));
    gateway.metrics().count(&method, route, response.status(), began.elapsed());
    response
}

/// The reader of an inbox.
pub(super) enum Reader {
    /// An operator reads everything.
    Operator,
    /// A sender reads only its own notifications.
    Sender(Sender),
}

/// The reader that the token identifies.
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

/// The refusal of an unknown sender or reader.
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

/// The refusal of one request too many.
pub(super) fn too_many(who: &str, seconds: u64) -> Refusal {
    let said = format!("{who} has sent more requests than are taken; come again in {seconds} s");
    Refusal::too_many(said).after_seconds(seconds)
}

/// The owner of the inbox that a path names: an existing Source, or None for the common inbox.
///
/// # Errors
/// [`Refusal::not_found`]; an error if the control store cannot be read.
pub(super) async fn whose(gateway: &Gateway, named: &Named) -> Result<Option<SourceId>, Refusal> {
    let Some(source) = source(named)? else { return Ok(None) };
    // Senders treat a 404 as final, so a Source that was just added must be found, too.
    match gateway.control().sources().is_there(&source, &gateway.views().sources).await? {
        true => Ok(Some(source)),
        false => Err(Refusal::not_found(format!("there is no source {source}, and so no inbox of it"))),
    }
}

/// The Source that a path names. It need not exist.
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

/// The headers of an inbox, in addition to those of every response.
pub(super) fn of_container(headers: &mut HeaderMap) {
    let types = [ldn::terms::RESOURCE, ldn::terms::BASIC_CONTAINER];
    for link in types.map(|iri| HeaderValue::try_from(format!("<{iri}>; rel=\"type\""))) {
        headers.extend(link.map(|link| (header::LINK, link)));
    }
    headers.insert("accept-post", HeaderValue::from_static(ldn::ACCEPT_POST));
    headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS, POST"));
}

/// Adds the header by which a resource advertises its inbox.
pub(super) fn tells_of_inbox(
    gateway: &Gateway,
    asked: &HeaderMap,
    source: Option<&SourceId>,
    headers: &mut HeaderMap,
) {
    headers.extend(advertised(gateway, asked, source));
}
