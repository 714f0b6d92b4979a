//! Keeps answers of the resolver for a short time, so that the connections of a harvest do not each look a name up.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use tokio::time::Instant;

use super::Names;

/// How long an answer is used. The system's resolver does not tell how long its answers are valid (their TTL), and
/// operators move servers by TTLs of a minute and more.
const LIFE: Duration = Duration::from_secs(30);
/// Names whose answers are kept, and names that are looked up for several connections.
const MOST: usize = 1_024;

/// Names with their answers. Connections that begin together share a look-up, which ends with the last of them.
/// Failures are not kept.
#[derive(Debug)]
pub(crate) struct CachedNames {
    names: Arc<dyn Names>,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    answers: HashMap<String, Answer>,
    under_way: HashMap<String, WeakShared<LookUp>>,
}

/// All that wait get the same error.
type LookUp = BoxFuture<'static, Result<Vec<SocketAddr>, Arc<io::Error>>>;

#[derive(Debug)]
struct Answer {
    until: Instant,
    addresses: Vec<SocketAddr>,
}

impl CachedNames {
    /// Keeps the answers of `names`.
    pub(crate) fn new(names: Arc<dyn Names>) -> Self {
        Self { names, known: Arc::default() }
    }

    /// Looks a name up, and keeps the answer.
    fn ask(&self, name: String) -> LookUp {
        let looking = self.names.look_up(name.clone());
        let known = Arc::clone(&self.known);
        Box::pin(async move {
            let looked_up = looking.await;
            let mut known = lock(&known);
            known.under_way.remove(&name);
            let addresses = looked_up?;
            known.keep(name, &addresses);
            Ok(addresses)
        })
    }
}

impl Known {
    fn answer(&self, name: &str) -> Option<Vec<SocketAddr>> {
        let answer = self.answers.get(name).filter(|answer| answer.until > Instant::now())?;
        Some(answer.addresses.clone())
    }

    fn keep(&mut self, name: String, addresses: &[SocketAddr]) {
        let now = Instant::now();
        if self.answers.len() >= MOST {
            self.answers.retain(|_, answer| answer.until > now);
        }
        // Where so many names are in use, the others are looked up each time.
        if self.answers.len() < MOST || self.answers.contains_key(&name) {
            self.answers.insert(name, Answer { until: now + LIFE, addresses: addresses.to_vec() });
        }
    }

    /// Lets others wait for a look-up.
    fn share(&mut self, name: String, looking: &Shared<LookUp>) {
        if self.under_way.len() >= MOST {
            // Those that all connections gave up.
            self.under_way.retain(|_, looking| looking.upgrade().is_some());
        }
        if self.under_way.len() < MOST
            && let Some(looking) = looking.downgrade()
        {
            self.under_way.insert(name, looking);
        }
    }
}

impl Names for CachedNames {
    fn look_up(&self, name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let mut known = lock(&self.known);
        if let Some(addresses) = known.answer(&name) {
            return Box::pin(async { Ok(addresses) });
        }
        let under_way = known.under_way.get(&name).and_then(WeakShared::upgrade);
        let looking = under_way.unwrap_or_else(|| {
            let looking = self.ask(name.clone()).shared();
            known.share(name, &looking);
            looking
        });
        Box::pin(async move { looking.await.map_err(|error| io::Error::new(error.kind(), error)) })
    }

    fn forget(&self, name: &str) {
        lock(&self.known).answers.remove(name);
    }
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert_eq!(lock(&names.known).answers.len(), MOST);
        names.look_up(format!("a{MOST}")).await.unwrap();
        assert_eq!(asked(&counting), MOST + 2, "it had no room");
        tokio::time::advance(LIFE).await;
        names.look_up("b".into()).await.unwrap();
        assert_eq!(lock(&names.known).answers.len(), 1);
    }
    #[tokio::test(start_paused = true)]
    async fn connections_that_begin_together_share_a_look_up_and_its_failure() {
        let (counting, names) = cached();
        let (one, other) = tokio::join!(names.look_up("a".into()), names.look_up("a".into()));
        assert_eq!((one.unwrap(), asked(&counting)), (other.unwrap(), 1));
        let (one, other) = tokio::join!(names.look_up("no".into()), names.look_up("no".into()));
        assert_eq!(one.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!((other.unwrap_err().kind(), asked(&counting)), (io::ErrorKind::NotFound, 2));
        assert!(names.look_up("no".into()).await.is_err());
        assert_eq!(asked(&counting), 3, "a failure is not kept");
        assert!(lock(&names.known).under_way.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_given_up_takes_no_look_up_from_others() {
        let (counting, names) = cached();
        let first = names.look_up("a".into());
        let second = names.look_up("a".into());
        drop(first);
        assert!(second.await.is_ok());
        drop(names.look_up("b".into()));
        assert!(names.look_up("b".into()).await.is_ok(), "one that all gave up begins anew");
        assert_eq!(asked(&counting), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_look_ups_are_shared() {
        let (counting, names) = cached();
        let waiting: Vec<_> = (0..=MOST).map(|n| names.look_up(format!("a{n}"))).collect();
        assert_eq!(lock(&names.known).under_way.len(), MOST);
        assert!(names.look_up(format!("a{MOST}")).await.is_ok());
        assert_eq!(asked(&counting), MOST + 2, "it had no room");
        drop(waiting);
        let _one = names.look_up("b".into());
        assert_eq!(lock(&names.known).under_way.len(), 1, "those that were given up leave room");
    }
}
