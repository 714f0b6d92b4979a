//! Earlier versions are fetched into the history, from TimeMaps and `memento` links.

mod fleet;

use std::collections::BTreeMap;
use std::time::Duration;

use fixity::Sha256;
use futures::TryStreamExt as _;
use jiff::{SignedDuration, Timestamp};
use model::Version;

use super::{Case, declares, linked, ln, time};
use crate::common::{Inside, Process, Run, Site, resource, urlset};
use testkit::scripted::Reply;

/// Sizes of the long test.
const RESOURCES: usize = 120;
const VERSIONS: usize = 5;
const INTERRUPTIONS: usize = 20;

/// A version at its own URL, with the time of this day.
fn version(body: &str, day: u8) -> Reply {
    dated(body, at(day))
}

fn dated(body: &str, time: Timestamp) -> Reply {
    Reply::ok(body.to_owned()).header("memento-datetime", links::http_date(time).unwrap())
}

fn at(day: u8) -> Timestamp {
    time(day).parse().unwrap()
}

/// A line of a TimeMap.
fn line(url: &str, day: u8) -> String {
    format!("<{url}>; rel=\"memento\"; datetime=\"{}\"", links::http_date(at(day)).unwrap())
}

/// The body of a version of a day.
fn body(path: &str, day: u8) -> String {
    format!("{path} of day {day}")
}

impl Case {
    /// Serves a resource whose TimeMap has a version of each of these days; the last one is the present one.
    /// Returns its entry.
    fn with_past(&self, path: &str, days: &[u8]) -> String {
        let urls: Vec<String> = days
            .iter()
            .map(|day| self.site.reply(&format!("/{day}{path}"), version(&body(path, *day), *day)))
            .collect();
        let lines: Vec<String> = days.iter().zip(&urls).map(|(day, url)| line(url, *day)).collect();
        let uri = self.site.uri(path);
        self.serve_timemap(path, &[format!("<{uri}>; rel=\"original\""), lines.join(",\n")]);
        self.entry(path, *days.last().expect("the present version"), &[&self.timemap(path)])
    }

    fn serve_timemap(&self, path: &str, parts: &[String]) {
        let reply = Reply::ok(parts.join(",\n")).header("content-type", "application/link-format");
        self.site.reply(&format!("/tm{path}"), reply);
    }

    fn timemap(&self, path: &str) -> String {
        ln("timemap", &self.site.uri(&format!("/tm{path}")), "type=\"application/link-format\"")
    }

    /// The entry of a resource whose present version is of this day.
    fn entry(&self, path: &str, day: u8, links: &[&str]) -> String {
        let content = body(path, day);
        let uri = self.site.serve(path, content.clone());
        let lastmod = format!("</loc><lastmod>{}</lastmod>", time(day));
        linked(&uri, &declares(&content), links).replace("</loc>", &lastmod)
    }

    /// The entry of a list of the past: of a change, or of what there was. The version may have a URL.
    fn archived(&self, path: &str, content: &str, day: u8, is_change: bool, has_url: bool) -> String {
        let link = has_url.then(|| {
            let url = self.site.reply(&format!("/{day}{path}"), version(content, day));
            ln("memento", &url, &format!("modified=\"{}\"", time(day)))
        });
        let links: Vec<&str> = link.iter().map(String::as_str).collect();
        let uri = self.site.uri(path);
        if is_change {
            let change = format!("{} change=\"updated\" datetime=\"{}\"", declares(content), time(day));
            return linked(&uri, &change, &links);
        }
        let lastmod = format!("</loc><lastmod>{}</lastmod>", time(day));
        linked(&uri, &declares(content), &links).replace("</loc>", &lastmod)
    }

