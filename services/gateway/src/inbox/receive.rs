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
use tokio::time::timeout;

use super::about::{self, MaySpeak};
use super::door::{Both, Named, too_many, unknown, whose};
use super::place::Places;
use super::room::Place;
use super::senders::Sender;
use super::verdict::Verdict;
use crate::body::{self, NoBody};
use crate::client::ClientAddress;
use crate::door::{bearer, may_show_token, token_was_wrong};
use crate::refusal::Refusal;
use crate::wrong_tokens::Door;

/// How long a sender with a token waits until one of its earlier bodies has arrived.
const FOR_A_PLACE: Duration = Duration::from_secs(1);

/// A refusal, and the verdict that the metrics count.
struct Refused(Option<Verdict>, Refusal);

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self(None, refusal)
    }
}

/// Accepts a notification.
pub(super) async fn receive(
    State(both): State<Both>,
    client: ClientAddress,
    Path(named): Path<Named>,
    request: Request,
) -> Result<Response, Refusal> {
    match take(&both, client, &named, request).await {
        Ok((verdict, response)) => {
            both.0.metrics().notification(verdict);
            Ok(response)
        }
        Err(Refused(verdict, refusal)) => {
            verdict.into_iter().for_each(|verdict| both.0.metrics().notification(verdict));
            Err(refusal)
        }
    }
}

async fn take(
    both: &Both,
    client: ClientAddress,
    named: &Named,
    request: Request,
) -> Result<(Verdict, Response), Refused> {
    let (gateway, inbox) = both;
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    let (known, _place) = let_in(both, client, &headers).await?;
    // A sender with a token may learn which inboxes exist.
    if known.is_some() {
        whose(gateway, named).await?;
    }
    let media_type = media_type(&headers)?;
    let limit = inbox.settings().body_bytes;
    let patience = Duration::from_secs(inbox.settings().body_timeout_seconds);
    let reading = timeout(patience, read(body, &headers, limit));
    let bytes = reading.await.map_err(|_| too_slow(patience)).and_then(|read| read)?;
    let limits = Limits { bytes: limit, ..Limits::default() };
    let notification = Notification::read(&bytes, &limits).map_err(|error| malformed(&error))?;
    let claimed = notification.speaks_from().filter(|_| known.is_none());
    let sender = match known {
        Some(sender) => sender,
        None => by_origin(both, &notification)?,
    };
    let source = whose(gateway, named).await?;
    // Valid JSON is valid UTF-8.
    let body = String::from_utf8(bytes).map_err(|error| Refusal::internal(error.to_string()))?;
    let received_at = gateway.now();
    let sender_name = sender.name().to_owned();
    let kept = KeptNotification {
        inbox: source.clone(),
        sender: sender_name.clone(),
        received_at,
        media_type,
        body,
    };
    let id = inbox.inboxes().keep(&kept).await.map_err(not_kept)?;
    let all = gateway.views().sources.all();
    let specs = all.iter().map(|source| &*source.value);
    let may_speak = MaySpeak { of: sender.sources(), claimed: claimed.as_ref() };
    let about = about::sources(&notification, source.as_ref(), may_speak, specs);
    for source in &about {
        let (source, given_at, by) = (source.clone(), received_at, sender_name.clone());
        let hint = Hint { source, given_at, by, unproved: claimed.is_some() };
        gateway.control().hints().give(&hint).await.map_err(not_kept)?;
    }
    let kind = notification.activity.map(ldn::Activity::name);
    let sources: Vec<_> = about.iter().map(SourceId::as_str).collect();
    tracing::info!(notification.id = %id, sender = sender_name, activity = kind, ?sources, "a notification is kept");
    let place = Places::of(inbox, gateway, &headers).notification(source.as_ref(), &id);
    let verdict = if about.is_empty() { Verdict::Kept } else { Verdict::Hint };
    Ok((verdict, (StatusCode::CREATED, [(header::LOCATION, String::from(place))]).into_response()))
}

