//! Source, copy, publication, copy of that, and so on: all hold the same.

use std::collections::BTreeSet;

use object_store::{Attribute, GetOptions, ObjectStore as _};
use simulated_source::{Changes, Size, SourceSpec};
use testkit::servers::S3Fixture;
use testkit::waiting::until;

use super::{Files, Served, originals};
use crate::common::{Destination, Run, Site, source, thresher, truth, urlset};

#[tokio::test]
async fn a_copy_of_published_files_follows_the_original_through_changes_and_deletions() {
    let source = source(SourceSpec::default().resources(60).size(Size::Range(0, 100_000))).await;
    let first = Destination::directory();
    first.sync(&source.well_known()).exits(0);
    let files = Files::start();
    let run = files.publish(&first).exits(0);
    assert_eq!((run.count("resources"), run.count("files"), run.count("damaged")), (60, 60, 0), "{run}");
    let second = Destination::directory();
    second.sync(&files.base).exits(0);
    assert_eq!(originals(&second, &[&files.base]), originals(&first, &[]));

    for _ in 0..3 {
        source.change(Changes { create: 3, update: 6, delete: 2 });
        first.sync(&source.well_known()).exits(0);
        let run = files.publish(&first).exits(0);
        assert_eq!((run.count("changes"), run.count("files")), (11, 9), "{run}");
        let run = second.sync(&files.base).exits(0);
        assert_eq!(run.json()["mode"], "incremental", "{run}");
        assert_eq!((run.count("stored"), run.count("deleted"), run.count("gaps")), (9, 2, 0), "{run}");
        assert_eq!(originals(&second, &[&files.base]), originals(&first, &[]));
    }
    let idle = files.publish(&first).exits(0);
    assert_eq!((idle.count("documents"), idle.count("files")), (0, 0), "{idle}");

    let late = Destination::directory();
    late.sync(&files.base).exits(0);
    let present: Vec<_> = late.present().into_values().collect();
    assert_eq!(present.len(), truth(&source).len());
}

#[tokio::test]
async fn acc_1_three_hops_of_servers_hold_the_same_through_changes_and_kills() {
    let source = source(SourceSpec::default().resources(30)).await;
    let copies = [Destination::directory(), Destination::directory(), Destination::directory()];
    copies[0].sync(&source.well_known()).exits(0);
    let mut one = Served::start(&copies[0]);
    copies[1].sync(&one.well_known()).exits(0);
    let mut two = Served::start(&copies[1]);
    copies[2].sync(&two.well_known()).exits(0);
    for round in 0..2 {
        source.change(Changes { create: 2, update: 4, delete: 1 });
        copies[0].sync(&source.well_known()).exits(0);
        if round == 1 {
            one.restart(&copies[0]);
            two.restart(&copies[1]);
        }
        let held = originals(&copies[0], &[]);
        // A publisher looks each second for changes.
        until("the second copy has the changes", || {
            copies[1].sync(&one.well_known()).exits(0);
            originals(&copies[1], &[&one.base]) == held
        })
        .await;
        until("the third copy has the changes", || {
            copies[2].sync(&two.well_known()).exits(0);
            originals(&copies[2], &[&one.base, &two.base]) == held
        })
        .await;
    }
    let uri = source.resource_uri(0);
    let path = publish::PublishedPath::of(&uri.parse().unwrap());
    assert_eq!(copies[1].cat(&format!("{}{}", one.base, path.as_str())), copies[0].cat(&uri));
    // After three hops, each resource names the Source that had it first.
    let listed = copies[2].listed();
    let firsts = |state: &str| -> BTreeSet<Vec<String>> {
        let lines = listed.iter().filter(|line| line["state"] == state);
        let vias = lines.map(|line| {
            let links = line["links"].as_array().into_iter().flatten();
            let vias = links.filter(|link| link["rel"] == "via");
            vias.map(|link| link["href"].as_str().unwrap().to_owned()).collect()
        });
        vias.collect()
    };
    let expected: BTreeSet<Vec<String>> = copies[0].present().into_keys().map(|uri| vec![uri]).collect();
    assert_eq!(firsts("present"), expected);
    // So does each deletion.
    let deleted = copies[0].ls().into_iter().filter(|(_, held)| held.state == "deleted");
    let deleted: BTreeSet<Vec<String>> = deleted.map(|(uri, _)| vec![uri]).collect();
    assert_eq!((firsts("deleted"), deleted.len()), (deleted.clone(), 2));
}

