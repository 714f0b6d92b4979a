//! Requests to a Source: credentials, exclusions, and messages to the operator.

use std::path::PathBuf;

use crate::common::{Destination, Run, Site, resource, thresher, urlset};
use tempfile::TempDir;
use testkit::scripted::{Recorded, Reply};

const LIST: &str = "capability=\"resourcelist\" at=\"2026-11-01T00:00:00Z\"";
const ROBOTS: &str = "/robots.txt";
const TOKEN: &str = "open-sesame";

/// A credentials file, and a secret beside it.
struct Keys {
    folder: TempDir,
}

impl Keys {
    fn new(text: &str) -> Self {
        let keys = Self { folder: tempfile::tempdir().expect("a temporary directory") };
        std::fs::write(keys.path(), text).expect("a temporary file");
        keys
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("keys.yaml")
    }

    fn option(&self) -> String {
        format!("--credentials={}", self.path().display())
    }
}

/// A list of resources that a site serves, each with its own name as its body.
fn list(site: &Site, names: &[&str]) -> String {
    let entries: Vec<String> =
        names.iter().map(|name| resource(&site.serve(&format!("/{name}"), *name), "")).collect();
    site.serve("/list.xml", urlset(LIST, &entries))
}

fn problems(copy: &Destination, uri: &str) -> String {
    copy.run("explain", &[uri]).exits(0).stdout
}

fn sent(requests: &[Recorded]) -> Vec<Option<&str>> {
    requests.iter().map(|request| request.header("authorization")).collect()
}

#[tokio::test]
async fn a_token_goes_with_every_request_to_its_origin_and_stays_there_at_a_redirect() {
    let site = Site::start().await;
    let elsewhere = Site::start().await;
    let signed = elsewhere.serve("/stored.txt?signature=abc", "moved");
    let moved = site.reply("/moved.txt", Reply::status(302).header("location", &signed));
    let plain = resource(&site.serve("/plain.txt", "plain"), "");
    let url = site.serve("/list.xml", urlset(LIST, &[plain, resource(&moved, "")]));
    let keys = Keys::new(&format!("- origin: {}\n  bearer: {{env: KEY_OF_THE_SOURCE}}\n", site.uri("")));
    let copy = Destination::directory();
    let with_token = |mut command: std::process::Command| {
        Run::of(command.arg(keys.option()).env("KEY_OF_THE_SOURCE", TOKEN))
    };
    let run = with_token(copy.command("sync", &[&url, "--json"])).exits(0);
    assert_eq!(run.count("stored"), 2, "{run}");
    let all = site.requests().len() + elsewhere.requests().len();
    assert_eq!(run.count("requests"), all as u64, "robots.txt is counted too: {run}");
    for command in ["inspect", "discover"] {
        let mut line = thresher();
        line.args([command, &url]);
        with_token(line).exits(0);
    }
    let seen = site.requests();
    let expected = format!("Bearer {TOKEN}");
    assert!(sent(&seen).iter().all(|header| *header == Some(&*expected)), "{seen:?}");
    assert!(seen.iter().filter(|request| request.path == "/list.xml").count() >= 3, "{seen:?}");
    assert_eq!(sent(&elsewhere.requests()), [None]);

    let story = copy.explain(&moved);
    let origin = elsewhere.uri("/stored.txt?signature=***");
    assert!(story.contains(&format!("final URL {origin}")) && !story.contains("abc"), "{story}");
    let verbose = with_token(copy.command("sync", &[&url, "-vv"]));
    // Only its output counts. The printed command contains the token, because the test put it into the environment.
    let shown = [run.stdout, run.stderr, verbose.stdout, verbose.stderr].concat();
    assert!(shown.contains("DEBUG"), "{shown}");
    assert!(!shown.contains(TOKEN), "{shown}");
}

#[tokio::test]
async fn who_is_not_let_in_is_told_which_option_lets_in_and_who_was_to_look_at_the_token() {
    let site = Site::start().await;
    let url = site.reply("/list.xml", Reply::status(401));
    let copy = Destination::directory();
    copy.sync(&url).exits(3).complains(&[&url, "401 Unauthorized"], &["--credentials"]);
    let keys =
        Keys::new(&format!("- origin: {}\n  basic: {{user: me, password: {{file: word}}}}\n", site.uri("")));
    std::fs::write(keys.folder.path().join("word"), TOKEN).expect("a temporary file");
    copy.sync_with(&url, &[&keys.option()])
        .exits(3)
        .complains(&["401 Unauthorized", "credential for it was sent"], &["check"]);
    // Some Sources respond so to a wrong token.
    site.reply("/list.xml", Reply::status(500));
    copy.sync_with(&url, &[&keys.option(), "--retries=0"])
        .exits(3)
        .complains(&["500 Internal Server Error", "credential for it was sent"], &["check the credential"]);
}

