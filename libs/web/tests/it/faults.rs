//! Servers that are down, stall, or break off.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use model::{Disposition, ProblemReason, SystemClock};
use testkit::scripted::{Reply, ScriptedServer};
use testkit::servers::free_port;
use tokio::time::Instant;
use web::{Carried, Client, ConnectFault, ErrorKind, Phase, Transport, WebConfig, WebError};

use crate::support::{client, config, request, say, serve};

const SHORT: Duration = Duration::from_millis(30);

fn assert_retried(error: &WebError) {
    assert_eq!(error.disposition(), Disposition::Retry { after: None }, "{error}");
}

#[tokio::test]
async fn a_body_shorter_than_announced_is_interrupted_and_stays_so() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/a", Reply::ok("abcdef").cut_after(4));
    let mut response = client().get(request(&server.uri("/a"))).await.unwrap();
    let error = loop {
        match response.chunk().await {
            Ok(piece) => assert!(piece.is_some(), "a cut-off body ended as if it were whole"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!((response.received(), error.reason()), (4, ProblemReason::Interrupted));
    assert!(error.to_string().contains("4 of 6 bytes came"), "{error}");
    assert_retried(&error);
    assert_eq!(response.chunk().await.unwrap_err().kind(), ErrorKind::Interrupted);
}

#[tokio::test]
async fn a_chunked_body_without_its_end_is_interrupted() {
    let url = serve(|mut connection| async move {
        say(&mut connection, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
    })
    .await;
    let mut response = client().get(request(&url)).await.unwrap();
    assert_eq!(response.content_length(), None);
    assert_eq!(response.chunk().await.unwrap().unwrap(), "abc");
    assert_eq!(response.chunk().await.unwrap_err().kind(), ErrorKind::Interrupted);
}

#[tokio::test]
async fn a_body_that_stands_still_is_given_up() {
    let url = serve(|mut connection| async move {
        say(&mut connection, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc").await;
        std::future::pending::<()>().await;
    })
    .await;
    let client = Client::new(WebConfig { stall_timeout: SHORT, ..config() }).unwrap();
    let mut response = client.get(request(&url)).await.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "abc");
    let error = response.chunk().await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Timeout(Phase::Body), ProblemReason::Timeout));
    assert_retried(&error);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let url = serve(|connection| async move {
        std::future::pending::<()>().await;
        drop(connection);
    })
    .await;
    let client = Client::new(WebConfig { first_byte_timeout: SHORT, ..config() }).unwrap();
    let error = client.get(request(&url)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout(Phase::FirstByte));
    assert_retried(&error);
}

/// Redirects each request to another path, after so long.
#[derive(Debug)]
struct Redirecting(Duration);

impl Transport for Redirecting {
    fn carry(&self, request: http::Request<()>) -> BoxFuture<'_, io::Result<Carried>> {
        let head = http::Response::builder().status(302).header("location", format!("{}x", request.uri()));
        let answer = head.body(stream::empty().boxed()).expect("a head");
        let wait = self.0;
        Box::pin(async move {
            tokio::time::sleep(wait).await;
            Ok(answer)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn slow_redirects_have_the_time_of_one_answer_together() {
    let server = Arc::new(Redirecting(Duration::from_secs(25)));
    let client = Client::over(WebConfig::default(), Arc::new(SystemClock), server).unwrap();
    let begun = Instant::now();
    let error = client.get(request("http://h.example/")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout(Phase::FirstByte), "{error}");
    assert_eq!((begun.elapsed(), error.requests()), (Duration::from_secs(60), 3));
    assert!(error.to_string().contains("nothing came for 60s, redirects included"), "{error}");
    assert_retried(&error);
}

#[tokio::test]
async fn a_server_that_hangs_up_is_asked_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let url = serve(move |mut connection| {
        let earlier = count.fetch_add(1, Ordering::SeqCst);
        async move {
            if earlier > 0 {
                say(&mut connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            }
        }
    })
    .await;
    let error = client().get(request(&url)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
    asked.store(0, Ordering::SeqCst);
    let response = client().get_with_retries(request(&url)).await.unwrap();
    assert_eq!((response.requests(), asked.load(Ordering::SeqCst)), (2, 2));
}

#[tokio::test]
async fn a_server_that_speaks_something_else_is_no_answer() {
    let url = serve(|mut connection| async move { say(&mut connection, "220 smtp ready\r\n").await }).await;
    let error = client().get(request(&url)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
}

#[tokio::test]
async fn a_port_where_nothing_listens_refuses() {
    let address = format!("127.0.0.1:{}", free_port());
    let error = client().get(request(&format!("http://{address}/a"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect(ConnectFault::Refused), "{error}");
    assert!(error.to_string().starts_with(&format!("{address} refuses connections")), "{error}");
    assert_eq!((error.reason(), error.is_answer()), (ProblemReason::Connect, false));
    assert_retried(&error);
}

#[tokio::test]
async fn a_name_without_address_is_a_fault_of_the_name() {
    // A label may have 63 characters: the look-up fails here and reaches no name server.
    let host = format!("{}.invalid", "a".repeat(64));
    let error = client().get(request(&format!("http://{host}/"))).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Dns, ProblemReason::Dns), "{error}");
    assert_retried(&error);
}

#[tokio::test]
async fn plain_http_where_tls_is_expected_is_refused() {
    let server = ScriptedServer::start().await.unwrap();
    let url = server.uri("/a").replace("http://", "https://");
    let error = client().get(request(&url)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Tls { certificate: false }, "{error}");
    assert_eq!((error.reason(), error.disposition()), (ProblemReason::Tls, Disposition::Refuse));
}

#[tokio::test]
async fn urls_that_no_server_can_be_asked_for_are_refused_without_a_request() {
    let client = client();
    let endless = format!("http://example.org/{}", "a".repeat(70_000));
    for url in ["ftp://example.org/a", "mailto:a@example.org", "data:,abc", "file:///etc/passwd", &endless] {
        let error = client.get(request(url)).await.unwrap_err();
        assert_eq!((error.kind(), error.requests()), (ErrorKind::BadUrl, 0), "{error}");
        assert_eq!((error.reason(), error.disposition()), (ProblemReason::BadUri, Disposition::Refuse));
    }
    assert_eq!(client.requests(), 0);
}

#[tokio::test]
async fn a_configuration_that_makes_no_client_says_so() {
    for config in [
        WebConfig { user_agent: "a\nb".into(), ..WebConfig::default() },
        WebConfig { per_origin: 0, ..WebConfig::default() },
    ] {
        assert_eq!(Client::new(config).unwrap_err().kind(), ErrorKind::Builder);
    }
}
