//! Mirrors (`duplicate`) give the bytes when a resource's own URI does not, and their digest is judged all the same.

use super::{Case, declares, linked, ln};
use crate::common::{Run, Site};
use testkit::scripted::Reply;
use testkit::servers::free_port;

/// Mirrors are at other ports of this machine.
const OPTIONS: [&str; 4] = ["--allow-address", "127.0.0.0/8", "--retries", "0"];

impl Case {
    #[track_caller]
    fn sync_from_mirrors(&self, url: &str, options: &[&str]) -> Run {
        self.copy.sync_with(url, &[&OPTIONS[..], options].concat())
    }
}

#[tokio::test]
async fn lnk_6_t1_mirrors_are_asked_by_priority_when_the_resource_itself_fails() {
    let case = Case::new().await;
    let [m1, m2] = [Site::start().await, Site::start().await];
    let uri = case.site.reply("/a", Reply::status(503));
    m1.reply("/a", Reply::status(404));
    m2.serve("/a", "A");
    let links = [
        ln("duplicate", "gsiftp://g.test/a", "pri=\"1\""),
        ln("duplicate", &m2.uri("/a"), ""),
        ln("duplicate", &m1.uri("/a"), "pri=\"7\""),
    ];
    let list = case.list(1, &[linked(&uri, &declares("A"), &links.each_ref().map(String::as_str))]);
    let run = case.sync_from_mirrors(&list, &[]).exits(0);
    assert_eq!((run.count("stored"), run.count("mirrored"), run.count("failed")), (1, 1, 0), "{run}");
    assert_eq!(case.copy.cat(&uri), b"A");
    assert_eq!(case.copy.file(&uri).as_deref(), Some(&b"A"[..]), "the URI stays the resource's own");
    assert_eq!((case.site.requests_at("/a"), m1.requests_at("/a"), m2.requests_at("/a")), (1, 1, 1));
    let told = case.copy.run("explain", &[&uri]).exits(0);
    let [from, at] = [format!("from the mirror {}", m2.uri("/a")), format!("at the mirror {}", m1.uri("/a"))];
    let final_url = format!("final URL {}", m2.uri("/a"));
    for text in [from.as_str(), &at, &final_url, "HTTP status 503", "HTTP status 404"] {
        assert!(told.stdout.contains(text), "{text}: {told}");
    }
    let report = case.copy.run("report", &["--json"]).exits(0).json();
    let origin = m2.uri("");
    assert_eq!(report["from-elsewhere"][&origin]["bytes"], 1, "{report}");
    assert_eq!(report["from-elsewhere"][&origin]["resources"], 1, "{report}");
    let text = case.copy.run("report", &[]).exits(0);
    for part in ["Bytes from other origins", &origin, "1 resource, 1 byte"] {
        assert!(text.stdout.contains(part), "{part}: {text}");
    }
    // In step: nothing is asked for again.
    case.sync_from_mirrors(&list, &[]).exits(0);
    assert_eq!((case.site.requests_at("/a"), m2.requests_at("/a")), (1, 1));
}

#[tokio::test]
async fn lnk_6_t2_other_bytes_of_a_mirror_are_never_current() {
    let case = Case::new().await;
    let [m1, m2] = [Site::start().await, Site::start().await];
    let uri = case.site.reply("/a", Reply::status(503));
    m1.serve("/a", "B");
    m2.serve("/a", "A");
    let links = [ln("duplicate", &m1.uri("/a"), ""), ln("duplicate", &m2.uri("/a"), "")];
    let entry = linked(&uri, &declares("A"), &links.each_ref().map(String::as_str));
    let list = case.list(1, &[entry]);
    case.sync_from_mirrors(&list, &[]).exits(0);
    assert_eq!(case.copy.cat(&uri), b"A");
    assert_eq!((m1.requests_at("/a"), m2.requests_at("/a")), (1, 1), "one attempt each");
    let told = case.copy.run("explain", &[&uri]).exits(0);
    assert!(told.stdout.contains("digest-mismatch") || told.stdout.contains("length-mismatch"), "{told}");

    // Without a mirror that has the declared bytes, the failure is that of the resource itself.
    let other = case.site.reply("/b", Reply::status(503));
    m1.serve("/b", "x");
    let list = case.list(2, &[linked(&other, &declares("B"), &[&ln("duplicate", &m1.uri("/b"), "")])]);
    let run = case.sync_from_mirrors(&list, &[]).exits(1);
    assert_eq!((run.count("stored"), run.count("failed")), (0, 1), "{run}");
    let problem = &case.copy.run("problems", &["--json", &other]).exits(0).json_lines()[0];
    assert_eq!(problem["reason"], "http-server-error", "{problem}");
    assert_eq!((case.site.requests_at("/b"), m1.requests_at("/b")), (1, 1));
}

