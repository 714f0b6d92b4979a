//! Endless and slow bodies. The server is inside the process, and the test holds the clock.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, StreamExt as _};
use model::{Disposition, ProblemReason, SystemClock};
use tokio::time::Instant;
use web::{
    BodyLimits, Carried, Client, ErrorKind, GetRequest, Phase, Range, RobotsFetch, Transport, WebConfig,
    WebError,
};

/// Answers every request with a piece of a body, repeatedly.
#[derive(Debug, Clone)]
struct Dripping {
    /// The bytes of a piece.
    piece: usize,
    /// The time before each piece.
    every: Duration,
    /// How many pieces are sent; none = endless.
    pieces: Option<usize>,
    /// Further headers.
    headers: Vec<(&'static str, String)>,
    status: u16,
}

impl Dripping {
    fn new(piece: usize, every: Duration) -> Self {
        Self { piece, every, pieces: None, headers: Vec::new(), status: 200 }
    }

    fn saying(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    fn ending_after(self, pieces: usize) -> Self {
        Self { pieces: Some(pieces), ..self }
    }
}

impl Transport for Dripping {
    fn carry(&self, _request: http::Request<()>) -> BoxFuture<'_, io::Result<Carried>> {
        let Self { piece, every, pieces, headers, status } = self.clone();
        let drops = stream::repeat(()).then(move |()| async move {
            tokio::time::sleep(every).await;
            Ok(Bytes::from(vec![b'#'; piece]))
        });
        let body = drops.take(pieces.unwrap_or(usize::MAX)).boxed();
        let mut head = http::Response::builder().status(status);
        for (name, value) in headers {
            head = head.header(name, value);
        }
        async move { Ok(head.body(body).expect("a head")) }.boxed()
    }
}

fn client(server: Dripping, bodies: BodyLimits) -> Client {
    let config = WebConfig { bodies, ..WebConfig::default() };
    Client::over(config, Arc::new(SystemClock), Arc::new(server)).expect("a client")
}

fn request() -> GetRequest {
    GetRequest::new("http://origin.example/a".parse().expect("a URL"))
}

/// Reads to the end: the bytes, the time, and the error.
async fn read(client: &Client, request: GetRequest) -> (u64, Duration, Option<WebError>) {
    let begun = Instant::now();
    let mut response = client.get(request).await.expect("an answer");
    loop {
        match response.chunk().await {
            Ok(Some(_)) => {}
            Ok(None) => return (response.received(), begun.elapsed(), None),
            Err(error) => return (response.received(), begun.elapsed(), Some(error)),
        }
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_byte_every_29_seconds_is_given_up_after_a_minute() {
    let client = client(Dripping::new(1, seconds(29)), BodyLimits::default());
    let (bytes, time, error) = read(&client, request()).await;
    let error = error.unwrap();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::TooSlow, ProblemReason::TooSlow), "{error}");
    assert_eq!(error.disposition(), Disposition::Retry { after: None });
    assert_eq!((bytes, time), (2, seconds(60)));
    assert!(error.to_string().contains("--min-speed"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_standstill_is_still_called_so() {
    let client = client(Dripping::new(1, seconds(31)), BodyLimits::default());
    let (_, time, error) = read(&client, request()).await;
    assert_eq!((error.unwrap().kind(), time), (ErrorKind::Timeout(Phase::Body), seconds(30)));
}

#[tokio::test(start_paused = true)]
async fn what_comes_fast_enough_in_each_minute_ends_well_however_it_comes() {
    let slow = Dripping::new(33 * 1024, seconds(29)).ending_after(50);
    let (bytes, _, error) = read(&client(slow, BodyLimits::default()), request()).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(bytes, 50 * 33 * 1024);
}

#[tokio::test(start_paused = true)]
async fn a_whole_body_has_a_time_that_grows_with_its_length() {
    let limits = BodyLimits { time: seconds(100), ..BodyLimits::default() };
    // 3 KiB a second would bring 40 MiB in four hours.
    let server = Dripping::new(3 * 1024, seconds(1));
    let announced = server.clone().saying("content-length", 16 * 1024 * 200);
    let (_, time, error) = read(&client(announced, limits.clone()), request()).await;
    assert_eq!((error.unwrap().kind(), time), (ErrorKind::TooSlow, seconds(300)));
    let (bytes, time, error) = read(&client(server, limits), request()).await;
    assert_eq!(error.unwrap().kind(), ErrorKind::TooSlow);
    assert!(time > seconds(100) && time < seconds(130), "{time:?} for {bytes} bytes");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_slow_itself_is_no_fault_of_the_server() {
    let limits = BodyLimits { time: seconds(100), ..BodyLimits::default() };
    let client = client(Dripping::new(1024, Duration::ZERO).ending_after(9), limits);
    let mut response = client.get(request()).await.unwrap();
    while response.chunk().await.unwrap().is_some() {
        tokio::time::sleep(seconds(50)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_body_is_refused_at_its_limit() {
    let limits = BodyLimits { largest: 10_000, ..BodyLimits::default() };
    let endless = Dripping::new(999, Duration::from_millis(1));
    let (bytes, _, error) = read(&client(endless.clone(), limits.clone()), request()).await;
    let error = error.unwrap();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::TooLarge, ProblemReason::TooLarge), "{error}");
    assert_eq!((error.disposition(), bytes), (Disposition::Refuse, 9_990));
    let failure = error.to_failure();
    assert_eq!(failure.evidence.expected.as_deref(), Some("10000 bytes at most"));
    let wider = GetRequest { largest: Some(20_000), ..request() };
    assert_eq!(read(&client(endless, limits), wider).await.0, 19_980, "a request may say otherwise");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_announced_too_large_is_not_read_at_all() {
    let limits = BodyLimits { largest: 10_000, ..BodyLimits::default() };
    let large = Dripping::new(999, seconds(1)).saying("content-length", 10_001);
    let (bytes, time, error) = read(&client(large, limits.clone()), request()).await;
    assert_eq!((error.unwrap().kind(), bytes, time), (ErrorKind::TooLarge, 0, Duration::ZERO));
    let mut part = Dripping::new(999, seconds(1)).saying("content-range", "bytes 9000-10998/*");
    part.status = 206;
    let range = Some(Range::rest(9_000, "\"v1\"".to_owned()));
    let (bytes, _, error) = read(&client(part, limits), GetRequest { range, ..request() }).await;
    assert_eq!(
        (error.unwrap().kind(), bytes),
        (ErrorKind::TooLarge, 999),
        "the bytes before the range count"
    );
}

#[tokio::test(start_paused = true)]
async fn robots_txt_by_drips_keeps_its_origin_waiting_for_a_minute_at_most() {
    let origin = "http://origin.example".parse().unwrap();
    // Fast enough for any other body.
    for server in [Dripping::new(2 * 1024, seconds(1)), Dripping::new(1, seconds(29))] {
        let client = client(server.saying("content-length", 1_u64 << 40), BodyLimits::default());
        let begun = Instant::now();
        let (robots, _) = client.robots(&origin).await;
        assert!(matches!(robots.fetch(), RobotsFetch::Unreachable(_)), "{:?}", robots.fetch());
        assert_eq!(begun.elapsed(), seconds(60));
    }
}
