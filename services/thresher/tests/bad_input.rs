//! Whatever a Source or an operator does wrong: one clear line, the right exit status, and nothing held is lost.
#![allow(missing_docs)]

mod common;

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use common::{Destination, Run, Site, View, in_step, requests_at, resource, source, thresher, urlset};
use tempfile::TempDir;
use testkit::scripted::Reply;
use testkit::source::{ChangeKind, Changes, Fault, SimulatedSource, Size, SourceSpec};

/// Words that tell a person what to do.
const CHECK: &[&str] = &["check", "give", "is it", "try", "look", "ask"];
const AGAIN: &[&str] = &["again", "retry", "retries"];
const OVER_HTTP: &[&str] = &["over http", "give", "check"];

const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";

fn small(resources: u64) -> SourceSpec {
    SourceSpec::default().resources(resources).size(Size::Range(1, 600))
}

// What cannot be reached, or is no Source

#[tokio::test]
async fn a_web_page_is_no_source() {
    let site = Site::start().await;
    let page = Reply::ok("<!DOCTYPE html><html><body><p>Welcome<br></body></html>")
        .header("content-type", "text/html");
    let url = site.reply("/page", page);
    let copy = Destination::directory();
    let run = copy.sync(&url).exits(3).complains(&[&url, "HTML"], CHECK);
    assert_eq!(run.stdout, "", "nothing to report: {run}");
}

#[tokio::test]
async fn a_site_that_offers_nothing_is_no_source() {
    let site = Site::start().await;
    site.reply("/", Reply::ok("<!DOCTYPE html><html><body>Hello</body></html>"));
    site.reply("/.well-known/resourcesync", Reply::status(404));
    site.reply("/robots.txt", Reply::status(404));
    Destination::directory().sync(&site.uri("/")).exits(3).complains(&[&site.uri("/")], CHECK);
}

#[tokio::test]
async fn a_404_is_no_source() {
    let site = Site::start().await;
    let url = site.reply("/nothing.xml", Reply::status(404));
    site.reply("/.well-known/resourcesync", Reply::status(404));
    Destination::directory().sync(&url).exits(3).complains(&[&url, "404"], CHECK);
}

#[tokio::test]
async fn other_xml_is_no_source() {
    let site = Site::start().await;
    let url = site.serve("/feed.xml", "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel/></rss>");
    site.reply("/.well-known/resourcesync", Reply::status(404));
    Destination::directory().sync(&url).exits(3).complains(&[&url, "rss"], &["expected", "check", "give"]);
}

#[tokio::test]
async fn a_source_without_anything_usable_is_told_what_would_be() {
    let site = Site::start().await;
    let dump = [resource(&site.uri("/dump.xml"), "capability=\"resourcedump\"")];
    let url = site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &dump));
    Destination::directory().sync(&url).exits(3).complains(&[&url, "resourcedump"], &["resource list"]);
}

#[tokio::test]
async fn who_cannot_be_reached_is_named_and_nothing_that_is_held_is_touched() {
    let (gone, held) = in_step(small(30)).await;
    let (view, ls, way_in) = (held.view(), held.ls(), gone.well_known());
    let address = gone.url().replace("http://", "");
    gone.shutdown();
    let nowhere = Destination::directory();
    // Side by side, since each is tried more than once before it is given up.
    std::thread::scope(|scope| {
        scope.spawn(|| held.sync(&way_in).exits(3).complains(&[&address], CHECK));
        scope.spawn(|| {
            nowhere.sync("http://nosuchhost.invalid/").exits(3).complains(&["nosuchhost.invalid"], CHECK);
        });
        scope.spawn(|| {
            let closed = {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                listener.local_addr().unwrap().to_string()
            };
            Destination::directory().sync(&format!("http://{closed}/")).exits(3).complains(&[&closed], CHECK);
        });
    });
    assert_eq!((held.view(), held.ls()), (view, ls));
}

