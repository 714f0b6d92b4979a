//! What a Source offers to be subscribed to, after a run has found that out.

use std::collections::HashMap;

use control::{ControlError, Offered, Push, SourceSpec, SubscriptionStep};
use model::{CapabilityLink, SetId, SourceId};
use resourcesync::Capability;
use url::Url;
use web::{Client, GetRequest};
use websub::Links;

use super::Crew;
use crate::Channels;

/// Wants the channels of a Source, and no others. Errors are told and nothing more: the next run says the same again.
pub(super) async fn want(
    crew: &Crew,
    client: &Client,
    source: &SourceSpec,
    offers: &[(SetId, CapabilityLink)],
) {
    let Some(push) = &crew.push else { return };
    let offers = if source.push == Push::Off { &[] } else { offers };
    let mut wanted = Vec::new();
    for (set, link) in offers.iter().filter(|(_, link)| link.capability == Capability::ChangeNotification) {
        let hubs = match link.hubs.is_empty() {
            false => link.hubs.clone(),
            true => hubs_of(client, &link.uri).await,
        };
        if hubs.is_empty() {
            tracing::info!(source.id = %source.id, topic = link.uri, "no hub is named for its notifications");
            continue;
        }
        let (set, topic) = (set.clone(), link.uri.clone());
        wanted.push(Offered { source: source.id.clone(), set, topic, hubs });
    }
    let key = push.keys().current().name();
    if let Err(error) = tell(crew, source, &wanted, key).await {
        tracing::warn!(source.id = %source.id, %error, "what it offers to be subscribed to could not be told");
    }
}

async fn tell(crew: &Crew, source: &SourceSpec, wanted: &[Offered], key: &str) -> Result<(), ControlError> {
    let subscriptions = crew.control.subscriptions();
    let now = crew.clock.now();
    let mut kept = Vec::new();
    for offered in wanted {
        kept.push(subscriptions.want(offered, key, now).await?.id.clone());
    }
    for known in crew.subscriptions.all().iter().filter(|known| known.source == source.id) {
        // One under an earlier key goes on until the one that replaces it works.
        let is_replaced = known.key != key && wanted.iter().any(|offered| offered.topic == known.topic);
        if kept.contains(&known.id) || is_replaced {
            continue;
        }
        match subscriptions.step(&known.id, &SubscriptionStep::Unwanted, now).await {
            Ok(_) | Err(ControlError::Absent { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The channels by which a Source's changes should come now.
pub(super) fn open(crew: &Crew, source: &SourceId) -> Channels {
    let (patience, lag) = (crew.settings.notification_patience(), crew.metrics.lag.clone());
    let mut channels = Channels { since: HashMap::new(), patience, lag };
    if crew.push.is_none() {
        return channels;
    }
    let now = crew.clock.now();
    for subscription in crew.subscriptions.all().iter().filter(|known| known.source == *source) {
        if let Some(since) = subscription.tells_since(now) {
            let known = channels.since.entry(subscription.set.clone()).or_insert(since);
            *known = since.min(*known);
        }
    }
    channels
}

/// Tells what a run found that hubs have not told: they are asked anew. Errors are told and nothing more.
pub(super) async fn missed(crew: &Crew, source: &SourceId, missed: &HashMap<SetId, u64>) {
    crew.metrics.missed(missed.values().sum());
    let now = crew.clock.now();
    for subscription in crew.subscriptions.all().iter().filter(|known| known.source == *source) {
        let Some(&changes) = missed.get(&subscription.set).filter(|_| subscription.is_active(now)) else {
            continue;
        };
        let step = SubscriptionStep::Missed { changes };
        match crew.control.subscriptions().step(&subscription.id, &step, now).await {
            Ok(Some(next)) if next.revived_at == Some(now) => {
                tracing::warn!(source.id = %source, changes, "changes were not delivered: the hub is asked anew");
                crew.metrics.resubscribed();
            }
            Ok(_) | Err(ControlError::Absent { .. }) => {}
            Err(error) => {
                tracing::warn!(source.id = %source, changes, %error, "what was missed could not be told");
            }
        }
    }
}

/// The hubs that a channel names itself (CN-6), where its Capability List does not.
async fn hubs_of(client: &Client, topic: &str) -> Vec<String> {
    let Ok(url) = Url::parse(topic) else { return Vec::new() };
    match client.get_with_retries(GetRequest::new(url)).await {
        Ok(response) => {
            let links = Links::parse(response.header_values("link"), response.final_url());
            links.hubs.into_iter().map(String::from).collect()
        }
        Err(error) => {
            tracing::info!(%error, "a channel cannot be asked for its hub");
            Vec::new()
        }
    }
}