#[tokio::test]
async fn a_bucket_is_published_into_a_bucket() {
    let source = source(SourceSpec::default().resources(20)).await;
    let fixture = S3Fixture::get().await;
    let copy = Destination::s3(&fixture);
    copy.sync(&source.well_known()).exits(0);
    let to = format!("s3://{}/public", fixture.bucket);
    let publish =
        || copy.run("publish", &["--base", "http://mirror.example/", "--to", &to, "--json"]).exits(0);
    let run = publish();
    assert_eq!((run.count("resources"), run.count("files")), (20, 20), "{run}");
    // The bucket is the web server, so that each object has its media type.
    let store = fixture.store().unwrap();
    let resource = publish::PublishedPath::of(&source.resource_uri(1).parse().unwrap());
    for (name, expected) in [
        (".well-known/resourcesync", "application/xml"),
        ("resourcelist.xml", "application/xml"),
        ("index.html", "text/html; charset=utf-8"),
        (resource.as_str(), "application/octet-stream"),
    ] {
        let head = GetOptions { head: true, ..GetOptions::default() };
        let found = store.get_opts(&format!("public/{name}").into(), head).await.unwrap();
        let media_type = found.attributes.get(&Attribute::ContentType).map(|value| &**value);
        assert_eq!(media_type, Some(expected), "{name}");
    }
    source.change(Changes { create: 1, update: 2, delete: 1 });
    copy.sync(&source.well_known()).exits(0);
    let run = publish();
    assert_eq!((run.count("changes"), run.count("files")), (4, 3), "{run}");
    assert_eq!(publish().count("documents"), 0);
}

#[tokio::test]
async fn a_copy_of_the_dump_is_that_of_the_lists_and_follows_the_changes() {
    let source = source(SourceSpec::default().resources(60).size(Size::Range(0, 100_000))).await;
    let first = Destination::directory();
    first.sync(&source.well_known()).exits(0);
    let files = Files::start();
    let to = files.public().display().to_string();
    let publish =
        || first.run("publish", &["--base", &files.base, "--to", &to, "--dumps", "--json"]).exits(0);
    let run = publish();
    assert_eq!((run.count("resources"), run.count("packages")), (60, 1), "{run}");
    let second = Destination::directory();
    let run = second.sync_with(&files.base, &["--prefer", "dump"]).exits(0);
    assert!(run.count("requests") < 20, "the package has all: {run}");
    assert_eq!(originals(&second, &[&files.base]), originals(&first, &[]));
    for _ in 0..2 {
        source.change(Changes { create: 3, update: 6, delete: 2 });
        first.sync(&source.well_known()).exits(0);
        publish();
        let run = second.sync(&files.base).exits(0);
        assert_eq!((run.count("stored"), run.count("deleted"), run.count("gaps")), (9, 2, 0), "{run}");
        assert_eq!(originals(&second, &[&files.base]), originals(&first, &[]));
    }
    for name in ["resourcedump.xml", "capabilitylist.xml"] {
        let run = Run::of(thresher().args(["inspect", "--strict"]).arg(files.public().join(name))).exits(0);
        assert_eq!(run.json_lines().pop().unwrap()["quirks"], serde_json::json!({}), "{name}: {run}");
    }
    for entry in std::fs::read_dir(files.public().join("resourcedump")).unwrap() {
        let path = entry.unwrap().path();
        let run = Run::of(thresher().args(["inspect", "--strict"]).arg(&path)).exits(0);
        assert_eq!(run.json_lines().pop().unwrap()["quirks"], serde_json::json!({}), "{run}");
    }
}

#[tokio::test]
async fn a_served_dump_is_received_in_ranges() {
    let source = source(SourceSpec::default().resources(30)).await;
    let first = Destination::directory();
    first.sync(&source.well_known()).exits(0);
    let served = Served::with_dumps(&first);
    let second = Destination::directory();
    second.sync_with(&served.well_known(), &["--prefer", "dump"]).exits(0);
    assert_eq!(originals(&second, &[&served.base]), originals(&first, &[]));
}