    /// Serves a Capability List with Archives of these lists of the past: Change Lists from the first day to the second,
    /// and Resource Lists of a day. Returns its URI.
    fn archives(&self, list: &str, past: &[(Option<u8>, u8, Vec<String>)]) -> String {
        let mut archives = [Vec::new(), Vec::new()];
        for (n, (from, day, entries)) in past.iter().enumerate() {
            let (kind, times) = match from {
                Some(from) => ("changelist", format!("from=\"{}\" until=\"{}\"", time(*from), time(*day))),
                None => ("resourcelist", format!("at=\"{}\"", time(*day))),
            };
            let document = urlset(&format!("capability=\"{kind}\" {times}"), entries);
            let url = self.site.serve(&format!("/old-{n}.xml"), document);
            archives[usize::from(from.is_some())].push(resource(&url, &times));
        }
        let archive = |n: usize, kind: &str| {
            let kind = format!("capability=\"{kind}\"");
            let url = self.site.serve(&format!("/archive-{n}.xml"), urlset(&kind, &archives[n]));
            resource(&url, &kind)
        };
        let entries = [
            resource(list, "capability=\"resourcelist\""),
            archive(0, "resourcelist-archive"),
            archive(1, "changelist-archive"),
        ];
        self.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &entries))
    }

    fn backfill(&self, options: &[&str]) -> Run {
        self.copy.run("backfill", &[&["--json"], options].concat())
    }

    /// What the Source had at a time, as far as it is kept.
    fn had(&self, path: &str, moment: &str) -> Option<String> {
        let run = self.copy.run("cat", &[&self.site.uri(path), "--source-at", moment]);
        (run.exit == Some(0)).then_some(run.stdout)
    }

    /// The kept versions of all resources.
    async fn history(&self, list: &str) -> BTreeMap<String, Vec<Version>> {
        let inside = Inside::of(&self.copy, list).await;
        let scan = inside.catalog.scan_versions(None).await.unwrap();
        let kept: Vec<_> = scan.try_collect().await.unwrap();
        inside.close().await;
        kept.into_iter().map(|(uri, versions)| (uri.to_string(), versions.kept)).collect()
    }
}

/// Digests and times of versions.
fn told(versions: &[Version]) -> Vec<(Sha256, Timestamp)> {
    let pair = |version: &Version| (version.bitstream.computed.sha256(), version.source_from.unwrap());
    versions.iter().map(pair).collect()
}

#[tokio::test]
async fn lnk_11_t1_the_newest_versions_of_a_timemap_are_fetched_and_the_others_told() {
    let case = Case::new().await;
    let list = case.list(9, &[case.with_past("/v", &[1, 2, 3, 4, 5])]);
    case.sync(&list).exits(0);
    case.copy.run("backfill", &[]).exits(2).complains(&["keep no earlier versions"], &["--versions n"]);
    let run = case.backfill(&["--versions", "2"]).exits(0);
    let counts = ["resources", "timemaps", "known", "held", "newer", "older", "stored", "left_out"];
    assert_eq!(counts.map(|name| run.count(name)), [1, 1, 5, 1, 0, 2, 2, 0], "{run}");
    for day in [3, 4, 5] {
        let moment = format!("2026-01-0{day}T12:00:00Z");
        assert_eq!(case.had("/v", &moment), Some(body("/v", day)));
        // No sync stored it then.
        assert_ne!(case.copy.run("cat", &[&case.site.uri("/v"), "--at", &moment]).exit, Some(0));
    }
    assert_eq!(case.had("/v", "2026-01-02T12:00:00Z"), None);
    assert_eq!(case.copy.cat(&case.site.uri("/v")), body("/v", 5).as_bytes(), "the stored version stays");
    assert_eq!([1, 2, 5].map(|day| case.site.requests_at(&format!("/{day}/v"))), [0; 3]);
    let listed = case.copy.listed()[0]["versions"].clone();
    let times =
        |n: usize| ["source_from", "source_until"].map(|name| listed[n][name].as_str().map(str::to_owned));
    assert_eq!(times(0), [3, 4].map(|day| Some(time(day))), "{listed}");
    assert_eq!(times(1), [4, 5].map(|day| Some(time(day))), "{listed}");
    assert_eq!(listed[0]["sha256"], Sha256::of(body("/v", 3).as_bytes()).to_string());
    assert_eq!(
        (listed.as_array().map(Vec::len), &listed[0]["stored_from"]),
        (Some(2), &serde_json::Value::Null)
    );
    let story = case.copy.explain(&case.site.uri("/v"));
    assert!(story.contains("Kept versions") && story.contains(&case.site.uri("/4/v")), "{story}");

    // Again: the TimeMap alone is read. More are wanted later.
    let run = case.backfill(&[]).exits(0);
    assert_eq!(counts.map(|name| run.count(name)), [1, 1, 5, 3, 0, 2, 0, 0], "{run}");
    let run = case.backfill(&["--versions", "9", "--since", &time(2)]).exits(0);
    assert_eq!((run.count("stored"), run.count("older")), (1, 1), "{run}");
    assert_eq!([1, 2, 3, 4].map(|day| case.site.requests_at(&format!("/{day}/v"))), [0, 1, 1, 1]);
    let text = case.copy.run("backfill", &[]).exits(0).stdout;
    assert!(text.contains("1 earlier version added"), "{text}");

    // They are no garbage, and the next change of the resource keeps them, too.
    case.copy.run("gc", &["--retention", "0s"]).exits(0);
    let list = case.list(10, &[case.with_past("/v", &[5, 6])]);
    case.sync(&list).exits(0);
    assert_eq!(case.had("/v", "2026-01-02T12:00:00Z"), Some(body("/v", 2)));
    let history = case.history(&list).await;
    assert_eq!(history[&case.site.uri("/v")].len(), 5);
}

