//! Shares the cooldowns of origins among all processes that send requests.

use std::sync::Arc;
use std::time::Duration;

use control::{Control, ControlError, Cooldown, Cooldowns, WatchCache};
use model::Clock;
use service::Readiness;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use web::{Client, OriginRest};

use crate::connect;

/// The pause between two attempts to share a cooldown.
const BETWEEN_TRIES: Duration = Duration::from_millis(500);
/// The interval of checks for cooldowns that are over by the local clock, but not for the fleet.
const LOOK: Duration = Duration::from_millis(500);
/// By how much each check extends such a cooldown. It is longer than the interval, so that a late check leaves no gap.
const HELD: Duration = Duration::from_secs(1);

/// Shares cooldowns until it is dropped. Keep it until the last request of this process has ended.
#[derive(Debug)]
pub struct SharedRests {
    _tasks: JoinSet<()>,
}

/// Makes `client` obey the cooldowns that any process of the fleet has set, and shares those that origins request from
/// this process. When this returns, all known cooldowns apply; later ones apply within a second. While the control
/// store is unreachable, each process obeys those that it knows and receives itself.
///
/// Different clocks do no harm: a cooldown lasts at least until the server says that it is over.
///
/// # Errors
/// When the control store refuses, or the service is to stop.
pub async fn share_cooldowns(
    client: &Client,
    control: &Control,
    clock: Arc<dyn Clock>,
    readiness: &Readiness,
    stop: &CancellationToken,
) -> anyhow::Result<SharedRests> {
    let asked = client.cooldowns();
    let open = || control.cooldowns().view();
    let view = connect("rests", readiness, stop, ControlError::is_temporary, open).await?;
    keep(client, &view, &*clock);
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(client.clone(), view, Arc::clone(&clock)));
    tasks.spawn(tell(control.cooldowns().clone(), asked, clock));
    Ok(SharedRests { _tasks: tasks })
}

/// Obeys the cooldowns of the fleet.
async fn follow(client: Client, mut view: WatchCache<Cooldown>, clock: Arc<dyn Clock>) {
    loop {
        view.mark_seen();
        let any = keep(&client, &view, &*clock);
        tokio::select! {
            () = view.changed() => {}
            () = sleep(LOOK), if any => {}
        }
    }
}

/// Applies the current cooldowns of the fleet. Returns whether there are any.
fn keep(client: &Client, view: &WatchCache<Cooldown>, clock: &dyn Clock) -> bool {
    let rests = view.all();
    for rest in &rests {
        let left = rest.until.duration_since(clock.now());
        match Duration::try_from(left) {
            Ok(left) if left > HELD => client.rest(&rest.origin, left),
            // It is over by the local clock, or nearly. Only a live view proves that it is not over for the fleet.
            _ if view.is_live() => client.rest(&rest.origin, HELD),
            _ => {}
        }
    }
    !rests.is_empty()
}

/// Shares the cooldowns that origins request from this process.
async fn tell(rests: Cooldowns, mut asked: Receiver<OriginRest>, clock: Arc<dyn Clock>) {
    loop {
        let OriginRest { origin, wait, status } = match asked.recv().await {
            Ok(asked) => asked,
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "cooldowns not shared in time");
                continue;
            }
            Err(RecvError::Closed) => return,
        };
        let until = clock.now().saturating_add(wait).unwrap_or(jiff::Timestamp::MAX);
        tracing::info!(%origin, http.status = status, wait_ms = wait.as_millis(), "origin requested a cooldown");
        let rest = Cooldown { origin, until, status };
        // A cooldown that is over need not be shared.
        while rest.until > clock.now() {
            let Err(error) = rests.put(&rest, clock.now()).await else { break };
            tracing::warn!(origin = %rest.origin, %error, "cooldown not shared yet");
            sleep(BETWEEN_TRIES).await;
        }
    }
}
