//! Looks names up, and drops addresses that may not be reached.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use super::{Guard, Refused};

/// Resolves names.
pub(crate) trait Names: Debug + Send + Sync {
    /// The addresses of a name, in the order in which they are tried. Their ports are ignored.
    fn look_up(&self, name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

    /// A connection to these addresses failed: an answer that was kept is not used again.
    fn forget(&self, _name: &str) {}
}

/// The system's resolver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemNames;

/// Resolves names and leaves out addresses that may not be reached. The connection goes to the remaining
/// ones, without another look-up: a name that changes its address in between gains nothing.
#[derive(Debug, Clone)]
pub(crate) struct Resolver {
    names: Arc<dyn Names>,
    guard: Arc<Guard>,
    port: u16,
}

/// Why a name cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unresolved {
    /// It has no address, or no resolver could be reached.
    #[error("the name was not found")]
    NotFound(#[from] io::Error),
    /// None of its addresses may be reached.
    #[error("its addresses are refused")]
    Refused(#[from] Refused),
}

impl Names for SystemNames {
    fn look_up(&self, name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        // The port is the URL's, which the HTTP library adds.
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
    }
}

impl Resolver {
    /// The addresses from `names` that `guard` allows, for a connection to `port`.
    pub(crate) fn new(names: Arc<dyn Names>, guard: Arc<Guard>, port: u16) -> Self {
        Self { names, guard, port }
    }
}

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = Unresolved;
    type Future = BoxFuture<'static, Result<Self::Response, Unresolved>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Unresolved>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let Self { names, guard, port } = self.clone();
        Box::pin(async move {
            let addresses = names.look_up(name.as_str().to_owned()).await?;
            Ok(guard.reachable(name.as_str(), port, addresses)?.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use super::*;
    use crate::AddressPolicy;

    /// Answers look-ups of any name one after the other.
    #[derive(Debug)]
    struct Scripted(Mutex<VecDeque<Vec<&'static str>>>);

    impl Names for Scripted {
        fn look_up(&self, _: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
            let answer = self.0.lock().unwrap().pop_front().expect("no more look-ups");
            let read = |address: &str| SocketAddr::new(address.parse().unwrap(), 0);
            let answer = answer.into_iter().map(read).collect();
            Box::pin(async { Ok(answer) })
        }
    }

    /// The remaining addresses of each look-up for a request to `http://evil.test` at a port, whose entry is
    /// at port 80.
    async fn left<const N: usize>(answers: [(u16, &[&'static str]); N]) -> [Vec<String>; N] {
        let entry = "http://evil.test/".parse().unwrap();
        let guard = Arc::new(Guard::new(AddressPolicy::public_unless(&entry)));
        let script = answers.iter().map(|(_, addresses)| addresses.to_vec()).collect();
        let names: Arc<dyn Names> = Arc::new(Scripted(Mutex::new(script)));
        let mut left = [const { Vec::new() }; N];
        for (left, (port, _)) in left.iter_mut().zip(answers) {
            let mut resolver = Resolver::new(Arc::clone(&names), Arc::clone(&guard), port);
            let told = resolver.call("evil.test".parse().unwrap()).await;
            left.extend(told.into_iter().flatten().map(|address| address.ip().to_string()));
        }
        left
    }

    #[tokio::test]
    async fn a_mixed_answer_leaves_the_public_address_and_gives_no_leave() {
        let [first, second] = left([(80, &["8.8.8.8", "127.0.0.1"]), (9999, &["127.0.0.1"])]).await;
        assert_eq!((first, second), (vec!["8.8.8.8".to_owned()], Vec::new()));
    }

    #[tokio::test]
    async fn a_name_that_turns_public_and_back_reaches_what_it_first_had_alone() {
        let [first, second, third, fourth] = left([
            (80, &["127.0.0.1"]),
            (80, &["8.8.8.8"]),
            (80, &["127.0.0.1"]),
            (80, &["127.0.0.2", "10.0.0.1"]),
        ])
        .await;
        assert_eq!((first, third), (vec!["127.0.0.1".to_owned()], vec!["127.0.0.1".to_owned()]));
        assert!(second.is_empty(), "no document comes from elsewhere: {second:?}");
        assert!(fourth.is_empty(), "{fourth:?}");
    }

    #[tokio::test]
    async fn a_name_that_turns_private_later_is_refused() {
        let [first, second] = left([(80, &["8.8.8.8"]), (80, &["127.0.0.1"])]).await;
        assert_eq!((first, second), (vec!["8.8.8.8".to_owned()], Vec::new()));
    }

    #[tokio::test]
    async fn another_port_of_the_entry_is_refused() {
        let [first, second] = left([(80, &["127.0.0.1"]), (9999, &["127.0.0.1"])]).await;
        assert_eq!((first, second), (vec!["127.0.0.1".to_owned()], Vec::new()));
    }
}
