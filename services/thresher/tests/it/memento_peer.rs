//! A Memento client of others, PyPI's `memento-client`, finds versions by the gateway's TimeGates.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testkit::servers::Venv;

use crate::common::api::{READ, fleet};
use crate::memento::ThreeVersions;

/// What the client finds at these moments.
fn found(timegate: &str, uri: &str, moments: &[&str]) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/ask_timegate.py");
    let python = Venv::memento().expect("pip installs what is pinned").program("python");
    let mut command = Command::new(python);
    command.arg("-B").arg(script).args([timegate, READ, uri]).args(moments).env("NO_PROXY", "*");
    let output = command.output().expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("JSON");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[tokio::test]
async fn mem_1_a_memento_client_of_others_finds_the_version_of_each_moment() {
    let (fleet, _all, api) = fleet().await;
    let case = ThreeVersions::of(&fleet.destination()).await;
    let timegate = format!("{}/timegate/", case.added(&api).await);
    let uri = &case.uri;
    let moments =
        ["2025-12-31T12:00:00", "2026-01-01T12:00:00", "2026-01-02T23:59:59", "2026-01-03T00:00:00"];
    let answers = found(&timegate, uri, &moments);
    let datetime = |n: u32| format!("2026-01-{n:02} 00:00:00");
    for (answer, n) in answers.iter().zip([1, 1, 2, 3]) {
        let mementos = &answer["mementos"];
        assert_eq!(answer["text"], format!("version {n}"), "{answer}");
        assert_eq!(answer["original_uri"], uri.as_str());
        assert_eq!(mementos["closest"]["datetime"], datetime(n), "{answer}");
        assert_eq!(
            (&mementos["first"]["datetime"], &mementos["last"]["datetime"]),
            (&datetime(1).into(), &datetime(3).into())
        );
        let beside = |rel: &str| mementos[rel]["datetime"].as_str().map(str::to_owned);
        assert_eq!(beside("prev"), (n > 1).then(|| datetime(n - 1)), "{answer}");
        assert_eq!(beside("next"), (n < 3).then(|| datetime(n + 1)), "{answer}");
    }
    assert_eq!(answers.len(), moments.len());
}
