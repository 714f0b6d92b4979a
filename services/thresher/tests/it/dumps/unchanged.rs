//! Dumps of which a part of the packages did not change: these are not received again, and what the dump leaves out is
//! found all the same.

use catalog::Batch;
use futures::TryStreamExt;
use testkit::scripted::Reply;

use crate::common::{Inside, Package, Run, resource, urlset};
use crate::dumps::case::Case;

/// What a dump leaves out is deleted at once.
const DELETES: [&str; 6] = ["--mode", "baseline", "--absent", "delete", "--max-deletes", "100%"];

/// A Source of 20 resources in two packages. On the second day, three of the second package are gone.
struct Halves {
    case: Case,
    names: Vec<String>,
    options: Vec<&'static str>,
}

impl Halves {
    async fn new() -> Self {
        let names = (0..20).map(|n| format!("r{n:02}")).collect();
        Self { case: Case::new().await, names, options: DELETES.to_vec() }
    }

    fn package(&self, names: &[String]) -> Package {
        let empty = Package::of_resources("2026-01-01T00:00:00Z");
        names.iter().fold(empty, |package, name| package.holds(&self.case.uri(name), name))
    }

    fn first(&self) -> Package {
        self.package(&self.names[..10])
    }

    /// The packages of the second day.
    fn rest(&self) -> Vec<String> {
        vec![self.case.package("/2.zip", self.package(&self.names[10..17]).zip(), "")]
    }

    /// The packages of the first day.
    fn whole(&self, first: &str) -> Vec<String> {
        vec![first.to_owned(), self.case.package("/1.zip", self.package(&self.names[10..]).zip(), "")]
    }

    /// Serves the dump of a day. Returns its URL.
    fn dump(&self, day: u32, packages: &[String]) -> String {
        let dump = urlset(&format!("capability=\"resourcedump\" at=\"2026-01-0{day}T00:00:00Z\""), packages);
        self.case.site.reply("/dump.xml", Reply::ok(dump).header("etag", format!("\"{day}\"")));
        self.case.uri("dump.xml")
    }

    /// Harvests the first day, with this entry of the first package. Then the dump is that of the second day.
    fn on_the_second_day(&self, first: &str) -> String {
        let url = self.dump(1, &self.whole(first));
        self.sync(&url).exits(0);
        self.dump(2, &[vec![first.to_owned()], self.rest()].concat())
    }

    fn sync(&self, url: &str) -> Run {
        self.case.copy.sync_with(url, &self.options)
    }

    /// Checks what a run deletes, and that it says that the Source is in sync.
    #[track_caller]
    fn deletes(&self, run: &Run, many: u64, held: usize) {
        assert_eq!((run.exit, run.count("deleted")), (Some(0), many), "{run}");
        assert_eq!(run.json()["in_sync"], true, "{run}");
        assert_eq!(self.case.copy.present().len(), held, "{run}");
    }
}

#[tokio::test]
async fn what_a_dump_leaves_out_is_found_although_a_package_of_it_is_not_received_again() {
    let halves = Halves::new().await;
    let first = halves.case.package("/0.zip", halves.first().zip(), "");
    let url = halves.on_the_second_day(&first);
    halves.deletes(&halves.sync(&url), 3, 17);
    assert_eq!(halves.case.site.requests_at("/0.zip"), 1, "it did not change");

    // The next dump lacks the package itself.
    halves.dump(3, &halves.rest());
    halves.deletes(&halves.sync(&url), 10, 7);
    let inside = Inside::of(&halves.case.copy, &url).await;
    let packages: Vec<_> = inside.catalog.scan_packages().await.unwrap().try_collect().await.unwrap();
    let names: Vec<_> = inside.catalog.scan_package_names().await.unwrap().try_collect().await.unwrap();
    assert_eq!(packages.iter().map(|(uri, _)| uri).collect::<Vec<_>>(), [&halves.case.uri("2.zip")]);
    assert_eq!(names.iter().map(|(_, kept)| kept.names.len()).collect::<Vec<_>>(), [7]);
    inside.close().await;
}

#[tokio::test]
async fn what_a_dump_leaves_out_is_found_although_the_server_says_that_a_package_did_not_change() {
    let halves = Halves::new().await;
    // Its entry does not tell versions.
    let uri = halves.case.site.reply("/0.zip", Reply::ok(halves.first().zip()).header("etag", "\"0\""));
    let url = halves.on_the_second_day(&resource(&uri, "type=\"application/zip\""));
    halves.case.site.reply("/0.zip", Reply::status(304));
    halves.deletes(&halves.sync(&url), 3, 17);
    assert_eq!(halves.case.site.conditions_at("/0.zip"), [None, Some("\"0\"".to_owned())]);
}

