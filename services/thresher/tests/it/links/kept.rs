//! All links of an entry are kept and shown, and a change of them alone fetches nothing.

use std::path::Path;

use resourcesync::Link;
use testkit::scripted::Reply;

use super::{Case, declares, linked, ln, time};
use crate::common::{Package, package, resource, urlset};
use serde_json::json;

const A: &str = "first";

#[tokio::test]
async fn lnk_3_all_links_of_an_entry_are_kept_and_shown() {
    let case = Case::new().await;
    let uri = case.site.serve("/a", A);
    let all = [
        ln("describedby", "/a.xml", "type=\"application/xml\" length=\"7\" modified=\"2026-01-01\""),
        ln(
            "duplicate",
            "http://m.test/a",
            "pri=\"3\" hash=\"md5:x\" path=\"/p\" encoding=\"gzip\" profile=\"http://p.test/\"",
        ),
        ln("http://x.test/score", "http://s.test/s", "xmlns:x=\"http://x.test/\" x:weight=\"3\""),
    ];
    let list = case.list(1, &[linked(&uri, &declares(A), &all.each_ref().map(String::as_str))]);
    case.sync(&list).exits(0);
    let described = case.site.uri("/a.xml");
    let expected = [
        json!({"rel": "describedby", "href": described, "type": "application/xml", "length": 7,
               "modified": "2026-01-01", "document": list}),
        json!({"rel": "duplicate", "href": "http://m.test/a", "pri": 3, "hash": "md5:x", "path": "/p",
               "encoding": "gzip", "profile": "http://p.test/", "document": list}),
        json!({"rel": "http://x.test/score", "href": "http://s.test/s", "x:weight": "3", "document": list}),
    ];
    assert_eq!(case.links(&uri), expected);
    assert_eq!(case.site.requests_at("/a.xml"), 0, "a link alone causes no request");
    let told = case.copy.run("explain", &[&uri]).exits(0);
    for text in ["Links", &described, "application/xml", "pri 3", "x:weight 3"] {
        assert!(told.stdout.contains(text), "{text}: {told}");
    }
    let line = |words: &[&str]| case.copy.run("ls", words).exits(0).stdout.lines().count();
    assert_eq!(line(&["--link", "describedby"]), 1);
    assert_eq!(line(&["--link", "duplicate=http://m.test/a"]), 1);
    assert_eq!(line(&["--link", "duplicate=http://m.test/b"]), 0);
    assert_eq!(line(&["--link", "collection"]), 0);
}

#[tokio::test]
async fn lnk_3_changed_links_alone_fetch_nothing() {
    let case = Case::new().await;
    let uri = case.site.serve("/a", A);
    let dated = case.site.serve("/b", "dated");
    let entries = |day: u8, href: Option<&str>| {
        let links: Vec<String> = href.map(|href| ln("collection", href, "")).into_iter().collect();
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        let bare =
            linked(&dated, "", &links).replace("</loc>", "</loc><lastmod>2025-12-01T00:00:00Z</lastmod>");
        case.list(day, &[linked(&uri, &declares(A), &links), bare])
    };
    let list = entries(1, Some("http://c.test/1"));
    case.sync(&list).exits(0);
    for (day, href) in
        [(2, Some("http://c.test/2")), (3, None), (4, Some("http://c.test/3")), (5, Some("http://c.test/3"))]
    {
        entries(day, href);
        let run = case.sync(&list).exits(0);
        assert_eq!((run.count("stored"), run.count("unchanged")), (0, 2), "{run}");
        for uri in [&uri, &dated] {
            assert_eq!(case.targets(uri), href.into_iter().collect::<Vec<_>>(), "day {day}: {run}");
        }
    }
    assert_eq!((case.site.requests_at("/a"), case.site.requests_at("/b")), (1, 1));
    let told = case.copy.run("explain", &[&uri, "--json"]).exits(0).json();
    assert_eq!(
        told["events"].as_array().map(Vec::len),
        Some(1),
        "other links are no change of the resource: {told}"
    );
}