/// A Source by hand: entries with their links, as they stand in its list.
fn listed_by_hand(site: &Site, entries: &[(&str, &str)]) -> String {
    let entries: Vec<String> =
        entries.iter().map(|(uri, links)| format!("<url><loc>{uri}</loc>{links}</url>")).collect();
    let md = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
    site.serve("/list.xml", urlset(md, &entries))
}

/// Syncs into a copy of several Sources, which has no view.
#[track_caller]
fn take(copy: &Destination, list: &str) -> Run {
    copy.sync_with(list, &["--view", "none"]).exits(0)
}

#[tokio::test]
async fn lnk_13_t1_the_first_source_is_passed_on_word_for_word() {
    let site = Site::start().await;
    let uri = site.serve("/x", "x");
    let attributes = "href=\"http://o.test/x\" modified=\"2026-01-01T00:00:00Z\" hash=\"sha-256:AB\" length=\"7\" \
                      type=\"text/plain\"";
    let links = format!("<rs:ln rel=\"via\" {attributes}/><rs:ln rel=\"via\" href=\"http://g.test/x\"/>");
    let list = listed_by_hand(&site, &[(&uri, &links)]);
    let first = Destination::directory();
    first.sync(&list).exits(0);
    let files = Files::start();
    files.publish(&first).exits(0);
    let second = Destination::directory();
    second.sync(&files.base).exits(0);
    let line = second.listed().remove(0);
    let vias: Vec<_> =
        line["links"].as_array().unwrap().iter().filter(|link| link["rel"] == "via").cloned().collect();
    let expected = serde_json::json!([{
        "rel": "via", "href": "http://o.test/x", "modified": "2026-01-01T00:00:00Z", "hash": "sha-256:AB",
        "length": 7, "type": "text/plain", "document": vias[0]["document"],
    }]);
    assert_eq!(serde_json::Value::from(vias), expected);
}

#[tokio::test]
async fn lnk_13_t2_two_copies_of_one_origin_are_told_together() {
    let [one, two] = [Site::start().await, Site::start().await];
    let via = |name: &str| format!("<rs:ln rel=\"via\" href=\"http://o.test/{name}\"/>");
    let here = [one.serve("/a", "a"), one.serve("/b", "b"), one.serve("/c", "c")];
    let there = [two.serve("/a", "a"), two.serve("/b", "edited")];
    let copy = Destination::directory();
    take(&copy, &listed_by_hand(&one, &[(&here[0], &via("a")), (&here[1], &via("b")), (&here[2], "")]))
        .exits(0);
    let list = listed_by_hand(&two, &[(&there[0], &via("a")), (&there[1], &via("b"))]);
    take(&copy, &list).exits(0);

    let told = copy.run("explain", &[&here[0], "--json"]).exits(0).json();
    assert_eq!(told["copies"]["origin"], "http://o.test/a", "{told}");
    let copies = told["copies"]["copies"].as_array().unwrap().iter();
    let copies: BTreeSet<(&str, bool)> =
        copies.map(|copy| (copy["uri"].as_str().unwrap(), copy["is_same"].as_bool().unwrap())).collect();
    assert_eq!(copies, [(here[0].as_str(), true), (there[0].as_str(), true)].into());
    let text = copy.explain(&there[0]);
    assert!(
        text.contains("Copies of one origin, http://o.test/a\n  2 copies with the same bytes:"),
        "{text}"
    );
    let text = copy.explain(&here[1]);
    assert!(text.contains("1 copy with these bytes:") && text.contains("with other bytes"), "{text}");
    assert!(!copy.explain(&here[2]).contains("Copies of one origin"));

    let card = copy.run("report", &[&list, "--json"]).exits(0).json();
    let copies = card["copies"].as_array().unwrap();
    assert_eq!(
        (copies.len(), &copies[0]["same"], &copies[0]["different"]),
        (1, &1.into(), &1.into()),
        "{card}"
    );
    let report = copy.run("report", &[&list]).exits(0).stdout;
    assert!(report.contains("Copies of the same origins"), "{report}");
}

