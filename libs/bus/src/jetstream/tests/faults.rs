//! A server that is killed, wiped, or unreachable.

use std::collections::BTreeSet;

use testkit::servers::NatsServer;
use tokio::time::timeout;

use super::*;
use crate::worker::{HandlerResult, run};

/// The time limit for expected events, a restart of the server included.
const SOON: Duration = Duration::from_secs(60);

async fn server_and_bus(test: &str) -> (NatsServer, JetStreamBus) {
    let server = NatsServer::start().await.unwrap();
    let bus = connect(server.url(), test).await;
    (server, bus)
}

async fn restart(server: &mut NatsServer) {
    server.kill();
    server.start_again().await.unwrap();
}

async fn one(bus: &JetStreamBus, filter: &Filter) -> Delivery {
    let mut pulled = bus.pull(filter, 1, SOON).await.unwrap();
    pulled.pop().unwrap_or_else(|| panic!("nothing came from {filter}"))
}

#[tokio::test]
async fn a_server_without_room_is_told_of_with_the_setting_that_asks_for_it() {
    let server = NatsFixture::get().await;
    let config = JetStreamConfig {
        max_megabytes_per_stream: 1 << 40,
        retry_timeout_seconds: 1,
        ..config(&server.url, "no-room")
    };
    let error = JetStreamBus::connect(config, &Vars::default()).await.unwrap_err();
    assert!(error.is_temporary(), "{error:?}");
    let said = error.to_string();
    for words in ["create stream", "insufficient storage", "10047", "`nats.max_megabytes_per_stream`"] {
        assert!(said.contains(words), "{said}");
    }
}

#[tokio::test]
async fn what_was_published_before_the_server_was_killed_is_there_after() {
    let (mut server, bus) = server_and_bus("kill-published").await;
    bus.open(verify_spec(64)).await.unwrap();
    for n in 0..CAPACITY {
        publish(&bus, verify(), &format!("m{n}")).await;
    }
    restart(&mut server).await;
    let mut ids = BTreeSet::new();
    while ids.len() < CAPACITY {
        let delivery = one(&bus, &Filter::Verify).await;
        assert!(ids.insert(delivery.id.to_string()), "{} after its ack", delivery.id);
        delivery.ack().await.unwrap();
    }
    assert_eq!(ids, (0..CAPACITY).map(|n| format!("m{n}")).collect::<BTreeSet<_>>());
    assert_eq!(bus.depth(&Filter::Verify).await.unwrap(), Depth::default());
}

#[tokio::test]
async fn calls_made_while_the_server_is_down_succeed_when_it_is_back() {
    let (mut server, bus) = server_and_bus("kill-calls").await;
    bus.open(verify_spec(4)).await.unwrap();
    publish(&bus, verify(), "held").await;
    let held = one(&bus, &Filter::Verify).await;
    server.kill();
    let mut health = bus.health();
    timeout(SOON, health.wait_for(|health| !health.up))
        .await
        .expect("nobody notices that it is down")
        .unwrap();
    let back = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.start_again().await.unwrap();
    };
    let nobody = "nobody".parse().unwrap();
    let (acked, published, opened, purged, pulled, ()) = tokio::join!(
        held.ack(),
        bus.publish(verify(), MessageId::new("meanwhile"), "".into()),
        bus.open(ConsumerSpec::new(Filter::Outcomes(source()), 1, ACK_WAIT, 5)),
        bus.purge(&nobody),
        bus.pull(&Filter::Verify, 1, SOON),
        back
    );
    acked.unwrap();
    published.unwrap();
    opened.unwrap();
    assert_eq!(purged.unwrap(), 0);
    let mut next = pulled.unwrap().pop().expect("the pull goes on when the server is back");
    if next.id.as_str() == "held" {
        // The server forgot that it had delivered it, and delivered it again before it received the ack.
        next.ack().await.unwrap();
        next = one(&bus, &Filter::Verify).await;
    }
    assert_eq!(next.id.as_str(), "meanwhile");
    next.ack().await.unwrap();
    assert!(bus.health().borrow().up);
    assert_eq!(bus.depth(&Filter::Verify).await.unwrap(), Depth::default());
}

