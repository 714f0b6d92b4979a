//! Patches of changes make the new version from the stored one, if the result can be judged; else the resource itself
//! is requested, and nothing is a problem.

use super::{Case, declares, linked, ln, time};
use crate::common::{Destination, Inside, Package, Run, Site, package, resource, urlset};
use fixity::Sha256;
use model::Assurance;
use testkit::scripted::Reply;

const PATCH: &str = "http://www.openarchives.org/rs/terms/patch";
const JSON_PATCH: &str = "application/json-patch+json";

/// A Source with a Resource List and a Change List, and a copy of it.
struct Patched {
    case: Case,
    way_in: String,
}

/// A document of 1,014 bytes.
fn document(a: u8) -> String {
    format!("{{\"a\":{a},\"t\":\"{}\"}}", "x".repeat(1_000))
}

/// A patch that makes `document(a)`.
fn replacing(a: u8) -> String {
    format!("[{{\"op\":\"replace\",\"path\":\"/a\",\"value\":{a}}}]")
}

impl Patched {
    /// Serves this document at each path, and harvests the list of the first day, which declares it.
    async fn harvested(paths: &[&str], declared: impl Fn(&str) -> String) -> Self {
        let case = Case::new().await;
        let entries: Vec<String> = paths
            .iter()
            .map(|path| resource(&case.site.serve(path, document(1)), &declared(&document(1))))
            .collect();
        case.list(1, &entries);
        let offers = [
            resource(&case.site.uri("/list.xml"), "capability=\"resourcelist\""),
            resource(&case.site.uri("/changes.xml"), "capability=\"changelist\""),
        ];
        let way_in = case.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &offers));
        let it = Self { case, way_in };
        it.changes(&[]);
        it.sync(&[]).exits(0);
        it
    }

    fn site(&self) -> &Site {
        &self.case.site
    }

    fn copy(&self) -> &Destination {
        &self.case.copy
    }

    fn uri(&self, path: &str) -> String {
        self.site().uri(path)
    }

    fn changes(&self, entries: &[String]) {
        let md = format!("capability=\"changelist\" from=\"{}\"", time(1));
        self.site().serve("/changes.xml", urlset(&md, entries));
    }

    #[track_caller]
    fn sync(&self, options: &[&str]) -> Run {
        self.copy().sync_with(&self.way_in, options)
    }

    /// The change of a resource to this content, with this link, which is at its path from now on.
    fn change(&self, day: u8, path: &str, content: &str, declared: &str, link: &str) -> String {
        let uri = self.site().serve(path, content);
        linked(&uri, &format!("change=\"updated\" datetime=\"{}\" {declared}", time(day)), &[link])
    }

    /// Serves a patch beside the resource. Returns the link to it.
    fn patch(&self, path: &str, patch: &str) -> String {
        let uri = self.site().serve(&format!("{path}.p"), patch);
        let hash = Sha256::of(patch.as_bytes());
        let more = format!("hash=\"sha-256:{hash}\" length=\"{}\" type=\"{JSON_PATCH}\"", patch.len());
        ln(PATCH, &uri, &more)
    }

    /// How often the resource and its patch were requested since the first sync.
    fn asked(&self, path: &str) -> (usize, usize) {
        (self.site().requests_at(path) - 1, self.site().requests_at(&format!("{path}.p")))
    }

    /// Checks that the resource has its second version, that it was requested, and what `explain` says of its patch.
    #[track_caller]
    fn is_fetched(&self, run: &Run, path: &str, patches: usize, why: &str) {
        assert_eq!(self.asked(path), (1, patches), "{path}: {run}");
        let told = self.copy().run("explain", &[&self.uri(path)]).exits(0);
        assert!(told.stdout.contains(&format!("the patch was not applied ({why})")), "{path} {why}: {told}");
    }
}