#[tokio::test]
async fn lnk_11_t2_all_versions_of_two_pages_with_commas_in_their_urls() {
    let case = Case::new().await;
    let url = |day: u8| {
        let path = format!("/{day},x;y/v");
        case.site.reply(&path, version(&body("/v", day), day))
    };
    let more = case.site.uri("/tm/2");
    case.serve_timemap("/v", &[format!("<{more}>; rel=timemap"), line(&url(4), 4), line(&url(5), 5)]);
    let second = [line(&url(1), 1), line(&url(2), 2), line(&url(3), 3)].join(", ");
    case.site.reply("/tm/2", Reply::ok(second).header("content-type", "application/link-format"));
    let list = case.list(9, &[case.entry("/v", 8, &[&case.timemap("/v")])]);
    case.sync(&list).exits(0);
    let run = case.backfill(&["--versions", "5"]).exits(0);
    assert_eq!(["timemaps", "known", "stored"].map(|name| run.count(name)), [2, 5, 5], "{run}");
    assert_eq!(run.json()["faults"]["no-original"], 2, "{run}");
    for day in 1..=5 {
        assert_eq!(case.had("/v", &time(day)), Some(body("/v", day)));
    }
}

#[tokio::test]
async fn lnk_11_t3_after_a_kill_no_version_is_there_twice() {
    let case = Case::new().await;
    let list = case.list(9, &[case.with_past("/v", &[1, 2, 3, 4, 5])]);
    case.sync(&list).exits(0);
    let slow = version(&body("/v", 3), 3).delay(Duration::from_secs(600));
    case.site.next("/3/v", slow);
    let mut command = case.copy.command("backfill", &["--versions", "4", "--concurrency", "1"]);
    let process = Process::start(&mut command);
    process.kill_when(|| case.site.requests_at("/3/v") == 1).await;
    let run = case.backfill(&["--versions", "4"]).exits(0);
    assert_eq!(run.count("held") + run.count("stored"), 5, "{run}");
    let history = case.history(&list).await;
    let expected: Vec<_> = (1..=4).map(|day| (Sha256::of(body("/v", day).as_bytes()), at(day))).collect();
    assert_eq!(told(&history[&case.site.uri("/v")]), expected);
    assert_eq!(case.backfill(&[]).exits(0).count("stored"), 0);
}

