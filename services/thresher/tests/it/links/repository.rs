//! A repository like real ones: works with a landing page, a metadata record and files, and mirrors of all of them.

use super::works::works;
use super::{Case, declares, linked, ln};
use crate::common::{Run, Site};
use serde_json::{Value, json};
use testkit::scripted::Reply;
use testkit::servers::free_port;

/// Works of the repository. `THRESHER_TEST_WORKS=5000` tests a larger one.
const WORKS: usize = 200;
/// What follows the links of pages to unlisted metadata, and may ask other ports of this machine.
const OPTIONS: [&str; 6] =
    ["--follow-links", "describedby", "--retries", "0", "--allow-address", "127.0.0.0/8"];

/// The Source, one server that is down, and the mirror of both.
struct Repository {
    case: Case,
    mirror: Site,
    down: String,
}

fn works_of_test() -> usize {
    std::env::var("THRESHER_TEST_WORKS").map_or(WORKS, |count| count.parse().expect("a number"))
}

impl Repository {
    async fn new() -> Self {
        // No server listens at this port.
        let port = free_port();
        Self {
            case: Case::new().await,
            mirror: Site::start().await,
            down: format!("http://127.0.0.1:{port}"),
        }
    }

    /// Whether the server of a work is down.
    fn is_down(n: usize) -> bool {
        n % 10 == 3
    }

    /// Whether only the page of a work leads to its metadata.
    fn is_unlisted(n: usize) -> bool {
        n % 10 == 7
    }

    fn files(n: usize) -> usize {
        1 + n % 3
    }

    fn uri(&self, n: usize, path: &str) -> String {
        if Self::is_down(n) { format!("{}{path}", self.down) } else { self.case.site.uri(path) }
    }

    /// An entry whose bytes are served where its server is up, and at the mirror.
    fn entry(&self, n: usize, path: &str, content: &str, media_type: &str, links: &[String]) -> String {
        let reply = || Reply::ok(content.to_owned()).header("content-type", media_type);
        self.case.site.reply(path, reply());
        self.mirror.reply(path, reply());
        let links = [links, &[ln("duplicate", &self.mirror.uri(path), "")]].concat();
        let md = format!("{} type=\"{media_type}\"", declares(content));
        linked(&self.uri(n, path), &md, &links.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The entries of a work in this edition.
    fn work(&self, n: usize, edition: &str) -> Vec<String> {
        let page = self.uri(n, &format!("/{n}"));
        let metadata = format!("/{n}.xml");
        let file = |k: usize| format!("/{n}-{k}.pdf");
        let mut of_page: Vec<String> = (0..Self::files(n))
            .map(|k| ln("item", &self.uri(n, &file(k)), "type=\"application/pdf\""))
            .collect();
        of_page.push(ln("describedby", &self.uri(n, &metadata), "type=\"application/xml\""));
        of_page.push(ln("cite-as", &format!("http://doi.test/{n}"), ""));
        of_page.push(ln("license", "http://l.test/by", ""));
        let mut entries =
            vec![self.entry(n, &format!("/{n}"), &format!("<html>{n} {edition}"), "text/html", &of_page)];
        for k in 0..Self::files(n) {
            let back = [ln("collection", &page, "")];
            entries.push(self.entry(
                n,
                &file(k),
                &format!("%PDF {n} {k} {edition}"),
                "application/pdf",
                &back,
            ));
        }
        let about = [ln("describes", &page, ""), ln("profile", "http://ns.test/dc", "")];
        let listed = self.entry(n, &metadata, &format!("<dc>{n} {edition}"), "application/xml", &about);
        entries.extend((!Self::is_unlisted(n)).then_some(listed));
        entries
    }

    #[track_caller]
    fn sync(&self, list: &str) -> Run {
        self.case.copy.sync_with(list, &OPTIONS).exits(0)
    }
}

#[tokio::test]
async fn a_repository_with_a_server_that_is_down_is_held_whole_and_costs_what_changed() {
    let count = works_of_test();
    let repository = Repository::new().await;
    let mut entries: Vec<Vec<String>> = (0..count).map(|n| repository.work(n, "1")).collect();
    let lost = ["/lost-1.xml", "/lost-2.xml"];
    entries.push(
        lost.map(|path| {
            let describes = ln("describes", &repository.case.site.uri("/nothing"), "");
            repository.entry(0, path, path, "application/xml", &[describes])
        })
        .to_vec(),
    );
    let list = repository.case.list(1, &entries.concat());
    let run = repository.sync(&list);
    let resources: usize = (0..count).map(|n| 2 + Repository::files(n)).sum::<usize>() + lost.len();
    assert_eq!((run.count("stored"), run.count("failed")), (resources as u64, 0), "{run}");
    let down: usize = (0..count).filter(|n| Repository::is_down(*n)).map(|n| 2 + Repository::files(n)).sum();
    assert_eq!(run.count("mirrored"), down as u64, "{run}");
    assert_eq!(run.json()["in_sync"], true, "{run}");

    let all = works(&repository.case.copy);
    let (orphans, whole): (Vec<Value>, Vec<Value>) =
        all.into_iter().partition(|work| work.get("orphan").is_some());
    assert_eq!((whole.len(), orphans.len()), (count, lost.len()));
    for work in &whole {
        let uri = work["uri"].as_str().unwrap();
        let n: usize = uri.rsplit('/').next().unwrap().parse().unwrap();
        assert_eq!((&work["complete"], &work["landing_page"]), (&json!(true), &work["uri"]), "{work}");
        let lengths = ["metadata", "files"].map(|part| work[part].as_array().unwrap().len());
        assert_eq!(lengths, [1, Repository::files(n)], "{work}");
        assert_eq!(work["metadata"][0]["linked"] == true, Repository::is_unlisted(n), "{work}");
        assert_eq!(work["cite_as"], json!([format!("http://doi.test/{n}")]));
    }
    for orphan in &orphans {
        assert!(lost.iter().any(|path| orphan["uri"].as_str().unwrap().ends_with(path)), "{orphan}");
        assert_eq!(orphan["orphan"]["uri"], repository.case.site.uri("/nothing"));
    }

    // One edition later, two works have changed: one of the usual ones, and one whose metadata is not listed.
    let before = (repository.case.site.paths().len(), repository.mirror.paths().len());
    for n in [5, 7] {
        entries[n] = repository.work(n, "2");
    }
    let list = repository.case.list(2, &entries.concat());
    let run = repository.sync(&list);
    let changed = 4 + Repository::files(5) + Repository::files(7);
    assert_eq!(run.count("stored"), changed as u64, "{run}");
    let mut paths = repository.case.site.paths().split_off(before.0);
    paths.retain(|path| path != "/list.xml");
    assert_eq!(paths.len(), changed, "{paths:?}");
    assert_eq!(repository.mirror.paths().len(), before.1, "no mirror is asked for what is in step");
    assert_eq!(repository.case.copy.cat(&repository.case.site.uri("/7.xml")), b"<dc>7 2");

    let list = repository.case.list(3, &entries.concat());
    let before = repository.case.site.paths().len();
    repository.sync(&list);
    assert_eq!(repository.case.site.paths()[before..], ["/list.xml"]);
}
