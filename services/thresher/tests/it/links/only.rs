//! `--only` leaves out resources by what their entries say: their media type and their links.

use super::{Case, declares, linked, ln, time};
use crate::common::{resource, urlset};

const FIRST: &str = "http://s.test/col/1";
const SECOND: &str = "http://s.test/col/2";
const PDF: &str = "type=\"application/pdf\"";

#[tokio::test]
async fn lnk_9_only_one_profile_is_taken_and_the_rest_is_out_of_scope() {
    let case = Case::new().await;
    let [pdf, dc] = ["/p.pdf", "/p.dc"].map(|path| case.site.serve(path, path));
    let entries = [
        linked(&pdf, &declares("/p.pdf"), &[&ln("describedby", &dc, "type=\"application/xml\"")]),
        linked(
            &dc,
            &declares("/p.dc"),
            &[&ln("describes", &pdf, ""), &ln("profile", "http://ns.test/dc", "")],
        ),
    ];
    let list = case.list(1, &entries);
    let run = case.copy.sync_with(&list, &["--only", "profile=http://ns.test/dc"]).exits(0);
    assert_eq!((run.count("listed"), run.count("stored"), run.count("out_of_scope")), (1, 1, 1), "{run}");
    assert_eq!(run.json()["in_sync"], true, "{run}");
    assert_eq!(case.site.requests_at("/p.pdf"), 0);
    assert_eq!(case.copy.ls().len(), 1, "what is left out is nowhere listed");
    let json = case.copy.run("problems", &["--json"]).exits(0);
    assert_eq!(json.stdout, "", "and is no problem");

    // With other conditions, the same list is read again.
    let run = case.copy.sync_with(&list, &["--only", "describes", "--only", "describedby"]).exits(0);
    assert_eq!(run.count("out_of_scope"), 2, "conditions on several relations must all hold: {run}");
    assert_eq!(case.copy.ls().len(), 1, "what is left out is not deleted");
    let run = case.copy.sync(&list).exits(0);
    assert_eq!((run.count("stored"), run.count("unchanged"), run.count("out_of_scope")), (1, 1, 0), "{run}");
}

#[tokio::test]
async fn lnk_12_only_one_collection_is_taken() {
    let case = Case::new().await;
    let uris = ["/1", "/2", "/3"].map(|path| case.site.serve(path, path));
    let collections: [&[&str]; 3] =
        [&["http://s.test/c/1", "http://s.test/c/2"], &["http://s.test/c/2"], &[]];
    let entries: Vec<String> = uris
        .iter()
        .zip(collections)
        .map(|(uri, of)| {
            let links: Vec<String> = of.iter().map(|href| ln("collection", href, "")).collect();
            linked(uri, "", &links.iter().map(String::as_str).collect::<Vec<_>>())
        })
        .collect();
    let list = case.list(1, &entries);
    let run = case.copy.sync_with(&list, &["--only", "collection=http://s.test/c/1"]).exits(0);
    assert_eq!((run.count("stored"), run.count("out_of_scope")), (1, 2), "{run}");
    let of = |href: &str| {
        let link = format!("collection={href}");
        case.copy.run("ls", &["--link", &link]).exits(0).stdout.lines().count()
    };
    assert_eq!((of("http://s.test/c/1"), of("http://s.test/c/2"), of("http://s.test/c/3")), (1, 1, 0));
}

#[tokio::test]
async fn lnk_12_t1_a_resource_is_found_under_each_of_its_collections_until_a_list_names_one_less() {
    let case = Case::new().await;
    let [both, one] = ["/c", "/d"].map(|path| case.site.serve(path, path));
    let collections =
        |hrefs: &[&str]| -> Vec<String> { hrefs.iter().map(|href| ln("collection", href, "")).collect() };
    let list = |day: u8, of_both: &[&str]| {
        let links = collections(of_both);
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        let other = ln("collection", FIRST, "");
        case.list(day, &[linked(&both, &declares("/c"), &links), linked(&one, &declares("/d"), &[&other])])
    };
    let members = |uri: &str| -> Vec<String> {
        let lines = case.copy.run("ls", &["--collection", uri, "--json"]).exits(0).json_lines();
        lines.iter().map(|line| line["uri"].as_str().unwrap().to_owned()).collect()
    };
    let counted = || -> Vec<(String, u64)> {
        let card = case.copy.run("report", &["--json"]).exits(0).json();
        let shown = card["collections"].as_array().expect("collections").iter();
        shown
            .map(|one| (one["uri"].as_str().unwrap().to_owned(), one["resources"].as_u64().unwrap()))
            .collect()
    };
    let url = list(1, &[FIRST, SECOND]);
    case.sync(&url).exits(0);
    assert_eq!((members(FIRST), members(SECOND)), (vec![both.clone(), one.clone()], vec![both.clone()]));
    assert_eq!(counted(), [(FIRST.to_owned(), 2), (SECOND.to_owned(), 1)]);
    let report = case.copy.run("report", &[]).exits(0).stdout;
    assert!(report.contains("Collections") && report.contains(FIRST), "{report}");

    list(2, &[SECOND]);
    let run = case.sync(&url).exits(0);
    assert_eq!((run.count("stored"), run.count("unchanged")), (0, 2), "{run}");
    assert_eq!((members(FIRST), members(SECOND)), (vec![one], vec![both]));
    assert_eq!(counted(), [(FIRST.to_owned(), 1), (SECOND.to_owned(), 1)]);
    assert!(members("http://s.test/col/3").is_empty());
    let refused = case.copy.run("ls", &["--collection", "not a URI"]).exits(2);
    assert!(refused.stderr.contains("names no collection; write its URI"), "{refused}");
}

#[tokio::test]
async fn a_change_that_does_not_say_its_type_follows_what_is_stored() {
    let case = Case::new().await;
    let [pdf, page, new] = ["/a.pdf", "/a.html", "/b"].map(|path| case.site.serve(path, path));
    let changes = |entries: &[String]| {
        let md = format!("capability=\"changelist\" from=\"{}\"", time(1));
        case.site.serve("/changes.xml", urlset(&md, entries));
    };
    case.list(1, &[resource(&pdf, PDF), resource(&page, "type=\"text/html\"")]);
    changes(&[]);
    let capabilities = [
        resource(&case.site.uri("/list.xml"), "capability=\"resourcelist\""),
        resource(&case.site.uri("/changes.xml"), "capability=\"changelist\""),
    ];
    let way_in = case.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &capabilities));
    let sync = || case.copy.sync_with(&way_in, &["--only", "type=application/pdf"]).exits(0);
    assert_eq!(sync().count("stored"), 1);

    case.site.serve("/a.pdf", "second");
    let change = |uri: &str, kind: &str, day: u8, more: &str| {
        resource(uri, &format!("change=\"{kind}\" datetime=\"{}\" {more}", time(day)))
    };
    let entries = [
        change(&pdf, "updated", 2, &declares("second")),
        change(&page, "updated", 2, ""),
        change(&new, "created", 2, ""),
        change(&new, "updated", 3, ""),
    ];
    changes(&entries);
    let run = sync();
    assert_eq!((run.count("stored"), run.count("out_of_scope")), (1, 1), "{run}");
    assert_eq!(case.copy.cat(&pdf), b"second");
    assert_eq!((case.site.requests_at("/a.html"), case.site.requests_at("/b")), (0, 0));

    changes(&[&entries[..], &[change(&pdf, "deleted", 4, "")]].concat());
    assert_eq!(sync().count("deleted"), 1, "a deletion says no type");
    assert_eq!(case.copy.state(&pdf).as_deref(), Some("deleted"));
}
