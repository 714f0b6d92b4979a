//! Memento: TimeGate, versions and TimeMap of the gateway, and a copy that takes its history from them.

use catalog::Batch;
use fixity::Sha256;
use futures::TryStreamExt as _;
use jiff::Timestamp;
use model::{ResourceUri, Version, Versions};
use reqwest::StatusCode;
use reqwest::redirect::Policy;
use serde_json::json;

use crate::common::api::{Answer, Api, READ, fleet, send};
use crate::common::{Destination, Inside, Site, resource, urlset};

/// The path of the resource: what must be kept as it is in links, and in paths.
const PATH: &str = "/a;b,c?d=e";

/// A moment of a day of January.
pub(crate) fn day(n: u32) -> String {
    format!("2026-01-{n:02}T00:00:00Z")
}

fn at(n: u32) -> Timestamp {
    day(n).parse().expect("a time")
}

/// The content of the version of a day.
fn version(n: u32) -> String {
    format!("version {n}")
}

/// A Source with one resource, of which a copy has three versions, one for each of the first days of January.
pub(crate) struct ThreeVersions {
    site: Site,
    pub(crate) list: String,
    pub(crate) uri: String,
}

impl ThreeVersions {
    pub(crate) async fn of(copy: &Destination) -> Self {
        let site = Site::start().await;
        let (uri, list) = (site.uri(PATH), site.uri("/list.xml"));
        for n in 1..=3 {
            let content = version(n);
            site.serve(PATH, content.as_str());
            let md = format!("capability=\"resourcelist\" at=\"{}\"", day(n));
            site.serve("/list.xml", urlset(&md, &[resource(&uri, &declared(&content))]));
            copy.sync_with(&list, &["--keep-versions", "5"]).exits(0);
        }
        // Each version a day, as if time had passed.
        let inside = Inside::of(copy, &list).await;
        inside.edit(&uri, |record| record.bitstream.as_mut().expect("it is stored").stored_at = at(3)).await;
        let name: ResourceUri = uri.parse().expect("a URI");
        let mut versions = inside.catalog.versions(&name).await.expect("a catalog").expect("kept versions");
        for (n, version) in (1..).zip(&mut versions.kept) {
            (version.from, version.until) = (at(n), at(n + 1));
        }
        let mut batch = Batch::new();
        batch.put_versions(&name, &versions);
        inside.catalog.commit(batch).await.expect("a catalog");
        inside.close().await;
        Self { site, list, uri }
    }

    /// The URL of the Source in the API.
    pub(crate) async fn added(&self, api: &Api) -> String {
        let created = api.post("/v1/sources", json!({"entry": self.list})).await.is(StatusCode::CREATED);
        format!("{}{}", api.base, created.header("location"))
    }
}

fn declared(content: &str) -> String {
    format!("hash=\"sha-256:{}\" length=\"{}\"", Sha256::of(content.as_bytes()), content.len())
}

/// Asks without following a redirect.
async fn ask(url: &str, moment: Option<&str>) -> Answer {
    let client = reqwest::Client::builder().no_proxy().redirect(Policy::none()).build().expect("a client");
    let request = client.get(url).bearer_auth(READ);
    send(match moment {
        Some(moment) => request.header("accept-datetime", moment),
        None => request,
    })
    .await
}

/// MEM-1 and T1: at each of five moments the version of then, also outside the range, each with the versions beside
/// it. T2: a moment in another form is refused.
#[tokio::test]
async fn mem_1_a_timegate_leads_to_the_version_of_each_moment() {
    let (fleet, _all, api) = fleet().await;
    let case = ThreeVersions::of(&fleet.destination()).await;
    let gate = format!("{}/timegate/{}", case.added(&api).await, case.uri);
    for (moment, n) in [
        (Some("Wed, 31 Dec 2025 12:00:00 GMT"), 1),
        (Some("Thu, 01 Jan 2026 12:00:00 GMT"), 1),
        (Some("Fri, 02 Jan 2026 23:59:59 GMT"), 2),
        (Some("Sat, 03 Jan 2026 00:00:00 GMT"), 3),
        (Some("Sun, 01 Feb 2026 00:00:00 GMT"), 3),
        (None, 3),
    ] {
        let answer = ask(&gate, moment).await;
        assert_eq!((answer.status, answer.header("vary")), (302, "accept-datetime"), "{moment:?}");
        assert_eq!(answer.header("memento-datetime"), "", "a TimeGate is no version");
        let links = links::header::parse(answer.header("link"));
        let target = |rel: &str| links.iter().find(|link| link.is(rel)).map(|link| link.target.clone());
        assert_eq!(target("original").as_deref(), Some(case.uri.as_str()), "{moment:?}");
        assert!(target("timemap").is_some() && target("timegate").is_none(), "{moment:?}: {links:?}");
        assert_eq!((target("prev").is_some(), target("next").is_some()), (n > 1, n < 3), "{moment:?}");
        let found = ask(answer.header("location"), None).await;
        assert_eq!(found.body, version(n).as_bytes(), "{moment:?}");
    }
    for wrong in ["2026-01-02T00:00:00Z", "Fri, 02 Jan 2026 00:00:00 +0000", "yesterday"] {
        let answer = ask(&gate, Some(wrong)).await;
        assert_eq!(answer.status, 400, "{wrong}");
        assert!(answer.text().contains("Accept-Datetime"), "{}", answer.text());
    }
}

