//! GET of an inbox and of a notification (LDN-2).

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use control::NotificationId;
use ldn::Listing;
use serde::Deserialize;
use url::Url;

use super::Inbox;
use super::auth::{
    PathParams, Reader, check_reader, no_notification, notification, of_container, owner, reader,
};
use crate::api_error::ApiError;
use crate::client::ClientAddress;
use crate::extract::Query;
use crate::inbox_urls::link;
use crate::pagination;

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
    State(inbox): State<Inbox>,
    client: ClientAddress,
    Path(path): Path<PathParams>,
    Query(params): Query<ListParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let reader = reader(&inbox, client, &headers)?;
    check_reader(&inbox, &reader, &path).await?;
    let source = owner(&inbox, &path).await?;
    let limit = pagination::limit(params.limit)?;
    let after: Option<NotificationId> =
        params.after.map(|after| after.parse()).transpose().map_err(|_| {
            ApiError::bad_request(
                "after is the name of no notification: take `next` of a page as it is, or leave it out",
            )
        })?;
    let sender = match &reader {
        Reader::Operator(_) => None,
        Reader::Sender(sender) => Some(sender.name()),
    };
    let kept = inbox.inboxes.list(source.as_ref(), sender, after.as_ref(), limit).await?;
    let urls = inbox.urls(&headers);
    let own = urls.inbox(source.as_ref());
    let next = kept.ids.last().filter(|_| kept.more).map(|last| page_after(&own, last, params.limit));
    let listing = Listing {
        contains: kept.ids.iter().map(|id| urls.notification(source.as_ref(), id)).collect(),
        next: next.clone(),
        constrained_by: urls.constraints(),
        inbox: own,
    };
    let mut response = json_ld(listing.to_json().to_string());
    of_container(response.headers_mut());
    response.headers_mut().extend(next.and_then(|next| link(next, "next")));
    Ok(response)
}

/// The URL of the page after a notification.
fn page_after(inbox: &Url, last: &NotificationId, limit: Option<u16>) -> Url {
    let mut next = inbox.clone();
    next.query_pairs_mut().append_pair("after", &last.to_string());
    if let Some(limit) = limit {
        next.query_pairs_mut().append_pair("limit", &limit.to_string());
    }
    next
}

/// A notification, as it was posted.
pub(super) async fn one(
    State(inbox): State<Inbox>,
    client: ClientAddress,
    Path(path): Path<PathParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let reader = reader(&inbox, client, &headers)?;
    check_reader(&inbox, &reader, &path).await?;
    let source = owner(&inbox, &path).await?;
    let id = notification(&path)?;
    let notification = inbox.inboxes.get(source.as_ref(), &id).await?;
    if let Reader::Sender(sender) = &reader
        && sender.name() != notification.sender
    {
        return Err(no_notification());
    }
    let mut response = json_ld(notification.body);
    response.headers_mut().extend(link(ldn::terms::RESOURCE, "type"));
    response.headers_mut().extend(HeaderValue::try_from(format!("\"{id}\"")).map(|tag| (header::ETAG, tag)));
    Ok(response)
}

/// A JSON-LD response, whatever the request prefers, because every resource here exists as JSON-LD (LDN, 3.3.2).
pub(super) fn json_ld(body: String) -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, ldn::JSON_LD)], body).into_response()
}