#[tokio::test]
async fn lnk_6_three_misfits_leave_a_mirror_out_before_a_whole_wave_is_sent_there() {
    const COUNT: usize = 40;
    for mode in ["fallback", "prefer"] {
        let case = Case::new().await;
        let [bad, good] = [Site::start().await, Site::start().await];
        let entries: Vec<String> = (0..COUNT)
            .map(|n| {
                let path = format!("/{n}");
                let uri = case.site.reply(&path, Reply::status(503));
                bad.serve(&path, "other bytes");
                good.serve(&path, path.clone());
                let links = [&bad, &good].map(|mirror| ln("duplicate", &mirror.uri(&path), ""));
                linked(&uri, &declares(&path), &links.each_ref().map(String::as_str))
            })
            .collect();
        let list = case.list(1, &entries);
        let run = case.sync_from_mirrors(&list, &["--mirrors", mode]).exits(0);
        assert_eq!((run.count("stored"), run.count("failed")), (COUNT as u64, 0), "{run}");
        let asked = bad.paths().len();
        assert!((3..=6).contains(&asked), "{asked} of {COUNT} with {mode}");
        assert_eq!(good.paths().len(), COUNT, "{mode}");
    }
}

#[tokio::test]
async fn lnk_6_a_mirror_that_is_left_out_costs_the_resource_no_further_request() {
    const COUNT: usize = 40;
    let case = Case::new().await;
    let bad = Site::start().await;
    let entries: Vec<String> = (0..COUNT)
        .map(|n| {
            let path = format!("/{n}");
            let uri = case.site.reply(&path, Reply::status(503));
            let mirror = bad.serve(&path, "other bytes");
            linked(&uri, &declares(&path), &[&ln("duplicate", &mirror, "")])
        })
        .collect();
    let list = case.list(1, &entries);
    let run = case.sync_from_mirrors(&list, &[]).exits(1);
    assert_eq!((run.count("stored"), run.count("failed")), (0, COUNT as u64), "{run}");
    assert!((3..=6).contains(&bad.paths().len()), "{}", bad.paths().len());
    assert_eq!(case.site.paths().len(), 1 + COUNT, "each is requested once, and the list");
    let problems = case.copy.run("problems", &["--json"]).exits(0).json_lines();
    assert!(problems.iter().all(|problem| problem["reason"] == "http-server-error"), "{problems:?}");
}

#[tokio::test]
async fn lnk_6_t3_preferred_mirrors_leave_the_resources_own_server_alone() {
    const COUNT: usize = 1_000;
    let case = Case::new().await;
    let mirror = Site::start().await;
    let entries: Vec<String> = (0..COUNT)
        .map(|n| {
            let path = format!("/{n}");
            mirror.serve(&path, path.clone());
            let uri = case.site.serve(&path, path.clone());
            linked(&uri, &declares(&path), &[&ln("duplicate", &mirror.uri(&path), "")])
        })
        .collect();
    let list = case.list(1, &entries);
    let run = case.sync_from_mirrors(&list, &["--mirrors", "prefer"]).exits(0);
    assert_eq!((run.count("stored"), run.count("mirrored")), (COUNT as u64, COUNT as u64), "{run}");
    assert_eq!(case.site.paths(), ["/list.xml"]);
    assert_eq!(mirror.paths().len(), COUNT);
}

#[tokio::test]
async fn lnk_6_spread_shares_resources_among_their_places() {
    const COUNT: usize = 120;
    let case = Case::new().await;
    let mirrors = [Site::start().await, Site::start().await];
    let entries: Vec<String> = (0..COUNT)
        .map(|n| {
            let path = format!("/{n}");
            let uri = case.site.serve(&path, path.clone());
            let links =
                mirrors.each_ref().map(|mirror| ln("duplicate", &mirror.serve(&path, path.clone()), ""));
            linked(&uri, &declares(&path), &links.each_ref().map(String::as_str))
        })
        .collect();
    let list = case.list(1, &entries);
    let run = case.sync_from_mirrors(&list, &["--mirrors", "spread"]).exits(0);
    assert_eq!((run.count("stored"), run.count("failed")), (COUNT as u64, 0), "{run}");
    let asked = [&case.site, &mirrors[0], &mirrors[1]].map(|site| site.paths().len());
    // The Source itself has its list in addition.
    assert_eq!(asked.iter().sum::<usize>(), COUNT + 1, "{asked:?}");
    assert!(asked.iter().all(|asked| *asked >= COUNT / 6), "{asked:?}");
}