/// MEM-2: a version says its time, which never changes, and what it is a version of; the resource itself says neither.
#[tokio::test]
async fn mem_2_a_version_says_its_time_and_its_original() {
    let (fleet, _all, api) = fleet().await;
    let case = ThreeVersions::of(&fleet.destination()).await;
    let source = case.added(&api).await;
    let content = format!("{source}/resources/content");
    let mut url: url::Url = content.parse().expect("a URL");
    url.query_pairs_mut().append_pair("uri", &case.uri);
    let own = url.to_string();
    for (moment, n, datetime) in [
        // Any moment at which it was stored leads to it.
        ("2026-01-01T18:00:00.25Z", 1, "Thu, 01 Jan 2026 00:00:00 GMT"),
        ("2026-01-02T00:00:00Z", 2, "Fri, 02 Jan 2026 00:00:00 GMT"),
        ("2026-01-02T12:00:00Z", 2, "Fri, 02 Jan 2026 00:00:00 GMT"),
        ("2026-01-03T00:00:00Z", 3, "Sat, 03 Jan 2026 00:00:00 GMT"),
    ] {
        let answer = ask(&format!("{own}&at={moment}"), None).await.is(StatusCode::OK);
        assert_eq!(
            (answer.body.as_slice(), answer.header("memento-datetime")),
            (version(n).as_bytes(), datetime)
        );
        let links = links::header::parse(answer.header("link"));
        for rel in ["original", "timegate", "timemap"] {
            assert!(links.iter().any(|link| link.is(rel)), "{rel}: {links:?}");
        }
    }
    let answer = ask(&own, None).await.is(StatusCode::OK);
    let links = links::header::parse(answer.header("link"));
    let has = |rel: &str| links.iter().any(|link| link.is(rel));
    assert_eq!(answer.header("memento-datetime"), "");
    assert_eq!((has("original"), has("timegate"), has("timemap")), (false, true, true), "{links:?}");
    ask(&format!("{own}&at=2025-12-31T00:00:00Z"), None).await.is(StatusCode::NOT_FOUND);
    ask(&format!("{own}&at=yesterday"), None).await.is(StatusCode::BAD_REQUEST);
}

/// MEM-3: all versions, oldest first, each with its time and a URL that gives it.
#[tokio::test]
async fn mem_3_a_time_map_lists_all_versions_oldest_first() {
    let (fleet, _all, api) = fleet().await;
    let case = ThreeVersions::of(&fleet.destination()).await;
    let map = format!("{}/timemap/{}", case.added(&api).await, case.uri);
    // It does not depend on a moment.
    for moment in [None, Some("Fri, 02 Jan 2026 00:00:00 GMT")] {
        let answer = ask(&map, moment).await.is(StatusCode::OK);
        assert!(answer.header("content-type").starts_with("application/link-format"), "{answer:?}");
        let text = answer.text();
        let links = links::header::parse(&text.replace('\n', " "));
        let mementos: Vec<_> = links.iter().filter(|link| link.is("memento")).collect();
        let times: Vec<_> = mementos.iter().map(|link| link.attribute("datetime").expect("a time")).collect();
        let expected = [
            "Thu, 01 Jan 2026 00:00:00 GMT",
            "Fri, 02 Jan 2026 00:00:00 GMT",
            "Sat, 03 Jan 2026 00:00:00 GMT",
        ];
        assert_eq!(times, expected, "{text}");
        for (n, link) in (1..).zip(mementos) {
            assert_eq!(ask(&link.target, None).await.body, version(n).as_bytes());
        }
        let own = links.iter().find(|link| link.is("self")).expect("it names itself");
        assert_eq!((own.attribute("from"), own.attribute("until")), (Some(expected[0]), Some(expected[2])));
        for rel in ["original", "timegate"] {
            assert!(links.iter().any(|link| link.is(rel)), "{rel}: {text}");
        }
    }
    let unknown = map.replace("d=e", "d=f");
    ask(&unknown, None).await.is(StatusCode::NOT_FOUND);
}

