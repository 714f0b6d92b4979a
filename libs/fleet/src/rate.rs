//! The rate of an origin and its crawl-delay, split among all who send requests.

use std::time::Duration;

use control::{Control, ControlError, Member, View};
use service::Readiness;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use web::Client;

use crate::connect;

/// How long fewer members must be seen before their parts are taken over: after the bus was away, all seem gone until they
/// have said again that they are there.
const SETTLE: Duration = Duration::from_secs(10);

/// The rate is followed until this is dropped: held until the last request of this process has ended.
#[derive(Debug)]
pub struct SharedRate {
    _task: JoinSet<()>,
}

/// Keeps `client` to its share of an origin's rate and crawl-delay, as members come and go. The process that calls it has
/// joined them already.
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

/// More share at once; fewer only when it stays so.
async fn follow(client: Client, mut view: View<Member>, mut among: usize) {
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
                tracing::info!(among, "what an origin is asked is split anew");
            }
        }
        tokio::select! {
            () = view.changed() => {}
            () = sleep_until(wait.unwrap_or(now)), if fewer_since.is_some() => {}
        }
    }
}