#[tokio::test]
async fn lnk_13_t3_what_came_from_our_own_publication_is_not_taken_back() {
    let site = Site::start().await;
    let copy = Destination::directory();
    let original = site.serve("/original", "original");
    take(&copy, &listed_by_hand(&site, &[(&original, "")])).exits(0);
    let files = Files::start();
    files.publish(&copy).exits(0);

    // An aggregator that names our publication as the first Source of one resource, and another's of the other.
    let aggregator = Site::start().await;
    let [back, new] = ["/back", "/new"].map(|path| aggregator.serve(path, path));
    let ours = format!("{}{}", files.base, publish::PublishedPath::of(&original.parse().unwrap()).as_str());
    let via = |href: &str| format!("<rs:ln rel=\"via\" href=\"{href}\"/>");
    let list = listed_by_hand(&aggregator, &[(&back, &via(&ours)), (&new, &via("http://o.test/new"))]);
    let run = take(&copy, &list).exits(0);
    assert_eq!((run.count("listed"), run.count("stored"), run.count("loops")), (1, 1, 1), "{run}");
    assert!(run.stderr.contains("taken from a publication of this copy (via)"), "{run}");
    assert_eq!((aggregator.requests_at("/back"), aggregator.requests_at("/new")), (0, 1));
    // A copy of others, which publishes nothing, takes both.
    let other = Destination::directory();
    assert_eq!(take(&other, &list).exits(0).count("stored"), 2);
}

/// PUB-9: links lead to what is published beside the resource. What is true of the original alone is left out.
#[tokio::test]
async fn pub_9_links_are_rewritten_kept_or_dropped() {
    let site = Site::start().await;
    let [pdf, dc, html] = ["/p.pdf", "/p.dc", "/p.html"].map(|path| site.serve(path, path));
    let away = site.uri("/away");
    let links = [
        ("describedby", &dc),
        ("alternate", &html),
        ("alternate", &away),
        ("license", &site.uri("/license")),
        ("collection", &site.uri("/collection")),
        ("duplicate", &away),
        ("cite-as", &away),
        ("http://x.test/unknown", &away),
    ];
    let links: String = links
        .iter()
        .map(|(rel, href)| format!("<rs:ln rel=\"{rel}\" href=\"{href}\" length=\"1\" pri=\"2\"/>"))
        .collect();
    let entries = [
        format!("<url><loc>{pdf}</loc>{links}</url>"),
        format!("<url><loc>{dc}</loc><rs:ln rel=\"describes\" href=\"{pdf}\"/></url>"),
        format!("<url><loc>{html}</loc></url>"),
    ];
    let md = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
    let list = site.serve("/list.xml", urlset(md, &entries));
    let first = Destination::directory();
    first.sync(&list).exits(0);
    let files = Files::start();
    files.publish(&first).exits(0);
    let second = Destination::directory();
    second.sync(&files.base).exits(0);
    let ours =
        |uri: &str| format!("{}{}", files.base, publish::PublishedPath::of(&uri.parse().unwrap()).as_str());
    let links = |copy: &Destination, uri: &str| -> BTreeSet<(String, String)> {
        let listed = copy.listed();
        let line = listed.iter().find(|line| line["uri"] == uri).unwrap_or_else(|| panic!("{uri}"));
        let text = |link: &serde_json::Value, name: &str| link[name].as_str().expect("text").to_owned();
        let all = line["links"].as_array().expect("links").iter();
        all.map(|link| (text(link, "rel"), text(link, "href"))).collect()
    };
    let link = |rel: &str, href: &str| (rel.to_owned(), href.to_owned());
    let expected = [
        link("via", &pdf),
        link("describedby", &ours(&dc)),
        link("alternate", &ours(&html)),
        link("license", &site.uri("/license")),
    ];
    assert_eq!(links(&second, &ours(&pdf)), expected.into());
    assert_eq!(links(&second, &ours(&dc)), [link("via", &dc), link("describes", &ours(&pdf))].into());

    // Where the metadata are withdrawn, those of the original are named.
    let folder = tempfile::tempdir().unwrap();
    let takedown = folder.path().join("takedown").display().to_string();
    std::fs::write(&takedown, format!("{dc}\n")).unwrap();
    let files = Files::start();
    let to = files.public().display().to_string();
    first.run("publish", &["--base", &files.base, "--to", &to, "--takedown", &takedown]).exits(0);
    let third = Destination::directory();
    third.sync(&files.base).exits(0);
    let ours =
        |uri: &str| format!("{}{}", files.base, publish::PublishedPath::of(&uri.parse().unwrap()).as_str());
    assert_eq!(third.present().len(), 2);
    assert!(links(&third, &ours(&pdf)).contains(&link("describedby", &dc)));
}
