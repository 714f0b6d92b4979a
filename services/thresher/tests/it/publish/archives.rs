//! ResourceSync Archives of our own: what was published before, for readers that come late.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::ResourceUri;
use publish::PublishedPath;
use reqwest::{Client, StatusCode};
use simulated_source::{Changes, SourceSpec};
use testkit::waiting::found;

use super::{Served, a_second_passes};
use crate::common::{Destination, Run, source, thresher};

/// The digest of each resource that a copy holds, by the URL that it is published at.
fn published(copy: &Destination, base: &str) -> BTreeMap<String, String> {
    let present = copy.present().into_iter();
    let url =
        |uri: String| format!("{base}{}", PublishedPath::of(&uri.parse::<ResourceUri>().unwrap()).as_str());
    present.map(|(uri, (_, sha256))| (url(uri), sha256)).collect()
}

/// What a reader knows of a time.
fn state_at(reader: &Destination, time: Timestamp) -> BTreeMap<String, String> {
    let run = reader.run("ls", &["--json", "--source-at", &time.to_string()]).exits(0);
    let text = |line: &serde_json::Value, name: &str| line[name].as_str().expect("a text").to_owned();
    run.json_lines().iter().map(|line| (text(line, "uri"), text(line, "sha256"))).collect()
}

/// How many lists an Archive names, if it is there.
#[expect(clippy::disallowed_methods, reason = "a small body of our own server")]
async fn lists(client: &Client, archive: &str) -> Option<usize> {
    let text = client.get(archive).send().await.ok()?.text().await.ok()?;
    Some(text.matches("<url>").count())
}

#[tokio::test(flavor = "multi_thread")]
async fn arc_t4_a_late_reader_restores_four_editions() {
    let source = source(SourceSpec::default().resources(12)).await;
    let copy = Destination::directory();
    let sync = || copy.sync_with(&source.well_known(), &["--keep-versions", "9", "--view", "none"]).exits(0);
    sync();
    let served = Served::with(&copy, &["--archive", "all"]);
    let archive = format!("{}resourcelist-archive.xml", served.base);
    let client = Client::builder().no_proxy().build().unwrap();
    let mut states = vec![(Timestamp::now(), published(&copy, &served.base))];
    for round in 1..4 {
        a_second_passes().await;
        source.change(Changes { create: 1, update: 5, delete: 0 });
        sync();
        found("the list before is in the Archive", async || {
            (lists(&client, &archive).await? == round).then_some(())
        })
        .await;
        states.push((Timestamp::now(), published(&copy, &served.base)));
    }
    let reader = Destination::directory();
    reader.sync(&served.well_known()).exits(0);
    let run = reader.run("backfill", &["--archives", "--versions", "9", "--json"]).exits(0);
    assert!(run.count("stored") > 0, "{run}");
    for (time, state) in states {
        assert_eq!(state_at(&reader, time), state, "at {time}");
    }
    // All of it again costs no version.
    let again = reader.run("backfill", &["--archives", "--versions", "9", "--json"]).exits(0);
    assert_eq!(again.count("stored"), 0, "{again}");
    let discovered = Run::of(thresher().args(["discover", &served.well_known()])).exits(0);
    assert!(discovered.stdout.contains("resourcelist-archive.xml"), "{discovered}");
    let inspected = Run::of(thresher().args(["inspect", "--strict", &archive])).exits(0);
    assert!(inspected.stdout.contains("resourcelist-archive"), "{inspected}");
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_served_as_long_as_they_are_kept() {
    let source = source(SourceSpec::default().resources(3)).await;
    let copy = Destination::directory();
    let sync = || copy.sync_with(&source.well_known(), &["--keep-versions", "1", "--view", "none"]).exits(0);
    sync();
    let served = Served::with(&copy, &["--archive", "90days"]);
    let uri = source.resource_uri(1);
    let path = PublishedPath::of(&uri.parse::<ResourceUri>().unwrap()).as_str().to_owned();
    let mut digests = vec![copy.present()[&uri].1.clone()];
    for _ in 0..2 {
        source.change_one(1, simulated_source::ChangeKind::Updated);
        sync();
        digests.push(copy.present()[&uri].1.clone());
    }
    let client = Client::builder().no_proxy().build().unwrap();
    let version = async |sha256: &str| {
        let response = client.get(format!("{}versions/{sha256}/{path}", served.base)).send().await.unwrap();
        let etag = response.headers().get("etag").map(|etag| etag.to_str().unwrap().to_owned());
        let cache = response.headers().get("cache-control").map(|told| told.to_str().unwrap().to_owned());
        assert_eq!(cache.as_deref(), etag.as_ref().map(|_| "public, max-age=604800, immutable"));
        (response.status(), etag)
    };
    found("the last change is seen", async || (version(&digests[2]).await.0 == StatusCode::OK).then_some(()))
        .await;
    for kept in &digests[1..] {
        assert_eq!(version(kept).await, (StatusCode::OK, Some(format!("\"{kept}\""))));
    }
    assert_eq!(version(&digests[0]).await.0, StatusCode::GONE);
    for nothing in ["versions/x", &format!("versions/{}/nothing", digests[1]), "versions/"] {
        let status = client.get(format!("{}{nothing}", served.base)).send().await.unwrap().status();
        assert_eq!(status, StatusCode::NOT_FOUND, "{nothing}");
    }
}
