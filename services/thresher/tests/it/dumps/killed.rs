//! A run that is killed while it reads a later dump or list, and repeated: what that leaves out is found all the same.

use std::time::Duration;

use serde_json::json;
use testkit::scripted::Reply;

use crate::common::{Package, Process, Run, resource, urlset};
use crate::dumps::case::Case;

/// What a snapshot leaves out is deleted at once.
const DELETES: [&str; 6] = ["--mode", "baseline", "--absent", "delete", "--max-deletes", "100%"];

/// A Source of some resources, and what it publishes of them on a day.
struct Snapshots {
    case: Case,
    names: Vec<String>,
    /// Options of each run.
    options: Vec<&'static str>,
}

impl Snapshots {
    async fn new(resources: usize, options: &[&'static str]) -> Self {
        let names = (0..resources).map(|n| format!("r{n:02}")).collect();
        Self { case: Case::new().await, names, options: [&DELETES[..], options].concat() }
    }

    fn moment(day: u32) -> String {
        format!("2026-01-0{day}T00:00:00Z")
    }

    /// Serves a dump of these resources, with so many in each package. Returns its URL.
    fn dump(&self, day: u32, names: &[String], in_package: usize) -> String {
        let at = Self::moment(day);
        let packages = (0..).zip(names.chunks(in_package)).map(|(n, names): (u32, _)| {
            let empty = Package::of_resources(&at);
            let package = names.iter().fold(empty, |package, name| package.holds(&self.case.uri(name), name));
            self.case.package(&format!("/{day}-{n}.zip"), package.zip(), "")
        });
        let packages: Vec<String> = packages.collect();
        let dump = urlset(&format!("capability=\"resourcedump\" at=\"{at}\""), &packages);
        self.case.site.reply("/dump.xml", Reply::ok(dump).header("etag", format!("\"{day}\"")));
        self.case.uri("dump.xml")
    }

    /// Serves a list of these resources.
    fn list(&self, path: &str, day: u32, names: &[String]) {
        let entries: Vec<String> = names
            .iter()
            .map(|name| {
                let lastmod = "<lastmod>2026-01-01T00:00:00Z</lastmod></url>";
                let uri = self.case.site.serve(&format!("/{name}"), name.clone());
                resource(&uri, "length=\"3\"").replace("</url>", lastmod)
            })
            .collect();
        let list = urlset(&format!("capability=\"resourcelist\" at=\"{}\"", Self::moment(day)), &entries);
        self.case.site.reply(path, Reply::ok(list).header("etag", format!("\"{day}\"")));
    }

    fn sync(&self, url: &str) -> Run {
        self.case.copy.sync_with(url, &self.options)
    }

    /// A run that is killed when it has asked for these, which are not answered.
    async fn killed(&self, url: &str, waits: &[String]) {
        let asked = || waits.iter().map(|path| self.case.site.requests_at(path)).collect::<Vec<_>>();
        for path in waits {
            self.case.site.next(path, Reply::ok("").delay(Duration::from_secs(600)));
        }
        let before = asked();
        let words = [&[url], &self.options[..]].concat();
        let run = Process::start(&mut self.case.copy.command("sync", &words));
        run.kill_when(|| asked().iter().zip(&before).all(|(now, before)| now > before)).await;
    }

    /// Checks that a run says that it deleted so many, and that the Source is in sync.
    #[track_caller]
    fn deletes(&self, run: &Run, many: u64) {
        assert_eq!((run.exit, run.count("deleted")), (Some(0), many), "{run}");
        assert_eq!(run.json()["in_sync"], true, "{run}");
        assert_eq!(self.case.copy.present().len(), self.names.len() - 3, "three are gone from the Source");
    }
}

#[tokio::test]
async fn what_a_dump_leaves_out_is_found_by_the_run_that_goes_on_after_a_kill() {
    let snapshots = Snapshots::new(20, &[]).await;
    let url = snapshots.dump(1, &snapshots.names, 10);
    snapshots.sync(&url).exits(0);
    snapshots.dump(2, &snapshots.names[3..], 9);
    let waits = ["/2-0.zip", "/2-1.zip"].map(str::to_owned);
    snapshots.killed(&url, &waits).await;
    let read = snapshots.case.site.requests_at("/dump.xml");
    snapshots.deletes(&snapshots.sync(&url), 3);
    assert_eq!(snapshots.case.site.requests_at("/dump.xml"), read, "it is known");
}

/// The process that was killed kept the names of the packages that it settled.
#[tokio::test]
async fn what_a_dump_leaves_out_is_found_by_the_run_that_goes_on_if_packages_were_settled_before_a_kill() {
    let snapshots = Snapshots::new(12, &["--concurrency", "20"]).await;
    let url = snapshots.dump(1, &snapshots.names, 12);
    snapshots.sync(&url).exits(0);
    snapshots.dump(2, &snapshots.names[3..], 1);
    // Eight packages are in progress at a time: the ninth is asked for when the first one is settled.
    let waits: Vec<String> = (1..9).map(|n| format!("/2-{n}.zip")).collect();
    snapshots.killed(&url, &waits).await;
    let first = snapshots.case.site.requests_at("/2-0.zip");
    snapshots.deletes(&snapshots.sync(&url), 3);
    assert_eq!(snapshots.case.site.requests_at("/2-0.zip"), first, "it is settled");
    snapshots.deletes(&snapshots.sync(&url), 0);
}

#[tokio::test]
async fn what_an_index_of_lists_leaves_out_is_found_by_the_run_that_goes_on_after_a_kill() {
    let snapshots = Snapshots::new(20, &[]).await;
    let publish = |day: u32, names: &[String]| {
        let (one, two) = names.split_at(8);
        snapshots.list("/list-1.xml", day, one);
        snapshots.list("/list-2.xml", day, two);
        let parts = ["list-1.xml", "list-2.xml"]
            .map(|name| format!("<sitemap><loc>{}</loc></sitemap>", snapshots.case.uri(name)));
        let index = urlset(&format!("capability=\"resourcelist\" at=\"{}\"", Snapshots::moment(day)), &parts);
        snapshots.case.site.serve("/list.xml", index.replace("urlset", "sitemapindex"))
    };
    publish(1, &snapshots.names);
    let url = snapshots.case.capabilities(&[("/list.xml", "resourcelist")]);
    snapshots.sync(&url).exits(0);
    publish(2, &snapshots.names[3..]);
    snapshots.killed(&url, &["/list-2.xml".to_owned()]).await;
    snapshots.deletes(&snapshots.sync(&url), 3);
}

/// The list was read and planned before the kill. What it names is not known any more.
#[tokio::test]
async fn what_a_list_leaves_out_is_found_by_the_next_run_if_it_was_planned_before_a_kill() {
    let snapshots = Snapshots::new(20, &[]).await;
    snapshots.list("/list.xml", 1, &snapshots.names);
    snapshots.case.changes(&[]);
    let url = snapshots.case.capabilities(&[("/list.xml", "resourcelist"), ("/changes.xml", "changedump")]);
    snapshots.sync(&url).exits(0);
    snapshots.list("/list.xml", 2, &snapshots.names[3..]);
    let (from, until) = ("2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z");
    let package = Package::of_changes(from, until).changed(
        &snapshots.case.uri("r09"),
        "updated",
        "2026-01-02T12:00:00Z",
        "changed",
    );
    let span = format!("from=\"{from}\" until=\"{until}\"");
    let entry = snapshots.case.package("/changes.zip", package.zip(), &span);
    let changes = urlset("capability=\"changedump\" from=\"2026-01-01T00:00:00Z\"", &[entry]);
    snapshots.case.site.serve("/changes.xml", changes);
    snapshots.killed(&url, &["/changes.zip".to_owned()]).await;
    let run = snapshots.sync(&url).exits(1).says(&["/list.xml", "leaves out"]);
    assert_eq!((run.json()["in_sync"].clone(), run.count("deleted")), (json!(false), 0), "{run}");
    snapshots.deletes(&snapshots.sync(&url), 3);
}