#[tokio::test]
async fn lnk_8_t1_a_patch_makes_the_version_and_the_resource_is_not_requested() {
    let case = Patched::harvested(&["/j"], declares).await;
    let link = case.patch("/j", &replacing(2));
    case.changes(&[case.change(2, "/j", &document(2), &declares(&document(2)), &link)]);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("patched"), run.count("failed")), (1, 1, 0), "{run}");
    assert_eq!((run.count("bytes"), run.count("bytes_saved")), (40, 974), "{run}");
    assert_eq!(case.asked("/j"), (0, 1), "{run}");
    let uri = case.uri("/j");
    assert_eq!(case.copy().cat(&uri), document(2).as_bytes());
    assert_eq!(case.copy().file(&uri).as_deref(), Some(document(2).as_bytes()));
    let told = case.copy().run("explain", &[&uri]).exits(0);
    let made = format!("made from the version before by the patch {uri}.p (40 bytes, 974 bytes saved)");
    assert!(told.stdout.contains(&made), "{told}");
    let inside = Inside::of(case.copy(), &case.way_in).await;
    let stored = inside.record(&uri).await.bitstream.expect("it is stored");
    assert_eq!((stored.assurance, stored.final_url), (Assurance::Digest, None));
    inside.close().await;
    // In step: nothing is asked for again.
    case.sync(&[]).exits(0);
    assert_eq!(case.asked("/j"), (0, 1));
}

#[tokio::test]
async fn lnk_8_t1_off_asks_for_no_patch() {
    let case = Patched::harvested(&["/j"], declares).await;
    let link = case.patch("/j", &replacing(2));
    case.changes(&[case.change(2, "/j", &document(2), &declares(&document(2)), &link)]);
    let run = case.sync(&["--patches", "off"]).exits(0);
    assert_eq!(
        (run.count("patched"), run.count("patches_unused"), case.asked("/j")),
        (0, 0, (1, 0)),
        "{run}"
    );
}

#[tokio::test]
async fn lnk_8_t2_a_result_that_is_written_otherwise_is_fetched_in_the_same_run() {
    let case = Patched::harvested(&["/j"], declares).await;
    let spaced = document(2).replace(':', ": ");
    let link = case.patch("/j", &replacing(2));
    case.changes(&[case.change(2, "/j", &spaced, &declares(&spaced), &link)]);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("patched"), run.count("patches_unused")), (1, 0, 1), "{run}");
    assert_eq!(case.copy().cat(&case.uri("/j")), spaced.as_bytes());
    case.is_fetched(&run, "/j", 1, "other-result");
    assert_eq!(run.count("failed"), 0, "{run}");
    assert_eq!(case.copy().run("problems", &["--json"]).exits(0).json_lines().len(), 0);
}

#[tokio::test]
async fn lnk_8_t3_a_damaged_base_or_an_unknown_type_asks_for_no_patch() {
    let case = Patched::harvested(&["/damaged", "/odd"], declares).await;
    let inside = Inside::of(case.copy(), &case.way_in).await;
    inside.flip(&case.uri("/damaged")).await;
    inside.close().await;
    let second = declares(&document(2));
    let odd = case.patch("/odd", &replacing(2)).replace(JSON_PATCH, "application/xml-patch+xml");
    case.changes(&[
        case.change(2, "/damaged", &document(2), &second, &case.patch("/damaged", &replacing(2))),
        case.change(2, "/odd", &document(2), &second, &odd),
    ]);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("patches_unused")), (2, 2), "{run}");
    case.is_fetched(&run, "/damaged", 0, "damaged-base");
    case.is_fetched(&run, "/odd", 0, "unknown-type");
    assert_eq!(case.copy().cat(&case.uri("/damaged")), document(2).as_bytes());
}

#[tokio::test]
async fn lnk_8_t4_two_patches_of_one_resource_are_applied_in_one_run() {
    let case = Patched::harvested(&["/j"], declares).await;
    let first = case.patch("/j", &replacing(2));
    let uri = case.site().serve("/j.q", replacing(3));
    let second = ln(PATCH, &uri, &format!("length=\"{}\" type=\"{JSON_PATCH}\"", replacing(3).len()));
    case.changes(&[
        case.change(2, "/j", &document(2), &declares(&document(2)), &first),
        case.change(3, "/j", &document(3), &declares(&document(3)), &second),
    ]);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("patched")), (1, 1), "{run}");
    assert_eq!((case.asked("/j"), case.site().requests_at("/j.q")), ((0, 1), 1), "{run}");
    assert_eq!(case.copy().cat(&case.uri("/j")), document(3).as_bytes());
    let told = case.copy().run("explain", &[&case.uri("/j")]).exits(0);
    assert!(told.stdout.contains(&format!("/j.p, then {uri} (80 bytes, 934 bytes saved)")), "{told}");
}

