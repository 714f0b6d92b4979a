//! A resource that has changed again since it was listed is kept as a candidate. The next list settles it.

use std::path::{Path, PathBuf};

use crate::common::{Destination, Process, Run, Site, resource, urlset};
use fixity::Sha256;
use serde_json::Value;
use testkit::scripted::Reply;

const PATH: &str = "/1.txt";
const CHANGES: &str = "capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"";
/// The times of the listed change and of the unlisted one.
const LISTED: &str = "2026-01-02T00:00:00Z";
const AGAIN: &str = "2026-01-02T06:00:00Z";

/// A Source of one resource, and a copy that has stored its `first` version.
struct Story {
    site: Site,
    copy: Destination,
    way_in: String,
    uri: String,
}

impl Story {
    async fn begin() -> Self {
        let site = Site::start().await;
        let uri = site.uri(PATH);
        let list = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
        site.serve("/list.xml", urlset(list, &[resource(&uri, &declares("first"))]));
        site.serve("/changes.xml", urlset(CHANGES, &[]));
        let capabilities = [
            resource(&site.uri("/list.xml"), "capability=\"resourcelist\""),
            resource(&site.uri("/changes.xml"), "capability=\"changelist\""),
        ];
        let way_in = site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &capabilities));
        let story = Self { site, copy: Destination::directory(), way_in, uri };
        story.serve("first", "Wed, 31 Dec 2025 00:00:00 GMT");
        story.copy.sync(&story.way_in).exits(0);
        story
    }

    /// The list has the second version, and the Source already has a third one: it is a candidate now.
    async fn with_candidate() -> Self {
        let story = Self::begin().await;
        story.list(&[(LISTED, "second")]);
        story.serve("third", "Fri, 02 Jan 2026 06:00:00 GMT");
        story.sync().exits(1);
        story
    }

    fn serve(&self, content: &str, modified: &str) {
        let etag = format!("\"{content}\"");
        let reply = Reply::ok(content.to_owned()).header("last-modified", modified).header("etag", etag);
        self.site.reply(PATH, reply);
    }

    /// Lists versions in the Change List, each at its time.
    fn list(&self, versions: &[(&str, &str)]) {
        let entries: Vec<String> =
            versions.iter().map(|(time, content)| self.change(time, content)).collect();
        self.site.serve("/changes.xml", urlset(CHANGES, &entries));
    }

    fn change(&self, time: &str, content: &str) -> String {
        resource(&self.uri, &format!("change=\"updated\" datetime=\"{time}\" {}", declares(content)))
    }

    #[track_caller]
    fn sync(&self) -> Run {
        self.copy.sync(&self.way_in)
    }

    fn requests(&self) -> usize {
        self.site.requests_at(PATH)
    }

    /// Checks what is served, by every command.
    #[track_caller]
    fn serves(&self, content: &str, state: &str) {
        assert_eq!(self.copy.cat(&self.uri), content.as_bytes());
        assert_eq!(self.copy.file(&self.uri).as_deref(), Some(content.as_bytes()));
        let held = self.copy.ls().remove(&self.uri).expect("it is listed");
        assert_eq!((held.state.as_str(), held.sha256), (state, Some(sha256(content))));
    }

    #[track_caller]
    fn told(&self) -> Value {
        self.copy.run("explain", &[&self.uri, "--json"]).exits(0).json()
    }

    #[track_caller]
    fn candidate(&self) -> Value {
        self.told()["problem"]["evidence"]["candidate"].clone()
    }

    /// The pack that contains the candidate.
    #[track_caller]
    fn pack(&self) -> PathBuf {
        let location = &self.candidate()["location"];
        let text = |name: &str| location[name].as_str().unwrap_or_else(|| panic!("{name} in {location}"));
        let packs = Path::new(&self.copy.into).join(".thresher/packs");
        packs.join(text("source")).join(format!("{}.zip", text("pack")))
    }
}

fn sha256(content: &str) -> String {
    Sha256::of(content.as_bytes()).to_string()
}

fn declares(content: &str) -> String {
    format!("hash=\"sha-256:{}\" length=\"{}\"", sha256(content), content.len())
}

