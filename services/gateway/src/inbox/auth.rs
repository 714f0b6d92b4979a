//! Code that all inbox routes share, and the authentication of readers.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use control::NotificationId;
use model::SourceId;

use super::Inbox;
use super::senders::Sender;
use crate::access;
use crate::api_error::{ApiError, render};
use crate::auth::{bearer, check_token, too_many, unauthorized};
use crate::client::ClientAddress;
use crate::extract;
use crate::host;
use crate::inbox_urls::link;
use crate::metrics::Measured;
use crate::tokens::Caller;
use crate::wrong_tokens::TokenEndpoint;

/// The parameters in a path.
pub(super) type PathParams = BTreeMap<String, String>;

/// Headers of every response. The content was written by untrusted senders, and must not act as a page of the gateway.
fn always() -> [(HeaderName, &'static str); 3] {
    [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox; frame-ancestors 'none'"),
        (header::CACHE_CONTROL, "no-store"),
    ]
}

/// Runs the handler, gives its response the common form, and counts it.
pub(super) async fn finish(State(inbox): State<Inbox>, request: Request, next: Next) -> Response {
    let measured = Measured::begin(&request);
    let path = request.uri().path().to_owned();
    let constraints = inbox.urls(request.headers()).constraints();
    let mut response = render(next.run(request).await, &path);
    let headers = response.headers_mut();
    headers.extend(link(constraints, ldn::terms::CONSTRAINED_BY));
    headers.extend(always().map(|(name, value)| (name, HeaderValue::from_static(value))));
    measured.count(&inbox.gateway.metrics, response.status());
    response
}

/// The reader of an inbox.
pub(super) enum Reader {
    /// An operator reads everything.
    Operator(Caller),
    /// A sender reads only its own notifications.
    Sender(Sender),
}

/// The reader that the token identifies.
///
/// # Errors
/// [`ApiError::unauthorized`], [`ApiError::too_many`].
pub(super) fn reader(inbox: &Inbox, client: ClientAddress, headers: &HeaderMap) -> Result<Reader, ApiError> {
    let gateway = &inbox.gateway;
    host::check(&gateway.settings, headers)?;
    let token = bearer(headers);
    let find = |token: Option<&str>| match token.and_then(|token| inbox.senders.with_token(token)) {
        Some(sender) => Some(Reader::Sender(sender)),
        None => gateway.tokens.find(token).map(Reader::Operator),
    };
    let reader = check_token(gateway, TokenEndpoint::Inbox, client, token, find)?;
    let reader = reader.ok_or_else(|| unknown(token))?;
    let (name, counted) = match &reader {
        Reader::Operator(caller) => (caller.name(), caller.count_request()),
        Reader::Sender(sender) => (sender.name(), sender.count()),
    };
    counted.map_err(|seconds| too_many(name, seconds))?;
    Ok(reader)
}

/// The error for an unknown sender or reader.
pub(super) fn unknown(token: Option<&str>) -> ApiError {
    let hint = "send a token: Authorization: Bearer …; the operator of this harvester gives you one";
    unauthorized("thresher notifications", hint, token)
}

/// The owner of the inbox that a path names: an existing Source, or None for the common inbox.
///
/// # Errors
/// [`ApiError::not_found`]; an error if the control store cannot be read.
pub(super) async fn owner(inbox: &Inbox, params: &PathParams) -> Result<Option<SourceId>, ApiError> {
    let Some(source) = source(params)? else { return Ok(None) };
    let gateway = &inbox.gateway;
    // Senders treat a 404 as final, so a Source that was just added must be found, too.
    if gateway.control.sources().is_there(&source, &gateway.views.sources).await? {
        return Ok(Some(source));
    }
    Err(ApiError::not_found(format!("there is no source {source}, and so no inbox of it")))
}

/// Checks that the reader may read the inbox that a path names. A token that is limited to labels reads the inboxes of
/// the Sources that it sees; the common inbox is about all Sources.
///
/// # Errors
/// [`ApiError::not_found`], [`ApiError::forbidden`].
pub(super) async fn check_reader(
    inbox: &Inbox,
    reader: &Reader,
    params: &PathParams,
) -> Result<(), ApiError> {
    let Reader::Operator(caller) = reader else { return Ok(()) };
    let Some(selector) = caller.selector() else { return Ok(()) };
    match source(params)? {
        Some(source) => access::visible(&inbox.gateway, caller, &source).await.map(drop),
        None => Err(ApiError::forbidden(format!(
            "the token {} is limited to Sources with {selector}, and this inbox is about all Sources",
            caller.name()
        ))),
    }
}

/// The Source that a path names. It need not exist.
///
/// # Errors
/// [`ApiError::not_found`].
pub(super) fn source(params: &PathParams) -> Result<Option<SourceId>, ApiError> {
    params.get("source").map(|source| extract::source_id(source)).transpose()
}

/// The headers of an inbox, in addition to those of every response.
pub(super) fn of_container(headers: &mut HeaderMap) {
    let types = [ldn::terms::RESOURCE, ldn::terms::BASIC_CONTAINER];
    headers.extend(types.into_iter().filter_map(|iri| link(iri, "type")));
    headers.insert("accept-post", HeaderValue::from_static(ldn::ACCEPT_POST));
    headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS, POST"));
}

/// The error for a notification that does not exist, or that the reader may not see.
pub(super) fn no_notification() -> ApiError {
    ApiError::not_found("there is no such notification")
}

/// The notification that a path names.
///
/// # Errors
/// [`ApiError::not_found`].
pub(super) fn notification(params: &PathParams) -> Result<NotificationId, ApiError> {
    params.get("notification").and_then(|id| id.parse().ok()).ok_or_else(no_notification)
}
