//! Discovery results are cached: they are requested again only when there is a reason, by conditional requests.

use crate::common::{Destination, Run, Site, requests_at, resource, source, urlset};
use simulated_source::{ChangeKind, Changes, SimulatedSource, Size, SourceSpec};
use testkit::scripted::Reply;

const CAPS: &str = "capability=\"capabilitylist\"";
const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
const CHANGES: &str = "capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"";

fn small() -> SourceSpec {
    SourceSpec::default().resources(25).size(Size::Range(0, 600))
}

/// The requests of an idle run, without `robots.txt`, which a second one to the same origin needs. All of them must be
/// conditional.
#[track_caller]
fn idle(source: &SimulatedSource, copy: &Destination, way_in: &str, options: &[&str]) -> u64 {
    source.reset_requests();
    let run = copy.sync_with(way_in, options).exits(0);
    let asked = source.requests();
    assert_eq!(asked.resources, 0, "{run}");
    let documents = asked.documents - requests_at(source, "/robots.txt");
    assert_eq!(asked.by_status.get(&304), Some(&documents), "all are conditional: {asked:?}");
    assert_eq!(documents == 1, asked.documents == 1, "one request needs no robots.txt: {asked:?}");
    assert_eq!(run.count("requests"), asked.documents, "and all are counted: {run}");
    documents
}

#[tokio::test]
async fn a_run_with_nothing_new_costs_one_request_or_two() {
    // Found by the well-known place: Source Description, Capability List, Change List.
    let followed = source(small()).await;
    let copy = Destination::directory();
    copy.sync(&followed.well_known()).exits(0);
    assert_eq!(idle(&followed, &copy, &followed.well_known(), &[]), 1, "a Change List");
    let site = Destination::directory();
    site.sync(&followed.url()).exits(0);
    assert_eq!(idle(&followed, &site, &followed.url(), &[]), 1, "a Change List, entered by the site");

    let bare = Destination::directory();
    bare.sync(&followed.change_list()).exits(0);
    assert_eq!(idle(&followed, &bare, &followed.change_list(), &[]), 1, "a bare Change List");

    let indexed = source(small().entries_per_change_list(10)).await;
    indexed.change(Changes { create: 10, update: 15, delete: 0 });
    let copy = Destination::directory();
    copy.sync(&indexed.well_known()).exits(0);
    assert_eq!(idle(&indexed, &copy, &indexed.well_known(), &[]), 2, "an index and its open Change List");

    let listed = source(small().change_list(false)).await;
    let copy = Destination::directory();
    copy.sync(&listed.well_known()).exits(0);
    assert_eq!(idle(&listed, &copy, &listed.well_known(), &[]), 1, "a Resource List");
}

/// With one request at a time, an open response to the list would block all other requests.
#[tokio::test]
async fn a_list_that_is_the_way_in_is_asked_for_once_however_few_requests_may_be_open() {
    for at_once in ["1", "4"] {
        let source = source(small().count_paths(true)).await;
        let way_in = source.resource_list();
        let copy = Destination::directory();
        let sync =
            |more: &[&str]| copy.sync_with(&way_in, &[&["--concurrency", at_once], more].concat()).exits(0);
        let run = sync(&[]);
        copy.mirrors(&source);
        assert_eq!((requests_at(&source, &way_in), source.requests().documents), (1, 2), "and robots.txt");
        assert_eq!(run.count("requests"), 25 + 2, "{run}");

        source.change_one(3, ChangeKind::Updated);
        source.refresh_resource_list();
        source.reset_requests();
        let run = sync(&["--rediscover"]);
        copy.mirrors(&source);
        let log = source.requests();
        assert_eq!((requests_at(&source, &way_in), log.documents, log.resources), (1, 2, 1), "{run}");
        assert_eq!(run.count("requests"), 1 + 2, "{run}");
    }
}

