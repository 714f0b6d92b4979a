//! Keeps answers of the resolver for a short time, so that the connections of a harvest do not each look a name up.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

use super::Names;

/// How long an answer is used. The system's resolver does not tell how long its answers are valid (their TTL), and
/// operators move servers by TTLs of a minute and more.
const LIFE: Duration = Duration::from_secs(30);
/// Names whose answers are kept.
const MOST: usize = 1_024;

/// Names with their answers. Failures are not kept.
#[derive(Debug)]
pub(crate) struct CachedNames {
    names: Arc<dyn Names>,
    answers: Arc<Mutex<HashMap<String, Answer>>>,
}

#[derive(Debug)]
struct Answer {
    until: Instant,
    addresses: Vec<SocketAddr>,
}

impl CachedNames {
    /// Keeps the answers of `names`.
    pub(crate) fn new(names: Arc<dyn Names>) -> Self {
        Self { names, answers: Arc::default() }
    }
}

impl Names for CachedNames {
    fn look_up(&self, name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let now = Instant::now();
        {
            let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(answer) = answers.get(&name).filter(|answer| answer.until > now) {
                let addresses = answer.addresses.clone();
                return Box::pin(async { Ok(addresses) });
            }
        }
        let looking = self.names.look_up(name.clone());
        let kept = Arc::clone(&self.answers);
        Box::pin(async move {
            let addresses = looking.await?;
            let mut answers = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            if answers.len() >= MOST {
                answers.retain(|_, answer| answer.until > now);
            }
            // Where so many names are in use, the others are looked up each time.
            if answers.len() < MOST || answers.contains_key(&name) {
                answers.insert(name, Answer { until: now + LIFE, addresses: addresses.clone() });
            }
            Ok(addresses)
        })
    }

    fn forget(&self, name: &str) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts look-ups; names that begin with `no` are not found.
    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    impl Names for Counting {
        fn look_up(&self, name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
            let asked = self.0.fetch_add(1, Ordering::Relaxed) as u16;
            Box::pin(async move {
                if name.starts_with("no") {
                    return Err(io::ErrorKind::NotFound.into());
                }
                Ok(vec![([127, 0, 0, 1], asked).into()])
            })
        }
    }

    fn cached() -> (Arc<Counting>, CachedNames) {
        let counting = Arc::new(Counting::default());
        (Arc::clone(&counting), CachedNames::new(counting))
    }

    fn asked(counting: &Counting) -> usize {
        counting.0.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_used_for_its_life_and_then_asked_for_again() {
        let (counting, names) = cached();
        for _ in 0..3 {
            assert_eq!(names.look_up("a".into()).await.unwrap()[0].port(), 0);
        }
        tokio::time::advance(LIFE).await;
        assert_eq!(names.look_up("a".into()).await.unwrap()[0].port(), 1);
        assert_eq!(asked(&counting), 2);
        names.forget("a");
        names.look_up("a".into()).await.unwrap();
        assert_eq!(asked(&counting), 3, "a forgotten answer is asked for");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_not_kept() {
        let (counting, names) = cached();
        for _ in 0..2 {
            assert!(names.look_up("no".into()).await.is_err());
        }
        assert_eq!(asked(&counting), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_names_are_kept_than_the_bound_and_old_ones_leave_room() {
        let (counting, names) = cached();
        for n in 0..=MOST {
            names.look_up(format!("a{n}")).await.unwrap();
        }
        assert_eq!(names.answers.lock().unwrap().len(), MOST);
        names.look_up(format!("a{MOST}")).await.unwrap();
        assert_eq!(asked(&counting), MOST + 2, "it had no room");
        tokio::time::advance(LIFE).await;
        names.look_up("b".into()).await.unwrap();
        assert_eq!(names.answers.lock().unwrap().len(), 1);
    }
}
