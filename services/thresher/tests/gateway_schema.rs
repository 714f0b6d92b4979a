//! The operator's HTTP API, held against its own description by somebody else's software: Schemathesis (PyPI).
#![allow(missing_docs)]

mod common;

use std::process::Command;

use common::api::{ADMIN, Api};
use common::{Fleet, source};
use testkit::servers::{NatsFixture, S3Fixture, Venv};
use testkit::source::{Fault, SourceSpec};

/// No server error, and no answer outside the description: of status, type, headers and body.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance";

/// Lets Schemathesis ask for all that is described, with what it makes up.
async fn hold_against_the_description(api: &Api) {
    let folder = tempfile::TempDir::with_prefix("schemathesis-").unwrap();
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
    command.args(["--continue-on-failure", "--suppress-health-check", "all"]);
    let ended = tokio::task::spawn_blocking(move || command.output().expect("it runs")).await.unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}\n{}", String::from_utf8_lossy(&ended.stderr));
    assert!(said.contains("passed"), "it has tested something: {said}");
}

#[tokio::test]
async fn every_answer_is_one_that_the_description_tells_of() {
    let source = source(SourceSpec::default().resources(12)).await;
    source.set_fault(3, Fault::status(404));
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let all = fleet.start(&[], "");
    fleet.add(&source.well_known(), &[]);
    fleet.harvest(&source.well_known()).await.exits(1);
    // From now on nobody harvests the Sources that are made up.
    assert_eq!(all.terminate().await, Some(0));
    let alone = fleet.start(&["gateway"], &fleet.gateway());
    let api = Api::of(&alone).await;
    hold_against_the_description(&api).await;
}
