//! Timbuctoo.

use super::{Case, LIST, counted, nothing_lost};
use crate::common::resource;

#[tokio::test]
async fn oddity_32_one_file_made_when_it_is_asked_for_with_its_changes_behind_a_link() {
    let case = Case::new().await;
    let dataset = case.site.serve("/dataset.nq", "<a> <b> <c> .\n");
    let changes = case.site.serve("/changes.nqud", "-<a> <b> <c> .\n");
    let link = format!("<rs:ln rel=\"describedby\" href=\"{changes}\"/></url>");
    let url = case.list(LIST, &[resource(&dataset, "type=\"application/n-quads\"").replace("</url>", &link)]);
    let run = case.sync(&url).exits(0);
    counted(&run, &[]);
    case.holds(&dataset, "<a> <b> <c> .\n");

    // No date shows whether it has changed, so it is requested. Only different bytes make a new version.
    let run = case.sync(&url).exits(0);
    assert_eq!((run.count("stored"), run.count("unchanged")), (0, 1), "{run}");
    case.site.serve("/dataset.nq", "<a> <b> <d> .\n");
    let run = case.sync(&url).exits(0);
    assert_eq!((run.count("stored"), run.count("unchanged")), (1, 0), "{run}");
    nothing_lost(&run);
    case.holds(&dataset, "<a> <b> <d> .\n");
    assert_eq!(case.site.requests_at("/changes.nqud"), 0, "what a link leads to is no change to be applied");
    assert_eq!(case.copy.ls().len(), 1);
}