#[tokio::test]
async fn lnk_3_a_change_without_links_leaves_them_but_those_of_one_event() {
    let case = Case::new().await;
    let uri = case.site.serve("/a", A);
    let changes = |entries: &[String]| {
        let md = format!("capability=\"changelist\" from=\"{}\"", time(1));
        case.site.serve("/changes.xml", urlset(&md, entries));
    };
    let capabilities = [
        resource(&case.site.uri("/list.xml"), "capability=\"resourcelist\""),
        resource(&case.site.uri("/changes.xml"), "capability=\"changelist\""),
    ];
    let way_in = case.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &capabilities));
    let patch = ln("http://www.openarchives.org/rs/terms/patch", "http://s.test/p", "type=\"application/x\"");
    let collection = ln("collection", "http://c.test/1", "");
    case.list(1, &[linked(&uri, &declares(A), &[&collection, &patch])]);
    changes(&[]);
    case.sync(&way_in).exits(0);
    assert_eq!(case.targets(&uri), ["http://c.test/1", "http://s.test/p"]);

    let change = |day: u8, content: &str, links: &[&str]| {
        let md = format!("change=\"updated\" datetime=\"{}\" {}", time(day), declares(content));
        linked(&uri, &md, links)
    };
    case.site.serve("/a", "second");
    let second = change(2, "second", &[]);
    changes(std::slice::from_ref(&second));
    assert_eq!(case.sync(&way_in).exits(0).count("stored"), 1);
    assert_eq!(case.targets(&uri), ["http://c.test/1"], "a patch belongs to one change");
    let document = |name: &str| json!(case.site.uri(name));
    assert_eq!(case.links(&uri)[0]["document"], document("/list.xml"), "the list gave it, not the change");

    // The same bytes with other links, in the same list: the later entry counts, in each run.
    let other = ln("collection", "http://c.test/2", "");
    let third = change(3, "second", &[&other]);
    for _ in 0..3 {
        changes(&[second.clone(), third.clone()]);
        assert_eq!(case.sync(&way_in).exits(0).count("stored"), 0);
        assert_eq!(case.targets(&uri), ["http://c.test/2"]);
        assert_eq!(case.links(&uri)[0]["document"], document("/changes.xml"));
    }
    assert_eq!(case.site.requests_at("/a"), 2);
}

#[tokio::test]
async fn lnk_3_links_of_sets_that_disagree_do_not_take_turns() {
    let case = Case::new().await;
    let uri = case.site.serve("/a", A);
    let set = |name: &str, href: &str| {
        let list = format!("/{name}/list.xml");
        let md = format!("capability=\"resourcelist\" at=\"{}\"", time(1));
        case.site.serve(&list, urlset(&md, &[linked(&uri, &declares(A), &[&ln("collection", href, "")])]));
        let entry = resource(&case.site.uri(&list), "capability=\"resourcelist\"");
        let capabilities =
            case.site.serve(&format!("/{name}/caps.xml"), urlset("capability=\"capabilitylist\"", &[entry]));
        resource(&capabilities, "capability=\"capabilitylist\"")
    };
    let sets = [set("one", "http://c.test/1"), set("two", "http://c.test/2")];
    let way_in = case.site.serve("/description.xml", urlset("capability=\"description\"", &sets));
    case.sync(&way_in).exits(0);
    let first = case.targets(&uri);
    assert_eq!(first.len(), 1);
    for _ in 0..2 {
        assert_eq!(case.sync(&way_in).exits(0).count("stored"), 0);
        assert_eq!(case.targets(&uri), first);
    }
}

#[tokio::test]
async fn lnk_3_links_beyond_the_limit_are_dropped_by_name() {
    let case = Case::new().await;
    let uri = case.site.serve("/a", A);
    let many: Vec<String> =
        (0..300).map(|n| ln("describedby", &format!("http://s.test/{n:03}"), "")).collect();
    let links: Vec<&str> = many.iter().map(String::as_str).collect();
    let list = case.list(1, &[linked(&uri, &declares(A), &links)]);
    let run = case.sync(&list).exits(0);
    let kept = case.targets(&uri);
    let size = Link::new("describedby", "http://s.test/000").size();
    assert_eq!(kept.len(), 4_096 / size, "4 KiB an entry");
    assert_eq!(kept[0], "http://s.test/000");
    assert_eq!(run.json()["quirks"]["links-truncated"], 300 - kept.len(), "{run}");
}

