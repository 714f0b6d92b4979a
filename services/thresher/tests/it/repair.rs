//! Repairs: unreliable stored bytes are replaced, by the same steps as a normal fetch. An equal digest proves nothing,
//! and nothing is lost if the Source no longer has the resource.

use crate::common::{Destination, Inside, Site, in_step, resource, urlset};
use fixity::Computed;
use futures::stream;
use harvest::{HarvestError, QueuedRepairs, queue_repairs};
use jiff::Timestamp;
use model::{Location, Subject, SystemClock};
use simulated_source::{ChangeKind, Fault, Size, SourceSpec};
use testkit::scripted::Reply;

const AT: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";

async fn queue(inside: &Inside, uris: &[&str]) -> QueuedRepairs {
    let uris = uris.iter().map(|uri| Ok::<_, HarvestError>(uri.parse().unwrap()));
    let uris: Vec<_> = uris.collect();
    queue_repairs(&inside.catalog, &SystemClock, stream::iter(uris)).await.unwrap()
}

/// Some bodies are too large for a pack.
fn mixed(resources: u64) -> SourceSpec {
    SourceSpec::default().resources(resources).size(Size::Range(0, 500_000))
}

/// The resources with an object of their own, and those in packs.
async fn parted(inside: &Inside, uris: impl Iterator<Item = String>) -> (Vec<String>, Vec<String>) {
    let mut objects = Vec::new();
    let mut packed = Vec::new();
    for uri in uris {
        match inside.location(&uri).await {
            Location::Object { .. } => objects.push(uri),
            _ => packed.push(uri),
        }
    }
    (objects, packed)
}

#[tokio::test]
async fn damaged_and_missing_bytes_are_fetched_again_although_their_digest_is_the_same() {
    let (source, copy) = in_step(mixed(30)).await;
    let entry = source.well_known();
    let gone = source.resource_uri(7);
    source.change_one(7, ChangeKind::Deleted);
    copy.sync(&entry).exits(0);
    let inside = Inside::of(&copy, &entry).await;
    let (objects, packed) = parted(&inside, source.expected().map(|now| now.uri)).await;
    let missing = &objects[0];
    let flipped = &objects[1];
    let member = &packed[0];
    let edited = &packed[1];
    std::fs::remove_file(inside.file(missing).await).unwrap();
    inside.flip(flipped).await;
    inside.flip(member).await;
    let other = Computed::of(b"other");
    inside.edit(edited, |record| record.bitstream.as_mut().unwrap().computed = other.clone()).await;
    let wanted = [missing, flipped, member, edited, gone.as_str(), "http://h/unknown"].map(|uri: &str| uri);
    assert_eq!(queue(&inside, &wanted).await, QueuedRepairs { queued: 4, passed_over: 2 });
    assert_eq!(queue(&inside, &wanted).await, QueuedRepairs { queued: 0, passed_over: 2 });
    let before = inside.location(member).await;
    inside.close().await;
    for uri in [missing, flipped, member, edited] {
        copy.run("cat", &[uri]).exits(3);
    }
    source.reset_requests();

    let run = copy.sync(&entry).exits(0);
    let json = run.json();
    assert_eq!(
        (&json["mode"], &json["stored"], &json["healed"]),
        (&"mend".into(), &4.into(), &4.into()),
        "{run}"
    );
    assert_eq!((source.requests().resources, source.requests().documents), (4, 1), "and robots.txt");
    copy.mirrors(&source);
    for uri in [missing, flipped, member, edited] {
        assert_eq!(Some(copy.cat(uri)), source.body(uri));
        assert!(copy.explain(uri).contains("refetched and verified"), "{}", copy.explain(uri));
    }
    assert!(copy.explain(edited).contains(&format!("(before: {})", other.sha256())));
    let inside = Inside::of(&copy, &entry).await;
    assert_ne!(inside.location(member).await, before);
    assert!(matches!(inside.location(missing).await, Location::Object { .. }));
    inside.close().await;

    source.reset_requests();
    let run = copy.sync(&entry).exits(0);
    assert_eq!((run.count("stored"), source.requests().resources), (0, 0), "{run}");
    assert_eq!(run.json()["mode"], "incremental");
}

