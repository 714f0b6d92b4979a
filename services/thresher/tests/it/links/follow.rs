//! `--follow-links`: what links lead to is synced too, though no list names it.

use super::{Case, declares, linked, ln, time};
use crate::common::{Package, Process, Run, Site, package, resource, urlset};
use serde_json::Value;
use std::time::Duration;
use testkit::scripted::Reply;

const PDF: &str = "type=\"application/pdf\"";

impl Case {
    /// Syncs and follows the links of these relations.
    #[track_caller]
    fn follows(&self, url: &str, relations: &str, options: &[&str]) -> Run {
        self.copy.sync_with(url, &[&["--follow-links", relations], options].concat())
    }

    /// The link that leads to a resource, as `ls --json` shows it.
    #[track_caller]
    fn linked(&self, uri: &str) -> Value {
        let lines = self.copy.listed();
        lines.iter().find(|line| line["uri"] == uri).unwrap_or_else(|| panic!("{uri} is not listed"))["linked"].clone()
    }

    /// Serves a Source with a Resource List of the first day, and these changes. Returns its URL.
    fn with_changes(&self, entries: &[String], changes: &[String]) -> String {
        self.list(1, entries);
        let md = format!("capability=\"changelist\" from=\"{}\"", time(1));
        self.site.serve("/changes.xml", urlset(&md, changes));
        let capabilities = [
            resource(&self.site.uri("/list.xml"), "capability=\"resourcelist\""),
            resource(&self.site.uri("/changes.xml"), "capability=\"changelist\""),
        ];
        self.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &capabilities))
    }
}

fn change(uri: &str, kind: &str, day: u8, more: &str, links: &[&str]) -> String {
    linked(uri, &format!("change=\"{kind}\" datetime=\"{}\" {more}", time(day)), links)
}

#[tokio::test]
async fn lnk_7_t1_an_alternate_is_held_and_judged_by_its_own_digest() {
    let case = Case::new().await;
    let [w, pdf, html] = ["/w", "/w.pdf", "/w.html"].map(|path| case.site.serve(path, path));
    let links = |content: &str| {
        [
            ln("alternate", &html, "type=\"text/html\""),
            ln("alternate", &pdf, &format!("{PDF} {}", declares(content))),
        ]
    };
    let entry = |content: &str| linked(&w, &declares("/w"), &links(content).each_ref().map(String::as_str));
    let list = case.list(1, &[entry("/w.pdf")]);
    let run = case.follows(&list, "alternate", &["--follow-type", "application/pdf"]).exits(0);
    assert_eq!((run.count("listed"), run.count("linked"), run.count("stored")), (1, 1, 2), "{run}");
    assert_eq!((case.copy.cat(&w), case.copy.cat(&pdf)), (b"/w".to_vec(), b"/w.pdf".to_vec()));
    assert_eq!(case.site.requests_at("/w.html"), 0);
    assert_eq!(case.linked(&pdf)["from"], w);
    assert_eq!((&case.linked(&pdf)["rel"], &case.linked(&w)), (&"alternate".into(), &Value::Null));
    let told = case.copy.explain(&pdf);
    for text in
        ["no list names it", &format!("linked from {w} as alternate"), "its digest matches the declared one"]
    {
        assert!(told.contains(text), "{text}: {told}");
    }
    case.copy
        .run("audit", &[&list, "--follow-links", "alternate", "--follow-type", "application/pdf"])
        .exits(0);
    case.copy.run("audit", &[&list]).exits(0);

    // In step: the list is looked at, and nothing else is.
    let before = case.site.paths().len();
    let run = case.follows(&list, "alternate", &["--follow-type", "application/pdf"]).exits(0);
    assert_eq!(run.json()["in_sync"], true, "{run}");
    assert_eq!(case.site.paths()[before..], ["/list.xml"]);

    // Other bytes than the link declares are never current.
    let list = case.list(2, &[entry("another.pdf")]);
    let run =
        case.follows(&list, "alternate", &["--follow-type", "application/pdf", "--retries", "0"]).exits(1);
    assert_eq!(run.count("failed"), 1, "{run}");
    let told = case.copy.run("explain", &[&pdf]).exits(0);
    assert!(told.stdout.contains("Problem: ") && told.stdout.contains("mismatch"), "{told}");
    assert_eq!(case.copy.cat(&pdf), b"/w.pdf");
}

