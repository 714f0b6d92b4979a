//! POST to an inbox: accepts a notification within its limits, stores it, and gives hints to Sources (LDN-2, LDN-5).
//!
//! The sender is checked before the response reveals anything else, even whether the inbox exists (LDN, Security). The
//! response is sent after the notification and the hints are stored.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use control::{ControlError, Hint, KeptNotification};
use ldn::{Limits, Notification, Unreadable};
use model::SourceId;

use super::Inbox;
use super::auth::{PathParams, owner, unknown};
use super::body_limiter::BodyPermit;
use super::senders::Sender;
use super::source_match::{self, SenderRights};
use crate::api_error::ApiError;
use crate::auth::{bearer, check_token, too_many};
use crate::body::{self, BodyError};
use crate::client::ClientAddress;
use crate::verdicts::NotificationVerdict as Verdict;
use crate::wrong_tokens::TokenEndpoint;

/// How long a sender with a token waits until one of its earlier notifications is stored. A busy control store takes a
/// while for each; what the sender sends at once within its rate should not be refused for that.
const PERMIT_WAIT: Duration = Duration::from_secs(10);

/// An error response, and the verdict that the metrics count.
struct Refused(Option<Verdict>, ApiError);

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self(None, error)
    }
}

/// Accepts a notification.
pub(super) async fn receive(
    State(inbox): State<Inbox>,
    client: ClientAddress,
    Path(path): Path<PathParams>,
    request: Request,
) -> Result<Response, ApiError> {
    let (verdict, response) = match accept(&inbox, client, &path, request).await {
        Ok((verdict, response)) => (Some(verdict), Ok(response)),
        Err(Refused(verdict, error)) => (verdict, Err(error)),
    };
    if let Some(verdict) = verdict {
        inbox.gateway.metrics.notification(verdict);
    }
    response
}

async fn accept(
    inbox: &Inbox,
    client: ClientAddress,
    path: &PathParams,
    request: Request,
) -> Result<(Verdict, Response), Refused> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    let (known, permit) = admit(inbox, client, &headers).await?;
    // A sender with a token may learn which inboxes exist.
    if known.is_some() {
        owner(inbox, path).await?;
    }
    let media_type = media_type(&headers)?;
    let bytes = read(inbox, body, &headers).await?;
    let limits = Limits { bytes: inbox.settings.body_bytes, ..Limits::default() };
    let notification = Notification::read(&bytes, &limits).map_err(|error| malformed(&error))?;
    let claimed = notification.speaks_from().filter(|_| known.is_none());
    let sender = match known {
        Some(sender) => sender,
        None => by_origin(inbox, &notification)?,
    };
    let source = owner(inbox, path).await?;
    // Valid JSON is valid UTF-8.
    let body = String::from_utf8(bytes).map_err(|error| ApiError::internal(error.to_string()))?;
    let kept = KeptNotification {
        inbox: source.clone(),
        sender: sender.name().to_owned(),
        received_at: inbox.gateway.now(),
        media_type,
        body,
    };
    let id = inbox.inboxes.keep(&kept).await.map_err(not_kept)?;
    // Hints are small.
    drop(permit);
    let rights = SenderRights { of: sender.sources(), claimed: claimed.as_ref() };
    let hinted = hint(inbox, &kept, &notification, rights).await?;
    let activity = notification.activity.map(ldn::Activity::name);
    let sources: Vec<_> = hinted.iter().map(SourceId::as_str).collect();
    tracing::info!(notification.id = %id, sender = kept.sender, activity, ?sources, "notification stored");
    let verdict = if hinted.is_empty() { Verdict::Kept } else { Verdict::Hint };
    let url = inbox.urls(&headers).notification(source.as_ref(), &id);
    Ok((verdict, (StatusCode::CREATED, [(header::LOCATION, String::from(url))]).into_response()))
}

/// Gives a hint to each Source that a notification is about. Returns their IDs.
async fn hint(
    inbox: &Inbox,
    kept: &KeptNotification,
    notification: &Notification,
    rights: SenderRights<'_>,
) -> Result<Vec<SourceId>, Refused> {
    let all = inbox.gateway.views.sources.all();
    let specs = all.iter().map(|source| &*source.value);
    let sources = source_match::sources(notification, kept.inbox.as_ref(), rights, specs);
    for source in &sources {
        let hint = Hint {
            source: source.clone(),
            given_at: kept.received_at,
            by: kept.sender.clone(),
            unproved: rights.claimed.is_some(),
        };
        inbox.gateway.control.hints().give(&hint).await.map_err(not_kept)?;
    }
    Ok(sources)
}

