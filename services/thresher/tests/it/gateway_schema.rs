//! The operator's HTTP API, checked against its own description by third-party software: Schemathesis (PyPI).

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use crate::common::api::{ADMIN, Api};
use crate::common::{Fleet, Service, source};
use reqwest::StatusCode;
use serde_json::{Value, json};
use simulated_source::{Fault, SimulatedSource, SourceSpec};
use testkit::servers::{NatsFixture, S3Fixture, Venv};

/// No server error, and no response outside the description: of status, type, headers and body.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance";

/// Has Schemathesis request every described path, with `parameters` where they are named and generated values
/// elsewhere.
async fn hold_against_the_description(api: &Api, parameters: &str, options: &[&str]) {
    let folder = tempfile::TempDir::with_prefix("schemathesis-").unwrap();
    // No scheduler makes plans here, so responses do not wait for them.
    let settings = format!("[parameters]\n\"query.wait_seconds\" = 0\n{parameters}");
    std::fs::write(folder.path().join("schemathesis.toml"), settings).unwrap();
    let mut command =
        Command::new(Venv::schemathesis().expect("its virtual environment").program("schemathesis"));
    command.current_dir(folder.path()).args(["run", &format!("{}/v1/openapi.json", api.base)]);
    command.args([
        "--header",
        &format!("Authorization: Bearer {ADMIN}"),
        "--checks",
        CHECKS,
        "--seed",
        "1",
        "--no-color",
    ]);
    command.args([
        "--phases",
        "examples,coverage,fuzzing",
        "--max-examples",
        "15",
        "--generation-deterministic",
    ]);
    command.args(["--continue-on-failure", "--suppress-health-check", "all"]).args(options);
    let ended = tokio::task::spawn_blocking(move || command.output().expect("it runs")).await.unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}\n{}", String::from_utf8_lossy(&ended.stderr));
    assert!(said.contains("passed"), "it has tested something: {said}");
}

/// A finished harvest, as the API shows it. No scheduler runs any more.
async fn harvested(fleet: &Fleet, source: &SimulatedSource) -> (Service, Api, Value) {
    let all = fleet.start(&[], "");
    fleet.add(&source.well_known(), &[]);
    fleet.harvest(&source.well_known()).await.exits(1);
    // From now on no scheduler harvests the generated Sources, or takes up actions on this one.
    assert_eq!(all.terminate().await, Some(0));
    // No scheduler makes plans, either, so no response has to wait for one.
    let settings = fleet.gateway().replace("gateway: {", "gateway: {plan_wait_seconds: 0, ");
    let alone = fleet.start(&["gateway"], &settings);
    let api = Api::of(&alone).await;
    let runs = api.get("/v1/runs").await.is(StatusCode::OK).json();
    let run = runs["items"][0].clone();
    assert_eq!(run["state"], "finished", "{runs}");
    (alone, api, run)
}

#[tokio::test]
async fn every_answer_is_one_that_the_description_tells_of() {
    let source = source(SourceSpec::default().resources(12)).await;
    source.set_fault(3, Fault::status(404));
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let (_gateway, api, _) = harvested(&fleet, &source).await;
    hold_against_the_description(&api, "", &[]).await;
}

#[tokio::test]
async fn every_answer_about_what_was_harvested_is_one_that_the_description_tells_of() {
    let source = source(SourceSpec::default().resources(12)).await;
    source.set_fault(3, Fault::status(404));
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let (gateway, api, run) = harvested(&fleet, &source).await;
    let parameters = format!(
        "\"path.source\" = {}\n\"path.run\" = {}\n\"query.uri\" = {uri}\n\"path.uri\" = {uri}\n",
        run["source"],
        run["run"],
        uri = json!(source.resource_uri(1))
    );
    // The harvest must stay.
    hold_against_the_description(&api, &parameters, &["--exclude-method", "DELETE"]).await;
    let id = run["source"].as_str().unwrap();
    api.get(&format!("/v1/sources/{id}/problems")).await.is(StatusCode::OK);

    // The requests reached existing data: each page about a Source got a response.
    let metrics = metrics(&gateway.admin());
    let description = api.get("/v1/openapi.json").await.is(StatusCode::OK).json();
    let paths = description["paths"].as_object().unwrap();
    let about: Vec<&String> =
        paths.keys().filter(|path| path.contains("{source}") && paths[*path]["get"].is_object()).collect();
    assert!(about.len() > 4, "{about:?}");
    for path in about {
        // The rest of a path is a parameter with a star. A TimeGate redirects.
        let route = path.replace("{uri}", "{*uri}");
        let has_found = ["2xx", "3xx"].iter().any(|status| {
            metrics.contains(&format!(
                "thresher_gateway_requests_total{{route=\"{route}\",method=\"GET\",status=\"{status}\"}} "
            ))
        });
        assert!(has_found, "nothing was found at {path}:\n{metrics}");
    }
}

/// The metrics of an admin port.
fn metrics(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
