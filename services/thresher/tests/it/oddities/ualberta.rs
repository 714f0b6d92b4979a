//! The University of Alberta's HydraNorth.

use super::{Case, LIST, counted, nothing_lost};
use crate::common::resource;

#[tokio::test]
async fn oddity_30_urn_digests_or_those_of_something_else_relative_targets_and_unknown_relations() {
    let case = Case::new().await;
    let right = case.site.serve("/right", "abc");
    let page = case.site.serve("/page", "<html>about abc</html>");
    let content = case.site.serve("/files/1.pdf", "abc");
    // The sha-1 of "abc": once of the listed resource, once of its link's target.
    let urn = "hash=\"urn:sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5\"";
    let link = "<rs:ln rel=\"content\" href=\"files/1.pdf\"/></url>";
    let entries = [resource(&right, urn), resource(&page, urn).replace("</url>", link)];
    let url = case.list(LIST, &entries);
    for _ in 0..2 {
        let run = case.sync(&url).exits(1).says(&[&page, "digest-mismatch"]);
        counted(&run, &[("relative-uri", 1)]);
        nothing_lost(&run);
        let right = case.copy.state(&right);
        let page = case.copy.state(&page);
        assert_eq!((right.as_deref(), page.as_deref()), (Some("present"), Some("problem")));
    }
    assert_eq!(case.copy.cat(&right), b"abc");
    assert!(case.copy.explain(&right).contains("its digest matches the declared one"));
    // No guess corrects it: the digest is not applied to the target of the link.
    assert_eq!(case.copy.state(&content), None);
    let lines = super::inspect(&url);
    assert_eq!(lines[2]["links"][0]["href"], content.as_str());
}
