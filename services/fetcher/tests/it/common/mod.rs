//! Helpers for several tests.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use model::{Declaration, JobId, Origin, PackageJob, RunId, Seq, SystemClock, Terms, Validators};
use web::{Carried, Client, RobotsPolicy, Transport, WebConfig};

/// What a server inside the test answers.
pub(crate) type Answer = BoxFuture<'static, io::Result<Carried>>;

/// A server inside the test, whose time the test holds.
struct Inside<F>(F);

impl<F> fmt::Debug for Inside<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside")
    }
}

impl<F: Fn(http::Request<()>) -> Answer + Send + Sync> Transport for Inside<F> {
    fn carry(&self, request: http::Request<()>) -> BoxFuture<'_, io::Result<Carried>> {
        (self.0)(request)
    }
}

/// A client of a server inside the test.
pub(crate) fn client_of(answer: impl Fn(http::Request<()>) -> Answer + Send + Sync + 'static) -> Client {
    let server = Arc::new(Inside(answer));
    Client::over(WebConfig::default(), Arc::new(SystemClock), server).expect("a client")
}

/// A client of a server that never answers.
pub(crate) fn client_of_silence() -> Client {
    client_of(|_| Box::pin(std::future::pending()))
}

/// A client that obeys robots.txt, of servers inside the test.
pub(crate) fn client_that_obeys(
    answer: impl Fn(http::Request<()>) -> Answer + Send + Sync + 'static,
) -> Client {
    let config = WebConfig { robots: RobotsPolicy::obey(), ..WebConfig::default() };
    Client::over(config, Arc::new(SystemClock), Arc::new(Inside(answer))).expect("a client")
}

/// A client of servers that redirect to another one each time, and take 50 seconds for each robots.txt.
pub(crate) fn client_that_is_led_astray() -> Client {
    let hosts = AtomicUsize::new(0);
    client_that_obeys(move |request| {
        let is_robots = request.uri().path() == "/robots.txt";
        let host = hosts.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let head = http::Response::builder();
            let head = if is_robots {
                tokio::time::sleep(Duration::from_secs(50)).await;
                head.status(404)
            } else {
                head.status(302).header("location", format!("http://h{host}.example/a.zip"))
            };
            Ok(head.body(stream::empty().boxed()).expect("a head"))
        })
    })
}

/// A job for the package at `uri`, without any declaration.
pub(crate) fn package_job(uri: &str) -> PackageJob {
    let uri: model::ResourceUri = uri.parse().expect("an http URI");
    PackageJob {
        id: JobId::fresh(),
        source: "case".parse().expect("a source id"),
        run: RunId::fresh(),
        origin: Origin::of(&uri.to_url()).expect("a URL with a host"),
        uri,
        seq: Seq::new(5),
        terms: Terms::default(),
        declaration: Declaration::default(),
        held: Validators::default(),
    }
}
