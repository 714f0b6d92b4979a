//! Changes that no list contains: a gap between Change Lists is recorded until a Resource List closes it.

use crate::common::{Destination, Run, Site, resource, urlset};

/// A Source of three resources with an index of Change Lists, whose times are days of a month.
struct Listed {
    site: Site,
    way_in: String,
    copy: Destination,
}

fn day(n: u32) -> String {
    format!("2026-01-{n:02}T00:00:00Z")
}

fn interval(from: u32, until: u32) -> String {
    format!("from=\"{}\" until=\"{}\"", day(from), day(until))
}

impl Listed {
    /// Harvested with a Resource List of the first day and Change Lists that begin there.
    async fn harvested(changes: &str) -> Self {
        let site = Site::start().await;
        for n in 1..=3 {
            site.serve(&format!("/{n}.txt"), format!("first {n}"));
        }
        let way_in = site.uri("/caps.xml");
        let offers = [
            resource(&site.uri("/list.xml"), "capability=\"resourcelist\""),
            resource(&site.uri("/changes.xml"), "capability=\"changelist\""),
        ];
        site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &offers));
        site.serve("/changes.xml", changes);
        let case = Self { site, way_in, copy: Destination::directory() };
        case.lists(1, FIRST);
        case.sync().exits(0);
        case
    }

    /// The Resource List of a day, which declares this about the second resource.
    fn lists(&self, at: u32, second: &str) {
        let lengths = [("/1.txt", 7), ("/2.txt", second.len()), ("/3.txt", 7)];
        let entries =
            lengths.map(|(path, length)| resource(&self.site.uri(path), &format!("length=\"{length}\"")));
        let md = format!("capability=\"resourcelist\" at=\"{}\"", day(at));
        self.site.serve("/list.xml", urlset(&md, &entries));
    }

    /// Change Lists of these intervals, each with one change in it, in an index.
    fn index(&self, parts: &[&str]) {
        let mut children = Vec::new();
        for (n, part) in parts.iter().enumerate() {
            let path = format!("/changes-{n}-{}.xml", part.len());
            let md = format!("capability=\"changelist\" {part}");
            self.site.serve(&path, urlset(&md, &[]));
            children.push(resource(&self.site.uri(&path), part));
        }
        let md = format!("capability=\"changelist\" from=\"{}\"", day(1));
        let index = urlset(&md, &children).replace("urlset", "sitemapindex");
        self.site.serve("/changes.xml", index.replace("<url>", "<sitemap>").replace("</url>", "</sitemap>"));
    }

    fn sync(&self) -> Run {
        self.copy.sync(&self.way_in)
    }
}

fn change(uri: &str, kind: &str, at: u32) -> String {
    resource(uri, &format!("change=\"{kind}\" datetime=\"{}\"", day(at)))
}

const FIRST: &str = "first 2";
const SECOND: &str = "second, longer 2";
const EMPTY: &str = "capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"";

#[tokio::test]
async fn a_hole_in_the_middle_of_an_index_is_a_gap_until_a_later_resource_list_closes_it() {
    let case = Listed::harvested(&urlset(EMPTY, &[])).await;
    let open = format!("from=\"{}\"", day(9));
    case.index(&[&open, &interval(1, 4), &interval(6, 9)]);
    let run = case.sync().exits(1).says(&[&day(6), "gap"]);
    assert_eq!(run.count("gaps"), 1, "{run}");
    let asked = case.site.requests_at("/list.xml");
    let run = case.sync().exits(1);
    assert_eq!(run.count("gaps"), 1, "closed lists are not read again, and the hole is not forgotten: {run}");
    assert_eq!(case.site.requests_at("/list.xml"), asked + 1, "each run looks for a list that closes it");

    case.site.serve("/2.txt", SECOND);
    case.lists(7, SECOND);
    let run = case.sync().exits(0);
    assert_eq!(run.count("gaps"), 1, "{run}");
    assert_eq!(case.copy.cat(&case.site.uri("/2.txt")), SECOND.as_bytes());
    assert_eq!(case.sync().exits(0).count("gaps"), 0);
}