#[tokio::test]
async fn what_has_changed_again_is_asked_for_once_kept_and_not_served() {
    let story = Story::begin().await;
    story.list(&[(LISTED, "second")]);
    story.serve("third", "Fri, 02 Jan 2026 06:00:00 GMT");
    let before = story.requests();
    let run = story.sync().exits(1).says(&[&story.uri, "changed again"]);
    assert_eq!(story.requests(), before + 1, "asking again would give the same bytes: {run}");
    assert_eq!((run.count("failed"), run.count("stored")), (1, 0), "{run}");
    story.serves("first", "problem");

    let explained = story.copy.explain(&story.uri);
    for part in ["changed-again", "candidate", "not served", "declared 6 bytes", &sha256("third"), AGAIN] {
        assert!(explained.contains(part), "{part} belongs to the story:\n{explained}");
    }
    let told = story.told();
    assert_eq!(told["problem"]["reason"], "changed-again", "{told}");
    assert_eq!(told["problem"]["evidence"]["candidate"]["modified"], AGAIN, "{told}");
}

#[tokio::test]
async fn the_next_change_list_that_declares_the_candidate_makes_it_current_without_a_request() {
    let story = Story::with_candidate().await;
    let requests = story.requests();
    story.list(&[(LISTED, "second"), (AGAIN, "third")]);
    let run = story.sync().exits(0);
    assert_eq!(story.requests(), requests, "{run}");
    assert_eq!((run.count("stored"), run.count("bytes")), (1, 0), "{run}");
    story.serves("third", "present");
    assert_eq!(story.told()["problem"], Value::Null);
    story.sync().exits(0);
    assert_eq!(story.requests(), requests);
}

#[tokio::test]
async fn versions_that_came_and_went_in_between_do_not_hide_the_candidate() {
    let story = Story::with_candidate().await;
    let requests = story.requests();
    story.list(&[(LISTED, "second"), ("2026-01-02T03:00:00Z", "between"), (AGAIN, "third")]);
    let run = story.sync().exits(0);
    assert_eq!(story.requests(), requests, "{run}");
    story.serves("third", "present");
}

#[tokio::test]
async fn a_list_that_declares_yet_another_version_has_it_fetched() {
    let story = Story::with_candidate().await;
    let requests = story.requests();
    story.list(&[(LISTED, "second"), (AGAIN, "third"), ("2026-01-02T12:00:00Z", "fourth")]);
    story.serve("fourth", "Fri, 02 Jan 2026 12:00:00 GMT");
    let run = story.sync().exits(0);
    assert_eq!(story.requests(), requests + 1, "{run}");
    story.serves("fourth", "present");
    assert_eq!(story.told()["problem"], Value::Null);
}

#[tokio::test]
async fn a_list_that_declares_no_digest_has_it_fetched() {
    let story = Story::with_candidate().await;
    let requests = story.requests();
    let change = format!("change=\"updated\" datetime=\"{AGAIN}\" length=\"5\"");
    story.site.serve("/changes.xml", urlset(CHANGES, &[resource(&story.uri, &change)]));
    let run = story.sync().exits(0);
    assert_eq!(story.requests(), requests + 1, "a length alone does not tell which version is meant: {run}");
    story.serves("third", "present");
}

#[tokio::test]
async fn while_no_list_says_anything_new_the_source_is_only_asked_whether_it_still_has_it() {
    let story = Story::with_candidate().await;
    let candidate = story.candidate();
    // Only a conditional request may get this response.
    story.site.reply(PATH, Reply::status(304));
    let requests = story.requests();
    let run = story.sync().exits(1);
    assert_eq!(story.requests(), requests + 1, "{run}");
    story.serves("first", "problem");
    assert_eq!(story.told()["problem"]["reason"], "changed-again");
    assert_eq!(story.candidate(), candidate, "it waits on");

    // A request that fails for another reason does not lose it, either.
    story.site.reply(PATH, Reply::status(404));
    story.sync().exits(1);
    assert_eq!(story.told()["problem"]["reason"], "http-client-error");
    assert_eq!(story.candidate(), candidate, "it waits on");
    let requests = story.requests();
    story.list(&[(LISTED, "second"), (AGAIN, "third")]);
    story.sync().exits(0);
    assert_eq!(story.requests(), requests);
    story.serves("third", "present");
}

#[tokio::test]
async fn a_source_that_goes_back_to_what_it_listed_is_followed() {
    let story = Story::with_candidate().await;
    story.serve("second", "Fri, 02 Jan 2026 00:00:00 GMT");
    story.sync().exits(0);
    story.serves("second", "present");
}