#[tokio::test]
async fn lnk_3_a_target_beyond_its_limit_costs_its_link_alone() {
    let case = Case::new().await;
    let uri = case.site.serve("/a", A);
    let target = |length: usize| format!("http://s.test/{}", "a".repeat(length - "http://s.test/".len()));
    let links = [2_048, 2_049].map(|length| ln("via", &target(length), ""));
    let list = case.list(1, &[linked(&uri, &declares(A), &links.each_ref().map(String::as_str))]);
    let run = case.sync(&list).exits(0);
    assert_eq!(case.targets(&uri), [target(2_048)]);
    assert_eq!((run.count("stored"), &run.json()["quirks"]["links-truncated"]), (1, &json!(1)), "{run}");
}

#[tokio::test]
async fn lnk_1_links_are_kept_of_entries_of_each_kind_of_document() {
    let case = Case::new().await;
    let link = |name: &str| ln("collection", &format!("http://c.test/{name}"), "");
    let serve = |path: &str| case.site.serve(path, path);
    let [listed, changed] = ["/listed", "/changed"].map(serve);
    let change = |uri: &str, more: &str, links: &[&str]| {
        linked(uri, &format!("change=\"created\" datetime=\"{}\" {more}", time(2)), links)
    };
    let list = case.list(1, &[linked(&listed, &declares("/listed"), &[&link("list")])]);
    let changes = [change(&changed, &declares("/changed"), &[&link("changes")])];
    let md = format!("capability=\"changelist\" from=\"{}\"", time(1));
    let changes = case.site.serve("/changes.xml", urlset(&md, &changes));
    let capabilities =
        [resource(&list, "capability=\"resourcelist\""), resource(&changes, "capability=\"changelist\"")];
    let way_in = case.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &capabilities));
    case.sync(&way_in).exits(0);
    assert_eq!(case.targets(&listed), ["http://c.test/list"]);
    assert_eq!(case.targets(&changed), ["http://c.test/changes"]);

    let case = Case::new().await;
    let packed = case.site.uri("/packed");
    let zip = Package::of_resources(&time(1)).holds(&packed, "packed").linking(&link("dump")).zip();
    let uri = case.site.reply("/p.zip", Reply::ok(zip.clone()));
    let md = format!("capability=\"resourcedump\" at=\"{}\"", time(1));
    let dump = case.site.serve("/dump.xml", urlset(&md, &[package(&uri, &zip, "")]));
    case.copy.sync_with(&dump, &["--prefer", "dump"]).exits(0);
    assert_eq!(case.targets(&packed), ["http://c.test/dump"]);
}

