//! Connects to required dependencies, with retries until shutdown.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use service::Readiness;
use tokio_util::sync::CancellationToken;

/// The first wait after a failed attempt. It doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait. A dependency that comes back is found within this time.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The service was asked to stop while it was still connecting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("asked to stop while it still waited for {0}")]
pub struct Stopped(pub &'static str);

/// Retries `attempt` until it succeeds, fails with an error that does not pass by itself, or the service is to stop.
/// Until then the service is not ready, with the reason.
///
/// # Errors
/// The first error for which `passes` returns false; [`Stopped`].
pub async fn connect<T, E, F>(
    part: &'static str,
    readiness: &Readiness,
    stop: &CancellationToken,
    passes: impl Fn(&E) -> bool,
    attempt: impl FnMut() -> F,
) -> anyhow::Result<T>
where
    E: Display + Into<anyhow::Error>,
    F: Future<Output = Result<T, E>>,
{
    let latch = readiness.latch(part, "connecting");
    // Jitter adds up to as much again to each wait.
    let backoff = ExponentialBuilder::new()
        .with_min_delay(FIRST_WAIT)
        .with_max_delay(LONGEST_WAIT / 2)
        .with_jitter()
        .without_max_times();
    let connecting = attempt.retry(backoff).when(passes).notify(|error: &E, wait| {
        latch.waits_for(&error.to_string());
        tracing::warn!(part, %error, retry_in_ms = wait.as_millis(), "not there yet");
    });
    tokio::select! {
        connected = connecting => {
            let connected = connected.map_err(Into::into)?;
            latch.release();
            Ok(connected)
        }
        () = stop.cancelled() => Err(Stopped(part).into()),
    }
}

/// The work of a service. [`Stopped`] is a success, because the service has stopped as requested. It is boxed, so that
/// a service is compiled in its own crate, and not once more in each of its users.
///
/// # Errors
/// Every other error, unchanged.
pub fn serve(
    work: impl Future<Output = anyhow::Result<()>> + Send + 'static,
) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>> {
    Box::pin(async move {
        match work.await {
            Err(error) if error.is::<Stopped>() => Ok(()),
            ended => ended,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Refusal {
        #[error("nobody listens")]
        Nobody,
        #[error("wrong password")]
        Password,
    }

    #[tokio::test(start_paused = true)]
    async fn what_passes_is_waited_for_and_readiness_says_so() {
        let readiness = Readiness::default();
        let stop = CancellationToken::new();
        let attempts = AtomicU32::new(0);
        let seen = std::sync::Mutex::new(Vec::new());
        let connected = connect(
            "bus",
            &readiness,
            &stop,
            |error| matches!(error, Refusal::Nobody),
            || {
                let reasons = readiness.waiting_for().into_iter().map(|waiting| waiting.to_string());
                seen.lock().unwrap().extend(reasons);
                let n = attempts.fetch_add(1, Ordering::Relaxed);
                async move { if n < 3 { Err(Refusal::Nobody) } else { Ok(n) } }
            },
        );
        assert_eq!(connected.await.unwrap(), 3);
        assert_eq!(
            *seen.lock().unwrap(),
            ["bus: connecting", "bus: nobody listens", "bus: nobody listens", "bus: nobody listens"]
        );
        assert!(readiness.is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_pass_is_an_error_at_once_and_a_stop_ends_the_wait() {
        let readiness = Readiness::default();
        let stop = CancellationToken::new();
        let passes = |error: &Refusal| matches!(error, Refusal::Nobody);
        let refused =
            connect("bus", &readiness, &stop, passes, async || Err::<(), _>(Refusal::Password)).await;
        assert_eq!(refused.unwrap_err().to_string(), "wrong password");
        assert!(!readiness.is_ready());
        stop.cancel();
        let stopped = connect("bus", &readiness, &stop, passes, async || Err::<(), _>(Refusal::Nobody)).await;
        assert!(stopped.as_ref().is_err_and(|error| error.is::<Stopped>()));
        assert!(serve(async { stopped }).await.is_ok());
        assert!(serve(async { Err(Refusal::Password.into()) }).await.is_err());
    }
}
