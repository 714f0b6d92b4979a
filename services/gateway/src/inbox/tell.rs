//! Public information: the URL of an inbox, and the constraints for notifications.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ldn::terms::INBOX;
use maud::{DOCTYPE, html};
use serde_json::json;

use super::door::{Both, Named, of_container, source, tells_of_inbox};
use super::place::Places;
use crate::refusal::Refusal;

/// A resource that has an inbox: a Source, or the collection of all. The response does not reveal whether the Source
/// exists.
pub(super) async fn home(
    State((gateway, inbox)): State<Both>,
    Path(named): Path<Named>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let source = source(&named)?;
    let places = Places::of(&inbox, &gateway, &headers);
    let said = json!({
        "@id": places.target(source.as_ref()).as_str(),
        INBOX: {"@id": places.inbox(source.as_ref()).as_str()},
    });
    let mut response =
        (StatusCode::OK, [(header::CONTENT_TYPE, ldn::JSON_LD)], said.to_string()).into_response();
    tells_of_inbox(&gateway, &headers, source.as_ref(), response.headers_mut());
    Ok(response)
}

/// The methods of an inbox. The response does not reveal whether the inbox exists.
pub(super) async fn options() -> Response {
    let mut response = StatusCode::OK.into_response();
    of_container(response.headers_mut());
    response
}

/// The constraints for notifications.
pub(super) async fn constraints(State((_, inbox)): State<Both>) -> Response {
    let settings = inbox.settings();
    let limits = ldn::Limits::default();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; title { "What notifications have to be like" } }
            body {
                h1 { "What notifications have to be like" }
                p { "These inboxes take W3C Linked Data Notifications. What is not like this is refused with a 4xx status and a problem (RFC 9457) that says why." }
                ul {
                    li { "Sender: one that whoever runs this harvester knows, by a token (" code { "Authorization: Bearer …" } ")"
                        @if inbox.senders().any_by_origin() { ", or by the origin of the URL in " code { "origin.id" } ", else of " code { "actor" } }
                        ". At most " (settings.per_second) " notifications a second." }
                    li { "Media type: " code { (ldn::ACCEPT_POST) } ", each with any " code { "profile" } "; no " code { "Content-Encoding" } "." }
                    li { "Size: at most " (settings.body_bytes) " bytes, which arrive within " (settings.body_timeout_seconds) " seconds." }
                    li { "Shape: JSON, one object with at least one property, or an array of such; at most " (limits.depth) " deep, with at most " (limits.members)
                        " values, and no name twice in one object." }
                }
                p { "Activity Streams 2 and COAR Notify " code { "Create" } ", " code { "Update" } ", " code { "Delete" } " and " code { "Announce" }
                    ", whose object lies at the origin of a Source that is harvested here, have that Source looked at soon. Anything else is kept. Contexts and other URLs in a notification are not fetched; the contexts of
                    Activity Streams 2, of the Linked Data Platform and of COAR Notify are known." }
                p { "Kept for " (settings.retention_days) " days, the newest " (settings.max_per_sender) " of each sender in each inbox. Senders with a token read what they have sent." }
            }
        }
    };
    page.into_response()
}
