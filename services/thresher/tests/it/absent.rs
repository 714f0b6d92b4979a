//! Resources that a Resource List no longer contains: kept until nothing suggests a mistake.

use std::ops::Range;

use crate::common::{Destination, Run, Site, resource, urlset};

/// A Source of one list, whose resources are numbered.
struct Listed {
    site: Site,
    url: String,
    copy: Destination,
}

impl Listed {
    /// A Source that listed 20 resources on the first day, and its copy.
    async fn harvested() -> Self {
        let site = Site::start().await;
        for n in 0..20 {
            site.serve(&path(n), format!("body {n}"));
        }
        let url = site.uri("/list.xml");
        let case = Self { site, url, copy: Destination::directory() };
        case.lists(1, 0..20);
        case.sync(&[]).exits(0);
        case
    }

    /// From this day on the list contains these.
    fn lists(&self, day: u32, numbers: Range<u32>) {
        let md = format!("capability=\"resourcelist\" at=\"2026-01-{day:02}T00:00:00Z\"");
        self.site.serve("/list.xml", urlset(&md, &self.entries(numbers)));
    }

    fn entries(&self, numbers: Range<u32>) -> Vec<String> {
        let entry =
            |n| resource(&self.site.uri(&path(n)), &format!("length=\"{}\"", format!("body {n}").len()));
        numbers.map(entry).collect()
    }

    #[track_caller]
    fn sync(&self, options: &[&str]) -> Run {
        self.copy.sync_with(&self.url, options)
    }

    fn present(&self) -> usize {
        self.copy.present().len()
    }
}

fn path(n: u32) -> String {
    format!("/{n}.txt")
}

#[tokio::test]
async fn a_resource_is_deleted_when_a_second_later_list_does_not_name_it_either() {
    let case = Listed::harvested().await;
    case.lists(2, 0..19);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("deleted"), run.count("absent")), (0, 1), "{run}");
    assert_eq!(case.present(), 20);
    let gone = case.site.uri(&path(19));
    assert!(case.copy.explain(&gone).contains("kept until a later list confirms it"));

    case.lists(3, 0..19);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("deleted"), run.count("absent")), (1, 0), "{run}");
    assert_eq!(case.present(), 19);
    assert!(case.copy.explain(&gone).contains("absent from the Source"));
}

#[tokio::test]
async fn what_could_not_be_fetched_is_no_problem_any_more_once_a_list_does_not_name_it() {
    let case = Listed::harvested().await;
    // Nothing is there at 20.
    case.lists(2, 0..21);
    case.sync(&[]).exits(1);
    case.lists(3, 0..20);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("failed"), run.count("absent"), run.count("deleted")), (0, 0, 0), "{run}");
    case.lists(4, 0..21);
    case.sync(&[]).exits(1);
}

#[tokio::test]
async fn what_is_held_and_could_not_be_fetched_anew_is_deleted_for_its_absence_all_the_same() {
    let case = Listed::harvested().await;
    let gone = case.site.uri(&path(19));
    let md = "capability=\"resourcelist\" at=\"2026-01-02T00:00:00Z\"";
    let mut entries = case.entries(0..19);
    entries.push(resource(&gone, "length=\"1000\""));
    case.site.serve("/list.xml", urlset(md, &entries));
    case.sync(&[]).exits(1);
    case.lists(3, 0..19);
    let run = case.sync(&[]).exits(1);
    assert_eq!((run.count("deleted"), run.count("absent")), (0, 1), "{run}");
    assert_eq!(case.copy.cat(&gone), b"body 19");
    case.lists(4, 0..19);
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("deleted"), run.count("absent"), case.present()), (1, 0, 19), "{run}");
}

#[tokio::test]
async fn the_same_list_seen_twice_confirms_nothing() {
    let case = Listed::harvested().await;
    for _ in 0..3 {
        case.lists(2, 0..19);
        assert_eq!(case.sync(&[]).exits(0).count("deleted"), 0);
    }
    assert_eq!(case.present(), 20);
}

