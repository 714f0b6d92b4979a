//! Inboxes: where others post notifications of changes (W3C Linked Data Notifications, LDN-1 to LDN-5;
//! [0035](../../../docs/adr/0035-a-notification-is-a-hint.md)).
//!
//! The steps of a notification: `senders` lists who may send. `receive` accepts it within its limits, if `room` has a
//! free permit, and stores it. `about` finds the Sources that it is about, and each of these gets a hint. `read` serves
//! stored notifications. `place` builds the URLs, `door` has what all these routes share, and `tell` serves public
//! information.

mod about;
mod door;
mod place;
mod read;
mod receive;
mod room;
mod senders;
mod tell;
mod verdict;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::routing::get;
use axum::{Router, middleware};
use control::{InboxLimits, Inboxes};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use model::SourceId;

use crate::config::InboxSettings;
use crate::refusal::Refusal;
use crate::state::Gateway;

use room::Room;
pub(crate) use senders::Senders;
pub(crate) use verdict::Verdict;

/// The common rate limit of all senders without a token, as a multiple of that of one sender.
const STRANGERS_RATE: NonZeroU32 = NonZeroU32::new(5).unwrap();

/// The inboxes of a gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Inbox(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    settings: InboxSettings,
    senders: Senders,
    inboxes: Inboxes,
    /// Permits for bodies.
    room: Room,
    /// The rate limit of requests without a token.
    strangers_rate: DefaultDirectRateLimiter,
}

impl Inbox {
    pub(crate) fn new(settings: InboxSettings, senders: Senders, inboxes: Inboxes) -> Self {
        let rate = settings.per_second.saturating_mul(STRANGERS_RATE);
        Self(Arc::new(Parts {
            senders,
            inboxes,
            room: Room::new(),
            strangers_rate: RateLimiter::direct(Quota::per_second(rate)),
            settings,
        }))
    }

    /// The limits of stored notifications.
    pub(crate) fn limits(settings: &InboxSettings) -> InboxLimits {
        InboxLimits {
            max_per_sender: settings.max_per_sender,
            kept: Duration::from_secs(u64::from(settings.retention_days) * 24 * 3_600),
            bytes: settings.megabytes.saturating_mul(1024 * 1024),
        }
    }

    /// The most memory that notifications take while the gateway receives them.
    pub(crate) fn memory_bytes(settings: &InboxSettings) -> usize {
        Room::bytes(settings.body_bytes)
    }

    fn settings(&self) -> &InboxSettings {
        &self.0.settings
    }

    fn senders(&self) -> &Senders {
        &self.0.senders
    }

    fn inboxes(&self) -> &Inboxes {
        &self.0.inboxes
    }
}

/// The routes of the inboxes. Empty where no inboxes are configured.
pub(crate) fn router(gateway: Gateway) -> Router {
    let Some(inbox) = gateway.inbox().cloned() else { return Router::new() };
    let inbox_of_any = || get(read::list).post(receive::receive).options(tell::options);
    Router::new()
        .route(place::HOME, get(tell::home))
        .route("/ldn/constraints", get(tell::constraints))
        .route("/ldn/inbox", inbox_of_any())
        .route("/ldn/inbox/{notification}", get(read::one))
        .route("/ldn/sources/{source}", get(tell::home))
        .route("/ldn/sources/{source}/inbox", inbox_of_any())
        .route("/ldn/sources/{source}/inbox/{notification}", get(read::one))
        .route(
            "/ldn/{*elsewhere}",
            get(async || Refusal::not_found("there is nothing here; /ldn tells of the inbox")),
        )
        .layer(middleware::from_fn_with_state((gateway.clone(), inbox.clone()), door::door))
        .with_state((gateway, inbox))
}

/// The header that advertises the inbox of a Source, or the common one (LDN-1). None where no inboxes are configured.
pub(crate) fn advertised(
    gateway: &Gateway,
    headers: &HeaderMap,
    source: Option<&SourceId>,
) -> Option<(HeaderName, HeaderValue)> {
    let inbox = place::Places::of(gateway.inbox()?, gateway, headers).inbox(source);
    let link = HeaderValue::try_from(format!("<{inbox}>; rel=\"{}\"", ldn::terms::INBOX)).ok()?;
    Some((header::LINK, link))
}