#[tokio::test]
async fn a_list_of_a_later_moment_that_still_declares_the_old_digest_is_wrong() {
    let story = Story::with_candidate().await;
    story.list(&[("2026-01-02T12:00:00Z", "second")]);
    story.sync().exits(1);
    let told = story.told();
    assert_eq!(told["problem"]["reason"], "length-mismatch", "{told}");
    assert_eq!(story.candidate(), Value::Null, "nothing tells any more that it is a later version");
    story.serves("first", "problem");
}

#[tokio::test]
async fn a_candidate_whose_bytes_are_gone_is_fetched_again() {
    let story = Story::with_candidate().await;
    std::fs::remove_file(story.pack()).unwrap();
    story.serves("first", "problem");
    let requests = story.requests();
    story.list(&[(LISTED, "second"), (AGAIN, "third")]);
    let run = story.sync().exits(0);
    assert_eq!(story.requests(), requests + 1, "{run}");
    story.serves("third", "present");
}

#[tokio::test]
async fn a_candidate_whose_bytes_were_damaged_is_never_served_but_fetched_again() {
    let story = Story::with_candidate().await;
    let pack = story.pack();
    let bytes = std::fs::read(&pack).unwrap();
    let at = bytes.windows(5).position(|window| window == b"third").expect("members are stored as they are");
    let damaged = [&bytes[..at], b"THIRD", &bytes[at + 5..]].concat();
    std::fs::write(&pack, damaged).unwrap();
    let requests = story.requests();
    story.list(&[(LISTED, "second"), (AGAIN, "third")]);
    let run = story.sync().exits(0);
    assert_eq!(story.requests(), requests + 1, "{run}");
    story.serves("third", "present");
}

#[tokio::test]
async fn a_corrupt_one_is_no_candidate_and_is_healed_when_the_source_heals() {
    let story = Story::begin().await;
    story.list(&[(LISTED, "second")]);
    story.serve("sEcond", "Fri, 02 Jan 2026 00:00:00 GMT");
    let before = story.requests();
    let run = story.sync().exits(1);
    assert_eq!(story.requests(), before + 2, "another attempt tells damage on the way: {run}");
    assert_eq!(story.told()["problem"]["reason"], "digest-mismatch");
    assert_eq!(story.candidate(), Value::Null);
    story.serves("first", "problem");

    story.serve("second", "Fri, 02 Jan 2026 00:00:00 GMT");
    story.sync().exits(0);
    story.serves("second", "present");
}

#[tokio::test]
async fn killed_between_the_plan_and_the_judgement_the_candidate_is_taken_all_the_same() {
    let story = Story::with_candidate().await;
    let requests = story.requests();
    // The first part declares the candidate. The second one keeps the plan from completion.
    let part = |path: &str, md: &str, entries: &[String]| story.site.serve(path, urlset(md, entries));
    let closed = format!("{CHANGES} until=\"2026-01-02T08:00:00Z\"");
    let open = "capability=\"changelist\" from=\"2026-01-02T08:00:00Z\"";
    let entries = [story.change(LISTED, "second"), story.change(AGAIN, "third")];
    let first = part("/changes-1.xml", &closed, &entries);
    let empty = urlset(open, &[]);
    let never = Reply::ok(empty.clone()).delay(std::time::Duration::from_secs(600));
    let second = story.site.reply("/changes-2.xml", never);
    let index = urlset(
        CHANGES,
        &[
            resource(&first, "from=\"2026-01-01T00:00:00Z\" until=\"2026-01-02T08:00:00Z\""),
            resource(&second, "from=\"2026-01-02T08:00:00Z\""),
        ],
    );
    let index =
        index.replace("urlset", "sitemapindex").replace("<url>", "<sitemap>").replace("</url>", "</sitemap>");
    story.site.serve("/changes.xml", index);

    let process = Process::start(&mut story.copy.command("sync", &[&story.way_in]));
    process.kill_when(|| story.site.requests_at("/changes-2.xml") > 0).await;
    let pending = story.told()["pending"].clone();
    assert_eq!(pending["candidate"]["modified"], AGAIN, "the plan holds all that is needed: {pending}");
    story.serves("first", "pending");

    story.site.serve("/changes-2.xml", empty);
    let run = story.sync().exits(0);
    assert_eq!(story.requests(), requests, "{run}");
    story.serves("third", "present");
    assert_eq!(story.told()["problem"], Value::Null);
}