#[tokio::test]
async fn an_audit_that_follows_fewer_links_finds_nothing_too_many() {
    let case = Case::new().await;
    let [w, one, two] = ["/w", "/w.1", "/w.2"].map(|path| case.site.serve(path, path));
    let links = [ln("item", &one, PDF), ln("item", &two, PDF)];
    let list = case.list(1, &[linked(&w, &declares("/w"), &links.each_ref().map(String::as_str))]);
    case.follows(&list, "item", &[]).exits(0);
    assert_eq!(case.copy.ls().len(), 3);

    let run =
        case.copy.run("audit", &[&list, "--json", "--follow-links", "item", "--follow-max", "1"]).exits(1);
    assert_eq!((run.count("extra"), run.count("unread")), (0, 1), "{run}");
    assert!(run.json()["remarks"][0].as_str().unwrap().contains("--follow-max"), "{run}");
}

#[tokio::test]
async fn lnk_7_t3_what_is_listed_too_is_one_record_and_stays_when_its_resource_goes() {
    let case = Case::new().await;
    let [w, pdf] = ["/w", "/w.pdf"].map(|path| case.site.serve(path, path));
    let with_link = linked(&w, &declares("/w"), &[&ln("alternate", &pdf, PDF)]);
    let listed = resource(&pdf, &declares("/w.pdf"));
    let source = case.with_changes(std::slice::from_ref(&with_link), &[]);
    case.follows(&source, "alternate", &[]).exits(0);
    assert_eq!(case.linked(&pdf)["from"], w);

    // A list that names it wins, in whichever order.
    for entries in [[with_link.clone(), listed.clone()], [listed, with_link]] {
        case.list(2, &entries);
        let run = case.follows(&source, "alternate", &["--mode", "baseline"]).exits(0);
        assert_eq!((case.copy.ls().len(), case.linked(&pdf)), (2, Value::Null), "{run}");
    }
    assert_eq!(case.site.requests_at("/w.pdf"), 1);

    let md = format!("capability=\"changelist\" from=\"{}\"", time(1));
    case.site.serve("/changes.xml", urlset(&md, &[change(&w, "deleted", 3, "", &[])]));
    let run = case.follows(&source, "alternate", &[]).exits(0);
    assert_eq!(run.count("deleted"), 1, "{run}");
    assert_eq!(case.copy.state(&w).as_deref(), Some("deleted"));
    assert_eq!(case.copy.state(&pdf).as_deref(), Some("present"));
}

#[tokio::test]
async fn lnk_9_t2_unlisted_metadata_is_fetched_and_gone_after_two_looks_without_its_link() {
    let case = Case::new().await;
    let [pdf, dc] = ["/p.pdf", "/p.dc"].map(|path| case.site.serve(path, path));
    let with = linked(&pdf, &declares("/p.pdf"), &[&ln("describedby", &dc, "type=\"application/xml\"")]);
    let without = linked(&pdf, &declares("/p.pdf"), &[]);
    let sync = |day: u8, entry: &String| {
        let list = case.list(day, std::slice::from_ref(entry));
        case.follows(&list, "describedby", &["--max-deletes", "100%"]).exits(0)
    };
    assert_eq!(sync(1, &with).count("stored"), 2);
    assert_eq!(case.linked(&dc)["rel"], "describedby");
    assert_eq!(sync(2, &without).count("absent"), 1);
    assert_eq!(case.copy.state(&dc).as_deref(), Some("present"));
    assert_eq!(sync(3, &without).count("deleted"), 1);
    assert_eq!(case.copy.state(&dc).as_deref(), Some("deleted"));
    // The link again: so is the resource.
    assert_eq!(sync(4, &with).count("stored"), 1);
    assert_eq!(case.copy.cat(&dc), b"/p.dc");
    assert_eq!(case.site.requests_at("/p.pdf"), 1);
}

