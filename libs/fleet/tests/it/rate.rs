//! A rate limit that is shared through a real server.

use control::{Control, MemberId, Membership, Role};
use fleet::{NatsConfig, open_control, share_rate};
use jiff::Timestamp;
use secrets::Vars;
use service::Readiness;
use testkit::servers::NatsFixture;
use testkit::waiting::until;
use tokio_util::sync::CancellationToken;
use web::{Client, WebConfig};

async fn join(control: &Control, role: Role) -> Membership {
    control.members().join(MemberId::fresh("m"), role, Timestamp::now()).await.unwrap()
}

async fn until_sharers(client: &Client, sharers: u32) {
    until(format_args!("{sharers} share"), || client.sharers() == sharers).await;
}

#[tokio::test]
async fn each_who_sends_requests_has_its_part_and_takes_over_later_what_others_leave() {
    let servers = vec![NatsFixture::get().await.url];
    let namespace = format!("rate-{}", Timestamp::now().as_nanosecond());
    let config = NatsConfig { servers, namespace, ..NatsConfig::default() };
    let readiness = Readiness::default();
    let stop = CancellationToken::new();
    let control = open_control(&config, &Vars::default(), &readiness, &stop).await.unwrap();
    let client = Client::new(WebConfig::default()).unwrap();

    let _me = join(&control, Role::Fetcher).await;
    let _shared = share_rate(&client, &control, &readiness, &stop).await.unwrap();
    assert_eq!(client.sharers(), 1);
    let fetcher = join(&control, Role::Fetcher).await;
    let _scheduler = join(&control, Role::Scheduler).await;
    until_sharers(&client, 3).await;

    fetcher.leave().await;
    let mut view = control.members().view().await.unwrap();
    view.wait_for(|view| (view.all().len() == 2).then_some(())).await;
    assert_eq!(client.sharers(), 3, "it may be back in a moment");
    until_sharers(&client, 2).await;
}