#[tokio::test]
async fn lnk_11_a_version_of_another_time_is_told_and_not_stored() {
    let case = Case::new().await;
    let list = case.list(9, &[case.with_past("/v", &[1, 2, 3, 4, 5, 6])]);
    let later = |day: u8, seconds| at(day) + SignedDuration::from_secs(seconds);
    case.site.reply("/1/v", dated("near", later(1, 1)));
    case.site.reply("/2/v", dated("far", later(2, 2)));
    case.site.reply("/3/v", Reply::ok("no time"));
    case.site.reply("/4/v", Reply::ok("x").header("memento-datetime", time(4)));
    case.site.reply("/5/v", Reply::status(404));
    case.site.reply("/v", Reply::ok(body("/v", 6)).header("content-type", "text/plain"));
    case.sync(&list).exits(0);
    let run = case.backfill(&["--versions", "9", "--retries", "0"]).exits(1);
    assert_eq!(run.count("stored"), 1, "{run}");
    let failed = &run.json()["failed"];
    let reasons = ["memento-misdated", "memento-undated", "http-client-error"];
    assert_eq!(reasons.map(|reason| failed[reason].as_u64()), [Some(2), Some(1), Some(1)], "{run}");
    let run = run.says(&["memento-misdated: its Memento-Datetime is", "/2/v", "memento-undated", "404"]);
    assert!(run.stderr.contains(&case.site.uri("/v")), "{run}");
    assert_eq!(case.had("/v", &time(1)).as_deref(), Some("near"));
    assert_eq!(case.had("/v", "2026-01-04T00:00:00Z").as_deref(), Some("near"));
    // A page in place of a version that is no page, and then of the TimeMap.
    let page = version("<html><body>Not in the archive</body></html>", 5);
    case.site.reply("/5/v", page.header("content-type", "text/html"));
    let run = case.backfill(&[]).exits(1);
    assert_eq!(run.json()["failed"]["unexpected-html"], 1, "{run}");
    case.site.reply("/tm/v", Reply::ok("<html></html>").header("content-type", "text/html"));
    let run = case.backfill(&[]).exits(1);
    assert_eq!(run.json()["failed"]["no-timemap"], 1, "{run}");
}

#[tokio::test]
async fn lnk_10_a_memento_is_judged_by_its_digest_and_needs_one_on_another_host() {
    let case = Case::new().await;
    let other = Site::start().await;
    let elsewhere = |path: &str, day: u8| {
        other.reply(path, version(&format!("{path} elsewhere"), day)).replace("127.0.0.1", "localhost")
    };
    let link =
        |url: &str, day: u8, more: &str| ln("memento", url, &format!("modified=\"{}\" {more}", time(day)));
    let own = case.site.reply("/1/v", version("other bytes than declared", 1));
    // A digest says more than a server that knows nothing of Memento.
    let undated = case.site.serve("/2/v", "undated");
    let links = [
        link(&own, 1, &declares("declared bytes")),
        link(&undated, 2, &declares("undated")),
        link(&elsewhere("/3", 3), 3, &declares("/3 elsewhere")),
        link(&elsewhere("/4", 4), 4, ""),
        ln("memento", &elsewhere("/5", 5), ""),
    ];
    let list = case.list(9, &[case.entry("/v", 8, &links.each_ref().map(String::as_str))]);
    case.sync(&list).exits(0);
    let options = ["--versions", "9", "--allow-address", "127.0.0.0/8", "--allow-address", "::1/128"];
    let run = case.backfill(&options).exits(1);
    assert_eq!(["known", "stored", "left_out"].map(|name| run.count(name)), [4, 2, 1], "{run}");
    let failed = run.json()["failed"].clone();
    assert_eq!(failed, serde_json::json!({"length-mismatch": 1}), "{run}");
    assert_eq!(case.had("/v", &time(2)).as_deref(), Some("undated"));
    assert_eq!(case.had("/v", &time(3)).as_deref(), Some("/3 elsewhere"));
    assert_eq!((other.requests_at("/4"), other.requests_at("/5")), (0, 0));
    run.says(&["other-host", "--any-host"]);
    let run = case.backfill(&[&options[..], &["--any-host"]].concat()).exits(1);
    assert_eq!(["stored", "left_out"].map(|name| run.count(name)), [1, 0], "{run}");
    assert_eq!(case.had("/v", &time(4)).as_deref(), Some("/4 elsewhere"));
    let history = case.history(&list).await;
    let assured: Vec<_> =
        history[&case.site.uri("/v")].iter().map(|version| version.bitstream.assurance).collect();
    use model::Assurance::{Digest, None};
    assert_eq!(assured, [Digest, Digest, None]);
}

