//! Empty and halved lists.

use std::ops::Range;

use crate::common::{Destination, Run, Site, resource, urlset};

/// A Source of one list, of which 60 resources are stored.
struct Case {
    site: Site,
    url: String,
    copy: Destination,
}

impl Case {
    async fn new() -> Self {
        let site = Site::start().await;
        (0..60).for_each(|n| drop(site.serve(&format!("/{n}.txt"), n.to_string())));
        let url = site.uri("/list.xml");
        let case = Self { site, url, copy: Destination::directory() };
        case.lists(1, 0..60);
        case.sync(&[]).exits(0);
        case
    }

    /// From this day on, these are listed.
    fn lists(&self, day: u32, numbers: Range<u32>) {
        let entries: Vec<String> =
            numbers.map(|n| resource(&self.site.uri(&format!("/{n}.txt")), "")).collect();
        let md = format!("capability=\"resourcelist\" at=\"2026-01-{day:02}T00:00:00Z\"");
        self.site.serve("/list.xml", urlset(&md, &entries));
    }

    #[track_caller]
    fn sync(&self, options: &[&str]) -> Run {
        self.copy.sync_with(&self.url, options)
    }
}

#[tokio::test]
async fn an_empty_or_halved_list_is_said_first_and_is_not_in_sync() {
    for (left, absent) in [(0, 60), (30, 30)] {
        let case = Case::new().await;
        case.lists(2, 0..left);
        let run = case.sync(&[]).exits(1);
        let (first, rest) = run.stderr.split_once("Finished, but not in sync.").expect("it says so");
        assert!(first.contains(&format!("omits {absent} of 60 stored resources")), "{run}");
        assert!(rest.contains("not-listed") && first.contains("--max-deletes 100%"), "{run}");
        assert_eq!(run.json()["in_sync"], false, "{run}");
        assert_eq!((run.count("absent"), run.count("deleted")), (absent, 0), "{run}");
        assert_eq!(case.copy.present().len(), 60);

        // It stays so until the list is complete again.
        assert_eq!(case.sync(&[]).exits(1).json()["in_sync"], false);
        case.lists(3, 0..60);
        let run = case.sync(&[]).exits(0);
        assert_eq!(run.json()["in_sync"], true, "{run}");
        assert_eq!(case.copy.present().len(), 60);
    }
}

#[tokio::test]
async fn a_list_that_lacks_as_much_as_may_be_deleted_is_in_sync() {
    let case = Case::new().await;
    case.lists(2, 0..54);
    assert_eq!(case.sync(&[]).exits(0).count("absent"), 6);
    case.lists(3, 0..53);
    // Resources absent before are deleted. The seventh is absent.
    let run = case.sync(&["--max-deletes", "100%"]).exits(0);
    assert_eq!((run.count("deleted"), run.count("absent")), (6, 1), "{run}");
}

#[tokio::test]
async fn the_operators_word_makes_an_empty_list_one_that_is_waited_for() {
    let case = Case::new().await;
    case.lists(2, 0..0);
    case.sync(&["--max-deletes", "100%"]).exits(0);
    case.sync(&[]).exits(1);
    assert_eq!(case.copy.present().len(), 60);
}
