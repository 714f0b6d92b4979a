//! The client that calls subscribers: behind the address guard, and without redirects.

use publish::PublishError;
use web::{Client, WebConfig};

use super::places::{AT_ONE_ORIGIN, HOST_SHARE};
use crate::hub_limits::HubLimits;

/// Makes the client of a server. All its hubs share it, so an origin has one budget however many sets there are.
pub(crate) fn client(limits: &HubLimits) -> Result<Client, PublishError> {
    let client = Client::new(WebConfig {
        connect_timeout: limits.answer_time,
        first_byte_timeout: limits.answer_time,
        stall_timeout: limits.answer_time,
        // A callback that redirects has failed (WebSub, 7).
        max_redirects: 0,
        per_origin: AT_ONE_ORIGIN,
        host_share: HOST_SHARE,
        // A subscriber is called again by its own pauses.
        retry_budget: limits.answer_time,
        addresses: limits.addresses.clone(),
        ..WebConfig::default()
    });
    client.map_err(|error| PublishError::Refused(format!("no subscriber can be called from here: {error}")))
}
