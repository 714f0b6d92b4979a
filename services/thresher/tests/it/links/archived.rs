//! A gap between what is synchronized and what the Change Lists tell is closed by archived changes, if the Source has
//! them, before any Resource List is read again.

use std::time::Duration;

use super::{Case, declares, linked, ln, time};
use crate::common::{Package, Process, Run, package, resource, urlset};
use fixity::Sha256;
use testkit::files::{File, FileServer, Ranges};
use testkit::scripted::Reply;

/// A Source that offers no changes of before day 5 any more, a copy that knows those until day 2, and an Archive.
struct Gap {
    case: Case,
    way_in: String,
}

fn change(uri: &str, kind: &str, day: u8, content: &str) -> String {
    let declared = if kind == "deleted" { String::new() } else { declares(content) };
    resource(uri, &format!("change=\"{kind}\" datetime=\"{}\" {declared}", time(day)))
}

fn interval(from: u8, until: u8) -> String {
    format!("from=\"{}\" until=\"{}\"", time(from), time(until))
}

impl Gap {
    /// The Archive, of this kind, is at `/archive.xml`.
    async fn of(kind: &str) -> Self {
        let case = Case::new().await;
        let entries =
            ["/a", "/b", "/c"].map(|path| resource(&case.site.serve(path, "first"), &declares("first")));
        case.list(1, &entries);
        let offers = [
            resource(&case.site.uri("/list.xml"), "capability=\"resourcelist\""),
            resource(&case.site.uri("/changes.xml"), "capability=\"changelist\""),
            resource(&case.site.uri("/archive.xml"), &format!("capability=\"{kind}\"")),
        ];
        let way_in = case.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &offers));
        let gap = Self { case, way_in };
        gap.changes(1, &[]);
        gap.sync().exits(0);
        gap.changes(1, &[change(&gap.uri("/c"), "updated", 2, "second")]);
        gap.case.site.serve("/c", "second");
        assert_eq!(gap.sync().exits(0).count("gaps"), 0);
        assert_eq!(gap.lists(), 1);

        // From here on, the copy looks too late.
        gap.case.site.serve("/a", "third");
        gap.case.site.reply("/b", Reply::status(404));
        gap.case.site.serve("/c", "sixth");
        gap.changes(5, &[change(&gap.uri("/c"), "updated", 6, "sixth")]);
        gap
    }

    fn uri(&self, path: &str) -> String {
        self.case.site.uri(path)
    }

    fn changes(&self, from: u8, entries: &[String]) {
        let md = format!("capability=\"changelist\" from=\"{}\"", time(from));
        self.case.site.serve("/changes.xml", urlset(&md, entries));
    }

    /// An archived Change List at this path, as its own attributes and those of the Archive say.
    fn piece(&self, path: &str, own: &str, times: &str, entries: &[String]) -> String {
        let uri = self.case.site.serve(path, urlset(&format!("capability=\"changelist\" {own}"), entries));
        resource(&uri, times)
    }

    /// Two pieces from day 1 to day 5: `/a` is changed on the third, `/b` is deleted on the fourth.
    fn pieces(&self) -> [String; 2] {
        let changed =
            [change(&self.uri("/a"), "updated", 3, "third"), change(&self.uri("/c"), "updated", 2, "x")];
        let deleted = [change(&self.uri("/b"), "deleted", 4, "")];
        let [first, second] = [interval(1, 3), interval(3, 5)];
        [self.piece("/1.xml", &first, &first, &changed), self.piece("/2.xml", &second, &second, &deleted)]
    }

    fn archive(&self, kind: &str, pieces: &[String]) {
        self.case.site.serve("/archive.xml", urlset(&format!("capability=\"{kind}\""), pieces));
    }

    #[track_caller]
    fn sync(&self) -> Run {
        self.case.sync(&self.way_in)
    }

    /// How often the Resource List was requested.
    fn lists(&self) -> usize {
        self.case.site.requests_at("/list.xml")
    }

    /// Checks that the copy has all changes.
    #[track_caller]
    fn is_closed(&self) {
        assert_eq!(self.case.copy.cat(&self.uri("/a")), b"third");
        assert_eq!(
            self.case.copy.cat(&self.uri("/c")),
            b"sixth",
            "an older change does not undo a newer one"
        );
        assert_eq!(self.case.copy.state(&self.uri("/b")).as_deref(), Some("deleted"));
        assert_eq!(self.case.copy.run("problems", &["--json"]).exits(0).json_lines().len(), 0);
        let run = self.sync().exits(0);
        assert_eq!((run.count("gaps"), run.count("stored")), (0, 0), "the set has moved on: {run}");
    }
}