#[tokio::test]
async fn lnk_5_a_linked_resource_is_looked_at_again_when_its_resource_or_its_link_changes() {
    let case = Case::new().await;
    let [page, file, dated] = ["/page", "/file", "/dated"].map(|path| case.site.serve(path, path));
    let sync = |day: u8, content: &str, modified: u8| {
        case.site.serve("/page", content);
        let dated = ln("item", &dated, &format!("modified=\"{}\"", time(modified)));
        let entry = linked(&page, &declares(content), &[&ln("item", &file, ""), &dated]);
        let list = case.list(day, &[entry]);
        let before = case.site.paths().len();
        case.follows(&list, "item", &[]).exits(0);
        let mut paths = case.site.paths().split_off(before);
        paths.sort_unstable();
        paths
    };
    assert_eq!(sync(1, "1", 1), ["/dated", "/file", "/list.xml", "/page"]);
    assert_eq!(sync(2, "1", 1), ["/list.xml"]);
    case.site.serve("/file", "new");
    assert_eq!(sync(3, "2", 1), ["/file", "/list.xml", "/page"]);
    assert_eq!(case.copy.cat(&file), b"new");
    assert_eq!(sync(4, "2", 2), ["/dated", "/list.xml"]);
    assert_eq!(sync(5, "2", 2), ["/list.xml"]);
}

#[tokio::test]
async fn lnk_5_a_linked_resource_is_deleted_with_the_only_resource_that_links_to_it() {
    let case = Case::new().await;
    let [a, b, own, shared] = ["/a", "/b", "/own", "/shared"].map(|path| case.site.serve(path, path));
    let entries = [
        linked(&a, &declares("/a"), &[&ln("item", &own, ""), &ln("author", &shared, "")]),
        linked(&b, &declares("/b"), &[&ln("author", &shared, "")]),
    ];
    let source = case.with_changes(&entries, &[]);
    let run = case.follows(&source, "item,author", &[]).exits(0);
    assert_eq!((run.count("stored"), run.count("linked")), (4, 3), "{run}");
    assert_eq!(case.linked(&shared)["shared"], true);
    let changes = |entries: &[String]| {
        let md = format!("capability=\"changelist\" from=\"{}\"", time(1));
        case.site.serve("/changes.xml", urlset(&md, entries));
        case.follows(&source, "item,author", &[])
    };
    let gone = change(&a, "deleted", 2, "", &[]);
    let run = changes(std::slice::from_ref(&gone)).exits(0);
    assert_eq!((run.count("deleted"), run.count("absent")), (2, 1), "{run}");
    let states = [&a, &own, &shared, &b].map(|uri| case.copy.state(uri));
    assert_eq!(
        states.each_ref().map(|state| state.as_deref().unwrap()),
        ["deleted", "deleted", "present", "present"]
    );
    // The open Change List is read again: nothing is new.
    let run = changes(std::slice::from_ref(&gone)).exits(0);
    assert_eq!((run.count("deleted"), run.count("stored"), run.count("failed")), (0, 0, 0), "{run}");

    // A change with a new link, and one that does not repeat its links.
    let new = case.site.serve("/new", "/new");
    case.site.serve("/b", "second");
    case.site.serve("/shared", "second");
    let silent = change(&b, "updated", 3, &declares("second"), &[]);
    changes(&[gone.clone(), silent.clone()]).exits(0);
    assert_eq!(case.copy.cat(&shared), b"second", "it is looked at again with its resource");
    let linking =
        change(&b, "updated", 4, &declares("second"), &[&ln("item", &new, ""), &ln("author", &shared, "")]);
    changes(&[gone, silent, linking]).exits(0);
    assert_eq!(case.copy.cat(&new), b"/new");

    // A list that still has a link to it ends the absence.
    let entry = linked(&b, &declares("second"), &[&ln("author", &shared, ""), &ln("item", &new, "")]);
    case.list(5, &[entry]);
    let run = case.follows(&source, "item,author", &["--mode", "baseline"]).exits(0);
    assert_eq!((run.count("deleted"), run.count("absent")), (0, 0), "{run}");
    assert_eq!(case.copy.state(&shared).as_deref(), Some("present"));
}