#[tokio::test]
async fn delivery_held_while_the_server_is_killed_is_acknowledged_or_comes_again() {
    let mut server = NatsServer::start().await.unwrap();
    let config = JetStreamConfig { retry_timeout_seconds: 2, ..config(server.url(), "kill-held") };
    let bus = JetStreamBus::connect(config, &Vars::default()).await.unwrap();
    bus.open(verify_spec(8)).await.unwrap();
    for n in 0..8 {
        publish(&bus, verify(), &n.to_string()).await;
    }
    let held = bus.pull(&Filter::Verify, 8, SOON).await.unwrap();
    assert_eq!(held.len(), 8);
    restart(&mut server).await;
    // Half of them are done; the worker of the others died.
    let mut done: Vec<String> = Vec::new();
    for (n, delivery) in held.into_iter().enumerate() {
        if n % 2 == 0 {
            match delivery.ack().await {
                Ok(()) => done.push(delivery.id.to_string()),
                // The server may forget its last deliveries, and so not know this one: the message is redelivered.
                Err(error) => assert!(error.is_temporary(), "{error}"),
            }
        }
    }
    while done.len() < 8 {
        let delivery = one(&bus, &Filter::Verify).await;
        assert!(!done.contains(&delivery.id.to_string()), "{} after its ack", delivery.id);
        delivery.ack().await.unwrap();
        done.push(delivery.id.to_string());
    }
    assert!(bus.pull(&Filter::Verify, 8, ACK_WAIT * 2).await.unwrap().is_empty());
}

#[tokio::test]
async fn worker_goes_on_by_itself_when_the_server_is_back() {
    let (mut server, bus) = server_and_bus("kill-worker").await;
    bus.open(verify_spec(2)).await.unwrap();
    let done = Arc::new(Mutex::new(BTreeSet::new()));
    let stop = CancellationToken::new();
    let noted = Arc::clone(&done);
    let worker = tokio::spawn(run(Arc::new(bus.clone()), verify_spec(2), stop.clone(), move |message| {
        noted.lock().unwrap().insert(message.id.to_string());
        async { HandlerResult::Done }
    }));
    for round in 0..3 {
        publish(&bus, verify(), &round.to_string()).await;
        let all_done = async {
            while done.lock().unwrap().len() <= round {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(SOON, all_done).await.unwrap_or_else(|_| panic!("round {round} is not worked on"));
        // Its ack may be on the way. In that case the message is redelivered.
        restart(&mut server).await;
    }
    let settled = async {
        while bus.depth(&Filter::Verify).await.unwrap() != Depth::default() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, settled).await.expect("something is never acknowledged");
    stop.cancel();
    worker.await.unwrap().unwrap();
}

#[tokio::test]
async fn origins_opened_while_the_connection_was_lost_are_known_when_it_is_back() {
    let (mut server, bus) = server_and_bus("kill-lanes").await;
    let other = connect(server.url(), "kill-lanes").await;
    bus.open(origin_spec(1, 1)).await.unwrap();
    restart(&mut server).await;
    bus.open(origin_spec(2, 1)).await.unwrap();
    assert!(bus.close(origin_spec(1, 1).filter()).await.unwrap());
    let mut origins = other.origins();
    let known = |origins: &OriginQueues| origins.keys().eq([&origin(2)]);
    assert!(timeout(SOON, origins.wait_for(known)).await.is_ok(), "{:?}", other.origins().borrow());
}

#[tokio::test]
async fn server_that_lost_its_disk_gets_its_streams_and_origins_again() {
    let (mut server, bus) = server_and_bus("wiped").await;
    bus.open(origin_spec(1, 3)).await.unwrap();
    server.wipe().unwrap();
    server.start_again().await.unwrap();
    publish(&bus, fetch(1), "after").await;
    let delivery = one(&bus, origin_spec(1, 3).filter()).await;
    delivery.ack().await.unwrap();
    let other = connect(server.url(), "wiped").await;
    assert_eq!(other.origins().borrow().get(&origin(1)), Some(&origin_spec(1, 3)));
}

#[tokio::test]
async fn server_that_stays_away_is_an_error_that_says_what_to_do() {
    let mut server = NatsServer::start().await.unwrap();
    let config = JetStreamConfig { retry_timeout_seconds: 2, ..config(server.url(), "away") };
    let bus = JetStreamBus::connect(config.clone(), &Vars::default()).await.unwrap();
    server.kill();
    let error = bus.publish(verify(), MessageId::new("a"), "".into()).await.unwrap_err();
    assert!(error.is_temporary(), "{error}");
    assert!(error.to_string().contains("Check that its servers are up and reachable"), "{error}");
    let error = JetStreamBus::connect(config, &Vars::default()).await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains(server.url()), "{error}");
}