/// The sender, as far as a token identifies it, and a permit for the body.
async fn let_in(
    (gateway, inbox): &Both,
    client: ClientAddress,
    headers: &HeaderMap,
) -> Result<(Option<Sender>, Place), Refused> {
    let nobody = |shown| Refused(Some(Verdict::UnknownSender), unknown(shown));
    let busy = |who: &str| Refused(Some(Verdict::TooMany), too_many(who, 1));
    if headers.contains_key(header::AUTHORIZATION) {
        let waits = may_show_token(gateway, Door::Inbox, client);
        waits.map_err(|refusal| Refused(Some(Verdict::TooMany), refusal))?;
        let sender = bearer(headers).and_then(|token| inbox.senders().with_token(token));
        let sender = sender.ok_or_else(|| {
            token_was_wrong(gateway, Door::Inbox, client);
            nobody(true)
        })?;
        let counted = sender.count();
        counted.map_err(|seconds| Refused(Some(Verdict::TooMany), too_many(sender.name(), seconds)))?;
        // The sender's rate limit bounds how many requests wait.
        let place = inbox.0.room.of_sender(&sender, FOR_A_PLACE).await;
        let place = place.ok_or_else(|| busy(sender.name()))?;
        return Ok((Some(sender), place));
    }
    if !inbox.senders().any_by_origin() {
        return Err(nobody(false));
    }
    let strangers = "everybody without a token";
    inbox.0.strangers_rate.check().map_err(|_| busy(strangers))?;
    let place = inbox.0.room.of_stranger().ok_or_else(|| busy(strangers))?;
    Ok((None, place))
}

/// The sender, as the notification itself claims.
fn by_origin((_, inbox): &Both, notification: &Notification) -> Result<Sender, Refused> {
    let found = notification.speaks_from().and_then(|origin| inbox.senders().of_origin(&origin));
    let sender = found.ok_or_else(|| {
        let said = "neither its origin (origin.id, else actor) is one from which notifications are taken, nor was a token shown; whoever runs this \
                    harvester says who may send";
        Refused(Some(Verdict::UnknownSender), Refusal::forbidden(said))
    })?;
    let counted = sender.count();
    counted.map_err(|seconds| Refused(Some(Verdict::TooMany), too_many(sender.name(), seconds)))?;
    Ok(sender)
}

/// The declared media type.
fn media_type(headers: &HeaderMap) -> Result<String, Refused> {
    let said = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let encoded = headers.get(header::CONTENT_ENCODING).is_some_and(|value| value.as_bytes() != b"identity");
    if ldn::is_json_ld(said) && said.len() <= 500 && !encoded {
        return Ok(said.to_owned());
    }
    let accept = (HeaderName::from_static("accept-post"), HeaderValue::from_static(ldn::ACCEPT_POST));
    let refusal = Refusal::not_json(format!(
        "a notification is JSON-LD as it is, without Content-Encoding, with Content-Type: {} (also with a profile)",
        ldn::JSON_LD
    ));
    Err(Refused(Some(Verdict::Malformed), refusal.header(accept.0, accept.1)))
}

/// Reads the body. Memory stays within the allowed length.
async fn read(body: Body, headers: &HeaderMap, limit: usize) -> Result<Vec<u8>, Refused> {
    body::receive(headers, body, limit).await.map_err(|why| match why {
        NoBody::TooLong => {
            let said = format!("a notification has at most {limit} bytes");
            Refused(Some(Verdict::TooLarge), Refusal::too_large(said))
        }
        NoBody::Broken => {
            Refused(Some(Verdict::TooSlow), Refusal::bad_request("the body broke off; send it again"))
        }
    })
}

fn too_slow(patience: Duration) -> Refused {
    let said = format!("the body has not come within {} s; send it again, faster", patience.as_secs());
    Refused(Some(Verdict::TooSlow), Refusal::too_slow(said))
}

fn malformed(error: &Unreadable) -> Refused {
    let said = format!("the notification is not taken: {error}");
    match error {
        Unreadable::TooLarge { .. } => Refused(Some(Verdict::TooLarge), Refusal::too_large(said)),
        Unreadable::NotJson(_) => Refused(Some(Verdict::Malformed), Refusal::bad_request(said)),
        _ => Refused(Some(Verdict::Malformed), Refusal::invalid(said)),
    }
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