const LISTS: &str = "changelist-archive";
const DUMPS: &str = "changedump-archive";

#[tokio::test]
async fn arc_t3_a_gap_is_closed_by_archived_change_lists_without_a_resource_list() {
    let gap = Gap::of(LISTS).await;
    let mut pieces = gap.pieces().to_vec();
    // Of another time: it is not read.
    pieces.push(gap.piece("/0.xml", &interval(1, 2), &interval(1, 2), &[]));
    gap.archive(LISTS, &pieces);
    let run = gap.sync().exits(0);
    assert_eq!((run.count("gaps"), gap.lists()), (1, 1), "{run}");
    let asked = ["/archive.xml", "/1.xml", "/2.xml", "/0.xml"].map(|path| gap.case.site.requests_at(path));
    assert_eq!(asked, [1, 1, 1, 0], "{run}");
    gap.is_closed();
    assert_eq!(gap.lists(), 1);
    let asked = ["/archive.xml", "/1.xml"].map(|path| gap.case.site.requests_at(path));
    assert_eq!(asked, [1, 1], "no gap, no look at the Archive");
}

#[tokio::test]
async fn arc_3_an_archive_that_leaves_a_hole_is_not_read_and_the_list_is() {
    let gap = Gap::of(LISTS).await;
    let [first, _] = gap.pieces();
    let late = gap.piece("/2.xml", &interval(4, 5), &interval(4, 5), &[]);
    gap.archive(LISTS, &[first, late]);
    let list = [resource(&gap.uri("/a"), &declares("third")), resource(&gap.uri("/c"), &declares("sixth"))];
    gap.case.list(7, &list);
    gap.case.copy.sync_with(&gap.way_in, &["--absent", "delete", "--max-deletes", "100%"]).exits(0);
    assert_eq!((gap.case.site.requests_at("/1.xml"), gap.lists()), (0, 2));
    gap.is_closed();
}

#[tokio::test]
async fn arc_3_an_archived_list_that_cannot_be_read_leaves_it_to_the_list_and_is_no_problem() {
    for broken in ["/archive.xml", "/2.xml"] {
        let gap = Gap::of(LISTS).await;
        let pieces = gap.pieces();
        gap.archive(LISTS, &pieces);
        gap.case.site.reply(broken, Reply::status(404));
        let list =
            [resource(&gap.uri("/a"), &declares("third")), resource(&gap.uri("/c"), &declares("sixth"))];
        gap.case.list(7, &list);
        let options = ["--absent", "delete", "--max-deletes", "100%"];
        let run = gap.case.copy.sync_with(&gap.way_in, &options).exits(0);
        assert_eq!(gap.lists(), 2, "{broken}: {run}");
        gap.is_closed();
    }
}

#[tokio::test]
async fn arc_3_an_archived_list_without_an_end_of_its_own_hides_no_hole() {
    let gap = Gap::of(LISTS).await;
    let from = format!("from=\"{}\"", time(1));
    let changed = [change(&gap.uri("/a"), "updated", 3, "third")];
    let open = |until| gap.piece("/1.xml", &from, &interval(1, until), &changed);
    // Its own text reads as if it were still written to.
    gap.archive(LISTS, &[open(3)]);
    let run = gap.sync().exits(1).says(&["gap"]);
    assert_eq!((gap.case.site.requests_at("/1.xml"), gap.lists()), (0, 2), "{run}");

    let [_, second] = gap.pieces();
    gap.archive(LISTS, &[open(3), second]);
    gap.sync().exits(0);
    assert_eq!((gap.case.site.requests_at("/1.xml"), gap.lists()), (1, 2));
    gap.is_closed();

    // The end that the Archive states is the end: what follows is a gap again.
    gap.archive(LISTS, &[]);
    gap.changes(9, &[]);
    gap.sync().exits(1).says(&["gap"]);
}

