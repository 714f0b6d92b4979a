//! Bot defences respond in place of content: nothing of that is stored, and the run does not report "in sync".

use std::fs;
use std::path::Path;

use serde_json::Value;
use testkit::scripted::Reply;

use crate::common::{Destination, Site, resource, urlset};

const LIST: &str = r#"capability="resourcelist" at="2026-01-01T00:00:00Z""#;
const WALLS: [&str; 13] = [
    "cloudflare",
    "cloudflare-blocked",
    "aws-waf",
    "anubis",
    "hcaptcha",
    "turnstile",
    "recaptcha",
    "akamai",
    "akamai-denied",
    "imperva",
    "ddos-guard",
    "f5",
    "f5-rejected",
];

/// The recorded response of a bot defence.
fn wall(name: &str) -> Reply {
    let walls = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../libs/web/tests/walls");
    let text = fs::read_to_string(walls.join(format!("{name}.http"))).expect("an example");
    let (head, body) = text.split_once("\n\n").expect("an empty line behind the headers");
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status");
    let reply = Reply::status(status.parse().expect("a number")).body(body.to_owned());
    lines.filter(|line| !line.starts_with("Connection")).fold(reply, |reply, line| {
        let (name, value) = line.split_once(": ").expect("a header");
        reply.header(&name.to_ascii_lowercase(), value)
    })
}

/// A site whose list contains these resources, each with the attributes of its `rs:md`.
async fn listing(resources: &[(&str, &str)]) -> (Site, String) {
    let site = Site::start().await;
    let entries: Vec<String> = resources.iter().map(|(path, md)| resource(&site.uri(path), md)).collect();
    let list = site.serve("/list.xml", urlset(LIST, &entries));
    (site, list)
}

fn pdf(content: &str) -> Reply {
    Reply::ok(content.to_owned()).header("content-type", "application/pdf")
}

fn problem(copy: &Destination, uri: &str) -> Value {
    copy.run("explain", &[uri, "--json"]).exits(0).json()["problem"].clone()
}

#[tokio::test]
async fn the_page_of_no_defence_is_stored_as_what_it_stands_for() {
    for name in WALLS {
        let (site, list) = listing(&[("/1.pdf", "")]).await;
        let uri = site.reply("/1.pdf", wall(name));
        let copy = Destination::directory();
        let run = copy.sync(&list).exits(1);
        assert_eq!((run.count("stored"), run.json()["in_sync"].as_bool()), (0, Some(false)), "{name}: {run}");
        assert_eq!(problem(&copy, &uri)["reason"], "challenged", "{name}");
        assert!(copy.present().is_empty() && copy.view().is_empty(), "{name}");
        assert_eq!(site.requests_at("/1.pdf"), 1, "{name} is not asked again in the same run");
    }
}