#[tokio::test]
async fn while_what_is_held_is_laid_out_the_list_is_not_left_standing() {
    let source = source(small().count_paths(true)).await;
    let way_in = source.resource_list();
    let copy = Destination::directory();
    copy.sync_with(&way_in, &["--view", "none"]).exits(0);
    source.change_one(3, ChangeKind::Updated);
    source.refresh_resource_list();
    source.reset_requests();
    copy.sync_with(&way_in, &["--view", "files", "--rediscover"]).exits(0);
    copy.mirrors(&source);
    assert_eq!(requests_at(&source, &way_in), 2, "let go of, and asked for anew");
}

#[tokio::test]
async fn when_it_is_asked_anew_each_document_is_only_asked_whether_it_is_the_same() {
    let source = source(small()).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    for options in [&["--rediscover"][..], &["--rediscover-after", "0s"]] {
        assert_eq!(idle(&source, &copy, &source.well_known(), options), 3, "{options:?}");
    }
    assert_eq!(idle(&source, &copy, &source.well_known(), &["--mode", "baseline"]), 4);
    assert_eq!(idle(&source, &copy, &source.well_known(), &[]), 1, "and what was found stays known");
    source.change_one(3, ChangeKind::Updated);
    copy.sync_with(&source.well_known(), &["--rediscover"]).exits(0);
    copy.mirrors(&source);
    assert_eq!(requests_at(&source, &source.resource_list()), 0, "nor does that make a baseline of it");
}

/// A Source of one resource, with a Capability List whose Change List can be moved.
struct Moving {
    site: Site,
    way_in: String,
    copy: Destination,
}

impl Moving {
    async fn harvested() -> Self {
        let site = Site::start().await;
        let one = site.serve("/1.txt", "first");
        site.serve("/list.xml", urlset(LIST, &[resource(&one, "")]));
        site.serve("/changes.xml", urlset(CHANGES, &[]));
        let way_in = site.uri("/caps.xml");
        let case = Self { site, way_in, copy: Destination::directory() };
        case.offers("/changes.xml", "\"one\"");
        case.sync().exits(0);
        case
    }

    /// From now on the Capability List names this Change List.
    fn offers(&self, changes: &str, etag: &str) {
        let entries = [
            resource(&self.site.uri("/list.xml"), "capability=\"resourcelist\""),
            resource(&self.site.uri(changes), "capability=\"changelist\""),
        ];
        self.site.reply("/caps.xml", Reply::ok(urlset(CAPS, &entries)).header("etag", etag));
    }

    fn tells_update(&self, changes: &str, second: u32) {
        let md = format!("change=\"updated\" datetime=\"2026-01-02T00:00:{second:02}Z\"");
        self.site.serve(changes, urlset(CHANGES, &[resource(&self.site.uri("/1.txt"), &md)]));
    }

    fn sync(&self) -> Run {
        self.copy.sync(&self.way_in)
    }
}

#[tokio::test]
async fn a_change_list_that_has_moved_is_found_in_the_same_run() {
    let case = Moving::harvested().await;
    let gone = [Reply::status(404), Reply::status(410), Reply::ok("<!DOCTYPE html><html>moved</html>")];
    for (n, reply) in (1_u32..).zip(gone) {
        let before = if n == 1 { "/changes.xml".to_owned() } else { format!("/changes-{}.xml", n - 1) };
        let after = format!("/changes-{n}.xml");
        case.site.reply(&before, reply);
        case.site.serve("/1.txt", format!("version {n}"));
        case.tells_update(&after, n);
        case.offers(&after, &format!("\"{after}\""));
        let run = case.sync().exits(0);
        assert_eq!(run.count("stored"), 1, "{run}");
        assert_eq!(case.copy.cat(&case.site.uri("/1.txt")), format!("version {n}").as_bytes());
    }
    let asked = case.site.requests_at("/changes.xml");
    case.sync().exits(0);
    assert_eq!(case.site.requests_at("/changes.xml"), asked, "what is offered no longer is forgotten");
}

