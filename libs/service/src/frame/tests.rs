//! How services end.

use super::*;

/// Stop requests at these moments, and none after.
struct At(Vec<Duration>);

impl StopSignals for At {
    async fn next(&mut self) -> &'static str {
        if self.0.is_empty() {
            return std::future::pending().await;
        }
        tokio::time::sleep(self.0.remove(0)).await;
        "SIGTERM"
    }
}

const DRAIN: Duration = Duration::from_secs(30);

/// The exit status of a service with stop requests after these waits, and whether it was still ready then.
async fn ends<F>(asked: &[u64], serve: impl FnOnce(CancellationToken) -> F) -> (u8, bool)
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let readiness = Readiness::default();
    let stop = CancellationToken::new();
    readiness.latch("all", "starting").release();
    let service = tokio::spawn(serve(stop.clone()));
    let mut asked = At(asked.iter().map(|seconds| Duration::from_secs(*seconds)).collect());
    let end = until_end(service, &mut asked, &readiness, &stop, DRAIN).await;
    (status(end, DRAIN), readiness.is_ready())
}

#[tokio::test(start_paused = true)]
async fn service_that_finishes_within_the_deadline_ends_well() {
    let finished = ends(&[5], |stop| async move {
        stop.cancelled().await;
        tokio::time::sleep(DRAIN - Duration::from_secs(1)).await;
        Ok(())
    });
    assert_eq!(finished.await, (DONE, false));
}

#[tokio::test(start_paused = true)]
async fn service_that_is_too_slow_is_cut_off_and_fails() {
    let begin = tokio::time::Instant::now();
    let slow = ends(&[5], |_| async {
        tokio::time::sleep(DRAIN * 10).await;
        Ok(())
    });
    assert_eq!(slow.await, (FAILED, false));
    assert_eq!(begin.elapsed(), DRAIN + Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn second_signal_does_not_wait_for_the_deadline() {
    let begin = tokio::time::Instant::now();
    assert_eq!(ends(&[5, 2], |_| std::future::pending()).await, (FAILED, false));
    assert_eq!(begin.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn service_that_ends_by_itself_does_so_with_its_own_result() {
    assert_eq!(ends(&[], |_| async { Ok(()) }).await, (DONE, true));
    assert_eq!(ends(&[], |_| async { Err(anyhow::anyhow!("no store")) }).await, (FAILED, true));
    assert_eq!(ends(&[], |_| async { panic!("a bug") }).await, (FAILED, true));
}
