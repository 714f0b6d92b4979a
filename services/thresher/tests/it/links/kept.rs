//! All links of an entry are kept and shown, and a change of them alone fetches nothing.

use std::path::Path;

use super::{Case, declares, linked, ln, time};
use crate::common::{resource, urlset};
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
    assert!((50..200).contains(&kept.len()), "{}", kept.len());
    assert_eq!(kept[0], "http://s.test/000");
    assert_eq!(run.json()["quirks"]["links-truncated"], 300 - kept.len(), "{run}");
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
