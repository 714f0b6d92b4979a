//! What the tests share: a Destination that the real binary fills, and the truth to compare it with.

pub(crate) mod api;
pub(crate) mod console;
mod destination;
mod dump;
mod fleet;
mod inside;
pub(crate) mod ldn;
mod process;
pub(crate) mod push;
mod run;
mod site;

pub(crate) use destination::{Destination, View};
pub(crate) use dump::{Package, package};
pub(crate) use fleet::{Fleet, Service, wait};
pub(crate) use inside::Inside;
pub(crate) use process::Process;
pub(crate) use run::Run;
pub(crate) use site::{Site, resource, urlset};

use std::collections::BTreeMap;
use std::process::Command;

use simulated_source::{SimulatedSource, SourceSpec};
use testkit::waiting::until;

/// A Source that counts the requests at each path.
pub(crate) async fn source(spec: SourceSpec) -> SimulatedSource {
    SimulatedSource::start(spec.count_paths(true)).await.expect("a free port on loopback")
}

/// A Source, and a copy in sync with it. Requests are counted from now on.
pub(crate) async fn in_step(spec: SourceSpec) -> (SimulatedSource, Destination) {
    let source = source(spec).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    source.reset_requests();
    (source, copy)
}

/// The binary under test, in an environment that does not depend on who runs the tests.
pub(crate) fn thresher() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thresher"));
    for name in
        ["RUST_LOG", "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
    {
        command.env_remove(name);
    }
    for name in [
        "THRESHER_CONTACT",
        "THRESHER_SERVER",
        "THRESHER_PROFILE",
        "THRESHER_TOKEN",
        "AWS_ENDPOINT_URL",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
        "AWS_PROFILE",
    ] {
        command.env_remove(name);
    }
    command
}

/// Waits until this many requests for resources have come.
#[track_caller]
pub(crate) fn asked_for(source: &SimulatedSource, resources: u64) -> impl Future<Output = ()> {
    let what = format!("{resources} requests for resources come");
    until(what, move || source.requests().resources >= resources)
}

/// How often a document of a Source was requested.
pub(crate) fn requests_at(source: &SimulatedSource, uri: &str) -> u64 {
    let path = uri.strip_prefix(&source.url()).unwrap_or(uri);
    source.requests().per_path.get(path).copied().unwrap_or_default()
}

/// The true length and sha-256 of every resource.
pub(crate) fn truth(source: &SimulatedSource) -> BTreeMap<String, (u64, String)> {
    source.expected().map(|now| (now.uri, (now.length, now.sha256))).collect()
}
