//! A gateway that is killed while hubs deliver: every accepted delivery is queued, and stored in the end.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::api::Api;
use crate::common::push::Teller;
use crate::common::{Fleet, Service, source, truth};
use bus::{JetStreamBus, JetStreamConfig};
use futures::StreamExt as _;
use futures::stream;
use model::ChangeNotification;
use secrets::Vars;
use simulated_source::{Changes, SourceSpec};
use testkit::hub::{SimulatedHub, sign};
use testkit::servers::{NatsFixture, S3Fixture};
use testkit::waiting::until;

const ROUNDS: usize = 5;
/// Deliveries in a round. All of them together fit into the queue of a Source.
const EACH: usize = 150;
/// Concurrent deliveries: as many as a gateway receives of one subscription.
const AT_A_TIME: usize = 8;

/// The payloads in the queues of notifications.
async fn queued(fleet: &Fleet) -> Vec<String> {
    let config = JetStreamConfig {
        servers: vec![fleet.nats.clone()],
        namespace: fleet.namespace.clone(),
        max_megabytes_per_stream: 0,
        ..JetStreamConfig::default()
    };
    let bus = JetStreamBus::connect(config, &Vars::default()).await.unwrap();
    let mut stream = bus.context().get_stream(format!("{}-notices", fleet.namespace)).await.unwrap();
    let state = stream.info().await.unwrap().state.clone();
    let mut bodies = Vec::new();
    for sequence in state.first_sequence..=state.last_sequence {
        // Planned notifications are not in the stream any more.
        let Ok(message) = stream.get_raw_message(sequence).await else { continue };
        let notice: ChangeNotification = model::decode(&message.payload).unwrap();
        bodies.push(String::from_utf8(notice.body).unwrap());
    }
    bodies
}

#[tokio::test]
async fn what_was_answered_with_a_yes_is_queued_when_the_gateway_is_killed_at_any_moment() {
    let hub = SimulatedHub::start().unwrap();
    let source = source(SourceSpec::default().resources(50).hub(hub.url())).await;
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let settings = fleet.push("http://push.example/", "push_per_second: 10000, ");
    let start = || async {
        let gateway = fleet.start(&["gateway"], &settings);
        hub.find_callbacks_at(Api::of(&gateway).await.base);
        gateway
    };
    let others = || fleet.start(&["scheduler", "fetcher", "unpacker", "verifier"], &settings);
    let gateway = start().await;
    let planning = others();
    fleet.add(&source.well_known(), &[]);
    fleet.harvest(&source.well_known()).await.exits(0);
    until("the hub has verified the subscription", || hub.subscribers().len() == 1).await;
    let to = hub.subscribers().remove(0);
    let mut teller = Teller::of(&source);
    gateway.kill();
    // No scheduler takes anything out of the queue meanwhile.
    planning.kill();

    let mut answered = BTreeSet::new();
    let mut unanswered = 0;
    for round in 0..ROUNDS {
        let mut alive: Option<Service> = Some(start().await);
        let told: Vec<String> = (0..EACH)
            .map(|_| {
                let made = source.change(Changes { update: 1, ..Changes::default() });
                teller.tell(&source, &made)
            })
            .collect();
        let deliveries = stream::iter(told).map(|told| {
            let hub = &hub;
            let to = &to;
            async move {
                let status = hub.deliver_signed(to, &told, &sign(&to.secret, told.as_bytes())).await;
                (told, status)
            }
        });
        let mut deliveries = Box::pin(deliveries.buffer_unordered(AT_A_TIME));
        let killed_after = rand::random_range(1..=EACH / 2);
        let moment = rand::random_range(0..=5);
        let mut answers = 0;
        let mut killing = None;
        while let Some((told, status)) = deliveries.next().await {
            match status {
                202 => assert!(answered.insert(told), "all of them differ"),
                // The hub would repeat it.
                0 | 503 => unanswered += 1,
                other => panic!("round {round}: answered with {other}"),
            }
            answers += 1;
            if answers >= killed_after
                && let Some(gateway) = alive.take()
            {
                // Between two responses, too.
                killing = Some(tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(moment)).await;
                    gateway.kill();
                }));
            }
        }
        killing.expect("it was killed").await.unwrap();
    }
    assert!(!answered.is_empty() && unanswered > 0, "{} yes, {unanswered} without an answer", answered.len());

    let lying = queued(&fleet).await;
    let there: BTreeSet<String> = lying.iter().cloned().collect();
    let lost = answered.difference(&there).count();
    assert_eq!(lost, 0, "of {} that were answered with a yes are not queued", answered.len());
    assert_eq!(lying.len(), there.len(), "none is queued twice");

    // The hub would repeat rejected deliveries. Here it does not, and the Change List contains them.
    let _alive = (start().await, others());
    until("what is held is what the Source has", || fleet.destination().present() == truth(&source)).await;
    fleet.watch(&source.well_known()).await.exits(0);
    assert_eq!(fleet.destination().present(), truth(&source));
}
