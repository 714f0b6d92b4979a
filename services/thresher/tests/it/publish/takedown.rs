//! Readers of some sets, and resources that are withdrawn.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use model::ResourceUri;
use publish::PublishedPath;
use reqwest::{Client, StatusCode};
use simulated_source::SourceSpec;
use tempfile::TempDir;
use testkit::waiting::{found, until};

use super::Served;
use super::sets::Two;
use crate::common::{Destination, source};

/// How long a withdrawn resource may be read, and stay untold, at most.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

#[tokio::test]
async fn acc_7_readers_of_one_set_get_403_on_the_other() {
    let two = Two::new().await;
    let [first, second] = two.ids();
    let folder = TempDir::with_prefix("tokens-").unwrap();
    let tokens = folder.path().join("tokens.yaml");
    let (one, all) = ("a-token-for-the-first-set", "a-token-for-all-of-the-sets");
    let text = format!("- {{name: one, token: {one}, sets: [{first}]}}\n- {{name: all, token: {all}}}\n");
    std::fs::write(&tokens, text).unwrap();
    let served = Served::with(&two.copy, &["--all-sources", "--tokens", tokens.to_str().unwrap()]);
    let client = Client::builder().no_proxy().build().unwrap();
    let status = async |path: &str, token: &str| {
        let request = client.get(format!("{}{path}", served.base));
        let request = if token.is_empty() { request } else { request.bearer_auth(token) };
        request.send().await.unwrap().status().as_u16()
    };
    let uri: ResourceUri = two.sources[1].resource_uri(1).parse().unwrap();
    let resource = format!("{second}/{}", PublishedPath::of(&uri).as_str());
    for path in [&format!("{second}/resourcelist.xml"), &format!("{second}/capabilitylist.xml"), &resource] {
        assert_eq!(
            (status(path, one).await, status(path, all).await, status(path, "").await),
            (403, 200, 401)
        );
    }
    let path = format!("{first}/resourcelist.xml");
    assert_eq!(
        (status(&path, one).await, status(&path, all).await, status(&path, "").await),
        (200, 200, 401)
    );
    let path = ".well-known/resourcesync";
    assert_eq!((status(path, one).await, status(path, "a-token-that-is-not-in-the-file").await), (200, 401));
}

#[tokio::test]
async fn acc_7_a_thousand_readers_of_one_set_get_403_on_the_other() {
    const READERS: usize = 1_000;
    let two = Two::new().await;
    let [first, second] = two.ids();
    let folder = TempDir::with_prefix("tokens-").unwrap();
    let tokens = folder.path().join("tokens.yaml");
    let token = |number: usize| format!("the-token-of-reader-{number:04}");
    let lines = (0..READERS)
        .map(|number| format!("- {{name: reader-{number}, token: {}, sets: [{first}]}}\n", token(number)));
    std::fs::write(&tokens, lines.collect::<String>()).unwrap();
    let served = Served::with(&two.copy, &["--all-sources", "--tokens", tokens.to_str().unwrap()]);
    let client = Client::builder().no_proxy().build().unwrap();
    let uri: ResourceUri = two.sources[1].resource_uri(1).parse().unwrap();
    let resource = format!("{second}/{}", PublishedPath::of(&uri).as_str());
    let status = async |path: String, number: usize| {
        let request = client.get(format!("{}{path}", served.base)).bearer_auth(token(number));
        request.send().await.unwrap().status().as_u16()
    };
    // Half of them ask for a document, and half for bytes.
    let paths = [
        (format!("{second}/resourcelist.xml"), format!("{first}/resourcelist.xml")),
        (resource, format!("{first}/capabilitylist.xml")),
    ];
    let answers = stream::iter(0..READERS).map(|number| {
        let (other, own) = paths[number % 2].clone();
        let status = &status;
        async move { (status(other, number).await, status(own, number).await) }
    });
    let answers: Vec<(u16, u16)> = answers.buffer_unordered(32).collect().await;
    assert_eq!(answers, vec![(403, 200); READERS]);
}

#[tokio::test]
async fn acc_7_what_is_withdrawn_is_gone_at_once_and_told_as_deleted() {
    let source = source(SourceSpec::default().resources(10)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let folder = TempDir::with_prefix("takedown-").unwrap();
    let list = folder.path().join("withdrawn.txt");
    std::fs::write(&list, "# nothing yet\n").unwrap();
    let served = Served::with(&copy, &["--takedown", list.to_str().unwrap()]);
    let reader = Destination::directory();
    reader.sync(&served.well_known()).exits(0);
    let uri: ResourceUri = source.resource_uri(3).parse().unwrap();
    let url = format!("{}{}", served.base, PublishedPath::of(&uri).as_str());
    assert_eq!(reader.state(&url).as_deref(), Some("present"));

    std::fs::write(&list, format!("{uri}\n")).unwrap();
    let begun = Instant::now();
    let client = Client::builder().no_proxy().build().unwrap();
    found("it is gone", async || {
        let status = client.get(&url).send().await.ok()?.status();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        (status == StatusCode::GONE).then_some(())
    })
    .await;
    until("the reader has deleted it", || {
        reader.sync(&served.well_known()).exits(0);
        reader.state(&url).as_deref() == Some("deleted")
    })
    .await;
    assert!(begun.elapsed() <= LONGEST, "it took {:?}", begun.elapsed());
    assert_eq!(copy.state(uri.as_str()).as_deref(), Some("present"), "it stays stored");
    assert_eq!(reader.present().len(), 9);
}

#[tokio::test]
async fn lists_that_cannot_be_read_are_refused() {
    let copy = Destination::directory();
    let folder = TempDir::with_prefix("takedown-").unwrap();
    let list = folder.path().join("withdrawn.txt");
    std::fs::write(&list, "no URI\n").unwrap();
    let fixed = ["--base", "http://e.org/", "--listen", "127.0.0.1:0", "--takedown"];
    let source = source(SourceSpec::default().resources(1)).await;
    copy.sync(&source.well_known()).exits(0);
    let run = copy.run("publish", &[&fixed[..], &[list.to_str().unwrap()]].concat()).exits(2);
    assert!(run.stderr.contains("line 1"), "{run}");
}