#[tokio::test]
async fn arc_3_archived_change_dumps_close_a_gap_too() {
    let gap = Gap::of(DUMPS).await;
    let held = Package::of_changes(&time(1), &time(5));
    let held = held.changed(&gap.uri("/a"), "updated", &time(3), "third");
    let bytes = held.deleted(&gap.uri("/b"), &time(4)).zip();
    let entry = package(&gap.uri("/1.zip"), &bytes, "");
    gap.case.site.reply("/1.zip", Reply::ok(bytes));
    let dump = urlset(&format!("capability=\"changedump\" {}", interval(1, 5)), &[entry]);
    let uri = gap.case.site.serve("/dump.xml", dump);
    gap.archive(DUMPS, &[resource(&uri, &interval(1, 5))]);
    let run = gap.sync().exits(0);
    assert_eq!((gap.case.site.requests_at("/1.zip"), gap.lists()), (1, 1), "{run}");
    assert_eq!(gap.case.site.requests_at("/a"), 1, "its bytes were in the package: {run}");
    gap.is_closed();
}

#[tokio::test]
async fn arc_3_killed_between_two_archived_lists_nothing_is_lost() {
    let gap = Gap::of(LISTS).await;
    let pieces = gap.pieces();
    gap.archive(LISTS, &pieces);
    gap.case.site.next("/2.xml", Reply::status(503).delay(Duration::from_secs(600)));
    let killed = Process::start(&mut gap.case.copy.command("sync", &[&gap.way_in]));
    killed.kill_when(|| gap.case.site.requests_at("/2.xml") == 1).await;
    let run = gap.sync().exits(0);
    assert_eq!((gap.case.site.requests_at("/2.xml"), gap.lists()), (2, 1), "{run}");
    gap.is_closed();
}

/// What `ls --source-at` shows, as paths and digests.
fn had(case: &Case, moment: &str) -> Vec<(String, String)> {
    let lines = case.copy.run("ls", &["--json", "--source-at", moment]).exits(0).json_lines();
    let base = case.site.uri("");
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    lines.iter().map(|line| (text(&line["uri"]).replace(&base, ""), text(&line["sha256"]))).collect()
}

fn has(versions: &[(&str, &str)]) -> Vec<(String, String)> {
    let line =
        |(path, content): &(&str, &str)| ((*path).to_owned(), Sha256::of(content.as_bytes()).to_string());
    versions.iter().map(line).collect()
}

#[tokio::test]
async fn arc_t2_between_two_editions_the_source_had_what_the_first_one_lists() {
    let case = Case::new().await;
    let edition = |day: u8, versions: &[(&str, &str)]| {
        let entry =
            |(path, content): &(&str, &str)| resource(&case.site.serve(path, *content), &declares(content));
        case.list(day, &versions.iter().map(entry).collect::<Vec<_>>())
    };
    let options = ["--keep-versions", "3", "--absent", "delete", "--max-deletes", "100%"];
    let list = edition(1, &[("/a", "first"), ("/b", "only")]);
    case.copy.sync_with(&list, &options).exits(0);
    edition(5, &[("/a", "second"), ("/c", "new")]);
    case.copy.sync_with(&list, &options).exits(0);
    assert_eq!(had(&case, &time(3)), has(&[("/a", "first"), ("/b", "only")]));
    assert_eq!(had(&case, &time(6)), has(&[("/a", "second"), ("/c", "new")]));
    assert_eq!(had(&case, "2025-12-31"), []);
    case.copy.run("ls", &["--at", "2026-01-03", "--source-at", "2026-01-03"]).exits(2);
}

#[tokio::test]
async fn arc_t2_archived_editions_say_what_there_was_before_the_copy() {
    let case = Case::new().await;
    let entry = |day: u8, content: &str| {
        let link = ln("memento", &case.site.reply(&format!("/{day}/a"), version(content, day)), "");
        let lastmod = format!("</loc><lastmod>{}</lastmod>", time(day));
        linked(&case.site.uri("/a"), &declares(content), &[&link]).replace("</loc>", &lastmod)
    };
    case.site.serve("/a", "third");
    case.list(9, &[entry(8, "third")]);
    let past = [(1, "first"), (4, "second")].map(|(day, content)| {
        let at = format!("at=\"{}\"", time(day + 1));
        let list = urlset(&format!("capability=\"resourcelist\" {at}"), &[entry(day, content)]);
        resource(&case.site.serve(&format!("/list-{day}.xml"), list), &at)
    });
    let kind = "capability=\"resourcelist-archive\"";
    let archive = case.site.serve("/archive.xml", urlset(kind, &past));
    let offers =
        [resource(&case.site.uri("/list.xml"), "capability=\"resourcelist\""), resource(&archive, kind)];
    let way_in = case.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &offers));
    case.sync(&way_in).exits(0);
    assert_eq!(had(&case, &time(3)), []);
    case.copy.run("backfill", &["--archives", "--versions", "5"]).exits(0);
    for (day, content) in [(3, "first"), (6, "second"), (9, "third")] {
        assert_eq!(had(&case, &time(day)), has(&[("/a", content)]), "day {day}");
    }
}

