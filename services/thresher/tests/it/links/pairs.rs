//! A resource and its metadata are a pair, whichever of them links to the other.

use super::{Case, declares, linked, ln};
use crate::common::resource;

#[tokio::test]
async fn lnk_9_t1_explain_of_either_end_names_the_other() {
    let case = Case::new().await;
    let [pdf, dc, alone] = ["/p.pdf", "/p.dc", "/q"].map(|path| case.site.serve(path, path));
    let entries = |describes: &[&str]| {
        [
            linked(
                &pdf,
                &declares("/p.pdf"),
                &[&ln("describedby", &dc, ""), &ln("license", "http://l.test/by", "")],
            ),
            linked(&dc, &declares("/p.dc"), describes),
            resource(&alone, &declares("/q")),
        ]
    };
    let describes = ln("describes", &pdf, "");
    for (day, links) in [(1, vec![describes.as_str()]), (2, Vec::new())] {
        let list = case.list(day, &entries(&links));
        case.sync(&list).exits(0);
        let told = case.copy.run("explain", &[&pdf]).exits(0);
        assert!(told.stdout.contains(&format!("describedby {dc}: present")), "{told}");
        assert!(told.stdout.contains("license http://l.test/by\n"), "no list names it: {told}");
        assert!(told.stdout.contains("--follow-links of the last run"), "{told}");
        let told = case.copy.run("explain", &[&dc]).exits(0);
        assert!(told.stdout.contains(&format!("{pdf} as describedby")), "day {day}: {told}");
        let told = case.copy.run("explain", &[&alone]).exits(0);
        assert!(!told.stdout.contains("Linked from"), "{told}");
    }
}

#[tokio::test]
async fn lnk_9_metadata_that_change_alone_ask_for_nothing_else() {
    let case = Case::new().await;
    let pdf = case.site.serve("/p.pdf", "file");
    for (day, metadata) in [(1, "first"), (2, "second")] {
        let dc = case.site.serve("/p.dc", metadata);
        let entries = [
            linked(&pdf, &declares("file"), &[&ln("describedby", &dc, "")]),
            linked(&dc, &declares(metadata), &[&ln("describes", &pdf, "")]),
        ];
        let list = case.list(day, &entries);
        case.sync(&list).exits(0);
        assert_eq!(case.copy.cat(&dc), metadata.as_bytes());
    }
    assert_eq!((case.site.requests_at("/p.pdf"), case.site.requests_at("/p.dc")), (1, 2));
}

#[tokio::test]
async fn lnk_9_a_link_that_contradicts_the_entry_of_its_target_is_counted_and_the_entry_wins() {
    let case = Case::new().await;
    let [pdf, dc] = ["/p.pdf", "/p.dc"].map(|path| case.site.serve(path, path));
    let days = [(1, "other bytes", Some(1)), (2, "other bytes", Some(1)), (3, "/p.pdf", None)];
    for (day, claimed, times) in days {
        let describes = ln("describes", &pdf, &declares(claimed));
        let mirror = ln("duplicate", "http://m.test/p.dc", "length=\"5\"");
        let entries =
            [resource(&pdf, &declares("/p.pdf")), linked(&dc, &declares("/p.dc"), &[&describes, &mirror])];
        let list = case.list(day, &entries);
        let run = case.copy.sync_with(&list, &["--follow-links", "describes"]).exits(0);
        assert_eq!(run.json()["quirks"]["link-contradicts"].as_u64(), times, "{run}");
        assert_eq!((case.copy.cat(&pdf), run.count("failed")), (b"/p.pdf".to_vec(), 0), "{run}");
    }

    // A mirror that contradicts its own entry is counted without a rule.
    let mirror = ln("duplicate", "http://m.test/p.dc", "length=\"9\"");
    let list =
        case.list(4, &[resource(&pdf, &declares("/p.pdf")), linked(&dc, &declares("/p.dc"), &[&mirror])]);
    let run = case.sync(&list).exits(0);
    assert_eq!(run.json()["quirks"]["link-contradicts"], 1, "{run}");
}

#[tokio::test]
async fn lnk_4_explain_says_why_a_link_was_not_followed() {
    let case = Case::new().await;
    let [file, pdf, html] = ["/f", "/f.pdf", "/f.html"].map(|path| case.site.serve(path, path));
    let links = [
        ln("alternate", &pdf, "type=\"application/pdf\""),
        ln("alternate", &html, "type=\"text/html\""),
        ln("describedby", &case.site.uri("/f.dc"), ""),
        ln("duplicate", "gsiftp://g.test/f", ""),
        ln("timemap", &case.site.uri("/tm"), ""),
    ];
    let list = case.list(1, &[linked(&file, &declares("/f"), &links.each_ref().map(String::as_str))]);
    let options = ["--follow-links", "alternate", "--follow-type", "application/pdf"];
    case.copy.sync_with(&list, &options).exits(0);
    let told = case.copy.run("explain", &[&file, "--json"]).exits(0).json();
    let ends = told["pairs"]["to"].as_array().expect("the ends of its links");
    assert_eq!((&ends[0]["state"], &ends[0]["not_followed"]), (&"present".into(), &serde_json::Value::Null));
    for (end, reason) in [
        (1, "is of type text/html, which --follow-type leaves out"),
        (2, "--follow-links"),
        (3, "gsiftp"),
        (4, "thresher backfill"),
    ] {
        let said = ends[end]["not_followed"].as_str().expect("a reason");
        assert!(said.contains(reason), "{reason}: {said}");
    }
    let text = case.copy.explain(&file);
    assert!(text.contains("--follow-type leaves out"), "{text}");
}

#[tokio::test]
async fn lnk_11_versions_with_uris_of_their_own_are_told_with_their_resource() {
    let case = Case::new().await;
    let page = case.site.serve("/v", "now");
    let old = ["/2024/v", "/2025/v"].map(|path| case.site.serve(path, path));
    let dated = |uri: &str, path: &str, year: u16| {
        let lastmod = format!("</loc><lastmod>{year}-05-01T00:00:00Z</lastmod>");
        linked(uri, &declares(path), &[&ln("original", &page, "")]).replace("</loc>", &lastmod)
    };
    let entries = [
        resource(&page, &declares("now")),
        // In another order than that of their times.
        dated(&old[1], "/2025/v", 2025),
        dated(&old[0], "/2024/v", 2024),
    ];
    case.sync(&case.list(1, &entries)).exits(0);
    let told = case.copy.explain(&page);
    let versions = told.split("Versions that are resources of their own\n").nth(1).expect("a section");
    let lines: Vec<&str> = versions.lines().take(2).collect();
    let expected = [
        format!("  2024-05-01T00:00:00Z  {}: present", old[0]),
        format!("  2025-05-01T00:00:00Z  {}: present", old[1]),
    ];
    assert_eq!(lines, expected, "{told}");
    assert!(!told.contains("Linked from"), "{told}");
    let told = case.copy.explain(&old[0]);
    assert!(told.contains(&format!("original {page}: present")), "{told}");
}
