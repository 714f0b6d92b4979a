//! Subscribes to the channels that a run found at a Source.

use std::collections::{HashMap, HashSet};

use control::{AdvertisedChannel, ControlError, SourceSpec, SubscriptionState, SubscriptionStep};
use model::{CapabilityLink, Push, SetId, SourceId};
use planning::Channels;
use resourcesync::Capability;
use url::Url;
use web::{Client, GetRequest};
use websub::Links;

use super::hubs;
use crate::context::SchedulerContext;

/// Requests subscriptions to exactly these channels of a Source. Errors are only logged: the next run repeats the
/// request. The hubs that a channel itself names are fetched if it is not subscribed to, and after a run that
/// `is_poll`. If that fails, existing subscriptions stay.
pub(crate) async fn want(
    context: &SchedulerContext,
    client: &Client,
    source: &SourceSpec,
    offers: &[(SetId, CapabilityLink)],
    is_poll: bool,
) {
    let Some(push) = &context.push else { return };
    let offers = if source.push == Push::Off { &[] } else { offers };
    let (mut wanted, mut left_alone): (Vec<AdvertisedChannel>, HashSet<&SetId>) =
        (Vec::new(), HashSet::new());
    for (set, link) in offers.iter().filter(|(_, link)| link.capability == Capability::ChangeNotification) {
        let named = match link.hubs.is_empty() {
            false => Some((link.uri.clone(), link.hubs.clone())),
            true if !is_poll && is_subscribed(context, &source.id, set) => None,
            true => named_by(client, &link.uri).await,
        };
        let Some((topic, mut hubs)) = named else {
            left_alone.insert(set);
            continue;
        };
        if hubs.is_empty() {
            tracing::info!(source.id = %source.id, topic, "no hub is named for its notifications");
            continue;
        }
        hubs.retain(|hub| hubs::may_subscribe(source, hub));
        if hubs.is_empty() {
            tracing::warn!(
                source.id = %source.id,
                topic,
                "its hub is reached over plain HTTP, where a secret would be read: it is not subscribed to; with `push: unsigned` \
                 (thresher source add --replace --push unsigned) it is, without a secret, and what comes is a hint"
            );
            continue;
        }
        wanted.push(AdvertisedChannel { source: source.id.clone(), set: set.clone(), topic, hubs });
    }
    let key = push.keys().current().name();
    if let Err(error) = tell(context, source, &wanted, &left_alone, key).await {
        tracing::warn!(source.id = %source.id, %error, "what it offers to be subscribed to could not be told");
    }
}

/// Whether a channel of a set is subscribed to, or about to be.
fn is_subscribed(context: &SchedulerContext, source: &SourceId, set: &SetId) -> bool {
    context
        .subscriptions
        .any(|known| known.source == *source && known.set == *set && known.state != SubscriptionState::Ending)
}