#[tokio::test]
async fn lnk_5_links_beyond_a_limit_are_a_problem_and_delete_nothing() {
    let case = Case::new().await;
    let page = case.site.serve("/page", "/page");
    let items: Vec<String> = (0..5).map(|n| case.site.serve(&format!("/{n}"), n.to_string())).collect();
    let links: Vec<String> = items.iter().map(|item| ln("item", item, "")).collect();
    let entry = linked(&page, &declares("/page"), &links.iter().map(String::as_str).collect::<Vec<_>>());
    let list = case.list(1, std::slice::from_ref(&entry));
    case.follows(&list, "item", &[]).exits(0);
    assert_eq!(case.copy.present().len(), 6);
    for (day, options) in [(2, ["--follow-max", "2"]), (3, ["--max-links", "2"])] {
        let list = case.list(day, std::slice::from_ref(&entry));
        let run = case.follows(&list, "item", &[&options[..], &["--max-deletes", "100%"]].concat()).exits(1);
        assert_eq!((run.count("absent"), run.count("deleted")), (0, 0), "{run}");
        let problem = &case.copy.run("problems", &["--json"]).exits(0).json_lines()[0];
        assert_eq!(problem["reason"], "limit-links", "{problem}");
        assert!(problem["message"].as_str().unwrap().contains(options[0]), "{problem}");
    }
    let list = case.list(4, &[entry]);
    case.follows(&list, "item", &[]).exits(0);
    assert_eq!(case.copy.run("problems", &["--json"]).exits(0).stdout, "", "it is settled");
    assert_eq!(case.copy.present().len(), 6);
}

#[tokio::test]
async fn lnk_5_rules_that_change_read_the_lists_again_and_delete_nothing() {
    let case = Case::new().await;
    let [page, file] = ["/page", "/file"].map(|path| case.site.serve(path, path));
    let entry = linked(&page, &declares("/page"), &[&ln("item", &file, "")]);
    let list = case.list(1, std::slice::from_ref(&entry));
    case.sync(&list).exits(0);
    assert_eq!(case.site.requests_at("/file"), 0, "links are not followed unless the operator says so");
    case.follows(&list, "item", &[]).exits(0);
    assert_eq!((case.site.requests_at("/page"), case.site.requests_at("/file")), (1, 1));
    for day in 2..5 {
        let list = case.list(day, std::slice::from_ref(&entry));
        let run = case.copy.sync_with(&list, &["--max-deletes", "100%"]).exits(0);
        assert_eq!((run.count("absent"), run.count("deleted")), (0, 0), "{run}");
    }
    // Nor does a filter that leaves out one end of a link.
    for (day, excluded) in [(5, "/page"), (6, "/page"), (7, "/file"), (8, "/file")] {
        let list = case.list(day, std::slice::from_ref(&entry));
        let run = case.follows(&list, "item", &["--exclude", excluded, "--max-deletes", "100%"]).exits(0);
        assert_eq!((run.count("absent"), run.count("deleted")), (0, 0), "{excluded}: {run}");
    }
    assert_eq!(case.copy.state(&file).as_deref(), Some("present"));
    let wrong = case.copy.run("sync", &[&list, "--follow-links", "duplicate"]).exits(2);
    assert!(wrong.stderr.contains("--mirrors"), "{wrong}");
}

