//! URLs that cannot be reached, or are no Source.

use testkit::scripted::Reply;
use testkit::servers::free_port;

use crate::bad_input::{AGAIN, CHECK, small};
use crate::common::{Destination, Run, Site, asked_for, in_step, resource, source, urlset};

#[tokio::test]
async fn a_web_page_is_no_source() {
    let site = Site::start().await;
    let page = Reply::ok("<!DOCTYPE html><html><body><p>Welcome<br></body></html>")
        .header("content-type", "text/html");
    let url = site.reply("/page", page);
    let copy = Destination::directory();
    let run = copy.sync(&url).exits(3).complains(&[&url, "HTML"], CHECK);
    assert_eq!(run.stdout, "", "nothing to report: {run}");
}

#[tokio::test]
async fn a_site_that_offers_nothing_is_no_source() {
    let site = Site::start().await;
    site.reply("/", Reply::ok("<!DOCTYPE html><html><body>Hello</body></html>"));
    site.reply("/.well-known/resourcesync", Reply::status(404));
    site.reply("/robots.txt", Reply::status(404));
    Destination::directory().sync(&site.uri("/")).exits(3).complains(&[&site.uri("/")], CHECK);
}

#[tokio::test]
async fn a_404_is_no_source() {
    let site = Site::start().await;
    let url = site.reply("/nothing.xml", Reply::status(404));
    site.reply("/.well-known/resourcesync", Reply::status(404));
    Destination::directory().sync(&url).exits(3).complains(&[&url, "404"], CHECK);
}

#[tokio::test]
async fn other_xml_is_no_source() {
    let site = Site::start().await;
    let url = site.serve("/feed.xml", "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel/></rss>");
    site.reply("/.well-known/resourcesync", Reply::status(404));
    Destination::directory().sync(&url).exits(3).complains(&[&url, "rss"], &["expected", "check", "give"]);
}

#[tokio::test]
async fn a_source_without_anything_usable_is_told_what_would_be() {
    let site = Site::start().await;
    let archive = [resource(&site.uri("/archive.xml"), "capability=\"resourcelist-archive\"")];
    let url = site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &archive));
    let run = Destination::directory().sync(&url).exits(3);
    run.complains(&[&url, "resourcelist-archive"], &["resource list", "dump"]);
}

#[tokio::test]
async fn who_cannot_be_reached_is_named_and_nothing_that_is_held_is_touched() {
    let (gone, held) = in_step(small(30).port(free_port())).await;
    let view = held.view();
    let ls = held.ls();
    let way_in = gone.well_known();
    let address = gone.url().replace("http://", "");
    gone.shutdown();
    let nowhere = Destination::directory();
    // In parallel, because each is tried more than once before it fails.
    std::thread::scope(|scope| {
        scope.spawn(|| held.sync(&way_in).exits(3).complains(&[&address], CHECK));
        scope.spawn(|| {
            nowhere.sync("http://nosuchhost.invalid/").exits(3).complains(&["nosuchhost.invalid"], CHECK);
        });
        scope.spawn(|| {
            let closed = format!("127.0.0.1:{}", free_port());
            Destination::directory().sync(&format!("http://{closed}/")).exits(3).complains(&[&closed], CHECK);
        });
    });
    assert_eq!((held.view(), held.ls()), (view, ls));
}

#[tokio::test]
async fn a_source_that_goes_away_in_the_middle_is_taken_up_when_it_is_back() {
    let port = free_port();
    let first = source(small(600).port(port)).await;
    let way_in = first.well_known();
    let copy = Destination::directory();
    // It cannot end before the Source is gone.
    first.allow(200);
    let mut command = copy.command("sync", &[&way_in, "--json"]);
    let child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    asked_for(&first, 200).await;
    first.shutdown();
    let output = child.wait_with_output().unwrap();
    Run::ended(&command, &output).exits(3).complains(&[&format!("127.0.0.1:{port}")], AGAIN);
    assert!(copy.ls().values().all(|held| held.state == "present" || held.state == "pending"));

    let back = source(small(600).port(port)).await;
    copy.sync(&way_in).exits(0);
    copy.mirrors(&back);
    assert!(
        back.requests().resources <= 430,
        "what is held is not asked for: {:?}",
        back.requests().resources
    );
}