#[tokio::test]
async fn lnk_6_a_preferred_mirror_that_fails_leaves_it_to_the_resources_own_server() {
    let case = Case::new().await;
    let mirror = Site::start().await;
    let uri = case.site.serve("/a", "A");
    mirror.reply("/a", Reply::status(500));
    let list = case.list(1, &[linked(&uri, &declares("A"), &[&ln("duplicate", &mirror.uri("/a"), "")])]);
    let run = case.sync_from_mirrors(&list, &["--mirrors", "prefer"]).exits(0);
    assert_eq!((run.count("stored"), run.count("mirrored")), (1, 0), "{run}");
    assert_eq!((case.site.requests_at("/a"), mirror.requests_at("/a")), (1, 1));
}

#[tokio::test]
async fn lnk_6_t4_no_mirror_without_a_digest_or_for_what_is_missing_or_switched_off() {
    let case = Case::new().await;
    let mirror = Site::start().await;
    let link = |path: &str| {
        mirror.serve(path, "A");
        ln("duplicate", &mirror.uri(path), "")
    };
    let bare = case.site.reply("/bare", Reply::status(503));
    let missing = case.site.reply("/missing", Reply::status(404));
    let entries = [
        linked(&bare, "length=\"1\"", &[&link("/bare")]),
        linked(&missing, &declares("A"), &[&link("/missing")]),
    ];
    let list = case.list(1, &entries);
    let run = case.sync_from_mirrors(&list, &[]).exits(1);
    assert_eq!(run.count("failed"), 2, "{run}");
    let off = case.site.reply("/off", Reply::status(503));
    let list = case.list(2, &[linked(&off, &declares("A"), &[&link("/off")])]);
    case.sync_from_mirrors(&list, &["--mirrors", "off"]).exits(1);
    assert_eq!(mirror.paths(), [""; 0]);
}

#[tokio::test]
async fn lnk_6_an_origin_that_is_down_loses_nothing_that_has_a_mirror() {
    const COUNT: usize = 120;
    let case = Case::new().await;
    let mirror = Site::start().await;
    // No server listens at this port.
    let port = free_port();
    let uris: Vec<String> = (0..COUNT).map(|n| format!("http://127.0.0.1:{port}/{n}")).collect();
    let entries: Vec<String> = uris
        .iter()
        .enumerate()
        .map(|(n, uri)| {
            let path = format!("/{n}");
            mirror.serve(&path, path.clone());
            linked(uri, &declares(&path), &[&ln("duplicate", &mirror.uri(&path), "")])
        })
        .collect();
    let list = case.list(1, &entries);
    let run = case.sync_from_mirrors(&list, &[]).exits(0);
    assert_eq!((run.count("stored"), run.count("mirrored")), (COUNT as u64, COUNT as u64), "{run}");
    assert_eq!(run.json()["in_sync"], true, "{run}");
    assert_eq!(mirror.paths().len(), COUNT, "each is asked for once");
    assert_eq!(case.copy.cat(&uris[7]), b"/7");
}

#[tokio::test]
async fn lnk_6_a_mirror_helps_when_the_resource_is_throttled_cut_off_or_behind_a_challenge() {
    let page = "<html><head><title>Just a moment...</title></head></html>";
    let refused = Reply::status(403).header("cf-mitigated", "challenge").header("content-type", "text/html");
    for (what, reply) in [
        ("a pause that a run does not wait for", Reply::status(429).header("retry-after", "7200")),
        ("too many requests", Reply::status(429)),
        ("a body that breaks off", Reply::ok("AAAA").cut_after(2)),
        ("a challenge", refused.body(page)),
        ("a page in its place", Reply::ok(page).header("content-type", "text/html")),
    ] {
        let case = Case::new().await;
        let mirror = Site::start().await;
        let uri = case.site.reply("/a", reply);
        let link = ln("duplicate", &mirror.serve("/a", "AAAA"), "");
        let md = format!("{} type=\"text/plain\"", declares("AAAA"));
        let list = case.list(1, &[linked(&uri, &md, &[&link])]);
        let run = case.sync_from_mirrors(&list, &[]).exits(0);
        assert_eq!((run.count("stored"), run.count("mirrored")), (1, 1), "{what}: {run}");
        assert_eq!((case.copy.cat(&uri), mirror.requests_at("/a")), (b"AAAA".to_vec(), 1), "{what}");
    }
}

