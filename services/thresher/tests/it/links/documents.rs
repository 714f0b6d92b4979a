//! Links of documents themselves: descriptions, licences, contacts.

use super::{Case, declares, linked, ln};
use crate::common::{Run, resource, thresher, urlset};

#[tokio::test]
async fn lnk_9_links_of_documents_are_shown_by_discover_and_by_the_report() {
    let case = Case::new().await;
    let uri = case.site.serve("/a", "A");
    case.list(1, &[linked(&uri, &declares("A"), &[&ln("collection", "http://c.test/1", "")])]);
    let entry = resource(&case.site.uri("/list.xml"), "capability=\"resourcelist\"");
    let own = [
        ln("describedby", "/about.xml", "type=\"application/xml\""),
        ln("license", "http://l.test/by", ""),
        ln("up", "/description.xml", ""),
    ];
    let capabilities = urlset("capability=\"capabilitylist\"", &[entry]).replacen(
        "  <rs:md",
        &(own.concat() + "  <rs:md"),
        1,
    );
    let way_in = case.site.serve("/caps.xml", capabilities);
    let description =
        urlset("capability=\"description\"", &[resource(&way_in, "capability=\"capabilitylist\"")]);
    case.site.serve("/description.xml", description);
    let about = case.site.uri("/about.xml");
    let found = Run::of(thresher().args(["discover", &way_in])).exits(0);
    for text in [format!("describedby  {about}  (application/xml)"), "license  http://l.test/by".to_owned()] {
        assert!(found.stdout.contains(&text), "{text}: {found}");
    }
    assert!(!found.stdout.contains("─ up  http"), "the way up is not told as a link: {found}");

    case.sync(&way_in).exits(0);
    let card = case.copy.run("report", &["--json"]).exits(0).json();
    let links = card["document-links"].as_array().unwrap();
    let links: Vec<_> = links.iter().map(|link| link["href"].as_str().unwrap()).collect();
    assert_eq!(links, [about.as_str(), "http://l.test/by"], "{card}");
    assert_eq!(card["links"]["collection"], 1, "{card}");
    let report = case.copy.run("report", &[]).exits(0);
    assert!(report.stdout.contains("http://l.test/by"), "{report}");
    assert_eq!(case.site.requests_at("/about.xml"), 0);
}

#[tokio::test]
async fn lnk_9_targets_that_no_list_names_are_counted_by_the_report() {
    let case = Case::new().await;
    let [page, file, followed, missing] =
        ["/p", "/p.pdf", "/p.dc", "/p.zip"].map(|path| case.site.serve(path, path));
    let broken = case.site.uri("/broken.pdf");
    let links = [
        ln("item", &file, ""),
        // Each target counts once.
        ln("item", &missing, ""),
        ln("item", &format!("{missing}#2"), ""),
        ln("describedby", &followed, ""),
        // A list names it, though it cannot be had.
        ln("alternate", &broken, ""),
        ln("collection", "http://c.test/1", ""),
        ln("license", "http://l.test/by", ""),
    ];
    let list = case.list(
        1,
        &[
            linked(&page, &declares("/p"), &links.each_ref().map(String::as_str)),
            linked(&file, &declares("/p.pdf"), &[&ln("canonical", "http://elsewhere.test/p", "")]),
            resource(&broken, ""),
        ],
    );
    case.copy.sync_with(&list, &["--follow-links", "describedby"]).exits(1);
    let card = case.copy.run("report", &["--json"]).exits(0).json();
    let expected = serde_json::json!({"item": 1, "describedby": 1, "canonical": 1});
    assert_eq!(card["unlisted-targets"], expected, "{card}");
    let findings = card["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["finding"] == "unlisted-target").unwrap();
    assert_eq!((&finding["count"], &finding["severity"]), (&3.into(), &"hint".into()), "{finding}");
    let told = case.copy.run("report", &[]).exits(0);
    assert!(told.stdout.contains("3 links of resources; 1 target is in no list"), "{told}");
    // The followed target is stored, and still in no list.
    assert!(case.copy.listed().iter().any(|line| line["uri"] == followed), "{told}");
}