#[tokio::test]
async fn overlapping_lists_in_any_order_are_no_gap() {
    let case = Listed::harvested(&urlset(EMPTY, &[])).await;
    let open = format!("from=\"{}\"", day(8));
    case.index(&[&interval(5, 9), &open, &interval(1, 6), &interval(2, 3)]);
    assert_eq!(case.sync().exits(0).count("gaps"), 0);
}

#[tokio::test]
async fn changes_that_fall_off_the_end_of_a_list_without_from_are_a_gap() {
    let site_changes = |case: &Listed, days: &[u32]| {
        let uri = case.site.uri("/3.txt");
        let entries: Vec<String> = days.iter().map(|n| change(&uri, "updated", *n)).collect();
        // Newest first, like Sources that keep only the latest few changes.
        case.site.serve("/changes.xml", urlset("capability=\"changelist\"", &entries));
    };
    let case = Listed::harvested(&urlset("capability=\"changelist\"", &[])).await;
    site_changes(&case, &[4, 3]);
    assert_eq!(case.sync().exits(0).count("gaps"), 0, "nothing is known to be missing");
    site_changes(&case, &[5, 4]);
    assert_eq!(case.sync().exits(0).count("gaps"), 0, "the latest one known is still there");
    site_changes(&case, &[9, 8]);
    let run = case.sync().exits(1).says(&[&day(8)]);
    assert_eq!(run.count("gaps"), 1, "{run}");
    site_changes(&case, &[10, 9, 8]);
    case.sync().exits(1);
    case.lists(8, FIRST);
    assert_eq!(case.sync().exits(0).count("gaps"), 1, "found once more, and closed");
    assert_eq!(case.sync().exits(0).count("gaps"), 0);
}

#[tokio::test]
async fn an_open_list_that_begins_later_than_what_is_known_is_a_gap() {
    let case = Listed::harvested(&urlset(EMPTY, &[])).await;
    let two = case.site.uri("/2.txt");
    case.site.serve("/changes.xml", urlset(EMPTY, &[change(&two, "updated", 3)]));
    case.sync().exits(0);
    let later = format!("capability=\"changelist\" from=\"{}\"", day(5));
    case.site.serve("/changes.xml", urlset(&later, &[]));
    case.sync().exits(1).says(&[&day(5)]);
    case.lists(5, FIRST);
    case.sync().exits(0);
}

#[tokio::test]
async fn a_resource_listed_twice_is_fetched_once_and_never_absent() {
    let case = Listed::harvested(&urlset(EMPTY, &[])).await;
    let way_in = case.site.uri("/twice.xml");
    let copy = Destination::directory();
    for at in 1..=3 {
        let mut entries = Vec::new();
        for n in [1, 2, 3, 1, 3, 2, 1] {
            let uri = case.site.uri(&format!("/{n}.txt"));
            // The last declaration is the right one.
            let length = if entries.len() < 3 { 99 } else { 7 };
            entries.push(resource(&uri, &format!("length=\"{length}\"")));
        }
        let md = format!("capability=\"resourcelist\" at=\"{}\"", day(at));
        case.site.serve("/twice.xml", urlset(&md, &entries));
        let asked = ["/1.txt", "/2.txt", "/3.txt"].map(|path| case.site.requests_at(path) + 1);
        let run = copy.sync_with(&way_in, &["--absent", "delete", "--max-deletes", "100%"]).exits(0);
        assert_eq!((run.count("absent"), run.count("deleted"), run.count("failed")), (0, 0, 0), "{run}");
        assert!(["/1.txt", "/2.txt", "/3.txt"].map(|path| case.site.requests_at(path)) <= asked, "{run}");
        assert_eq!(copy.present().len(), 3);
        assert_eq!(copy.cat(&case.site.uri("/1.txt")), b"first 1");
    }
}