#[tokio::test]
async fn lnk_2_attributes_are_read_as_they_are_meant() {
    let case = Case::new().await;
    let uri = case.site.serve("/d/a", A);
    let links = [
        ln("describedby http://x.test/r", "meta/a.xml", ""),
        ln("Describedby", "/b.xml", ""),
        ln("duplicate", "http://m.test/1", "pri=\"999999\""),
        ln("duplicate", "http://m.test/2", "pri=\"0\""),
        ln("duplicate", "http://m.test/3", "pri=\"1000000\""),
        ln("duplicate", "http://m.test/4", "pri=\"first\""),
        ln("item", "http://s.test/f", "xmlns:x=\"http://x.test/\" x:weight=\"3\" profile=\"http://p.test/\""),
        ln("describedby", "", ""),
        ln("describedby", &uri, ""),
    ];
    let md = format!("capability=\"resourcelist\" at=\"{}\"", time(1));
    let entry = linked(&uri, &declares(A), &links.each_ref().map(String::as_str));
    let list = case.site.serve("/d/list.xml", urlset(&md, &[entry]));
    let run = case.copy.sync_with(&list, &["--follow-links", "describedby"]).exits(1);
    let at = |path: &str| case.site.uri(path);
    let duplicate = |n: u8| json!({"rel": "duplicate", "href": format!("http://m.test/{n}")});
    let expected = [
        json!({"rel": "describedby", "href": at("/d/meta/a.xml")}),
        json!({"rel": "http://x.test/r", "href": at("/d/meta/a.xml")}),
        json!({"rel": "describedby", "href": at("/b.xml")}),
        json!({"rel": "duplicate", "href": "http://m.test/1", "pri": 999_999}),
        duplicate(2),
        duplicate(3),
        duplicate(4),
        json!({"rel": "item", "href": "http://s.test/f", "x:weight": "3", "profile": "http://p.test/"}),
        json!({"rel": "describedby", "href": uri}),
    ];
    let expected = expected.map(|mut link| {
        link["document"] = json!(list);
        link
    });
    assert_eq!(case.links(&uri), expected);
    let quirks = &run.json()["quirks"];
    for (quirk, times) in
        [("unreadable-priority", 3), ("link-without-target", 1), ("relation-case", 1), ("relative-uri", 2)]
    {
        assert_eq!(quirks[quirk], times, "{quirk}: {run}");
    }
    // A link to the resource itself leads to nothing of its own; the two relative targets are missing.
    assert_eq!((run.count("linked"), run.count("failed"), case.site.requests_at("/d/a")), (2, 2, 1), "{run}");
}

#[tokio::test]
async fn lnk_4_an_export_has_a_column_of_links() {
    let case = Case::new().await;
    let uri = case.site.serve("/a", A);
    let via = ln("via", "http://o.test/a", "hash=\"md5:x\"");
    let list = case.list(1, &[linked(&uri, &declares(A), &[&via])]);
    case.sync(&list).exits(0);
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump");
    let to = dump.display().to_string();
    let lines = case.copy.run("export", &["-", "--as", "jsonl"]).exits(0).json_lines();
    let [link] = lines[0]["links"].as_array().unwrap().as_slice() else { panic!("{lines:?}") };
    assert_eq!(
        (&link["rel"], &link["href"], &link["hash"]),
        (&json!("via"), &json!("http://o.test/a"), &json!("md5:x"))
    );
    case.copy.run("export", &[&to, "--as", "resourcedump", "--base", "http://d.test/"]).exits(0);
    // Manifests of the packages stand beside them, too.
    let text: String =
        contents(&dump).iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
    let link = text.split('<').find(|tag| tag.starts_with("rs:ln ") && tag.contains("rel=\"via\""));
    let link = link.unwrap_or_else(|| panic!("the manifest has no link: {text}"));
    for part in ["href=\"http://o.test/a\"", "hash=\"md5:x\""] {
        assert!(link.contains(part), "{link}");
    }
    let told = case.copy.run("explain", &[&uri]).exits(0);
    assert!(told.stdout.contains("first Source: http://o.test/a"), "{told}");
}

#[tokio::test]
async fn lnk_15_an_unknown_relation_is_kept_word_for_word_and_one_without_a_name_is_dropped() {
    let case = Case::new().await;
    let uri = case.site.serve("/a", A);
    let odd = ln("http://x.test/Score", &case.site.uri("/score"), "");
    let nameless = ln("", "http://s.test/", "");
    let list = case.list(
        1,
        &[linked(&uri, &declares(A), &[&odd, &nameless, &ln("describedBy", "http://s.test/d", "")])],
    );
    let run = case.sync(&list).exits(0);
    let links = case.links(&uri);
    let rels: Vec<_> = links.iter().map(|link| link["rel"].as_str().unwrap()).collect();
    assert_eq!(rels, ["http://x.test/Score", "describedby"]);
    assert_eq!(run.json()["quirks"]["relation-case"], 1, "{run}");
    assert_eq!(case.site.requests_at("/score"), 0);
}

/// All XML documents below a directory, those in packages as they are stored.
fn contents(directory: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the export is there") {
        let path = entry.expect("the export is there").path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.push(std::fs::read(&path).expect("a file"));
        }
    }
    found
}