#[tokio::test]
async fn lnk_5_a_link_needs_the_same_permission_as_an_entry() {
    // By a name, a Source on this machine leads to no other port of it.
    let by_name = |uri: String| uri.replace("127.0.0.1", "localhost");
    let case = Case::new().await;
    let other = Site::start().await;
    let page = by_name(case.site.serve("/page", "/page"));
    let inside = by_name(other.serve("/inside", "secret"));
    let foreign = "http://example.org/x";
    let links = [ln("item", &inside, ""), ln("item", foreign, "")];
    let entry = linked(&page, &declares("/page"), &links.each_ref().map(String::as_str));
    let list = by_name(case.list(1, &[entry]));
    let run = case.follows(&list, "item", &["--retries", "0", "--origins", "same"]).exits(1);
    assert!(other.requests().is_empty(), "{run}");
    assert_eq!((run.count("stored"), run.count("failed")), (1, 1), "{run}");
    let problem = &case.copy.run("problems", &["--json", &inside]).exits(0).json_lines()[0];
    assert_eq!(problem["reason"], "refused-address", "{problem}");
    assert_eq!(case.copy.state(foreign), None, "it is of another site");
    let told = case.copy.explain(&inside);
    assert!(told.contains(&format!("linked from {page} as item")), "{told}");
}

#[tokio::test]
async fn lnk_5_what_nothing_links_to_any_more_goes_under_the_deletion_guard() {
    const FILES: usize = 20;
    let case = Case::new().await;
    let page = case.site.serve("/page", "/page");
    let links: Vec<String> =
        (0..FILES).map(|n| ln("item", &case.site.serve(&format!("/{n}"), format!("/{n}")), "")).collect();
    let with = linked(&page, &declares("/page"), &links.iter().map(String::as_str).collect::<Vec<_>>());
    let without = resource(&page, &declares("/page"));
    let list = case.list(1, &[with]);
    case.follows(&list, "item", &[]).exits(0);
    assert_eq!(case.copy.present().len(), 1 + FILES);
    for day in 2..4 {
        let list = case.list(day, std::slice::from_ref(&without));
        let run = case.follows(&list, "item", &["--absent", "delete"]).exits(3);
        assert_eq!(run.count("deleted"), 0, "{run}");
        assert_eq!(case.copy.present().len(), 1 + FILES, "day {day}");
    }
    let list = case.list(4, &[without]);
    let run = case.follows(&list, "item", &["--absent", "delete", "--max-deletes", "100%"]).exits(0);
    assert_eq!((run.count("deleted"), case.copy.present().len()), (FILES as u64, 1), "{run}");
}

#[tokio::test]
async fn lnk_5_robots_txt_binds_what_links_lead_to() {
    let case = Case::new().await;
    case.site.serve("/robots.txt", "User-agent: *\nDisallow: /private/\n");
    let [page, private, open] = ["/page", "/private/f", "/f"].map(|path| case.site.serve(path, path));
    let links = [ln("item", &private, ""), ln("item", &open, "")];
    let list = case.list(1, &[linked(&page, &declares("/page"), &links.each_ref().map(String::as_str))]);
    let run = case.follows(&list, "item", &["--robots", "obey"]).exits(1);
    assert_eq!((run.count("stored"), run.count("failed")), (2, 1), "{run}");
    assert_eq!((case.site.requests_at("/private/f"), case.site.requests_at("/f")), (0, 1));
    let problem = &case.copy.run("problems", &["--json", &private]).exits(0).json_lines()[0];
    assert_eq!(problem["reason"], "disallowed", "{problem}");
}