#[tokio::test]
async fn a_resource_that_is_named_again_begins_anew() {
    let case = Listed::harvested().await;
    for (day, numbers) in [(2, 0..19), (3, 0..20), (4, 0..19)] {
        case.lists(day, numbers);
        assert_eq!(case.sync(&[]).exits(0).count("deleted"), 0, "day {day}");
    }
    assert_eq!(case.present(), 20);
}

#[tokio::test]
async fn a_list_that_loses_half_of_itself_deletes_nothing_without_the_operators_word() {
    let case = Listed::harvested().await;
    case.lists(2, 0..10);
    case.sync(&[]).exits(1).says(&["10  absent, kept"]);
    case.lists(3, 0..10);
    for _ in 0..2 {
        let run = case.sync(&[]).exits(3).says(&["omits 10 of 20", "--max-deletes 100%"]);
        assert_eq!(run.count("deleted"), 0, "{run}");
        assert_eq!(case.present(), 20);
    }
    assert_eq!(case.sync(&["--max-deletes", "100%"]).exits(0).count("deleted"), 10);
    assert_eq!(case.present(), 10);
}

#[tokio::test]
async fn an_empty_list_deletes_nothing() {
    let case = Listed::harvested().await;
    case.lists(2, 0..0);
    case.sync(&[]).exits(1).says(&["20  absent, kept"]);
    case.lists(3, 0..0);
    let run = case.sync(&[]).exits(3).says(&["omits 20 of 20", "Nothing was deleted", "--max-deletes 100%"]);
    assert_eq!(run.count("deleted"), 0, "{run}");
    assert_eq!(case.present(), 20);
}

#[tokio::test]
async fn a_web_page_in_place_of_the_list_tells_nothing() {
    let case = Listed::harvested().await;
    for _ in 0..2 {
        case.site.serve("/list.xml", "<!DOCTYPE html><html><body>Back soon</body></html>");
        let options = ["--rediscover", "--absent", "delete", "--max-deletes", "100%"];
        case.sync(&options).exits(3).complains(&[&case.url, "HTML"], &["check", "give", "look"]);
        assert_eq!(case.present(), 20);
    }
}

#[tokio::test]
async fn a_list_that_is_cut_short_tells_nothing_by_what_it_lacks() {
    let case = Listed::harvested().await;
    for day in 2..5 {
        let md = format!("capability=\"resourcelist\" at=\"2026-01-{day:02}T00:00:00Z\"");
        let whole = urlset(&md, &case.entries(0..19));
        case.site.serve("/list.xml", &whole[..whole.len() - 20]);
        let run = case.sync(&["--absent", "delete"]).exits(1).says(&[&case.url, "cut short"]);
        assert_eq!((run.count("deleted"), run.count("absent")), (0, 0), "{run}");
    }
    assert_eq!(case.present(), 20);
}

#[tokio::test]
async fn the_operator_may_have_absent_resources_deleted_at_once_or_never() {
    let case = Listed::harvested().await;
    case.lists(2, 0..19);
    let run = case.sync(&["--absent", "keep"]).exits(0);
    assert_eq!(run.count("deleted"), 0, "{run}");
    case.lists(3, 0..19);
    let run = case.sync(&["--absent", "delete"]).exits(0);
    assert_eq!(run.count("deleted"), 1, "{run}");
    assert_eq!(case.present(), 19);
}

#[tokio::test]
async fn what_a_filter_leaves_out_is_not_absent() {
    let case = Listed::harvested().await;
    for day in 2..4 {
        case.lists(day, 0..20);
        let run = case.sync(&["--exclude", "/1[0-9]"]).exits(0);
        assert_eq!((run.count("deleted"), run.count("absent")), (0, 0), "{run}");
    }
    assert_eq!(case.present(), 20);
}