#[tokio::test]
async fn lnk_6_what_a_mirror_says_of_its_copy_means_nothing_to_the_resource() {
    let case = Case::new().await;
    let mirror = Site::start().await;
    let uri = case.site.reply("/a", Reply::status(503));
    let copy = |body: &str| {
        let reply = Reply::ok(body.to_owned()).header("etag", "\"of the mirror\"");
        mirror.reply("/a", reply.header("last-modified", "Thu, 01 Jan 2026 12:00:00 GMT"))
    };
    let link = ln("duplicate", &copy("A"), "");
    let list = case.list(1, &[linked(&uri, &declares("A"), &[&link])]);
    case.sync_from_mirrors(&list, &[]).exits(0);

    // Its validators are not sent to the resource: without a digest that is asked for on condition.
    case.site.serve("/a", "A");
    let list = case.list(2, &[linked(&uri, "", &[&link])]);
    case.sync_from_mirrors(&list, &[]).exits(0);
    assert_eq!(case.site.conditions_at("/a"), [None, None]);
    assert_eq!(case.site.headers_at("/a", "if-modified-since"), [None, None]);

    // Its Last-Modified does not prove that the resource has changed again: other bytes are no candidate.
    let other = case.site.reply("/b", Reply::status(503));
    let newer = Reply::ok("later").header("last-modified", "Thu, 01 Jan 2026 12:00:00 GMT");
    let link = ln("duplicate", &mirror.reply("/b", newer), "");
    let list = case.list(1, &[linked(&other, &declares("B"), &[&link])]);
    case.sync_from_mirrors(&list, &[]).exits(1);
    let problem = &case.copy.run("problems", &["--json", &other]).exits(0).json_lines()[0];
    assert_eq!(problem["reason"], "http-server-error", "{problem}");
    let told = case.copy.run("explain", &[&other]).exits(0).stdout;
    assert!(told.contains("mismatch") && !told.contains("changed-again"), "{told}");
}

#[tokio::test]
async fn lnk_6_a_mirror_that_leads_back_to_the_resource_is_one_more_that_fails() {
    let case = Case::new().await;
    let [back, good] = [Site::start().await, Site::start().await];
    let uri = case.site.reply("/a", Reply::status(503));
    back.reply("/a", Reply::status(302).header("location", uri.clone()));
    good.serve("/a", "A");
    let links = [&back, &good].map(|mirror| ln("duplicate", &mirror.uri("/a"), ""));
    let list = case.list(1, &[linked(&uri, &declares("A"), &links.each_ref().map(String::as_str))]);
    let run = case.sync_from_mirrors(&list, &[]).exits(0);
    assert_eq!((run.count("stored"), run.count("mirrored")), (1, 1), "{run}");
    assert_eq!((back.requests_at("/a"), good.requests_at("/a")), (1, 1));
    assert!(case.site.requests_at("/a") <= 2, "{}", case.site.requests_at("/a"));
}

#[tokio::test]
async fn lnk_6_a_mirror_needs_the_same_permission_as_an_entry() {
    // By a name, a Source on this machine leads to no other port of it.
    let by_name = |uri: String| uri.replace("127.0.0.1", "localhost");
    let case = Case::new().await;
    let mirror = Site::start().await;
    let uri = by_name(case.site.reply("/a", Reply::status(503)));
    mirror.serve("/a", "A");
    let link = ln("duplicate", &by_name(mirror.uri("/a")), "");
    let list = by_name(case.list(1, &[linked(&uri, &declares("A"), &[&link])]));
    let run = case.copy.sync_with(&list, &["--retries", "0"]).exits(1);
    assert!(mirror.requests().is_empty(), "{run}");
    let problem = &case.copy.run("problems", &["--json", &uri]).exits(0).json_lines()[0];
    assert_eq!(
        problem["reason"], "http-server-error",
        "the failure is that of the resource itself: {problem}"
    );
}
