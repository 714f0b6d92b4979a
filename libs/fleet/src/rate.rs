//! The rate of an origin, split among all who send requests.

use std::num::NonZeroU32;
use std::time::Duration;

use control::{Control, ControlError, Member, View, share_of_rate};
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

/// Keeps `client` to its share of `per_second` requests to an origin, as members come and go. The process that calls it has
/// joined them already. Without a rate there is nothing to share.
///
/// # Errors
/// When the control store refuses, or the service is to stop.
pub async fn share_rate(
    client: &Client,
    control: &Control,
    per_second: Option<NonZeroU32>,
    readiness: &Readiness,
    stop: &CancellationToken,
) -> anyhow::Result<Option<SharedRate>> {
    let Some(per_second) = per_second else { return Ok(None) };
    let open = || control.members().view();
    let view = connect("members", readiness, stop, ControlError::is_temporary, open).await?;
    let among = view.all().len();
    client.set_pace(share_of_rate(per_second, among));
    let mut task = JoinSet::new();
    task.spawn(follow(client.clone(), view, per_second, among));
    Ok(Some(SharedRate { _task: task }))
}

/// More share at once; fewer only when it stays so.
async fn follow(client: Client, mut view: View<Member>, per_second: NonZeroU32, mut among: usize) {
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
                client.set_pace(share_of_rate(per_second, among));
                tracing::info!(among, per_second, "the rate of an origin is split anew");
            }
        }
        tokio::select! {
            () = view.changed() => {}
            () = sleep_until(wait.unwrap_or(now)), if fewer_since.is_some() => {}
        }
    }
}