#[tokio::test]
async fn what_cannot_be_mended_keeps_what_is_held_and_is_tried_again_in_the_same_way() {
    let (source, copy) = in_step(SourceSpec::default().resources(5)).await;
    let entry = source.well_known();
    let uri = source.resource_uri(2);
    let inside = Inside::of(&copy, &entry).await;
    let before = inside.location(&uri).await;
    queue(&inside, &[&uri]).await;
    inside.close().await;
    source.set_fault(2, Fault::status(404));

    let run = copy.sync(&entry).exits(1);
    assert_eq!((run.count("failed"), run.count("stored")), (1, 0), "{run}");
    assert!(copy.explain(&uri).contains("its stored bytes are doubtful"), "{}", copy.explain(&uri));
    assert_eq!(Some(copy.cat(&uri)), source.body(&uri));
    // A list with the same entry does not settle it, either.
    source.refresh_resource_list();
    let run = copy.sync_with(&entry, &["--mode", "baseline"]).exits(1);
    assert_eq!(run.count("failed"), 1, "{run}");
    let inside = Inside::of(&copy, &entry).await;
    assert_eq!(inside.location(&uri).await, before);
    let problem = inside.catalog.problem(&Subject::Resource(uri.clone())).await.unwrap().unwrap();
    assert!(problem.repair && problem.evidence.status == Some(404), "{problem:?}");
    inside.close().await;

    source.clear_faults();
    let run = copy.sync(&entry).exits(0);
    assert_eq!((run.count("stored"), run.count("healed")), (1, 1), "{run}");
    let inside = Inside::of(&copy, &entry).await;
    assert_ne!(inside.location(&uri).await, before);
    inside.close().await;
}

#[tokio::test]
async fn a_server_that_knows_the_version_held_is_not_asked_whether_it_is_still_the_same() {
    let site = Site::start().await;
    let uri = site.reply("/a", Reply::ok("a").header("etag", "\"1\""));
    let entry = site.serve("/list.xml", urlset(AT, &[resource(&uri, "")]));
    let copy = Destination::directory();
    copy.sync(&entry).exits(0);
    let inside = Inside::of(&copy, &entry).await;
    queue(&inside, &[&uri]).await;
    inside.close().await;
    copy.sync(&entry).exits(0);
    assert_eq!(site.conditions_at("/a"), [None, None]);
}

#[tokio::test]
async fn a_deletion_that_was_undone_stays_undone_when_its_bytes_cannot_be_had_again() {
    let (source, copy) = in_step(SourceSpec::default().resources(5)).await;
    let entry = source.well_known();
    let uri = source.resource_uri(2);
    source.change_one(2, ChangeKind::Deleted);
    copy.sync(&entry).exits(0);
    copy.run("restore", &[&uri]).exits(0);
    let inside = Inside::of(&copy, &entry).await;
    queue(&inside, &[&uri]).await;
    inside.close().await;
    copy.sync(&entry).exits(1);
    assert_eq!(copy.state(&uri).as_deref(), Some("problem"));
    copy.cat(&uri);
}

#[tokio::test]
async fn the_first_sighting_of_an_absence_is_kept_over_a_mend() {
    let site = Site::start().await;
    let [one, two] = ["one", "two"].map(|name| site.serve(&format!("/{name}"), name));
    let entry = site.serve("/list.xml", urlset(AT, &[resource(&one, ""), resource(&two, "")]));
    let copy = Destination::directory();
    copy.sync(&entry).exits(0);
    let later = "capability=\"resourcelist\" at=\"2026-01-02T00:00:00Z\"";
    site.serve("/list.xml", urlset(later, &[resource(&one, "")]));
    copy.sync_with(&entry, &["--max-deletes", "100%"]).exits(0);
    let inside = Inside::of(&copy, &entry).await;
    let absence = inside.record(&two).await.absent.expect("it was not named");
    assert_eq!(absence.at, Some("2026-01-02T00:00:00Z".parse::<Timestamp>().unwrap()));
    queue(&inside, &[&two]).await;
    inside.close().await;
    assert_eq!(copy.sync(&entry).exits(0).count("healed"), 1);
    let inside = Inside::of(&copy, &entry).await;
    assert_eq!(inside.record(&two).await.absent, Some(absence));
    inside.close().await;
}