#[tokio::test]
async fn a_change_list_that_is_gone_but_still_offered_stays_a_problem() {
    let case = Moving::harvested().await;
    case.site.reply("/changes.xml", Reply::status(404));
    let uri = case.site.uri("/changes.xml");
    let asked = case.site.requests_at("/caps.xml");
    case.sync().exits(1).says(&[&uri, "404"]);
    assert_eq!(case.site.requests_at("/caps.xml"), asked + 1, "the Capability List still names it");
    case.tells_update("/changes.xml", 1);
    case.sync().exits(0);
}

#[tokio::test]
async fn a_capability_list_that_has_changed_is_taken_at_the_next_look() {
    let case = Moving::harvested().await;
    case.tells_update("/other.xml", 1);
    case.offers("/other.xml", "\"two\"");
    case.sync().exits(0);
    assert_eq!(case.site.requests_at("/other.xml"), 0, "within the hour it is not looked at");
    case.copy.sync_with(&case.way_in, &["--rediscover"]).exits(0);
    assert_eq!(case.site.conditions_at("/caps.xml"), [None, Some("\"one\"".to_owned())]);
    assert_eq!(case.site.requests_at("/other.xml"), 1);
    case.copy.sync_with(&case.way_in, &["--rediscover"]).exits(0);
    assert_eq!(case.site.conditions_at("/caps.xml").pop(), Some(Some("\"two\"".to_owned())));
}

#[tokio::test]
async fn a_capability_list_with_a_bad_entry_is_always_read() {
    let case = Moving::harvested().await;
    let entries = [
        resource(&case.site.uri("/changes.xml"), "capability=\"changelist\""),
        "<url><rs:md capability=\"resourcelist\"/></url>".to_owned(),
    ];
    case.site.reply("/caps.xml", Reply::ok(urlset(CAPS, &entries)).header("etag", "\"bad\""));
    for _ in 0..2 {
        case.copy.sync_with(&case.way_in, &["--rediscover"]).exits(0);
    }
    assert_eq!(case.site.conditions_at("/caps.xml").pop(), Some(None));
}

#[tokio::test]
async fn a_look_that_failed_in_part_is_repeated_at_the_next_run() {
    let site = Site::start().await;
    let one = site.serve("/1.txt", "first");
    site.serve("/list.xml", urlset(LIST, &[resource(&one, "")]));
    site.serve("/a.xml", urlset(CAPS, &[resource(&site.uri("/list.xml"), "capability=\"resourcelist\"")]));
    site.reply("/b.xml", Reply::status(404));
    let sets = [resource(&site.uri("/a.xml"), CAPS), resource(&site.uri("/b.xml"), CAPS)];
    let description = urlset("capability=\"description\"", &sets);
    let way_in = site.serve("/description.xml", description);
    let copy = Destination::directory();
    copy.sync(&way_in).exits(1).says(&["/b.xml"]);
    copy.sync(&way_in).exits(1);
    assert_eq!(site.requests_at("/b.xml"), 2);
    let two = site.serve("/2.txt", "second");
    site.serve("/list-b.xml", urlset(LIST, &[resource(&two, "")]));
    site.serve("/b.xml", urlset(CAPS, &[resource(&site.uri("/list-b.xml"), "capability=\"resourcelist\"")]));
    copy.sync(&way_in).exits(0);
    assert_eq!(copy.cat(&two), b"second");
    copy.sync(&way_in).exits(0);
    assert_eq!(site.requests_at("/b.xml"), 3, "now it is remembered");
}

#[tokio::test]
async fn a_length_of_time_without_unit_is_wrong_usage() {
    let copy = Destination::directory();
    let run = copy.sync_with("http://127.0.0.1:1/", &["--rediscover-after", "60"]).exits(2);
    assert!(run.stderr.contains("90s"), "{run}");
}
