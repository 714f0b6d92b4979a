//! Downloads of packages: in ranges, resumed, or failed.

use testkit::files::{File, FileServer};
use testkit::scripted::Reply;

use crate::common::{Package, package};
use crate::dumps::AT;
use crate::dumps::case::Case;

#[tokio::test]
async fn a_large_package_comes_in_several_ranges_and_leaves_a_slot_to_others() {
    let case = Case::new().await;
    let server = FileServer::start().await.expect("a free port on loopback");
    let bytes = Package::of_resources(AT).holds(&case.uri("a"), "a".repeat(20 << 20)).zip();
    let entry = package(&server.uri("/1.zip"), &bytes, "");
    server.serve("/1.zip", File::new(bytes.clone(), "\"v1\""));
    // No response comes before three requests are open; the limit is four.
    server.wait_for(3);
    case.copy.sync(&case.dump(&[entry])).exits(0);
    case.holds(&[("a", &"a".repeat(20 << 20))]);
    assert_eq!((server.most_open(), server.sent()), (3, bytes.len() as u64));
}

#[tokio::test]
async fn a_package_that_could_not_be_received_is_gone_on_with_by_the_next_run() {
    let case = Case::new().await;
    let bytes = Package::of_resources(AT).holds(&case.uri("a"), "a".repeat(300_000)).zip();
    let url = case.dump(&[case.package("/1.zip", bytes.clone(), "")]);
    let head = |reply: Reply| reply.header("etag", "\"v1\"").header("accept-ranges", "bytes");
    let rest = || {
        let range = format!("bytes 200000-{}/{}", bytes.len() - 1, bytes.len());
        head(Reply::status(206).body(bytes[200_000..].to_vec()).header("content-range", range))
    };
    case.site.next("/1.zip", head(Reply::ok(bytes.clone())).cut_after(200_000));
    // Then the server breaks off before the first byte, again and again.
    case.site.reply("/1.zip", rest().cut_after(0));
    case.copy.sync_with(&url, &["--retries", "0"]).exits(1).says(&["/1.zip"]);
    case.holds(&[]);
    let before = case.site.requests_at("/1.zip");
    case.site.reply("/1.zip", rest());
    case.copy.sync(&url).exits(0);
    case.holds(&[("a", &"a".repeat(300_000))]);
    let ranges = case.site.headers_at("/1.zip", "range").split_off(before);
    assert_eq!(ranges, [Some("bytes=200000-".to_owned())]);
}

#[tokio::test]
async fn a_package_that_is_said_to_be_unchanged_before_it_ever_came_is_a_problem() {
    let case = Case::new().await;
    let package = Package::of_resources(AT).holds(&case.uri("a"), "a").zip();
    let url = case.dump(&[case.package("/1.zip", package, "")]);
    case.site.reply("/1.zip", Reply::status(304));
    case.copy.sync(&url).exits(1).says(&["/1.zip", "304"]);
    case.holds(&[]);
}