#[tokio::test]
async fn lnk_8_each_condition_that_is_not_met_leaves_it_to_the_resource() {
    let paths = ["/digest", "/small", "/length", "/there", "/chain"];
    let case = Patched::harvested(&paths, declares).await;
    let elsewhere = Site::start().await;
    let second = declares(&document(2));
    let patch = |path| case.patch(path, &replacing(2));
    let there = patch("/there").replace(&case.uri("/there.p"), &elsewhere.uri("/there.p"));
    // As large as half of the result.
    let large = format!("{}{}", replacing(2), " ".repeat(507 - replacing(2).len()));
    let between = resource(
        &case.uri("/chain"),
        &format!("change=\"updated\" datetime=\"{}\" {}", time(2), declares("between")),
    );
    let new = case.change(2, "/new", &document(2), &second, &patch("/new"));
    case.site().serve("/new", document(2));
    case.changes(&[
        case.change(2, "/digest", &document(22), "length=\"1015\"", &patch("/digest")),
        case.change(2, "/small", &document(2), &second, &case.patch("/small", &large)),
        case.change(2, "/length", &document(2), &second, &patch("/length").replace("length=\"40\"", "")),
        case.change(2, "/there", &document(2), &second, &there),
        between,
        case.change(3, "/chain", &document(2), &second, &patch("/chain")),
        new,
    ]);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("patches_unused")), (6, 6), "{run}");
    case.is_fetched(&run, "/digest", 0, "no-digest");
    case.is_fetched(&run, "/small", 0, "not-smaller");
    case.is_fetched(&run, "/length", 0, "not-smaller");
    case.is_fetched(&run, "/there", 0, "other-origin");
    case.is_fetched(&run, "/chain", 0, "broken-chain");
    assert!(elsewhere.requests().is_empty());
    let told = case.copy().run("explain", &[&case.uri("/new")]).exits(0);
    assert!(told.stdout.contains("(no-base)"), "{told}");
    assert_eq!(case.site().requests_at("/new.p"), 0);
}

#[tokio::test]
async fn lnk_8_a_base_that_no_digest_judged_is_no_base() {
    let case = Patched::harvested(&["/j"], |content| format!("length=\"{}\"", content.len())).await;
    let link = case.patch("/j", &replacing(2));
    case.changes(&[case.change(2, "/j", &document(2), &declares(&document(2)), &link)]);
    let run = case.sync(&[]).exits(0);
    case.is_fetched(&run, "/j", 0, "no-base");
}

#[tokio::test]
async fn lnk_8_a_patch_that_is_not_as_declared_or_does_not_come_is_not_applied() {
    let case = Patched::harvested(&["/hash", "/longer", "/gone", "/moved", "/none"], declares).await;
    let second = declares(&document(2));
    let change = |path, link: &str| case.change(2, path, &document(2), &second, link);
    let links = ["/hash", "/longer", "/gone", "/moved"].map(|path| case.patch(path, &replacing(2)));
    let none = case.patch("/none", &replacing(2).replace("/a", "/b"));
    case.changes(&[
        change("/hash", &links[0]),
        change("/longer", &links[1]),
        change("/gone", &links[2]),
        change("/moved", &links[3]),
        change("/none", &none),
    ]);
    let elsewhere = Site::start().await;
    case.site().serve("/hash.p", replacing(3));
    case.site().serve("/longer.p", format!("{} ", replacing(2)));
    case.site().reply("/gone.p", Reply::status(404));
    let to = elsewhere.serve("/moved.p", replacing(2));
    case.site().reply("/moved.p", Reply::status(302).header("location", to));
    let run = case.sync(&["--allow-address", "127.0.0.0/8"]).exits(0);
    assert_eq!((run.count("stored"), run.count("patched"), run.count("failed")), (5, 0, 0), "{run}");
    case.is_fetched(&run, "/hash", 1, "other-patch");
    case.is_fetched(&run, "/longer", 1, "other-patch");
    case.is_fetched(&run, "/gone", 1, "not-received");
    case.is_fetched(&run, "/moved", 1, "not-received");
    case.is_fetched(&run, "/none", 1, "not-applicable");
    assert!(elsewhere.requests().is_empty(), "the job has no permit of another origin");
}

