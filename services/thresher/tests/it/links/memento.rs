//! When a resource has changed again since it was listed, its memento gives the listed version to the history.

use super::{Case, declares, ln, time};
use crate::common::{Run, resource, urlset};
use testkit::scripted::Reply;

const MEMENTO: &str = "/20260102/v";

/// A copy that has version A. The list says B, whose bytes are at a memento, and the resource itself gives C already.
struct Story {
    case: Case,
    way_in: String,
    uri: String,
}

impl Story {
    async fn begin(options: &[&str], memento: Option<Reply>) -> Self {
        let case = Case::new().await;
        let uri = case.site.serve("/v", "A");
        let list = case.list(1, &[resource(&uri, &declares("A"))]);
        let changes = case.site.uri("/changes.xml");
        let capabilities =
            [resource(&list, "capability=\"resourcelist\""), resource(&changes, "capability=\"changelist\"")];
        let way_in = case.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &capabilities));
        let story = Self { case, way_in, uri };
        story.changes(&[]);
        story.case.copy.sync_with(&story.way_in, options).exits(0);

        let newer = Reply::ok("C").header("last-modified", "Sat, 03 Jan 2026 00:00:00 GMT");
        story.case.site.reply("/v", newer.header("etag", "\"C\""));
        if let Some(memento) = memento {
            story.case.site.reply(MEMENTO, memento);
        }
        let link = ln("memento", &story.case.site.uri(MEMENTO), &format!("modified=\"{}\"", time(2)));
        story.changes(&[story.change(2, "B").replace("</url>", &(link + "</url>"))]);
        story
    }

    fn changes(&self, entries: &[String]) {
        let md = format!("capability=\"changelist\" from=\"{}\"", time(1));
        self.case.site.serve("/changes.xml", urlset(&md, entries));
    }

    fn change(&self, day: u8, content: &str) -> String {
        resource(&self.uri, &format!("change=\"updated\" datetime=\"{}\" {}", time(day), declares(content)))
    }

    fn sync(&self) -> Run {
        self.case.sync(&self.way_in)
    }

    #[track_caller]
    fn cat(&self, day: u8) -> String {
        self.case.copy.run("cat", &[&self.uri, "--source-at", &time(day)]).exits(0).stdout
    }
}

#[tokio::test]
async fn lnk_10_t1_the_listed_version_goes_into_the_history_and_the_newer_one_waits() {
    let story = Story::begin(&["--keep-versions", "3"], Some(Reply::ok("B"))).await;
    let Story { case, uri, .. } = &story;
    let run = story.sync().exits(1).says(&[uri, "changed again"]);
    assert_eq!((run.count("stored"), run.count("failed")), (0, 1), "{run}");
    assert_eq!((case.site.requests_at("/v"), case.site.requests_at(MEMENTO)), (2, 1));
    assert_eq!((case.copy.cat(uri), case.copy.file(uri)), (b"A".to_vec(), Some(b"A".to_vec())), "{run}");
    assert_eq!(story.cat(2), "B");
    let told = case.copy.run("explain", &[uri, "--json"]).exits(0).json();
    assert_eq!(told["problem"]["reason"], "changed-again", "{told}");
    assert_eq!(told["problem"]["evidence"]["candidate"]["modified"], time(3), "{told}");
    assert_eq!(told["versions"].as_array().map(Vec::len), Some(1), "{told}");

    // It is there: the next run asks for the resource only.
    story.case.site.reply("/v", Reply::status(304));
    story.sync().exits(1);
    assert_eq!((case.site.requests_at("/v"), case.site.requests_at(MEMENTO)), (3, 1));

    // The next list declares the newer version. All three are in order.
    case.copy.run("gc", &["--retention", "0s"]).exits(0);
    story.changes(&[story.change(2, "B"), story.change(3, "C")]);
    let run = story.sync().exits(0);
    assert_eq!((case.site.requests_at("/v"), run.count("stored")), (3, 1), "{run}");
    assert_eq!([1, 2, 3].map(|day| story.cat(day)), ["A", "B", "C"]);
    assert_eq!(case.copy.cat(uri), b"C");
}

#[tokio::test]
async fn lnk_10_t2_other_bytes_of_a_memento_are_refused_and_told() {
    for wrong in [Reply::ok("X"), Reply::status(404)] {
        let story = Story::begin(&["--keep-versions", "3"], Some(wrong)).await;
        let Story { case, uri, .. } = &story;
        let run = story.sync().exits(1);
        assert_eq!((run.count("stored"), case.site.requests_at(MEMENTO)), (0, 1), "{run}");
        let told = case.copy.run("explain", &[uri]).exits(0);
        for text in ["changed-again", "candidate", &format!("its memento {}", case.site.uri(MEMENTO))] {
            assert!(told.stdout.contains(text), "{text}: {told}");
        }
        let told = case.copy.run("explain", &[uri, "--json"]).exits(0).json();
        assert_eq!(told["versions"].as_array().map_or(0, Vec::len), 0, "{told}");
        // The candidate waits all the same, and the memento is asked again with the next run.
        case.site.reply("/v", Reply::status(304));
        case.site.serve(MEMENTO, "B");
        story.sync().exits(1);
        assert_eq!((case.site.requests_at(MEMENTO), story.cat(2)), (2, "B".to_owned()));
        story.changes(&[story.change(3, "C")]);
        story.sync().exits(0);
        assert_eq!((case.copy.cat(uri), case.site.requests_at("/v")), (b"C".to_vec(), 3));
    }
}

#[tokio::test]
async fn lnk_10_a_memento_is_not_asked_for_without_a_history() {
    let story = Story::begin(&[], Some(Reply::ok("B"))).await;
    story.sync().exits(1);
    assert_eq!((story.case.site.requests_at("/v"), story.case.site.requests_at(MEMENTO)), (2, 0));
}

#[tokio::test]
async fn lnk_10_a_resource_that_is_as_listed_asks_for_no_memento() {
    let story = Story::begin(&["--keep-versions", "3"], Some(Reply::ok("B"))).await;
    story.case.site.serve("/v", "B");
    let run = story.sync().exits(0);
    assert_eq!((run.count("stored"), story.case.site.requests_at(MEMENTO)), (1, 0), "{run}");
    assert_eq!(story.case.copy.cat(&story.uri), b"B");
}

#[tokio::test]
async fn lnk_10_a_memento_needs_the_same_permission_as_an_entry() {
    // Another port of this machine is a private address that nothing allows.
    let other = crate::common::Site::start().await;
    other.serve(MEMENTO, "B");
    let story = Story::begin(&["--keep-versions", "3"], None).await;
    let link = ln("memento", &other.uri(MEMENTO).replace("127.0.0.1", "localhost"), "");
    let entry = story.change(2, "B").replace("</url>", &(link + "</url>"));
    story.changes(&[entry]);
    story.sync().exits(1);
    assert!(other.requests().is_empty());
    let told = story.case.copy.run("problems", &["--json", &story.uri]).exits(0).json_lines();
    assert_eq!(told[0]["reason"], "changed-again", "{told:?}");
}