#[tokio::test]
async fn lnk_5_links_lead_one_step_and_a_dead_one_is_a_problem_of_its_own() {
    let case = Case::new().await;
    let page = case.site.serve("/page", "/page");
    // Links of the response are no links of an entry.
    let far = case.site.serve("/far", "far");
    let near = Reply::ok("near").header("link", format!("<{far}>; rel=\"item\""));
    let near = case.site.reply("/near", near);
    let dead = case.site.reply("/dead", Reply::status(404));
    let links = [ln("item", &near, ""), ln("item", &dead, ""), ln("item", "ftp://h.test/f", "")];
    let list = case.list(1, &[linked(&page, &declares("/page"), &links.each_ref().map(String::as_str))]);
    let run = case.follows(&list, "item", &[]).exits(1);
    assert_eq!((run.count("stored"), case.site.requests_at("/far")), (2, 0), "{run}");
    let problems = case.copy.run("problems", &["--json"]).exits(0).json_lines();
    let mut reasons: Vec<&str> = problems.iter().map(|problem| problem["reason"].as_str().unwrap()).collect();
    reasons.sort_unstable();
    assert_eq!(reasons, ["bad-uri", "http-client-error"]);
}

#[tokio::test]
async fn lnk_5_members_of_packages_lead_to_what_they_link_to() {
    let case = Case::new().await;
    let [page, file] = [case.site.uri("/page"), case.site.serve("/file", "/file")];
    let packed = Package::of_resources(&time(1)).holds(&page, "/page").linking(&ln("item", &file, "")).zip();
    let uri = case.site.reply("/p.zip", Reply::ok(packed.clone()));
    let md = format!("capability=\"resourcedump\" at=\"{}\"", time(1));
    let dump = case.site.serve("/dump.xml", urlset(&md, &[package(&uri, &packed, "")]));
    let run = case.follows(&dump, "item", &["--prefer", "dump"]).exits(0);
    assert_eq!((run.count("stored"), run.count("linked")), (2, 1), "{run}");
    assert_eq!((case.copy.cat(&page), case.copy.cat(&file)), (b"/page".to_vec(), b"/file".to_vec()));
    assert_eq!(case.linked(&file)["from"], page);
    assert_eq!(case.site.requests_at("/page"), 0);
}

#[tokio::test]
async fn lnk_5_a_killed_run_goes_on_with_what_links_lead_to() {
    const PAGES: usize = 120;
    let case = Case::new().await;
    let slow = |body: &str| Reply::ok(body.to_owned()).delay(Duration::from_millis(20));
    let mut items = Vec::new();
    let entries: Vec<String> = (0..PAGES)
        .map(|n| {
            let [page, item] = ["page", "item"].map(|kind| format!("/{kind}/{n}"));
            let item = case.site.reply(&item, slow(&item));
            items.push(item.clone());
            linked(&case.site.reply(&page, slow(&page)), &declares(&page), &[&ln("item", &item, "")])
        })
        .collect();
    let list = case.list(1, &entries);
    let options = ["--follow-links", "item"];
    let mut command = case.copy.command("sync", &[&[list.as_str()], &options[..]].concat());
    // It cannot end before it is killed.
    case.site.allow(PAGES as u64 + 20);
    Process::start(&mut command).kill_when(|| case.site.paths().len() > PAGES).await;
    case.site.allow_all();
    let before = case.copy.ls().len();
    let run = case.follows(&list, "item", &[]).exits(0);
    assert_eq!(run.json()["in_sync"], true, "{run}");
    assert_eq!(
        (case.copy.present().len(), run.count("stored")),
        (2 * PAGES, 2 * PAGES as u64),
        "{before}: {run}"
    );
    let listed = case.copy.listed();
    let marked = listed.iter().filter(|line| line["linked"]["rel"] == "item");
    assert_eq!(marked.count(), items.len());
    assert!(case.site.paths().len() < 3 * PAGES, "little is repeated: {}", case.site.paths().len());
}
