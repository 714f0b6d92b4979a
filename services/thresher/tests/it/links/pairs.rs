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