/// Packages of dumps of the past are not received: their manifests are read, and the members that are wanted.
#[tokio::test]
async fn arc_3_what_there_was_at_a_time_comes_from_archived_dumps() {
    let case = Case::new().await;
    let files = FileServer::start().await.unwrap();
    let [a, b] = ["/a", "/b"].map(|path| case.site.uri(path));
    case.site.serve("/a", "fourth");
    case.site.serve("/b", "new");
    let present = |uri: &str, content: &str| {
        let lastmod = format!("</loc><lastmod>{}</lastmod>", time(8));
        resource(uri, &declares(content)).replace("</loc>", &lastmod)
    };
    case.list(9, &[present(&a, "fourth"), present(&b, "new")]);
    // Of a dump, most is about what is not wanted.
    let filler = vec![b'x'; 2 << 20];
    let mut length = 0;
    let mut serve = |name: &str, held: Package| {
        let bytes = held.holds(&case.site.uri("/other"), &filler).zip();
        length += bytes.len() as u64;
        let entry = package(&files.uri(name), &bytes, "");
        let etag = format!("\"{}\"", Sha256::of(&bytes));
        files.serve(name, File::new(bytes, &etag).with(Ranges::Given));
        entry
    };
    let snapshots = [(2, "first"), (4, "second")].map(|(day, content)| {
        let held = Package::of_resources(&time(day)).deflated().holds(&a, content).stored();
        let entry = serve(&format!("/{day}.zip"), held);
        let at = format!("at=\"{}\"", time(day));
        let dump = urlset(&format!("capability=\"resourcedump\" {at}"), &[entry]);
        resource(&case.site.serve(&format!("/dump-{day}.xml"), dump), &at)
    });
    let held = Package::of_changes(&time(5), &time(7)).changed(&a, "updated", &time(6), "third");
    let packages = [
        serve("/changes.zip", held),
        // Its end cannot be read by ranges: it is told.
        resource(&files.uri("/missing.zip"), ""),
    ];
    let dump = urlset(&format!("capability=\"changedump\" {}", interval(5, 7)), &packages);
    let changes = resource(&case.site.serve("/changed.xml", dump), &interval(5, 7));
    let archives = [("resourcedump-archive", &snapshots[..]), ("changedump-archive", &[changes])];
    let mut offers = vec![resource(&case.site.uri("/list.xml"), "capability=\"resourcelist\"")];
    for (kind, entries) in archives {
        let kind_of = format!("capability=\"{kind}\"");
        let archive = case.site.serve(&format!("/{kind}.xml"), urlset(&kind_of, entries));
        offers.push(resource(&archive, &kind_of));
    }
    let way_in = case.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &offers));
    case.sync(&way_in).exits(0);
    assert_eq!(had(&case, &time(3)), []);

    let backfill = || case.copy.run("backfill", &["--archives", "--versions", "9", "--json"]);
    let run = backfill().exits(1);
    assert_eq!((run.count("stored"), run.count("dump_archives"), run.count("not_held")), (3, 2, 0), "{run}");
    assert_eq!(run.json()["failed"], serde_json::json!({"package-unreadable": 1}), "{run}");
    assert!(files.sent() < length / 4, "{} of {length} bytes", files.sent());
    for (day, content) in [(3, "first"), (5, "second"), (7, "third")] {
        assert_eq!(had(&case, &time(day)), has(&[("/a", content)]), "day {day}");
        let told = case.copy.run("cat", &[&a, "--source-at", &time(day)]).exits(0);
        assert_eq!(told.stdout, content, "day {day}");
    }
    assert_eq!(had(&case, &time(9)), has(&[("/a", "fourth"), ("/b", "new")]));
    assert_eq!(had(&case, &time(1)), []);
    assert_eq!(backfill().exits(1).count("stored"), 0, "nothing is added twice");
}

/// A version of a day, as a Memento server gives it.
fn version(content: &str, day: u8) -> Reply {
    let moment = links::http_date(time(day).parse().expect("a time")).expect("a time of our days");
    Reply::ok(content.to_owned()).header("memento-datetime", moment)
}
