//! Time limit for slow parts of a page. The page then says that the result is not ready, and offers a link that waits
//! for it.

use std::time::Duration;

/// How long a page waits for slow work.
const SHORT: Duration = Duration::from_millis(150);

/// The result of `work`, or nothing if it takes longer than a page may. With `wait`, the page waits without limit.
pub(super) async fn within_deadline<T: Send + 'static>(
    wait: bool,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    if wait {
        return Some(work.await);
    }
    // A separate task, because reading from memory never yields, and so a timeout around it would not fire.
    let mut task = tokio::spawn(work);
    let done = tokio::time::timeout(SHORT, &mut task).await;
    if done.is_err() {
        task.abort();
    }
    done.ok()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_quick_comes_at_once_and_what_is_slow_for_those_who_wait() {
        let slow = || async {
            tokio::time::sleep(SHORT * 100).await;
            7
        };
        assert_eq!(within_deadline(false, async { 7 }).await, Some(7));
        assert_eq!(within_deadline(false, slow()).await, None);
        assert_eq!(within_deadline(true, slow()).await, Some(7));
    }
}