/// MEM-3: more versions than a page has. Each page names the other, with its times.
#[tokio::test]
async fn mem_3_a_time_map_of_many_versions_has_pages_that_join() {
    let (fleet, _all, api) = fleet().await;
    let copy = fleet.destination();
    let case = ThreeVersions::of(&copy).await;
    let inside = Inside::of(&copy, &case.list).await;
    let name: ResourceUri = case.uri.parse().expect("a URI");
    let mut versions = inside.catalog.versions(&name).await.expect("a catalog").expect("kept versions");
    let one = versions.kept[0].clone();
    let minute = |n: i64| at(1) + jiff::SignedDuration::from_secs(n);
    let kept = (0..5_002).map(|n| Version { from: minute(n), until: minute(n + 1), ..one.clone() });
    versions.kept = kept.collect();
    let mut batch = Batch::new();
    batch.put_versions(&name, &versions);
    inside.catalog.commit(batch).await.expect("a catalog");
    inside.close().await;

    // With the stored one, these are 5,003.
    let source = case.added(&api).await;
    let mut times = Vec::new();
    let pages = [format!("{source}/timemap/{}", case.uri), format!("{source}/timemap/2/{}", case.uri)];
    for (n, count) in [(0, 5_000), (1, 3)] {
        let text = ask(&pages[n], None).await.is(StatusCode::OK).text();
        let lines: Vec<&str> = text.split(",\n").collect();
        let mementos = lines.iter().filter(|line| line.contains("memento\""));
        let found: Vec<Timestamp> = mementos
            .map(|line| {
                let time = line.split("datetime=\"").nth(1).and_then(|rest| rest.split('"').next());
                links::parse_http_date(time.expect("a time")).expect("a time")
            })
            .collect();
        assert_eq!(found.len(), count, "page {n}: {}", lines[0]);
        times.extend(found);
        let other = format!("<{}>", pages[1 - n]);
        let beside = lines.iter().find(|line| line.starts_with(&other)).expect("it names the other page");
        for part in ["timemap", "from=\"", "until=\""] {
            assert!(beside.contains(part), "{part}: {beside}");
        }
    }
    assert!(times.is_sorted_by(|one, other| one < other), "each version once, the oldest first");
    ask(&format!("{source}/timemap/3/{}", case.uri), None).await.is(StatusCode::NOT_FOUND);
}

/// MEM-3, T3: a copy that began late takes the past of its resource from the TimeMap of an earlier copy, which its Source
/// names. The history is restored.
#[tokio::test]
async fn mem_3_t3_a_backfill_from_our_own_time_map_restores_the_history() {
    let (fleet, _all, api) = fleet().await;
    let first = fleet.destination();
    let case = ThreeVersions::of(&first).await;
    let source = case.added(&api).await;
    let link = format!(
        "<rs:ln rel=\"timemap\" href=\"{source}/timemap/{}\" type=\"application/link-format\"/></url>",
        case.uri
    );
    let lastmod = format!("</loc><lastmod>{}</lastmod>", day(3));
    let entry = resource(&case.uri, &declared(&version(3))).replace("</url>", &link);
    let md = format!("capability=\"resourcelist\" at=\"{}\"", day(4));
    let list = case.site.serve("/second.xml", urlset(&md, &[entry.replace("</loc>", &lastmod)]));

    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    std::fs::write(&token, READ).expect("our own folder");
    let credentials = folder.path().join("credentials.yaml");
    let text = format!("- {{origin: \"{}\", bearer: {{file: {}}}}}\n", api.base, token.display());
    std::fs::write(&credentials, text).expect("our own folder");
    let options = ["--credentials", credentials.to_str().expect("a path"), "--allow-address", "127.0.0.0/8"];
    let second = Destination::directory();
    second.sync_with(&list, &options).exits(0);
    let words = [&["--json", "--versions", "5"], &options[..]].concat();
    let run = second.run("backfill", &words).exits(0);
    assert_eq!((run.count("known"), run.count("stored"), run.count("left_out")), (3, 2, 0), "{run}");

    let kept = async |copy: &Destination, list: &str| -> Vec<Versions> {
        let inside = Inside::of(copy, list).await;
        let scan = inside.catalog.scan_versions(None).await.expect("a catalog");
        let all: Vec<_> = scan.try_collect().await.expect("a catalog");
        inside.close().await;
        all.into_iter().map(|(_, versions)| versions).collect()
    };
    let digests = |versions: &[Versions]| -> Vec<Sha256> {
        let [versions] = versions else { panic!("one resource: {versions:?}") };
        versions.kept.iter().map(|version| version.bitstream.computed.sha256()).collect()
    };
    let restored = kept(&second, &list).await;
    assert_eq!(digests(&restored), [1, 2].map(|n| Sha256::of(version(n).as_bytes())));
    let times: Vec<_> = restored[0].kept.iter().map(|version| version.source_from).collect();
    assert_eq!(times, [Some(at(1)), Some(at(2))]);
    assert_eq!(digests(&restored), digests(&kept(&first, &case.list).await));
    for n in 1..=3 {
        let moment = format!("2026-01-{n:02}T12:00:00Z");
        let had = second.run("cat", &[&case.uri, "--source-at", &moment]).exits(0);
        assert_eq!(had.stdout, version(n), "{moment}");
    }
    // Again: the TimeMap alone is read.
    let run = second.run("backfill", &words).exits(0);
    assert_eq!((run.count("held"), run.count("stored")), (3, 0), "{run}");
}