#[tokio::test]
async fn a_source_that_goes_away_in_the_middle_is_taken_up_when_it_is_back() {
    let first = source(small(600)).await;
    let (way_in, port) = (first.well_known(), first.url().rsplit(':').next().unwrap().parse().unwrap());
    let copy = Destination::directory();
    let mut command = copy.command("sync", &[&way_in, "--json"]);
    let child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    while first.requests().resources < 200 {
        tokio::task::yield_now().await;
    }
    first.shutdown();
    let output = child.wait_with_output().unwrap();
    Run::ended(&command, &output).exits(3).complains(&[&format!("127.0.0.1:{port}")], AGAIN);
    assert!(copy.ls().values().all(|held| held.state == "present" || held.state == "pending"));

    let back = source(small(600).port(port)).await;
    copy.sync(&way_in).exits(0);
    copy.mirrors(&back);
    assert!(
        back.requests().resources <= 430,
        "what is held is not asked for: {:?}",
        back.requests().resources
    );
}

// Documents

#[tokio::test]
async fn a_truncated_list_gives_what_stands_before_the_cut() {
    let source = source(small(40)).await;
    source.set_fault(source.resource_list(), Fault::TruncateDocument);
    let copy = Destination::directory();
    let run = copy.sync(&source.well_known()).exits(1).says(&[&source.resource_list(), "cut short"]);
    assert_eq!(run.json()["in_sync"], false, "{run}");
    assert_eq!(copy.present().len(), 20, "{run}");
    assert_eq!(copy.view().len(), 20);

    source.clear_faults();
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_malformed_list_gives_what_stands_before_the_fault() {
    let source = source(small(40)).await;
    source.set_fault(source.resource_list(), Fault::MalformedDocument);
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(1).says(&[&source.resource_list(), "not well-formed", "line"]);
    assert_eq!(copy.present().len(), 20);
    source.clear_faults();
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_bare_list_that_is_malformed_gives_what_stands_before_the_fault() {
    let source = source(small(40)).await;
    source.set_fault(source.resource_list(), Fault::MalformedDocument);
    let copy = Destination::directory();
    copy.sync(&source.resource_list()).exits(1).says(&[&source.resource_list(), "not well-formed"]);
    assert_eq!(copy.present().len(), 20);
}

#[tokio::test]
async fn a_part_that_cannot_be_read_costs_its_own_entries_only() {
    let source = source(small(40).entries_per_list(10)).await;
    let part = source.resource_list().replace(".xml", "-2.xml");
    for fault in [Fault::status(404), Fault::HtmlPage] {
        source.set_fault(part.as_str(), fault);
        let copy = Destination::directory();
        copy.sync(&source.well_known()).exits(1).says(&[&part]);
        assert_eq!(copy.present().len(), 30);
        source.clear_faults();
        copy.sync(&source.well_known()).exits(0);
        copy.mirrors(&source);
    }
}

#[tokio::test]
async fn a_spoiled_list_costs_nothing_that_is_held() {
    for fault in [Fault::TruncateDocument, Fault::MalformedDocument, Fault::HtmlPage, Fault::status(404)] {
        let (source, copy) = in_step(small(40)).await;
        let (held, view) = (copy.ls(), copy.view());
        source.change(Changes { create: 10, update: 0, delete: 0 });
        source.refresh_resource_list();
        source.set_fault(source.resource_list(), fault.clone());
        source.set_fault(source.change_list(), fault.clone());
        let run = copy.sync_with(&source.well_known(), &["--mode", "baseline"]).exits(1);
        let run = run.says(&[&source.resource_list(), &source.change_list()]);
        let (ls, files) = (copy.ls(), copy.view());
        assert!(held.iter().all(|(uri, before)| ls.get(uri) == Some(before)), "{fault:?}: {run}");
        assert!(view.iter().all(|(name, before)| files.get(name) == Some(before)), "{fault:?}: {run}");
        source.clear_faults();
        copy.sync_with(&source.well_known(), &["--mode", "baseline"]).exits(0);
        copy.mirrors(&source);
    }
}

#[tokio::test]
async fn a_spoiled_change_list_hides_no_change_for_ever() {
    for fault in [Fault::TruncateDocument, Fault::MalformedDocument, Fault::cut_off(300)] {
        let (source, copy) = in_step(small(40)).await;
        source.change(Changes { create: 4, update: 8, delete: 4 });
        source.set_fault(source.change_list(), fault.clone());
        let run = copy.sync(&source.well_known()).exits(1).says(&[&source.change_list()]);
        assert_eq!(run.json()["in_sync"], false, "{fault:?}: {run}");
        source.clear_faults();
        copy.sync(&source.well_known()).exits(0);
        copy.mirrors(&source);
    }
}

#[tokio::test]
async fn a_bad_entry_never_loses_a_list() {
    let site = Site::start().await;
    let [one, two] = ["/1.txt", "/2.txt"].map(|path| site.serve(path, format!("this is {path}")));
    let bad = [
        resource(&one, ""),
        "  <url><lastmod>2026-01-01</lastmod></url>\n".to_owned(),
        resource("ftp://example.org/x", ""),
        resource("http://[broken/x", ""),
        resource(&two, "length=\"many\""),
    ];
    let url = site.serve("/list.xml", urlset(LIST, &bad));
    let copy = Destination::directory();
    // Each problem is named by document, line and column.
    let run =
        copy.sync(&url).exits(1).says(&[&format!("{url}#5:"), &format!("{url}#6:"), &format!("{url}#7:")]);
    assert_eq!(run.count("stored"), 2, "{run}");
    assert_eq!(copy.cat(&two), b"this is /2.txt");
    assert_eq!(run.json()["quirks"]["unreadable-length"], 1, "{run}");

    site.serve("/list.xml", urlset(LIST, &[resource(&one, ""), resource(&two, "")]));
    copy.sync(&url).exits(0);
}

#[tokio::test]
async fn an_empty_list_is_no_failure_and_deletes_nothing() {
    let site = Site::start().await;
    let url = site.serve("/list.xml", urlset(LIST, &[]));
    let copy = Destination::directory();
    let run = copy.sync(&url).exits(0);
    assert_eq!((run.count("listed"), run.count("stored"), run.count("deleted")), (0, 0, 0), "{run}");

    let one = site.serve("/1.txt", "one");
    site.serve("/list.xml", urlset(LIST, &[resource(&one, "")]));
    copy.sync(&url).exits(0);
    site.serve("/list.xml", urlset(&LIST.replace("2026", "2027"), &[]));
    let run = copy.sync(&url).exits(0);
    assert_eq!((run.count("listed"), run.count("deleted")), (0, 0), "{run}");
    assert_eq!((copy.cat(&one), copy.file(&one)), (b"one".to_vec(), Some(b"one".to_vec())));
}

#[tokio::test]
async fn an_entity_bomb_is_refused() {
    let site = Site::start().await;
    let bomb = "<?xml version=\"1.0\"?><!DOCTYPE u [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\">]><urlset/>";
    let url = site.serve("/list.xml", bomb);
    site.reply("/.well-known/resourcesync", Reply::status(404));
    let copy = Destination::directory();
    copy.sync(&url).exits(3).complains(&[&url, "DOCTYPE"], &["refused"]);
}

#[tokio::test]
async fn strict_refuses_what_is_tolerated_otherwise() {
    let site = Site::start().await;
    let one = site.serve("/1.txt", "one");
    let url = site.serve("/list.xml", urlset("capability=\"resourcelist\"", &[resource(&one, "")]));
    let copy = Destination::directory();
    let strict = copy.sync_with(&url, &["--strict"]);
    assert!(matches!(strict.exit, Some(1 | 3)), "{strict}");
    assert!(strict.stderr.contains("missing-at"), "{strict}");
    copy.sync(&url).exits(0);
    assert_eq!(copy.cat(&one), b"one");
}

// Resources

#[tokio::test]
async fn whatever_is_wrong_with_a_new_version_the_one_held_is_kept_until_it_is_mended() {
    let (source, copy) = in_step(small(30)).await;
    let elsewhere = source.resource_uri(1).replace(&source.url(), "");
    let wrongs = [
        (10, Fault::WrongDigest, "digest-mismatch"),
        (11, Fault::WrongLength, "length-mismatch"),
        (12, Fault::status(404), "http-client-error"),
        (13, Fault::status(500), "http-server-error"),
        (14, Fault::cut_off(0), "interrupted"),
        (15, Fault::HtmlPage, "mismatch"),
        (16, Fault::Redirect(elsewhere), "mismatch"),
    ];
    let before = copy.ls();
    let view = copy.view();
    source.change_one(8, ChangeKind::Updated);
    for (index, fault, _) in &wrongs {
        source.change_one(*index, ChangeKind::Updated);
        source.set_fault(*index, fault.clone());
    }
    let run = copy.sync(&source.well_known()).exits(1);
    assert_eq!((run.count("failed"), run.count("stored")), (wrongs.len() as u64, 1), "{run}");
    assert_eq!(run.json()["in_sync"], false, "{run}");
    // Nothing has changed since, yet no problem is forgotten: neither by the exit status nor by the list.
    let again = copy.sync(&source.well_known()).exits(1);
    for run in [&run, &again] {
        let named =
            wrongs.iter().filter(|(index, _, _)| run.stderr.contains(&source.resource_uri(*index))).count();
        assert!(named > 0, "the first problems are named: {run}");
        assert!(run.stderr.contains(&wrongs.len().to_string()), "and all are counted: {run}");
    }
    let ls = copy.ls();
    for (index, fault, reason) in &wrongs {
        let uri = source.resource_uri(*index);
        let (held, before) = (&ls[&uri], &before[&uri]);
        assert_eq!((held.state.as_str(), &held.sha256), ("problem", &before.sha256), "{fault:?}");
        let (bytes, file) = (copy.cat(&uri), copy.file(&uri));
        assert!(view.values().any(|before| *before == bytes), "cat gives what was verified: {fault:?}");
        assert_eq!(file, Some(bytes), "and so does the view: {fault:?}");
        let story = copy.explain(&uri);
        assert!(story.contains(reason), "{reason} is part of the story:\n{story}");
    }

    source.clear_faults();
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_digest_mismatch_is_recorded_with_both_values() {
    let source = source(small(20)).await;
    source.set_fault(3, Fault::WrongDigest);
    let uri = source.resource_uri(3);
    let declared = source.expected().find(|now| now.uri == uri).unwrap().sha256;
    // The Source serves the true body but for its first byte.
    let mut served = source.body(&uri).unwrap();
    served[0] ^= 0xff;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(1).says(&[&uri]);
    let story = copy.explain(&uri);
    let json = copy.run("explain", &[&uri, "--json"]).exits(0).json();
    let evidence = &json["problem"]["evidence"];
    assert!(evidence["expected"].to_string().contains(&declared), "{json}");
    let computed = evidence["computed"].to_string();
    assert!(computed.contains("sha-256:") && !computed.contains(&declared), "{json}");
    let shown = computed.split("sha-256:").nth(1).unwrap().split('"').next().unwrap();
    assert!(story.contains(&declared) && story.contains(shown), "both are told:\n{story}");
    assert_eq!(copy.file(&uri), None, "unverified bytes are no file");
    assert_eq!(copy.state(&uri).as_deref(), Some("problem"));
    copy.run("cat", &[&uri]).exits(1).complains(&[&uri], &["explain"]);
    assert_eq!(copy.present().len(), 19, "the others are held");
}

#[tokio::test]
async fn passing_troubles_are_got_over() {
    let source = source(small(30).size(Size::Fixed(50_000))).await;
    source.set_fault(1, Fault::busy(1, 2));
    source.set_fault(2, Fault::CutOff { after: 20_000, times: Some(2) });
    source.set_fault(3, Fault::Status { code: 500, retry_after: None, times: Some(1) });
    source.set_fault(source.resource_list(), Fault::Status { code: 503, retry_after: None, times: Some(1) });
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_source_that_wants_an_hour_of_rest_is_left_alone_and_what_came_before_is_kept() {
    let source = source(small(30)).await;
    source.set_fault(3, Fault::busy(3_600, 1_000));
    let copy = Destination::directory();
    let run = copy.sync(&source.well_known());
    assert!(matches!(run.exit, Some(1 | 3)), "it neither waits for an hour nor calls itself in sync: {run}");
    assert_eq!(
        requests_at(&source, &source.resource_uri(3)),
        1,
        "it is not asked again before its time: {run}"
    );
    assert!(run.stderr.contains(&source.url()) && run.stderr.contains("again"), "{run}");
    let (held, view) = (copy.present(), copy.view());
    assert_eq!(held.len(), view.len());

    let again = copy.sync(&source.well_known());
    assert!(matches!(again.exit, Some(1 | 3)), "{again}");
    assert!(requests_at(&source, &source.resource_uri(3)) <= 2, "at most once in each run: {again}");
    let (held_now, view_now) = (copy.present(), copy.view());
    assert!(held.iter().all(|(uri, version)| held_now.get(uri) == Some(version)));
    assert!(view.iter().all(|(name, bytes)| view_now.get(name) == Some(bytes)));
}

// The operator's side

#[tokio::test]
async fn wrong_usage_is_told_and_does_nothing() {
    let source = source(small(3)).await;
    let url = source.well_known();
    let copy = Destination::directory();
    let usage: [&[&str]; 8] = [
        &[],
        &["harvest"],
        &["sync"],
        &["sync", "not a url"],
        &["sync", &url, "--no-such-option"],
        &["sync", &url, "--include", "("],
        &["sync", &url, "--concurrency", "0"],
        &["sync", &url, "--mode", "sideways"],
    ];
    for arguments in usage {
        let mut command = thresher();
        let run = Run::of(command.args(arguments).env("HOME", "/nonexistent")).exits(2);
        assert!(!run.stderr.is_empty(), "{run}");
    }
    copy.sync("ftp://example.org/x").exits(2).complains(&["ftp://example.org/x", "http"], OVER_HTTP);
    copy.sync_with(&url, &["--view", "files", "--into", "s3://bucket/x"]).exits(2);
    assert_eq!(source.requests().documents, 0, "nobody was asked");
    assert!(!Path::new(&copy.into).join(".thresher").exists(), "nothing was begun");
}

#[test]
fn a_harvest_that_is_not_there_is_named() {
    let folder = TempDir::new().unwrap();
    let copy = Destination::at(&folder.path().join("nothing"));
    for (command, words) in
        [("ls", [].as_slice()), ("cat", &["http://example.org/1"]), ("explain", &["http://example.org/1"])]
    {
        copy.run(command, words).exits(2).complains(&[&copy.into], &["sync", "--into"]);
    }
    assert!(!Path::new(&copy.into).exists(), "reading creates nothing");
}

#[tokio::test]
async fn a_file_where_the_destination_should_be_is_left_alone() {
    let source = source(small(3)).await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    let copy = Destination::at(&file);
    let run = copy.sync(&source.url());
    assert!(matches!(run.exit, Some(2 | 3)), "{run}");
    assert!(run.complaint().contains(&copy.into), "{run}");
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
}

#[tokio::test]
async fn another_source_does_not_write_over_what_a_destination_holds() {
    let (first, copy) = in_step(small(20)).await;
    let second = source(small(20).seed(2)).await;
    copy.sync(&second.url()).exits(2).complains(&[&copy.into, &first.url()], &["--into"]);
    copy.mirrors(&first);
}

#[tokio::test]
async fn a_mistyped_url_does_not_claim_the_destination() {
    let source = source(small(5)).await;
    let copy = Destination::directory();
    let site = Site::start().await;
    site.reply("/.well-known/resourcesync", Reply::status(404));
    copy.sync(&site.reply("/typo", Reply::status(404))).exits(3);
    // Nothing is held yet, so nothing can mix.
    copy.sync(&source.url()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_damaged_or_lost_file_of_the_view_never_becomes_what_cat_gives() {
    let (source, copy) = in_step(small(20)).await;
    let uri = source.resource_uri(2);
    let name = copy.view().into_keys().nth(2).unwrap();
    std::fs::write(Path::new(&copy.into).join(&name), "scribbled over").unwrap();
    assert_eq!(Some(copy.cat(&uri)), source.body(&uri));
}

// A full disk

/// A file system of its own in memory; it is taken down in the end.
struct Tmpfs(TempDir);

impl Tmpfs {
    /// None, with the reason on standard error, where that is not allowed.
    fn mount(size: &str) -> Option<Self> {
        let folder = TempDir::with_prefix("thresher-tmpfs-").unwrap();
        let options = format!("size={size}");
        let mut mount = Command::new("mount");
        let output = mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder.path()).output();
        match output {
            Ok(output) if output.status.success() => Some(Self(folder)),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                eprintln!(
                    "SKIPPED: a full disk needs a small file system, which may not be mounted here: {why}"
                );
                None
            }
            Err(error) => {
                eprintln!(
                    "SKIPPED: a full disk needs a small file system, and there is no mount command: {error}"
                );
                None
            }
        }
    }

    fn resize(&self, size: &str) {
        let options = format!("remount,size={size}");
        let status = Command::new("mount").args(["-o", &options]).arg(self.0.path()).status().unwrap();
        assert!(status.success());
    }

    /// Takes all the room but so much, with a file beside the harvest.
    fn fill_but(&self, left: u64) {
        let output = Command::new("df").args(["--output=avail", "-B1"]).arg(self.0.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let free: u64 = text.lines().nth(1).unwrap().trim().parse().unwrap();
        let block = vec![0; usize::try_from(free.saturating_sub(left)).unwrap()];
        std::fs::write(self.0.path().join("filler"), block).unwrap();
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Lazily, so that it goes whatever still looks at it.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

const DISK: &[&str] = &["full", "no space"];

#[tokio::test]
async fn a_disk_too_small_for_a_harvest_is_named_and_with_more_room_it_goes_on() {
    let Some(disk) = Tmpfs::mount("4m") else { return };
    let source = source(small(400).size(Size::Fixed(16 * 1024))).await;
    let copy = Destination::at(&disk.0.path().join("copy"));
    let run = copy.sync(&source.well_known()).exits(3).complains(&[&copy.into], DISK).complains(&[], AGAIN);
    assert_eq!(run.stdout, "", "{run}");
    each_file_is_a_version_of_its_resource(&source, &copy, &View::new());
    disk.resize("64m");
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_disk_that_fills_up_while_changes_come_loses_nothing_that_was_held() {
    let Some(disk) = Tmpfs::mount("48m") else { return };
    let source = source(small(200).size(Size::Fixed(16 * 1024))).await;
    let copy = Destination::at(&disk.0.path().join("copy"));
    copy.sync(&source.well_known()).exits(0);
    let before = copy.view();
    source.change(Changes { create: 0, update: 150, delete: 0 });
    disk.fill_but(1024 * 1024);
    copy.sync(&source.well_known()).exits(3).complains(&[&copy.into], DISK).complains(&[], AGAIN);
    each_file_is_a_version_of_its_resource(&source, &copy, &before);
    assert_eq!(copy.view().len(), before.len(), "no file is missing");

    std::fs::remove_file(disk.0.path().join("filler")).unwrap();
    let held = copy.ls();
    assert_eq!(held.len(), 200);
    assert!(held.values().all(|held| held.sha256.is_some()), "a version of each is held all the time");
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

/// Each file has the bytes that the Source has now, or those that were held before.
#[track_caller]
fn each_file_is_a_version_of_its_resource(source: &SimulatedSource, copy: &Destination, before: &View) {
    let now: Vec<Vec<u8>> = source.expected().filter_map(|now| source.body(&now.uri)).collect();
    for (name, bytes) in copy.view() {
        assert!(before.get(&name) == Some(&bytes) || now.contains(&bytes), "{name} is half written");
    }
}
