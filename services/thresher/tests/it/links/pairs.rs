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
