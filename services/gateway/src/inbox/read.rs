//! GET of an inbox and of a notification (LDN-2).

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use control::NotificationId;
use ldn::Listing;
use serde::Deserialize;
use url::Url;

use super::door::{Both, Named, Reader, notification, of_container, reader, whose};
use super::place::Places;
use crate::ask::Asked;
use crate::client::ClientAddress;
use crate::page;
use crate::refusal::Refusal;

/// Parameters of an inbox.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListParams {
    /// The most notifications, 1 to 1000.
    limit: Option<u16>,
    /// Only notifications that came after this one.
    after: Option<String>,
}

/// An inbox, oldest first. The response has pages: `next` in the body, and a `Link` with that relation.
pub(super) async fn list(
    State(both): State<Both>,
    client: ClientAddress,
    Path(named): Path<Named>,
    Asked(params): Asked<ListParams>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let reader = reader(&both, client, &headers)?;
    let (gateway, inbox) = &both;
    let source = whose(gateway, &named).await?;
    let limit = page::limit(params.limit)?;
    let after: Option<NotificationId> =
        params.after.map(|after| after.parse()).transpose().map_err(|_| {
            Refusal::bad_request(
                "after is the name of no notification: take `next` of a page as it is, or leave it out",
            )
        })?;
    let sender = match &reader {
        Reader::Operator => None,
        Reader::Sender(sender) => Some(sender.name()),
    };
    let kept = inbox.inboxes().list(source.as_ref(), sender, after.as_ref(), limit).await?;
    let places = Places::of(inbox, gateway, &headers);
    let place = places.inbox(source.as_ref());
    let next = kept.ids.last().filter(|_| kept.more).map(|last| behind(&place, last, params.limit));
    let listing = Listing {
        contains: kept.ids.iter().map(|id| places.notification(source.as_ref(), id)).collect(),
        next: next.clone(),
        constrained_by: places.constraints(),
        inbox: place,
    };
    let mut response = json_ld(listing.to_json().to_string());
    of_container(response.headers_mut());
    let next = next.and_then(|next| HeaderValue::try_from(format!("<{next}>; rel=\"next\"")).ok());
    response.headers_mut().extend(next.map(|next| (header::LINK, next)));
    Ok(response)
}

/// The URL of the page after a notification.
fn behind(inbox: &Url, last: &NotificationId, limit: Option<u16>) -> Url {
    let mut next = inbox.clone();
    next.query_pairs_mut().append_pair("after", &last.to_string());
    if let Some(limit) = limit {
        next.query_pairs_mut().append_pair("limit", &limit.to_string());
    }
    next
}

/// A notification, as it was posted.
pub(super) async fn one(
    State(both): State<Both>,
    client: ClientAddress,
    Path(named): Path<Named>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let reader = reader(&both, client, &headers)?;
    let (gateway, inbox) = &both;
    let source = whose(gateway, &named).await?;
    let id = notification(&named)?;
    let notification = inbox.inboxes().get(source.as_ref(), &id).await?;
    if let Reader::Sender(sender) = &reader
        && sender.name() != notification.sender
    {
        return Err(Refusal::not_found("there is no such notification"));
    }
    let mut response = json_ld(notification.body);
    let kind = HeaderValue::try_from(format!("<{}>; rel=\"type\"", ldn::terms::RESOURCE)).ok();
    response.headers_mut().extend(kind.map(|kind| (header::LINK, kind)));
    response.headers_mut().extend(HeaderValue::try_from(format!("\"{id}\"")).map(|tag| (header::ETAG, tag)));
    Ok(response)
}

/// A JSON-LD response, whatever the request prefers, because every resource here exists as JSON-LD (LDN, 3.3.2).
fn json_ld(body: String) -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, ldn::JSON_LD)], body).into_response()
}
