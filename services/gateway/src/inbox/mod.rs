//! Inboxes: where others post notifications of changes (W3C Linked Data Notifications, LDN-1 to LDN-5;
//! [0035](../../../docs/adr/0035-a-notification-is-a-hint.md)).
//!
//! The steps of a notification: `senders` lists who may send. `receive` accepts it within its limits, if `body_limiter`
//! has a free permit, and stores it. `source_match` finds the Sources that it is about, and each of these gets a hint.
//! `read` serves stored notifications. `auth` has what all these routes share, and `public` serves public information.

mod auth;
mod body_limiter;
mod public;
mod read;
mod receive;
mod senders;
mod source_match;

use std::num::NonZeroU32;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::routing::get;
use axum::{Router, middleware};
use control::{InboxLimits, Inboxes};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::api_error::ApiError;
use crate::config::InboxSettings;
use crate::inbox_urls::InboxUrls;
use crate::state::Gateway;

use body_limiter::BodyLimiter;
pub(crate) use senders::Senders;

/// The common rate limit of all senders without a token, as a multiple of that of one sender.
const ANONYMOUS_RATE: NonZeroU32 = NonZeroU32::new(5).unwrap();

/// The path of the resource that has the common inbox. All other paths begin with it.
const HOME: &str = "/ldn";

/// The inboxes of a gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Inbox(Arc<Parts>);

#[derive(Debug)]
pub(crate) struct Parts {
    gateway: Gateway,
    settings: InboxSettings,
    senders: Senders,
    inboxes: Inboxes,
    bodies: BodyLimiter,
    /// The rate limit of requests without a token.
    anonymous_rate: DefaultDirectRateLimiter,
}

impl Inbox {
    pub(crate) fn new(gateway: Gateway, settings: InboxSettings, senders: Senders, inboxes: Inboxes) -> Self {
        let rate = settings.per_second.saturating_mul(ANONYMOUS_RATE);
        let anonymous_rate = RateLimiter::direct(Quota::per_second(rate));
        let bodies = BodyLimiter::new();
        Self(Arc::new(Parts { gateway, settings, senders, inboxes, bodies, anonymous_rate }))
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
        BodyLimiter::bytes(settings.body_bytes)
    }

    /// The URLs of the inboxes for the client of a request.
    fn urls(&self, headers: &HeaderMap) -> InboxUrls {
        InboxUrls::of(&self.settings, self.gateway.settings.listen, headers)
    }
}

impl Deref for Inbox {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// The routes of the inboxes.
pub(crate) fn router(inbox: Inbox) -> Router {
    let container = || get(read::list).post(receive::receive).options(public::options);
    Router::new()
        .route(HOME, get(public::home))
        .route("/ldn/constraints", get(public::constraints))
        .route("/ldn/inbox", container())
        .route("/ldn/inbox/{notification}", get(read::one))
        .route("/ldn/sources/{source}", get(public::home))
        .route("/ldn/sources/{source}/inbox", container())
        .route("/ldn/sources/{source}/inbox/{notification}", get(read::one))
        .route("/ldn/{*elsewhere}", get(async || ApiError::not_found("nothing is served here; see /ldn")))
        .layer(middleware::from_fn_with_state(inbox.clone(), auth::finish))
        .with_state(inbox)
}
