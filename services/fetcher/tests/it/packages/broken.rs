//! Servers that break off after some bytes, each time.

use std::io;
use std::sync::Mutex;

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};

use super::*;
use crate::common::client_of;

/// The first byte of each request.
type Asked = Arc<Mutex<Vec<usize>>>;

/// A client of a server with a package, which sends so many bytes of each answer and breaks off.
fn breaking(package: &Bytes, after: usize) -> (Client, Asked) {
    let asked = Asked::default();
    let noted = Arc::clone(&asked);
    let package = package.clone();
    let client = client_of(move |request| {
        let range = request.headers().get("range").map(|range| range.to_str().unwrap());
        let from = range.map(|range| range["bytes=".len()..].trim_end_matches('-').parse::<usize>().unwrap());
        noted.lock().unwrap().push(from.unwrap_or(0));
        let length = package.len();
        let rest = package.slice(from.unwrap_or(0)..);
        let head = http::Response::builder().header("etag", "\"v1\"").header("accept-ranges", "bytes");
        let head = head.header("content-length", rest.len().to_string());
        let head = match from {
            Some(from) => {
                head.status(206).header("content-range", format!("bytes {from}-{}/{length}", length - 1))
            }
            None => head,
        };
        let sent = rest.slice(..rest.len().min(after));
        let end = (sent.len() < rest.len()).then(|| Err(io::Error::other("the body is cut here")));
        let body = stream::iter(std::iter::once(Ok(sent)).chain(end));
        let answer = head.body(body.boxed()).expect("a head");
        Box::pin(async move { Ok(answer) })
    });
    (client, asked)
}

#[tokio::test]
async fn a_server_that_sends_a_byte_each_time_fails_a_package_and_what_came_is_kept() {
    let (store, package) = (Store::in_memory(), Bytes::from(body(100 * KIB)));
    let (client, asked) = breaking(&package, 1);
    for _ in 0..2 {
        let failure = failed(outcome(&store, &client).await);
        assert_eq!(failure.reason, ProblemReason::Interrupted);
        assert_eq!(failure.disposition, Disposition::Retry { after: None }, "it is a failed attempt");
    }
    assert_eq!(*asked.lock().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7], "a request a job, and three more");
    let (client, asked) = breaking(&package, usize::MAX);
    let outcome = outcome(&store, &client).await;
    assert!(matches!(outcome.result, PackageResult::Stored(_)), "{outcome:?}");
    assert_eq!(*asked.lock().unwrap(), [8]);
}

#[tokio::test]
async fn a_server_that_sends_a_mebibyte_each_time_gives_a_package_whole_without_a_failed_attempt() {
    let (store, package) = (Store::in_memory(), Bytes::from(body(9 * MIB)));
    let (client, _) = breaking(&package, MIB);
    assert_eq!(deferred(outcome(&store, &client).await), 4 * MIB);
    assert_eq!(deferred(outcome(&store, &client).await), 8 * MIB);
    let outcome = outcome(&store, &client).await;
    let PackageResult::Stored(stored) = outcome.result else { panic!("not stored: {outcome:?}") };
    assert_eq!(stored.computed, Computed::of(&package));
}

#[tokio::test]
async fn a_job_is_deferred_with_a_mebibyte_and_fails_with_less() {
    let package = Bytes::from(body(9 * MIB));
    let (client, _) = breaking(&package, MIB / 4);
    assert_eq!(deferred(outcome(&Store::in_memory(), &client).await), MIB);
    let (client, _) = breaking(&package, MIB / 4 - 1);
    assert_eq!(failed(outcome(&Store::in_memory(), &client).await).reason, ProblemReason::Interrupted);
}