#[tokio::test]
async fn what_was_held_before_is_kept_and_the_origin_rests() {
    let (site, list) = listing(&[("/1.pdf", ""), ("/2.pdf", ""), ("/3.pdf", "")]).await;
    for path in ["/1.pdf", "/2.pdf", "/3.pdf"] {
        site.reply(path, pdf(path));
    }
    let copy = Destination::directory();
    copy.sync(&list).exits(0);
    let before = copy.present();
    let entries: Vec<String> = ["/1.pdf", "/2.pdf", "/3.pdf"]
        .map(|path| {
            resource(&site.uri(path), r#"length="7""#)
                .replace("<rs:md", "<lastmod>2026-02-01</lastmod><rs:md")
        })
        .to_vec();
    site.serve("/list.xml", urlset(r#"capability="resourcelist" at="2026-02-02T00:00:00Z""#, &entries));
    for path in ["/1.pdf", "/2.pdf", "/3.pdf"] {
        site.reply(path, wall("cloudflare"));
    }
    let asked = || ["/1.pdf", "/2.pdf", "/3.pdf"].map(|path| site.requests_at(path)).iter().sum::<usize>();
    let earlier = asked();
    let run = copy.sync_with(&list, &["--concurrency", "1"]).exits(1);
    assert_eq!(run.json()["in_sync"], false, "{run}");
    assert_eq!(asked() - earlier, 1, "after one challenge the origin is left alone: {run}");
    assert_eq!(copy.present().len(), 0, "each is a problem");
    for path in ["/1.pdf", "/2.pdf", "/3.pdf"] {
        let uri = site.uri(path);
        assert_eq!(copy.cat(&uri), path.as_bytes(), "the version before is kept");
        assert_eq!(copy.ls()[&uri].sha256.as_deref(), Some(before[&uri].1.as_str()));
        assert_eq!(problem(&copy, &uri)["reason"], "challenged");
    }
    let report = copy.run("report", &[]).exits(0);
    for part in ["letter", "User-Agent", "thresher/", "addresses", "Let the harvester in"] {
        assert!(report.stdout.contains(part), "{part}: {report}");
    }
    assert!(copy.run("report", &["--json"]).exits(0).json()["to-let-in"]["user-agent"].is_string());
}

#[tokio::test]
async fn html_in_the_place_of_another_type_is_a_problem_unless_it_is_meant() {
    let page = || Reply::ok("<!DOCTYPE html><title>Not here</title>").header("content-type", "text/html");
    let (site, list) = listing(&[
        ("/listed.pdf", r#"type="application/pdf""#),
        ("/page.html", r#"type="text/html""#),
        ("/untyped", ""),
        ("/odd.bin", r#"type="application/zip""#),
    ])
    .await;
    for path in ["/listed.pdf", "/page.html", "/untyped"] {
        site.reply(path, page());
    }
    // A careless server calls it HTML, but it is not.
    site.reply("/odd.bin", Reply::ok("PK").header("content-type", "text/html"));
    let copy = Destination::directory();
    let run = copy.sync(&list).exits(1);
    assert_eq!((run.count("stored"), run.count("failed")), (3, 1), "{run}");
    let listed = site.uri("/listed.pdf");
    assert_eq!(problem(&copy, &listed)["reason"], "unexpected-html");
    copy.sync_with(&list, &["--accept-html"]).exits(0);
    assert_eq!(copy.state(&listed).as_deref(), Some("present"));
}

#[tokio::test]
async fn a_page_in_the_place_of_what_was_a_pdf_before_is_a_problem() {
    let (site, list) = listing(&[("/1.pdf", "")]).await;
    let uri = site.reply("/1.pdf", pdf("before"));
    let copy = Destination::directory();
    copy.sync(&list).exits(0);
    site.reply("/1.pdf", Reply::ok("<html><title>Moved</title></html>").header("content-type", "text/html"));
    copy.sync_with(&list, &["--mode", "baseline"]).exits(1);
    assert_eq!(problem(&copy, &uri)["reason"], "unexpected-html");
    assert_eq!(copy.cat(&uri), b"before");
}

#[tokio::test]
async fn a_form_to_log_in_is_no_content_and_the_others_go_on() {
    let (site, list) = listing(&[("/a.pdf", ""), ("/open.pdf", "")]).await;
    let closed = site.reply("/a.pdf", Reply::status(302).header("location", "/login?next=/a.pdf"));
    site.reply("/login?next=/a.pdf", wall("login"));
    site.reply("/open.pdf", pdf("open"));
    let copy = Destination::directory();
    let run = copy.sync(&list).exits(1);
    assert_eq!(run.count("stored"), 1, "{run}");
    assert_eq!(problem(&copy, &closed)["reason"], "login-page");
}

#[tokio::test]
async fn bytes_of_the_declared_digest_are_content_whatever_they_look_like() {
    let page = "<!DOCTYPE html><script>window._cf_chl_opt={}</script>";
    let digest = fixity::Sha256::of(page.as_bytes());
    let md = format!(r#"hash="sha-256:{digest}" type="application/pdf""#);
    let (site, list) = listing(&[("/captured", &md)]).await;
    let reply = Reply::ok(page).header("content-type", "text/html").header("cf-mitigated", "challenge");
    let uri = site.reply("/captured", reply);
    let copy = Destination::directory();
    copy.sync(&list).exits(0);
    assert_eq!(copy.cat(&uri), page.as_bytes());
}

#[tokio::test]
async fn a_list_that_comes_as_a_challenge_is_named_as_one() {
    let site = Site::start().await;
    let list = site.reply("/list.xml", wall("anubis"));
    let copy = Destination::directory();
    let run = copy.sync(&list);
    assert!(matches!(run.exit, Some(1 | 3)), "{run}");
    assert!(run.stderr.contains("bot defence (Anubis)"), "{run}");
}