#[tokio::test]
async fn a_wrong_credentials_file_is_refused_with_line_and_column_before_anything_is_asked() {
    let site = Site::start().await;
    let url = list(&site, &["a.txt"]);
    for (text, what) in [
        (format!("- origin: {}\n  bearer: {TOKEN}\n", site.uri("")), "keys.yaml:2:11: "),
        (
            format!("- origin: {}\n  bearer: {{env: A}}\n  scope: all\n", site.uri("")),
            "keys.yaml:3:3: unknown field `scope`",
        ),
        (format!("- origin: {}\n  bearer: {{env: NOBODY_SET_IT}}\n", site.uri("")), "NOBODY_SET_IT"),
    ] {
        let keys = Keys::new(&text);
        let copy = Destination::directory();
        let run = copy.sync_with(&url, &[&keys.option()]).exits(2);
        assert!(run.complaint().contains(what) && !run.stderr.contains(TOKEN), "{run}");
        for command in ["inspect", "discover"] {
            Run::of(thresher().args([command, &url, &keys.option()])).exits(2);
        }
    }
    Destination::directory().sync_with(&url, &["--credentials=/nowhere/keys.yaml"]).exits(2);
    assert!(site.requests().is_empty());
}

#[tokio::test]
async fn a_source_leads_to_no_address_that_only_this_machine_reaches() {
    let site = Site::start().await;
    let fine = site.serve("/fine.txt", "fine");
    let inside = site.serve("/inside.txt", "inside").replace("127.0.0.1", "localhost");
    let away = site.reply("/away.txt", Reply::status(302).header("location", "http://127.0.0.2:9/a.txt"));
    let entries = [&fine, &inside, &away].map(|uri| resource(uri, ""));
    let url = site.serve("/list.xml", urlset(LIST, &entries));
    let copy = Destination::directory();
    let run = copy.sync(&url).exits(1);
    assert_eq!((run.count("stored"), run.count("failed")), (1, 2), "{run}");
    assert_eq!(site.requests_at("/inside.txt"), 0);
    run.says(&["(refused-address)", "127.0.0.2 is a loopback address", "--allow-address"]);
    let story = problems(&copy, &away);
    for line in [&format!("redirected by {away}"), "http://127.0.0.2:9/a.txt", "refused-address"] {
        assert!(story.contains(line), "{line}: {story}");
    }

    let url = site.serve("/list.xml", urlset(&LIST.replace("11-01", "11-02"), &entries[..2]));
    let run = copy.sync_with(&url, &["--allow-address", "127.0.0.0/31"]);
    assert_eq!((run.count("stored"), site.requests_at("/inside.txt")), (1, 1), "{run}");
}

#[tokio::test]
async fn a_document_at_such_an_address_is_refused_too() {
    let site = Site::start().await;
    let url = site.reply("/list.xml", Reply::status(302).header("location", "http://10.0.0.1/list.xml"));
    for command in ["inspect", "discover"] {
        Run::of(thresher().args([command, &url]))
            .exits(3)
            .complains(&["10.0.0.1 is a private address", &url], &["--allow-private"]);
    }
    let copy = Destination::directory();
    copy.sync(&url).exits(3).complains(&["10.0.0.1 is a private address"], &["--allow-private"]);
}

#[tokio::test]
async fn a_crawl_delay_is_kept_between_all_requests_and_told() {
    let site = Site::start().await;
    site.serve(ROBOTS, "User-agent: *\nCrawl-delay: 0.05\n");
    let url = list(&site, &["1.txt", "2.txt", "3.txt", "4.txt", "5.txt"]);
    let run = Destination::directory().sync(&url).exits(0);
    assert_eq!(run.count("requests"), site.requests().len() as u64, "{run}");
    // The first request cannot know of it, and robots.txt is the second.
    let spaces = site.requests().len() as u64 - 2;
    assert!(run.count("duration_ms") >= spaces * 50, "{spaces} spaces of 50 ms each: {run}");
    assert_eq!(run.stderr.matches("crawl-delay of 50ms").count(), 1, "{run}");

    let run = Destination::directory().sync_with(&url, &["--robots", "ignore"]).exits(0);
    assert_eq!(site.requests_at(ROBOTS), 1, "it is not asked for where it is ignored");
    assert!(!run.stderr.contains("crawl-delay"), "{run}");
}

