//! Public information: the URL of an inbox, and the constraints for notifications.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use ldn::terms::INBOX;
use maud::{DOCTYPE, html};
use serde_json::json;

use super::Inbox;
use super::auth::{PathParams, of_container, source};
use super::read::json_ld;
use crate::api_error::ApiError;

/// A resource that has an inbox: a Source, or the collection of all. The response does not reveal whether the Source
/// exists.
pub(super) async fn home(
    State(inbox): State<Inbox>,
    Path(path): Path<PathParams>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let source = source(&path)?;
    let urls = inbox.urls(&headers);
    let advertisement = json!({
        "@id": urls.target(source.as_ref()).as_str(),
        INBOX: {"@id": urls.inbox(source.as_ref()).as_str()},
    });
    let mut response = json_ld(advertisement.to_string());
    response.headers_mut().extend(urls.advertise(source.as_ref()));
    Ok(response)
}

/// The methods of an inbox. The response does not reveal whether the inbox exists.
pub(super) async fn options() -> Response {
    let mut response = StatusCode::OK.into_response();
    of_container(response.headers_mut());
    response
}

/// The constraints for notifications.
pub(super) async fn constraints(State(inbox): State<Inbox>) -> Response {
    let settings = &inbox.settings;
    let limits = ldn::Limits::default();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; title { "Constraints for notifications" } }
            body {
                h1 { "Constraints for notifications" }
                p { "These inboxes take W3C Linked Data Notifications. Any other request is refused with a 4xx status and a problem (RFC 9457) that says why." }
                ul {
                    li { "Sender: one that the operator of this harvester knows, by a token (" code { "Authorization: Bearer …" } ")"
                        @if inbox.senders.any_by_origin() { ", or by the origin of the URL in " code { "origin.id" } ", else of " code { "actor" } }
                        ". At most " (settings.per_second) " notifications a second." }
                    li { "Media type: " code { (ldn::ACCEPT_POST) } ", each with any " code { "profile" } "; no " code { "Content-Encoding" } "." }
                    li { "Size: at most " (settings.body_bytes) " bytes, which arrive within " (settings.body_timeout_seconds) " seconds." }
                    li { "Shape: JSON, one object with at least one property, or an array of such; at most " (limits.depth) " deep, with at most " (limits.members)
                        " values, and no name twice in one object." }
                }
                p { "Activity Streams 2 and COAR Notify " code { "Create" } ", " code { "Update" } ", " code { "Delete" } " and " code { "Announce" }
                    ", whose object is at the origin of a Source that is harvested here, start a run of that Source soon. Anything else is kept. Contexts and other URLs in a notification are not fetched; the contexts of
                    Activity Streams 2, of the Linked Data Platform and of COAR Notify are known." }
                p { "Kept for " (settings.retention_days) " days, the newest " (settings.max_per_sender) " of each sender in each inbox. Senders with a token read what they have sent." }
            }
        }
    };
    page.into_response()
}
