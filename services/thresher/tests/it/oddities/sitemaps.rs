//! Sitemaps at large.

use super::{Case, LIST, counted, nothing_lost};
use crate::common::{resource, urlset};
use testkit::scripted::Reply;

const RIGHT: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

#[tokio::test]
async fn oddity_33_newline_or_byte_order_mark_before_the_prolog() {
    let case = Case::new().await;
    let uris = case.bodies(["/1"]);
    let list = urlset(LIST, &[resource(&uris[0], "length=\"2\"")]);
    let blank = ("blank-before-prolog", 1);
    let mark = ("byte-order-mark", 1);
    for (before, quirks) in [("\r\n", &[blank][..]), ("\u{feff}", &[mark]), ("\u{feff}\n", &[blank, mark])] {
        let url = case.site.serve("/list.xml", format!("{before}{list}"));
        let run = case.sync(&url).exits(0);
        counted(&run, quirks);
        nothing_lost(&run);
        case.holds_only(&uris);
    }
}

#[tokio::test]
async fn oddity_34_gzip_called_something_else_or_forbidden_to_agents_that_are_not_known() {
    let case = Case::new().await;
    let uris = case.bodies(["/1"]);
    let packed = gzip(urlset(LIST, &[resource(&uris[0], "length=\"2\"")]).as_bytes());
    for (path, media_type) in
        [("/list.xml", "text/xml"), ("/list.xml.gz", "text/plain"), ("/sitemap", "application/octet-stream")]
    {
        let url = case.site.reply(path, Reply::ok(packed.clone()).header("content-type", media_type));
        let copy = crate::common::Destination::directory();
        let run = copy.sync(&url).exits(0);
        counted(&run, &[("gzip", 1)]);
        assert_eq!(copy.cat(&uris[0]), b"/1");
    }
    let url = case.site.uri("/list.xml.gz");
    case.sync(&url).exits(0);
    let agents = case.site.headers_at("/list.xml.gz", "user-agent");
    assert!(
        agents.iter().flatten().all(|agent| agent.starts_with("thresher/")),
        "it says who asks: {agents:?}"
    );
    case.site.reply("/list.xml.gz", Reply::status(403));
    case.site.reply("/.well-known/resourcesync", Reply::status(404));
    case.sync(&url).exits(3).complains(&[&url, "403"], &["ask the source's operator for access"]);
    case.holds_only(&uris);
}

#[tokio::test]
async fn oddity_35_sitemap_namespace_misspelt_missing_prefixed_or_old() {
    let case = Case::new().await;
    let uris = case.bodies(["/1"]);
    let list = urlset(LIST, &[resource(&uris[0], "length=\"2\"")]);
    let odd = "odd-sitemap-namespace";
    let prefixed = ["urlset", "url>", "loc>"]
        .iter()
        .fold(list.replace("xmlns=", "xmlns:sit="), |list, name| list.replace(name, &format!("sit:{name}")));
    for (list, quirk) in [
        (list.replace(RIGHT, "https://www.sitemaps.org/schemas/sitemap/0.9"), odd),
        (list.replace(RIGHT, "http://www.sitemaps.org/schemas/sitemap/0.9/"), odd),
        (list.replace(RIGHT, "http://www.google.com/schemas/sitemap/0.84"), odd),
        (list.replace(&format!("xmlns=\"{RIGHT}\""), ""), "missing-sitemap-namespace"),
        (prefixed, "prefixed-sitemap-namespace"),
    ] {
        let url = case.site.serve("/list.xml", list);
        let run = case.sync(&url).exits(0);
        counted(&run, &[(quirk, 1)]);
        nothing_lost(&run);
        case.holds_only(&uris);
    }
}

#[tokio::test]
async fn oddity_36_loc_of_another_vocabulary_is_no_resource() {
    let case = Case::new().await;
    let [own, image] = case.bodies(["/1", "/1.png"]);
    let foreign = format!("<image:image><image:loc>{image}</image:loc></image:image></url>");
    let list = urlset(LIST, &[resource(&own, "length=\"2\"").replace("</url>", &foreign)])
        .replace("<urlset", "<urlset xmlns:image=\"http://www.google.com/schemas/sitemap-image/1.1\"");
    let url = case.site.serve("/list.xml", list);
    let run = case.sync(&url).exits(0);
    counted(&run, &[("foreign-loc", 1)]);
    case.holds_only(&[own]);
    assert_eq!(case.site.requests_at("/1.png"), 0);
}

#[tokio::test]
async fn oddity_37_a_file_cut_short_gives_its_whole_entries_and_deletes_nothing() {
    let case = Case::new().await;
    let uris = case.bodies(["/1", "/2", "/3"]);
    let entries = uris.each_ref().map(|uri| resource(uri, "length=\"2\""));
    let later = |day: u32| LIST.replace("01-01", &format!("01-{day:02}"));
    let url = case.list(&later(1), &entries[..1]);
    case.sync(&url).exits(0);
    for day in 2..4 {
        // The first entry is missing, the second is complete, the third is cut.
        let whole = urlset(&later(day), &entries[1..]);
        case.site.serve("/list.xml", &whole[..whole.len() - 30]);
        let run = case.sync_with(&url, &["--absent", "delete", "--max-deletes", "100%"]).exits(1);
        let run = run.says(&[&url, "cut short", "(truncated)", "run again"]);
        nothing_lost(&run);
        counted(&run, &[]);
        case.holds_only(&uris[..2]);
    }
    case.list(&later(4), &entries);
    case.sync(&url).exits(0);
    case.holds_only(&uris);
}

#[tokio::test]
async fn oddity_38_an_error_page_served_as_if_it_were_what_was_asked_for() {
    let case = Case::new().await;
    let uris = case.bodies(["/1", "/2"]);
    let [one, two] = &uris;
    let entries = uris.each_ref().map(|uri| resource(uri, "length=\"2\""));
    case.list(LIST, &entries);
    let url = case.capabilities(&[("/list.xml", "resourcelist")]);
    case.sync(&url).exits(0);
    let page = "<!DOCTYPE html>\n<html><body><h1>We will be back soon</h1><p>Moved<br></body></html>";
    let html = || Reply::ok(page).header("content-type", "text/html");
    // In place of the list, or behind a redirect from it.
    case.site.reply("/sorry", html());
    for reply in [html(), Reply::status(302).header("location", "/sorry")] {
        case.site.reply("/list.xml", reply);
        let options = ["--absent", "delete", "--max-deletes", "100%"];
        let run = case.sync_with(&url, &options).exits(1).says(&[&case.site.uri("/list.xml"), "HTML"]);
        nothing_lost(&run);
        case.holds_only(&uris);
    }
    // In place of a resource: its length gives it away.
    case.list(&LIST.replace("01-01", "01-02"), &[entries[0].clone(), resource(two, "length=\"3\"")]);
    case.site.reply("/2", html());
    let run = case.sync(&url).exits(1).says(&[two, "length-mismatch"]);
    nothing_lost(&run);
    case.holds(one, "/1");
    assert_eq!(case.copy.cat(two), b"/2", "the version that was verified stays");
    // In place of the document at the entry URL.
    case.site.reply("/caps.xml", html());
    case.site.reply("/.well-known/resourcesync", html());
    case.site.reply("/robots.txt", html());
    case.sync(&url).exits(3).complains(&[&url, "HTML"], &["check", "give", "look"]);
    assert_eq!(case.copy.cat(one), b"/1");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory has room");
    encoder.finish().expect("memory has room")
}