/// The sender, as far as a token identifies it, and a permit for the body.
async fn admit(
    inbox: &Inbox,
    client: ClientAddress,
    headers: &HeaderMap,
) -> Result<(Option<Sender>, BodyPermit), Refused> {
    let busy = |sender: &str| Refused(Some(Verdict::TooMany), too_many(sender, 1));
    let unknown = |token| Refused(Some(Verdict::UnknownSender), unknown(token));
    if headers.contains_key(header::AUTHORIZATION) {
        let token = Some(bearer(headers).unwrap_or_default());
        let find = |token: Option<&str>| token.and_then(|token| inbox.senders.with_token(token));
        let sender = check_token(&inbox.gateway, TokenEndpoint::Inbox, client, token, find)
            .map_err(|error| Refused(Some(Verdict::TooMany), error))?
            .ok_or_else(|| unknown(token))?;
        count(&sender)?;
        let permit = inbox.bodies.of_sender(&sender, PERMIT_WAIT).await.ok_or_else(|| busy(sender.name()))?;
        return Ok((Some(sender), permit));
    }
    if !inbox.senders.any_by_origin() {
        return Err(unknown(None));
    }
    let anonymous = "everyone without a token";
    inbox.anonymous_rate.check().map_err(|_| busy(anonymous))?;
    let permit = inbox.bodies.of_anonymous().ok_or_else(|| busy(anonymous))?;
    Ok((None, permit))
}

/// The sender, as the notification itself claims.
fn by_origin(inbox: &Inbox, notification: &Notification) -> Result<Sender, Refused> {
    let found = notification.speaks_from().and_then(|origin| inbox.senders.of_origin(&origin));
    let sender = found.ok_or_else(|| {
        let said = "neither its origin (origin.id, else actor) is one from which notifications are taken, nor was \
                    a token shown; the operator of this harvester says who may send";
        Refused(Some(Verdict::UnknownSender), ApiError::forbidden(said))
    })?;
    count(&sender)?;
    Ok(sender)
}

fn count(sender: &Sender) -> Result<(), Refused> {
    let refused = |seconds| Refused(Some(Verdict::TooMany), too_many(sender.name(), seconds));
    sender.count().map_err(refused)
}

/// The declared media type.
fn media_type(headers: &HeaderMap) -> Result<String, Refused> {
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let encoded = headers.get(header::CONTENT_ENCODING).is_some_and(|value| value.as_bytes() != b"identity");
    if ldn::is_json_ld(said) && said.len() <= 500 && !encoded {
        return Ok(said.to_owned());
    }
    let accept = HeaderValue::from_static(ldn::ACCEPT_POST);
    let error = ApiError::not_json(format!(
        "a notification is JSON-LD as it is, without Content-Encoding, with Content-Type: {} (also with a profile)",
        ldn::JSON_LD
    ));
    Err(Refused(Some(Verdict::Malformed), error.header(HeaderName::from_static("accept-post"), accept)))
}

/// Reads the body within its length and time.
async fn read(inbox: &Inbox, body: Body, headers: &HeaderMap) -> Result<Vec<u8>, Refused> {
    let limit = inbox.settings.body_bytes;
    let seconds = inbox.settings.body_timeout_seconds;
    body::receive(headers, body, limit, Duration::from_secs(seconds)).await.map_err(|error| match error {
        BodyError::TooLong => {
            let said = format!("a notification has at most {limit} bytes");
            Refused(Some(Verdict::TooLarge), ApiError::too_large(said))
        }
        BodyError::Broken => Refused(Some(Verdict::TooSlow), ApiError::body_broken()),
        BodyError::TooSlow => Refused(Some(Verdict::TooSlow), ApiError::body_too_slow(seconds)),
    })
}

fn malformed(error: &Unreadable) -> Refused {
    let said = format!("the notification is not taken: {error}");
    let (verdict, error) = match error {
        Unreadable::TooLarge { .. } => (Verdict::TooLarge, ApiError::too_large(said)),
        Unreadable::NotJson(_) => (Verdict::Malformed, ApiError::bad_request(said)),
        _ => (Verdict::Malformed, ApiError::invalid(said)),
    };
    Refused(Some(verdict), error)
}

fn not_kept(error: ControlError) -> Refused {
    Refused(Some(Verdict::NotKept), error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_kept_is_counted_and_asked_for_again() {
        let away = ControlError::Unavailable { action: "keep".to_owned(), source: "it is away".into() };
        let Refused(verdict, refusal) = not_kept(away);
        assert_eq!(verdict, Some(Verdict::NotKept));
        assert_eq!(refusal.into_response().status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
