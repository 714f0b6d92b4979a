//! A Memento client of others, PyPI's `memento-client`, finds versions by the gateway's TimeGates.

use std::path::Path;
use std::process::Command;

use catalog::Batch;
use jiff::Timestamp;
use model::ResourceUri;
use reqwest::StatusCode;
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use testkit::servers::Venv;

use crate::common::api::{Api, READ, fleet, send};
use crate::common::{Inside, Site, resource, urlset};
use fixity::Sha256;

/// A moment of a day of January.
fn day(n: u32) -> String {
    format!("2026-01-{n:02}T00:00:00Z")
}

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
async fn a_memento_client_of_others_finds_the_version_of_each_moment() {
    let (fleet, _all, api) = fleet().await;
    let site = Site::start().await;
    let uri = site.uri("/a;b,c?d=e");
    let copy = fleet.destination();
    let list = site.uri("/list.xml");
    for n in 1..=3 {
        let content = format!("version {n}");
        site.serve("/a;b,c?d=e", content.as_str());
        let declared =
            format!("hash=\"sha-256:{}\" length=\"{}\"", Sha256::of(content.as_bytes()), content.len());
        let md = format!("capability=\"resourcelist\" at=\"{}\"", day(n));
        site.serve("/list.xml", urlset(&md, &[resource(&uri, &declared)]));
        copy.sync_with(&list, &["--keep-versions", "5"]).exits(0);
    }
    // Each version a day, as if time had passed.
    let inside = Inside::of(&copy, &list).await;
    let at = |n: u32| -> Timestamp { day(n).parse().expect("a time") };
    inside.edit(&uri, |record| record.bitstream.as_mut().expect("it is stored").stored_at = at(3)).await;
    let name: ResourceUri = uri.parse().expect("a URI");
    let mut versions = inside.catalog.versions(&name).await.expect("a catalog").expect("kept versions");
    for (n, version) in (1..).zip(&mut versions.kept) {
        (version.from, version.until) = (at(n), at(n + 1));
    }
    let mut batch = Batch::new();
    batch.put_versions(&name, &versions);
    inside.catalog.commit(batch).await.expect("a catalog");
    inside.close().await;

    let created = api.post("/v1/sources", json!({"entry": list})).await.is(StatusCode::CREATED);
    let timegate = format!("{}{}/timegate/", api.base, created.header("location"));
    let moments =
        ["2025-12-31T12:00:00", "2026-01-01T12:00:00", "2026-01-02T23:59:59", "2026-01-03T00:00:00"];
    let answers = found(&timegate, &uri, &moments);
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
    mem_1_moments_are_dates_of_http(&api, &timegate, &uri).await;
    mem_3_the_time_map_lists_all_versions(&api, &timegate, &uri).await;
}

/// MEM-1: without a moment, the newest version; a date in another form is refused. MEM-2: a version states its time.
async fn mem_1_moments_are_dates_of_http(api: &Api, timegate: &str, uri: &str) {
    let ask = |moment: Option<&str>| {
        let client =
            reqwest::Client::builder().no_proxy().redirect(Policy::none()).build().expect("a client");
        let request = client.get(format!("{timegate}{uri}")).bearer_auth(READ);
        send(match moment {
            Some(moment) => request.header("accept-datetime", moment),
            None => request,
        })
    };
    for wrong in ["2026-01-02T00:00:00Z", "Fri, 02 Jan 2026 00:00:00 +0000", "yesterday"] {
        assert_eq!(ask(Some(wrong)).await.status, 400, "{wrong}");
    }
    let answer = ask(None).await;
    assert_eq!((answer.status, answer.header("vary")), (302, "accept-datetime"));
    let location = answer.header("location").to_owned();
    let version = api.get(location.strip_prefix(&api.base).unwrap_or(&location)).await;
    assert_eq!((version.status, version.body.as_slice()), (200, &b"version 3"[..]));
    assert_eq!(version.header("memento-datetime"), "Sat, 03 Jan 2026 00:00:00 GMT");
    for relation in ["rel=\"original\"", "timegate", "timemap"] {
        assert!(version.header("link").contains(relation), "{}", version.header("link"));
    }
}

/// MEM-3: all versions, oldest first, each with its time.
async fn mem_3_the_time_map_lists_all_versions(api: &Api, timegate: &str, uri: &str) {
    let timemap = format!("{}{uri}", timegate.replace("/timegate/", "/timemap/"));
    let answer = api.get(timemap.strip_prefix(&api.base).expect("of this gateway")).await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").starts_with("application/link-format"), "{answer:?}");
    let text = String::from_utf8(answer.body).expect("UTF-8");
    let listed: Vec<&str> =
        text.match_indices("datetime=\"").map(|(at, _)| &text[at + 10..at + 26]).collect();
    assert_eq!(listed, ["Thu, 01 Jan 2026", "Fri, 02 Jan 2026", "Sat, 03 Jan 2026"], "{text}");
    for relation in ["rel=\"original\"", "rel=\"self\"", "rel=\"timegate\""] {
        assert!(text.contains(relation), "{relation}: {text}");
    }
}
