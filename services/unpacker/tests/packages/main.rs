//! Whole jobs over packages built byte by byte: which members are taken, and the outcomes of the rest.
#![allow(missing_docs, unreachable_pub, dead_code, reason = "a test, with builders of which it uses a part")]

mod case;
mod hostile;
mod jobs;
mod paths;
mod queues;
mod tar;
#[path = "../../../../libs/packages/tests/common/tars.rs"]
mod tars;
mod versions;
#[path = "../../../../libs/packages/tests/common/zips.rs"]
mod zips;

/// Runs a future on a thread of its own: a test's own runtime may be waiting for it.
pub fn block_on<F: Future<Output: Send> + Send>(future: F) -> F::Output {
    std::thread::scope(|scope| {
        let run = || tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
        scope.spawn(run).join().unwrap()
    })
}