#[tokio::test]
async fn lnk_11_an_archive_needs_the_same_permission_as_an_entry() {
    let case = Case::new().await;
    let other = Site::start().await;
    other.reply("/1", version("1", 1));
    // By a name, a Source on this machine leads to no other port of it.
    let by_name = |text: String| text.replace("127.0.0.1", "localhost");
    let link = ln("timemap", &other.uri("/tm"), "");
    let list = by_name(case.list(9, &[by_name(case.entry("/v", 8, &[&link]))]));
    case.sync(&list).exits(0);
    let run = case.backfill(&["--versions", "2"]).exits(1);
    assert_eq!(run.json()["failed"], serde_json::json!({"refused-address": 1}), "{run}");
    assert!(other.requests().is_empty());
}

/// The resources of the long tests.
fn paths() -> Vec<String> {
    (0..RESOURCES).map(|n| format!("/r{n}")).collect()
}

/// Backfills all earlier versions of the resources of the long tests: interrupted many times, then to the end. Checks
/// that each version is there, once.
async fn interrupted(case: &Case, entry: &str, options: &[&str]) {
    case.sync(entry).exits(0);
    let is_version = |path: &String| path[1..].starts_with(|c: char| c.is_ascii_digit());
    let asked = || case.site.paths().iter().filter(|path| is_version(path)).count();
    let earlier = VERSIONS - 1;
    let wanted = earlier.to_string();
    let options = [&["--versions", &wanted], options].concat();
    let mut interrupted = 0;
    for n in 0..INTERRUPTIONS {
        // At most 100 requests of 480, so that some reach a commit.
        let enough = asked() + n * 13 % 100 + 1;
        let mut process = Process::start(&mut case.copy.command("backfill", &options));
        if !process.until(|| asked() >= enough).await {
            assert_eq!(process.end(), Some(0), "the rest was fetched");
            break;
        }
        // It is killed when it is dropped.
        interrupted += 1;
    }
    assert!(interrupted >= INTERRUPTIONS / 2, "{interrupted}");
    let before = asked();
    let run = case.backfill(&options).exits(0);
    let stored = run.count("stored") as usize;
    assert_eq!(stored, asked() - before, "{run}");
    assert!(stored < RESOURCES * earlier, "something was kept before the last run: {run}");
    let history = case.history(entry).await;
    assert_eq!(history.len(), RESOURCES);
    for path in paths() {
        let expected: Vec<_> =
            (1..VERSIONS as u8).map(|day| (Sha256::of(body(&path, day).as_bytes()), at(day))).collect();
        assert_eq!(told(&history[&case.site.uri(&path)]), expected, "{path}");
    }
    let before = asked();
    assert_eq!(case.backfill(&options).exits(0).count("stored"), 0);
    assert_eq!(asked(), before, "what is held is not asked for");
    let scrub = case.copy.run("scrub", &["--json"]).exits(0);
    assert_eq!(scrub.count("versions") as usize, RESOURCES * earlier);
}

#[tokio::test]
async fn acc_9_versions_by_timemap_are_those_of_the_source_and_interrupted_none_is_there_twice() {
    let case = Case::new().await;
    let days: Vec<u8> = (1..=VERSIONS as u8).collect();
    let entries: Vec<String> = paths().iter().map(|path| case.with_past(path, &days)).collect();
    let list = case.list(9, &entries);
    interrupted(&case, &list, &[]).await;
}

