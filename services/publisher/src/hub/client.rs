//! The client that calls subscribers: behind the address guard, and without redirects.

use web::{Client, WebConfig, WebError};

use crate::hub_limits::HubLimits;

pub(super) fn client(limits: &HubLimits) -> Result<Client, WebError> {
    Client::new(WebConfig {
        connect_timeout: limits.answer_time,
        first_byte_timeout: limits.answer_time,
        stall_timeout: limits.answer_time,
        // A callback that redirects has failed (WebSub, 7).
        max_redirects: 0,
        // A subscriber is called again by its own pauses.
        retry_budget: limits.answer_time,
        addresses: limits.addresses.clone(),
        ..WebConfig::default()
    })
}
