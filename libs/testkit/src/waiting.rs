//! Waits for a condition, with a timeout.

use std::fmt::Display;
use std::panic::Location;
use std::time::{Duration, Instant};

/// The longest wait. Even a busy machine needs only a small part of it.
pub const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How often the condition is checked.
const LOOK: Duration = Duration::from_millis(1);

/// Waits until `is_so` returns true, checking it repeatedly.
///
/// # Panics
/// After a minute: it says what was waited for, and where.
#[track_caller]
pub fn until(what: impl Display, mut is_so: impl FnMut() -> bool) -> impl Future<Output = ()> {
    found(what, async move || is_so().then_some(()))
}

/// Waits until `look` returns a value, and returns it; calls it repeatedly.
///
/// # Panics
/// After a minute: it says what was waited for, and where.
#[track_caller]
pub fn found<T>(what: impl Display, look: impl AsyncFnMut() -> Option<T>) -> impl Future<Output = T> {
    found_within(LONGEST_WAIT, what, look, Location::caller())
}

async fn found_within<T>(
    longest: Duration,
    what: impl Display,
    mut look: impl AsyncFnMut() -> Option<T>,
    caller: &Location<'_>,
) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        let waited = start.elapsed();
        assert!(waited < longest, "{caller}: waited {waited:.1?} in vain for this: {what}");
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_comes_about_is_waited_for_and_given_back() {
        let mut looks = 0;
        let found = found("the third look", async || {
            looks += 1;
            (looks == 3).then_some("here")
        });
        assert_eq!(found.await, "here");
        assert_eq!(looks, 3);
        let mut left = 2;
        until("nothing is left", || {
            left -= 1;
            left == 0
        })
        .await;
    }

    #[tokio::test]
    #[should_panic(expected = "in vain for this: pigs fly")]
    async fn what_does_not_come_about_is_named() {
        let never = async || None::<()>;
        found_within(Duration::from_millis(20), "pigs fly", never, Location::caller()).await;
    }
}
