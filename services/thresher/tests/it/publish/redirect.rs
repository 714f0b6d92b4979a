//! Readers that are led to the bucket.

use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use simulated_source::{Size, SourceSpec};
use testkit::servers::S3Fixture;

use super::Served;
use crate::common::{Destination, Run, source, thresher};

/// Large enough to lie outside of packs.
const LARGE: u64 = 12 << 20;

#[tokio::test]
async fn a_large_resource_is_led_to_the_bucket_and_a_small_one_is_sent() {
    let fixture = S3Fixture::get().await;
    let copy = Destination::s3(&fixture);
    let large = source(SourceSpec::default().resources(2).size(Size::Fixed(LARGE))).await;
    copy.sync(&large.well_known()).exits(0);
    let served = Served::with(&copy, &["--redirect=1min"]);
    let list = resource_list(&served).await;
    let url = list.split("<loc>").nth(1).unwrap().split("</loc>").next().unwrap();
    let client = client();
    let led = client.get(url).send().await.unwrap();
    assert_eq!(led.status(), StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(led.headers()["cache-control"], "no-store");
    let at = led.headers()["location"].to_str().unwrap().to_owned();
    let range = client.get(&at).header("range", "bytes=0-9").send().await.unwrap();
    assert_eq!(range.status(), StatusCode::PARTIAL_CONTENT, "the bucket sends ranges");
    // What is known without the bytes is answered here.
    let head = client.head(url).send().await.unwrap();
    assert_eq!(head.status(), StatusCode::OK);
    let known = client.get(url).header("if-none-match", head.headers()["etag"].clone());
    assert_eq!(known.send().await.unwrap().status(), StatusCode::NOT_MODIFIED);
    // A reader that may follow the redirect has the same bytes.
    let reader = Destination::directory();
    reader.sync(&served.well_known()).exits(0);
    let digests =
        |copy: &Destination| copy.present().into_values().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(digests(&reader), digests(&copy));
}

#[tokio::test]
async fn resources_in_packs_are_sent() {
    let fixture = S3Fixture::get().await;
    let copy = Destination::s3(&fixture);
    let small = source(SourceSpec::default().resources(3)).await;
    copy.sync(&small.well_known()).exits(0);
    let served = Served::with(&copy, &["--redirect"]);
    let list = resource_list(&served).await;
    for url in list.split("<loc>").skip(1).map(|rest| rest.split("</loc>").next().unwrap()) {
        assert_eq!(client().get(url).send().await.unwrap().status(), StatusCode::OK, "{url}");
    }
}

#[test]
fn a_harvest_in_a_directory_has_no_bucket_to_lead_to() {
    let into = tempfile::TempDir::new().unwrap();
    let run = Run::of(
        thresher()
            .args(["publish", "--base", "http://mirror.example/", "--listen", "127.0.0.1:0", "--redirect"])
            .arg("--into")
            .arg(into.path()),
    );
    assert!(run.exits(2).stderr.contains("--redirect leads to a bucket"), "it says what to do");
}

fn client() -> Client {
    Client::builder().no_proxy().redirect(Policy::none()).build().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a small body of our own server")]
async fn resource_list(served: &Served) -> String {
    let list = client().get(format!("{}resourcelist.xml", served.base)).send().await.unwrap();
    list.text().await.unwrap()
}