#[tokio::test]
async fn an_invitation_outranks_what_is_disallowed_unless_it_is_to_be_obeyed() {
    let site = Site::start().await;
    site.serve(ROBOTS, format!("User-agent: *\nDisallow: /\nSitemap: {}\n", site.uri("/list.xml")));
    let url = list(&site, &["a.txt"]);
    let copy = Destination::directory();
    assert_eq!(copy.sync(&url).exits(0).count("stored"), 1);
    let obeying = Destination::directory();
    obeying.sync_with(&url, &["--robots", "obey"]).exits(3).complains(&["robots.txt", &url], &["--robots"]);

    // For a followed link, `Disallow` is binding.
    let before = site.requests_at("/list.xml");
    let home = site.reply("/", Reply::status(404));
    site.reply("/.well-known/resourcesync", Reply::status(404));
    Run::of(thresher().args(["discover", &home]))
        .exits(3)
        .complains(&["the robots.txt of 127.0.0.1", "disallows it"], &["ask the source's operator"]);
    assert_eq!(site.requests_at("/list.xml"), before);
    Run::of(thresher().args(["discover", &home, "--robots", "ignore"])).exits(0);
}

#[tokio::test]
async fn where_robots_txt_is_out_of_order_only_the_invited_go_on() {
    let site = Site::start().await;
    site.reply(ROBOTS, Reply::status(503));
    let url = list(&site, &["a.txt"]);
    Destination::directory().sync(&url).exits(0);
    site.reply("/.well-known/resourcesync", Reply::status(404));
    let page = format!("<html><head><link rel=resourcesync href=\"{url}\">");
    let home = site.serve("/", page);
    let before = site.requests_at("/list.xml");
    Run::of(thresher().args(["discover", &home]))
        .exits(3)
        .complains(&["cannot be read", "503 Service Unavailable"], &["again later"]);
    assert_eq!(site.requests_at("/list.xml"), before);
}

#[tokio::test]
async fn the_operator_can_be_reached_by_what_the_user_agent_says() {
    let site = Site::start().await;
    let url = list(&site, &["a.txt"]);
    Destination::directory().sync_with(&url, &["--contact", "mailto:harvest@example.org"]).exits(0);
    let copy = Destination::directory();
    Run::of(copy.command("sync", &[&url]).env("THRESHER_CONTACT", "https://example.org/harvester")).exits(0);
    Destination::directory().sync(&url).exits(0);
    let mut agents: Vec<String> =
        site.requests().iter().filter_map(|request| Some(request.header("user-agent")?.to_owned())).collect();
    assert_eq!(agents.len(), site.requests().len());
    agents.dedup();
    let name = concat!("thresher/", env!("CARGO_PKG_VERSION"));
    let expected = ["mailto:harvest@example.org", "https://example.org/harvester"];
    let expected = expected.map(|contact| format!("{name} (+{contact})"));
    assert_eq!(agents, [&expected[0], &expected[1], name]);
    Run::of(thresher().args(["discover", &url, "--contact", "a) Mozilla/5.0"])).exits(2);
}

#[tokio::test]
async fn as_many_attempts_are_made_as_are_asked_for() {
    for (retries, asked) in [("0", 1), ("1", 2)] {
        let site = Site::start().await;
        let broken = site.reply("/broken.txt", Reply::status(502));
        let url = site.serve("/list.xml", urlset(LIST, &[resource(&broken, "")]));
        Destination::directory().sync_with(&url, &["--retries", retries]).exits(1);
        assert_eq!(site.requests_at("/broken.txt"), asked);
        let list = site.reply("/away.xml", Reply::status(502));
        Run::of(thresher().args(["inspect", &list, "--retries", retries])).exits(3);
        assert_eq!(site.requests_at("/away.xml"), asked);
    }
}
