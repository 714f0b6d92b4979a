//! The rate limit of an origin and its crawl-delay, split among all processes that send requests.

use std::time::Duration;

use control::{Control, ControlError, Member, WatchCache};
use service::Readiness;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use web::Client;

use crate::connect;

/// How long a smaller number of members must last before the others take over their shares. After an outage of the bus,
/// all members seem gone until their next heartbeat.
const SETTLE: Duration = Duration::from_secs(10);

/// Follows the rate until it is dropped. Keep it until the last request of this process has ended.
#[derive(Debug)]
pub struct SharedRate {
    _task: JoinSet<()>,
}

/// Keeps `client` within its share of an origin's rate and crawl-delay, as members join and leave. The calling process
/// must be a member already.
///
/// # Errors
/// When the control store refuses, or the service is to stop.
pub async fn share_rate(
    client: &Client,
    control: &Control,
    readiness: &Readiness,
    stop: &CancellationToken,
) -> anyhow::Result<SharedRate> {
    let open = || control.members().view();
    let view = connect("members", readiness, stop, ControlError::is_temporary, open).await?;
    let among = view.all().len();
    client.set_sharers(among);
    let mut task = JoinSet::new();
    task.spawn(follow(client.clone(), view, among));
    Ok(SharedRate { _task: task })
}

/// A larger number of members counts at once, a smaller one only when it lasts.
async fn follow(client: Client, mut view: WatchCache<Member>, mut among: usize) {
    let mut fewer_since = None;
    loop {
        view.mark_seen();
        let seen = view.all().len();
        let now = Instant::now();
        let wait = if seen < among { Some(*fewer_since.get_or_insert(now) + SETTLE) } else { None };
        if wait.is_none_or(|until| until <= now) {
            fewer_since = None;
            if seen != among {
                among = seen;
                client.set_sharers(among);
                tracing::info!(among, "rate of an origin redistributed");
            }
        }
        tokio::select! {
            () = view.changed() => {}
            () = sleep_until(wait.unwrap_or(now)), if fewer_since.is_some() => {}
        }
    }
}