/// The second run takes the copy of its manifest for the package. The third one has its names from the second.
#[tokio::test]
async fn what_a_dump_leaves_out_is_found_beside_a_package_that_was_not_received_at_all() {
    let halves = Halves::new().await;
    let packages = halves.whole(&halves.case.package("/0.zip", halves.first().zip(), ""));
    let url = halves.dump(1, &packages);
    halves.sync(&url).exits(0);
    let entry = halves.case.package("/new.zip", halves.first().zip(), "");
    let entry = halves.case.with_contents(&entry, "/new.xml", halves.first().manifest());
    halves.dump(2, &[vec![entry.clone()], packages[1..].to_vec()].concat());
    halves.deletes(&halves.sync(&url), 0, 20);
    halves.dump(3, &[vec![entry], halves.rest()].concat());
    halves.deletes(&halves.sync(&url), 3, 17);
    assert_eq!((halves.case.site.requests_at("/new.zip"), halves.case.site.requests_at("/new.xml")), (0, 1));
}

#[tokio::test]
async fn what_links_of_an_unchanged_package_lead_to_is_not_absent() {
    let mut halves = Halves::new().await;
    halves.options.extend(["--follow-links", "describedby"]);
    let linked = halves.case.site.serve("/about", "about");
    let link = format!("<rs:ln rel=\"describedby\" href=\"{linked}\"/>");
    let first = halves.case.package("/0.zip", halves.first().linking(&link).zip(), "");
    let url = halves.on_the_second_day(&first);
    halves.deletes(&halves.sync(&url), 3, 18);
}

#[tokio::test]
async fn a_dump_that_was_read_with_all_kept_is_read_anew_when_absences_count() {
    let halves = Halves::new().await;
    let first = halves.case.package("/0.zip", halves.first().zip(), "");
    let url = halves.on_the_second_day(&first);
    let run = halves.case.copy.sync_with(&url, &["--mode", "baseline", "--absent", "keep"]).exits(0);
    assert_eq!((run.count("deleted"), halves.case.copy.present().len()), (0, 20), "{run}");
    halves.deletes(&halves.sync(&url), 3, 17);
    let requests = |path: &str| halves.case.site.requests_at(path);
    assert_eq!((requests("/0.zip"), requests("/2.zip")), (1, 1), "their names are known");
}

/// The unreadable entry may be that of a stored resource.
#[tokio::test]
async fn nothing_is_absent_from_a_dump_with_an_unreadable_entry_in_a_manifest() {
    let halves = Halves::new().await;
    let first = halves.case.package("/0.zip", halves.first().zip(), "");
    let url = halves.on_the_second_day(&first);
    let rest = halves.package(&halves.names[10..17]).entry("", "").zip();
    let rest = halves.case.package("/bad.zip", rest, "");
    halves.dump(2, &[first.clone(), rest.clone()]);
    for day in 2..5 {
        let url = halves.dump(day, &[first.clone(), rest.clone()]);
        let run = halves.sync(&url);
        assert_eq!((run.count("deleted"), halves.case.copy.present().len()), (0, 20), "{day} {run}");
    }
    halves.dump(5, &[vec![first], halves.rest()].concat());
    halves.deletes(&halves.sync(&url), 3, 17);
}

/// An earlier version of Thresher kept no names.
#[tokio::test]
async fn a_dump_is_read_anew_if_the_names_of_an_unchanged_package_were_not_kept() {
    let halves = Halves::new().await;
    let first = halves.case.package("/0.zip", halves.first().zip(), "");
    let url = halves.on_the_second_day(&first);
    let inside = Inside::of(&halves.case.copy, &url).await;
    let mut batch = Batch::new();
    let names: Vec<_> = inside.catalog.scan_package_names().await.unwrap().try_collect().await.unwrap();
    assert_eq!(names.iter().map(|(_, kept)| kept.names.len()).sum::<usize>(), 20);
    names.iter().for_each(|((uri, first), _)| batch.delete_package_names(uri, *first));
    inside.catalog.commit(batch).await.unwrap();
    inside.close().await;

    let run = halves.sync(&url).exits(1).says(&["/dump.xml", "leaves out"]);
    assert_eq!((run.json()["in_sync"].as_bool(), run.count("deleted")), (Some(false), 0), "{run}");
    let problems = halves.case.copy.run("problems", &["--reason", "uncompared"]);
    assert!(problems.stdout.contains("/dump.xml"), "{problems}");

    halves.deletes(&halves.sync(&url), 3, 17);
    let requests = |path: &str| halves.case.site.requests_at(path);
    assert_eq!((requests("/0.zip"), requests("/2.zip")), (2, 1), "only what lacked names is received again");
}
