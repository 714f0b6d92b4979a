//! One word of an origin that wants to be left alone counts for all who send requests.

use std::sync::Arc;
use std::time::Duration;

use control::{Control, ControlError, Rest, Rests, View};
use model::Clock;
use service::Readiness;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use web::{Client, OriginRest};

use crate::connect;

/// Between two tries to tell the others.
const BETWEEN_TRIES: Duration = Duration::from_millis(500);
/// How often a rest is looked at that should be over by this clock, but is not for the fleet.
const LOOK: Duration = Duration::from_millis(500);
/// How long such a rest goes on with each look: a look that comes late leaves no hole.
const HELD: Duration = Duration::from_secs(1);

/// The rests of all processes are shared until this is dropped: held until the last request of this process has ended.
#[derive(Debug)]
pub struct SharedRests {
    _tasks: JoinSet<()>,
}

/// Makes `client` leave those origins alone that asked any process of the fleet for it, and tells the others of those that
/// ask this one. When this returns, all that is known so far holds; what comes later holds within a second. While the control
/// store cannot be reached, each process keeps to what it knows and hears itself.
///
/// Clocks that differ do no harm: a rest lasts at least until the server says that it is over.
///
/// # Errors
/// When the control store refuses, or the service is to stop.
pub async fn share_rests(
    client: &Client,
    control: &Control,
    clock: Arc<dyn Clock>,
    readiness: &Readiness,
    stop: &CancellationToken,
) -> anyhow::Result<SharedRests> {
    let asked = client.rests();
    let open = || control.rests().view();
    let view = connect("rests", readiness, stop, ControlError::is_temporary, open).await?;
    keep(client, &view, &*clock);
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(client.clone(), view, Arc::clone(&clock)));
    tasks.spawn(tell(control.rests().clone(), asked, clock));
    Ok(SharedRests { _tasks: tasks })
}

/// Keeps to what others were told.
async fn follow(client: Client, mut view: View<Rest>, clock: Arc<dyn Clock>) {
    loop {
        view.mark_seen();
        let any = keep(&client, &view, &*clock);
        tokio::select! {
            () = view.changed() => {}
            () = sleep(LOOK), if any => {}
        }
    }
}

/// Puts to rest what the fleet lets rest now. Whether there is any.
fn keep(client: &Client, view: &View<Rest>, clock: &dyn Clock) -> bool {
    let rests = view.all();
    for rest in &rests {
        let left = rest.until.duration_since(clock.now());
        match Duration::try_from(left) {
            Ok(left) if left > HELD => client.rest(&rest.lane, left),
            // Over, or nearly, by this clock; only a copy that is live says that it is not for the fleet.
            _ if view.is_live() => client.rest(&rest.lane, HELD),
            _ => {}
        }
    }
    !rests.is_empty()
}

/// Tells the others what this process was told.
async fn tell(rests: Rests, mut asked: Receiver<OriginRest>, clock: Arc<dyn Clock>) {
    loop {
        let OriginRest { lane, wait, status } = match asked.recv().await {
            Ok(asked) => asked,
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "rests of origins could not be told to the fleet in time");
                continue;
            }
            Err(RecvError::Closed) => return,
        };
        let until = clock.now().saturating_add(wait).unwrap_or(jiff::Timestamp::MAX);
        tracing::info!(%lane, http.status = status, wait_ms = wait.as_millis(), "the origin wants to be left alone");
        let rest = Rest { lane, until, status };
        // What is over needs not be told any more.
        while rest.until > clock.now() {
            let Err(error) = rests.put(&rest, clock.now()).await else { break };
            tracing::warn!(lane = %rest.lane, %error, "the fleet does not know yet that this origin wants to be left alone");
            sleep(BETWEEN_TRIES).await;
        }
    }
}