async fn tell(
    context: &SchedulerContext,
    source: &SourceSpec,
    wanted: &[AdvertisedChannel],
    left_alone: &HashSet<&SetId>,
    key: &str,
) -> Result<(), ControlError> {
    let subscriptions = context.control.subscriptions();
    let now = context.clock.now();
    let mut kept = Vec::new();
    for offered in wanted {
        kept.push(subscriptions.want(offered, key, now).await?.id.clone());
    }
    for known in context.subscriptions.matching(|known| known.source == source.id) {
        // A subscription under an earlier key stays until its replacement works.
        let is_replaced = known.key != key && wanted.iter().any(|offered| offered.topic == known.topic);
        if kept.contains(&known.id) || is_replaced || left_alone.contains(&known.set) {
            continue;
        }
        match subscriptions.step(&known.id, &SubscriptionStep::Unwanted, now).await {
            Ok(_) | Err(ControlError::Absent { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The active channels of a Source.
pub(crate) fn open(context: &SchedulerContext, source: &SourceId) -> Channels {
    let mut channels = Channels { since: HashMap::new(), patience: context.settings.notification_patience() };
    // An unsigned notification does not count as reported, so none of its changes can be missed.
    let is_signed = context.sources.get(source).is_some_and(|source| source.push != Push::Unsigned);
    if context.push.is_none() || !is_signed {
        return channels;
    }
    let now = context.clock.now();
    for subscription in context.subscriptions.matching(|known| known.source == *source) {
        if let Some(since) = subscription.tells_since(now) {
            let known = channels.since.entry(subscription.set.clone()).or_insert(since);
            *known = since.min(*known);
        }
    }
    channels
}

/// Reports missed changes, so that their hubs are asked to subscribe again. Errors are only logged.
pub(crate) async fn missed(context: &SchedulerContext, source: &SourceId, missed: &HashMap<SetId, u64>) {
    context.metrics.missed(missed.values().sum());
    let now = context.clock.now();
    for subscription in context.subscriptions.matching(|known| known.source == *source) {
        let Some(&changes) = missed.get(&subscription.set).filter(|_| subscription.is_active(now)) else {
            continue;
        };
        let step = SubscriptionStep::Missed { changes };
        match context.control.subscriptions().step(&subscription.id, &step, now).await {
            Ok(Some(next)) if next.revived_at == Some(now) => {
                tracing::warn!(source.id = %source, changes, "changes were not delivered: the hub is asked anew");
                context.metrics.resubscribed();
            }
            Ok(_) | Err(ControlError::Absent { .. }) => {}
            Err(error) => {
                tracing::warn!(source.id = %source, changes, %error, "what was missed could not be told");
            }
        }
    }
}

/// The topic and the hubs that a channel itself names (CN-6), if its Capability List does not. The topic is its
/// `self` link, which may differ from the requested URL (WebSub, 4): hubs know the channel by it. None if it cannot
/// be requested now.
async fn named_by(client: &Client, channel: &str) -> Option<(String, Vec<String>)> {
    let Ok(url) = Url::parse(channel) else { return Some((channel.to_owned(), Vec::new())) };
    match client.get_with_retries(GetRequest::new(url)).await {
        Ok(response) => {
            let links = Links::parse(response.header_values("link"), response.final_url());
            let is_url = |topic: &String| {
                Url::parse(topic)
                    .is_ok_and(|topic| matches!(topic.scheme(), "http" | "https") && topic.has_host())
            };
            let topic = links.topic.filter(is_url).unwrap_or_else(|| channel.to_owned());
            Some((topic, links.hubs.into_iter().map(String::from).collect()))
        }
        Err(error) => {
            tracing::info!(%error, "a channel cannot be asked for its hub");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use control::{Spec, Subscription, WatchCache};
    use jiff::Timestamp;
    use tempfile::TempDir;
    use testkit::scripted::{Reply, ScriptedServer};
    use testkit::waiting::LONGEST_WAIT;
    use tokio::time::timeout;

    use super::*;
    use crate::tests::{context, push};

    #[tokio::test]
    async fn what_works_is_ended_by_a_channel_that_names_no_hub_and_not_by_one_that_cannot_be_asked() {
        let folder = TempDir::new().unwrap();
        let context = SchedulerContext { push: Some(push()), ..context(folder.path()).await };
        let server = ScriptedServer::start().await.unwrap();
        let source = SourceSpec::new(server.uri("/").parse().unwrap());
        let topic = server.uri("/channel");
        let link = CapabilityLink::new(Capability::ChangeNotification, topic.clone());
        let offers = [(SetId::new("http://h/caps"), link)];
        let want = async |is_poll| want(&context, &context.client, &source, &offers, is_poll).await;
        let stands = async |state: fn(&SubscriptionState) -> bool| {
            let stands = |all: &WatchCache<Subscription>| all.any(|one| state(&one.state)).then_some(());
            let seen = timeout(LONGEST_WAIT, context.subscriptions.clone().wait_for(stands)).await;
            seen.expect("it comes to stand so");
        };
        let asked = || server.requests_at("/channel").len();

        let named = Reply::status(200).header("link", "<https://hub.example/>; rel=\"hub\"");
        server.push("/channel", named);
        // It is not subscribed to yet.
        want(false).await;
        stands(|state| *state == SubscriptionState::Wanted).await;
        let id = context.subscriptions.all()[0].id.clone();
        let verify = SubscriptionStep::Verify {
            mode: control::AskedMode::Subscribe,
            topic: topic.clone(),
            lease_seconds: Some(600),
        };
        for step in [SubscriptionStep::Ask, verify] {
            context.control.subscriptions().step(&id, &step, Timestamp::now()).await.unwrap();
        }
        stands(|state| matches!(state, SubscriptionState::Active { .. })).await;

        want(false).await;
        assert_eq!(asked(), 1, "its hub is known");
        server.push("/channel", Reply::status(404));
        want(true).await;
        let seen = context.control.subscriptions().get(&id).await.unwrap();
        assert!(seen.is_active(Timestamp::now()), "{seen:?}");
        server.push("/channel", Reply::status(200));
        want(true).await;
        stands(|state| *state == SubscriptionState::Ending).await;
        assert_eq!(asked(), 3);
        server.assert_followed();
    }

    #[tokio::test]
    async fn the_topic_is_what_the_channel_calls_itself_and_a_hub_over_plain_http_has_to_be_admitted() {
        let folder = TempDir::new().unwrap();
        let context = SchedulerContext { push: Some(push()), ..context(folder.path()).await };
        let server = ScriptedServer::start().await.unwrap();
        let source = SourceSpec::new(server.uri("/").parse().unwrap());
        let link = CapabilityLink::new(Capability::ChangeNotification, server.uri("/channel"));
        let offers = [(SetId::new("http://h/caps"), link)];
        let wanted = async |push, hub: &str| {
            let links = format!("</canonical>; rel=\"self\", <{hub}>; rel=\"hub\"");
            server.push("/channel", Reply::status(200).header("link", &links));
            want(
                &context,
                &context.client,
                &SourceSpec::from(Spec { push, ..source.spec.clone() }),
                &offers,
                true,
            )
            .await;
            let all = context.control.subscriptions().of(&source.id).await.unwrap();
            all.iter().map(|one| (one.topic.clone(), one.hubs.clone())).collect::<Vec<_>>()
        };
        assert_eq!(wanted(Push::Auto, "http://hub.example/").await, []);
        let (topic, hub) = (server.uri("/canonical"), "http://hub.example/".to_owned());
        assert_eq!(wanted(Push::Unsigned, &hub).await, [(topic, vec![hub.clone()])]);
        server.assert_followed();
    }
}
