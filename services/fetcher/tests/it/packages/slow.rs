//! Servers that do not answer, or send little in the time of a job. The test holds the clock.

use std::sync::Mutex;

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use tokio::time::Instant;

use super::*;
use crate::common::{client_of, client_of_silence, client_that_is_led_astray, client_that_obeys};

/// The `Range` header of each request.
type Asked = Arc<Mutex<Vec<Option<String>>>>;

/// A client of a server that sends so many bytes of a package of 64 MiB every ten seconds, and nothing of a rest.
fn dripping(bytes: usize) -> (Client, Asked) {
    let asked = Asked::default();
    let noted = Arc::clone(&asked);
    let client = client_of(move |request| {
        let range = request.headers().get("range").map(|range| range.to_str().unwrap().to_owned());
        let is_rest = range.is_some();
        noted.lock().unwrap().push(range);
        if is_rest {
            return Box::pin(std::future::pending());
        }
        let body = stream::repeat(()).then(move |()| async move {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(Bytes::from(vec![b'#'; bytes]))
        });
        let head = http::Response::builder().header("etag", "\"v1\"").header("accept-ranges", "bytes");
        let head =
            head.header("content-type", "application/zip").header("content-length", (64 * MIB).to_string());
        let answer = head.body(body.boxed()).expect("a head");
        Box::pin(async move { Ok(answer) })
    });
    (client, asked)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_fails_a_package() {
    let begun = Instant::now();
    let failure = failed(outcome(&Store::in_memory(), &client_of_silence()).await);
    assert_eq!(failure.reason, ProblemReason::Timeout);
    assert_eq!(failure.disposition, Disposition::Retry { after: None });
    assert_eq!(begun.elapsed(), Duration::from_secs(60), "its slot is free after the time of a job");
}

#[tokio::test(start_paused = true)]
async fn a_job_with_too_few_bytes_fails_and_they_are_kept() {
    let store = Store::in_memory();
    let (client, asked) = dripping(64 * KIB);
    let failure = failed(outcome(&store, &client).await);
    assert_eq!(failure.reason, ProblemReason::TooSlow);
    assert!(failure.message.contains(AT), "{}", failure.message);
    assert_eq!(failed(outcome(&store, &client).await).reason, ProblemReason::Timeout);
    assert_eq!(*asked.lock().unwrap(), [None, Some(format!("bytes={}-", 5 * 64 * KIB))]);
}

#[tokio::test(start_paused = true)]
async fn a_job_with_enough_bytes_is_deferred_however_long_it_waited_for_its_turn() {
    for wait in [0, 70] {
        let (client, _) = dripping(256 * KIB);
        client.rest(&job(AT).origin, Duration::from_secs(wait));
        assert_eq!(deferred(outcome(&Store::in_memory(), &client).await), 5 * 256 * KIB, "{wait} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_leads_from_one_slow_host_to_the_next_fails_a_package() {
    let store = Store::in_memory();
    // None of the hosts is slow for long enough to fail.
    let client = client_that_is_led_astray();
    for _ in 0..2 {
        let begun = Instant::now();
        assert_eq!(failed(outcome(&store, &client).await).reason, ProblemReason::TooSlow);
        assert!(begun.elapsed() <= Duration::from_secs(120), "its slot is free again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_turn_is_no_failure_though_robots_txt_came() {
    let client = client_that_obeys(|request| {
        let is_robots = request.uri().path() == "/robots.txt";
        let body = if is_robots { "user-agent: *\ncrawl-delay: 60" } else { "a package" };
        let body = stream::iter([Ok(Bytes::from_static(body.as_bytes()))]);
        let answer = http::Response::new(body.boxed());
        Box::pin(async move { Ok(answer) })
    });
    // With three processes, a request of this one follows another after three minutes.
    client.set_sharers(3);
    let store = Store::in_memory();
    assert_eq!(deferred(outcome(&store, &client).await), 0);
    let outcome = outcome(&store, &client).await;
    assert!(matches!(outcome.result, PackageResult::Stored(_)), "{outcome:?}");
}