#[tokio::test]
async fn acc_9_versions_by_archives_are_those_of_the_source_and_interrupted_none_is_there_twice() {
    let case = Case::new().await;
    let present = VERSIONS as u8;
    let entries: Vec<String> = paths().iter().map(|path| case.entry(path, present, &[])).collect();
    let list = case.list(9, &entries);
    // Odd days by lists, even ones by changes.
    let past = (1..present).map(|day| {
        let is_change = day % 2 == 0;
        let entry = |path: &String| case.archived(path, &body(path, day), day, is_change, true);
        let entries: Vec<String> = paths().iter().map(entry).collect();
        (is_change.then_some(day - 1), day, entries)
    });
    let caps = case.archives(&list, &past.collect::<Vec<_>>());
    interrupted(&case, &caps, &["--archives"]).await;
}

#[tokio::test]
async fn arc_3_what_there_was_at_a_time_comes_from_mementos_and_from_what_is_held_else_it_is_told() {
    let case = Case::new().await;
    let entries = [case.entry("/a", 8, &[]), case.entry("/b", 1, &[]), case.entry("/c", 8, &[])];
    let list = case.list(9, &entries);
    let [a1, a2] = ["first", "second"];
    // The Source has gone back to it.
    let a4 = &body("/a", 8);
    let first = [
        case.archived("/a", a1, 1, false, true),
        case.archived("/b", &body("/b", 1), 1, false, true),
        case.archived("/c", "unknown place", 1, false, false),
        case.archived("/not-held", "x", 1, false, true),
    ];
    let changed = [case.archived("/a", a2, 2, true, true)];
    let second = [case.archived("/a", a4, 4, false, false)];
    let past = [(None, 1, first.to_vec()), (Some(1), 3, changed.to_vec()), (None, 4, second.to_vec())];
    let caps = case.archives(&list, &past);
    case.sync(&caps).exits(0);
    assert_eq!(case.backfill(&["--versions", "9"]).exits(0).count("resources"), 0);
    let run = case.backfill(&["--versions", "9", "--archives", "--since", &time(3)]).exits(0);
    let counts = ["resources", "archive_documents", "known", "held", "older", "stored", "copied", "not_held"];
    assert_eq!(counts.map(|name| run.count(name)), [3, 5, 5, 1, 1, 2, 1, 1], "{run}");
    assert_eq!(case.had("/a", &time(3)).as_deref(), Some(a2));
    assert_eq!(case.had("/a", &time(4)).as_deref(), Some(a4.as_str()));
    assert_eq!(case.had("/b", &time(3)), Some(body("/b", 1)));
    assert_eq!(case.had("/c", &time(3)), None);
    let asked = ["/1/a", "/2/a", "/1/b", "/1/not-held"].map(|path| case.site.requests_at(path));
    assert_eq!(asked, [0, 1, 0, 0]);
    // Without a time, all of it. What is shared outlives its resource's change.
    let text = case.copy.run("backfill", &["--archives"]).exits(0).stdout;
    assert!(text.contains("1 earlier version added") && text.contains("1 version is known"), "{text}");
    case.list(10, &[case.entry("/a", 9, &[]), entries[1].clone(), entries[2].clone()]);
    case.sync(&caps).exits(0);
    case.copy.run("gc", &["--retention", "0s"]).exits(0);
    for (day, content) in [(1, a1), (2, a2), (4, a4)] {
        assert_eq!(case.had("/a", &time(day)).as_deref(), Some(content));
    }
    // A list of the past that is gone is told.
    case.site.reply("/old-1.xml", Reply::status(404));
    let run = case.backfill(&["--archives", "--retries", "0"]).exits(1);
    assert_eq!(run.json()["failed"]["http-client-error"], 1, "{run}");
}