#[tokio::test]
async fn lnk_8_after_five_in_a_row_no_patch_is_asked_for_until_the_next_run() {
    const COUNT: usize = 60;
    let paths: Vec<String> = (0..COUNT).map(|n| format!("/{n}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let case = Patched::harvested(&paths, declares).await;
    let changes = |day, patch: u8, a| {
        let change = |path: &&str| {
            let link = case.patch(path, &replacing(patch));
            case.change(day, path, &document(a), &declares(&document(a)), &link)
        };
        case.changes(&paths.iter().map(change).collect::<Vec<_>>());
    };
    let asked = || paths.iter().map(|path| case.asked(path).1).sum::<usize>();
    changes(2, 7, 2);
    let run = case.sync(&["--concurrency", "1"]).exits(0);
    assert_eq!((run.count("stored"), run.count("patches_unused")), (COUNT as u64, COUNT as u64), "{run}");
    // Two jobs are out at a time, and each gives up by itself.
    assert!((5..=10).contains(&asked()), "{}: {run}", asked());
    let before = asked();
    changes(3, 3, 3);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("patched"), asked() - before), (COUNT as u64, COUNT), "{run}");
}

#[tokio::test]
async fn lnk_8_a_patch_that_a_change_dump_names_is_applied() {
    for is_zip in [true, false] {
        let case = Patched::harvested(&["/j"], declares).await;
        let patch = replacing(2);
        let link = case.patch("/j", &patch).replace("<rs:ln ", "<rs:ln path=\"/j.p\" ");
        let md = format!("change=\"updated\" datetime=\"{}\" {}", time(2), declares(&document(2)));
        let held = Package::of_changes(&time(1), &time(3)).entry(&case.uri("/j"), &md).linking(&link);
        let held = held.member("j.p", &patch);
        let bytes = if is_zip { held.zip() } else { held.tar_xz().await };
        let entry = package(&case.uri("/1.zip"), &bytes, "");
        case.site().reply("/1.zip", Reply::ok(bytes));
        let dump = format!("capability=\"changedump\" from=\"{}\" until=\"{}\"", time(1), time(3));
        case.site().serve("/dump.xml", urlset(&dump, &[entry]));
        let offers = [
            resource(&case.uri("/list.xml"), "capability=\"resourcelist\""),
            resource(&case.uri("/dump.xml"), "capability=\"changedump\""),
        ];
        case.site().serve("/caps.xml", urlset("capability=\"capabilitylist\"", &offers));
        case.site().serve("/j", document(2));
        let run = case.sync(&["--rediscover-after", "0s"]).exits(0);
        assert_eq!((run.count("stored"), run.count("patched")), (1, 1), "{run}");
        // In a ZIP it is read where it is. From a tar it is not taken.
        assert_eq!(case.asked("/j"), (0, usize::from(!is_zip)), "{run}");
        assert_eq!(run.json()["quirks"], serde_json::json!({}), "{run}");
        assert_eq!(case.copy().cat(&case.uri("/j")), document(2).as_bytes());
    }
}

#[tokio::test]
async fn lnk_8_a_patch_in_a_package_is_never_taken_for_its_resource() {
    let case = Patched::harvested(&["/j"], declares).await;
    // Nothing is declared of the resource, which its package does not have.
    let link = case.patch("/j", &replacing(2)).replace("<rs:ln ", "<rs:ln path=\"/j.p\" ");
    let md = format!("change=\"updated\" datetime=\"{}\"", time(2));
    let held = Package::of_changes(&time(1), &time(3)).entry(&case.uri("/j"), &md).linking(&link);
    let bytes = held.member("j.p", replacing(2)).zip();
    let entry = package(&case.uri("/1.zip"), &bytes, "");
    case.site().reply("/1.zip", Reply::ok(bytes));
    let dump = format!("capability=\"changedump\" from=\"{}\" until=\"{}\"", time(1), time(3));
    case.site().serve("/dump.xml", urlset(&dump, &[entry]));
    let offer = resource(&case.uri("/dump.xml"), "capability=\"changedump\"");
    case.site().serve("/caps.xml", urlset("capability=\"capabilitylist\"", &[offer]));
    case.site().serve("/j", document(2));
    let run = case.sync(&["--rediscover-after", "0s"]).exits(0);
    assert_eq!((run.count("stored"), run.count("patched"), case.asked("/j")), (1, 0, (1, 0)), "{run}");
    assert_eq!(case.copy().cat(&case.uri("/j")), document(2).as_bytes());
}
