//! Cooldowns that are shared through a real server.

use std::sync::Arc;
use std::time::Duration;

use control::{Control, Cooldown};
use fleet::{NatsConfig, SharedRests, open_control, share_cooldowns};
use jiff::{SignedDuration, Timestamp};
use model::{Clock, ManualClock, Origin, SystemClock};
use secrets::Vars;
use service::Readiness;
use testkit::scripted::{Reply, ScriptedServer};
use testkit::servers::NatsFixture;
use testkit::waiting::{LONGEST_WAIT, found, until};
use tokio_util::sync::CancellationToken;
use web::{Client, GetRequest, WebConfig};

/// One process of a fleet.
struct Process {
    client: Client,
    control: Control,
    _shared: SharedRests,
}

async fn process(config: &NatsConfig, clock: Arc<dyn Clock>) -> Process {
    let readiness = Readiness::default();
    let stop = CancellationToken::new();
    let control = open_control(config, &Vars::default(), &readiness, &stop).await.unwrap();
    let client = Client::new(WebConfig::default()).unwrap();
    let shared = share_cooldowns(&client, &control, clock, &readiness, &stop).await.unwrap();
    assert!(readiness.is_ready());
    Process { client, control, _shared: shared }
}

async fn namespace(name: &str) -> NatsConfig {
    let servers = vec![NatsFixture::get().await.url];
    let namespace = format!("{name}-{}", Timestamp::now().as_nanosecond());
    NatsConfig { servers, namespace, ..NatsConfig::default() }
}

async fn until_resting(client: &Client, origin: &Origin) -> Duration {
    found(format!("{origin} is left alone"), async || client.resting(origin)).await
}

#[tokio::test]
async fn what_one_process_is_told_all_keep_to_also_those_that_come_later() {
    let server = ScriptedServer::start().await.unwrap();
    server.always("/busy", Reply::status(429).header("retry-after", "600"));
    let origin: Origin = server.url().parse().unwrap();
    let config = namespace("told").await;
    let clock = || Arc::new(SystemClock);
    let one = process(&config, clock()).await;
    let two = process(&config, clock()).await;
    assert_eq!(two.client.resting(&origin), None);
    one.client.get(GetRequest::new(server.uri("/busy").parse().unwrap())).await.unwrap_err();
    let left = until_resting(&two.client, &origin).await;
    assert!((Duration::from_secs(500)..=Duration::from_secs(601)).contains(&left), "{left:?}");
    let three = process(&config, clock()).await;
    assert!(three.client.resting(&origin).is_some());
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_process_whose_clock_is_ahead_keeps_to_a_rest_until_the_server_ends_it() {
    let config = namespace("ahead").await;
    let now = Timestamp::now();
    let ahead = process(&config, Arc::new(ManualClock::new(now + SignedDuration::from_hours(1)))).await;
    let origin: Origin = "https://example.org".parse().unwrap();
    let rest = Cooldown { origin: origin.clone(), until: now + SignedDuration::from_secs(12), status: 503 };
    // It lasts long enough to be seen by a process that stands still for a while.
    ahead.control.cooldowns().put(&rest, now).await.unwrap();
    until_resting(&ahead.client, &origin).await;
    let mut view = ahead.control.cooldowns().view().await.unwrap();
    let ended = view.wait_for(|view| {
        let over = view.get(&origin).is_none();
        assert!(over || ahead.client.resting(&origin).is_some(), "it was over by its own clock only");
        over.then_some(())
    });
    tokio::time::timeout(LONGEST_WAIT, ended).await.expect("the server ends the rest within a minute");
    until("the rest is over", || ahead.client.resting(&origin).is_none()).await;
}
