//! `--follow-rule`: which links are followed, with conditions and a limit of each rule.

use super::{Case, declares, linked, ln, time};
use crate::common::{Inside, Run, Site, resource, urlset};

const PDF: &str = "type=\"application/pdf\"";
const INSTEAD: &str = "rel=alternate,type=application/pdf,instead";

impl Case {
    /// Syncs by these rules.
    #[track_caller]
    fn by_rules(&self, url: &str, rules: &[&str], options: &[&str]) -> Run {
        let rules: Vec<&str> = rules.iter().flat_map(|rule| ["--follow-rule", rule]).collect();
        self.copy.sync_with(url, &[&rules[..], options].concat())
    }
}

#[tokio::test]
async fn lnk_7_t2_an_alternate_is_taken_instead_of_its_resource() {
    let case = Case::new().await;
    let [w, pdf, plain] = ["/w", "/w.pdf", "/plain"].map(|path| case.site.serve(path, path));
    let link = ln("alternate", &pdf, &format!("{PDF} {}", declares("/w.pdf")));
    let html = ln("alternate", &case.site.uri("/w.html"), "type=\"text/html\"");
    let entries = [linked(&w, &declares("/w"), &[&html, &link]), resource(&plain, &declares("/plain"))];
    let list = case.list(1, &entries);
    let run = case.by_rules(&list, &[INSTEAD], &[]).exits(0);
    let counts = ["listed", "by_rule", "linked", "stored", "failed"].map(|name| run.count(name));
    assert_eq!(counts, [1, 1, 1, 2, 0], "{run}");
    assert_eq!(run.json()["in_sync"], true, "{run}");
    assert_eq!((case.site.requests_at("/w"), case.site.requests_at("/w.html")), (0, 0));
    assert_eq!(case.copy.present().into_keys().collect::<Vec<_>>(), [plain.clone(), pdf.clone()]);
    case.copy.run("audit", &[&list, "--follow-rule", INSTEAD]).exits(0);

    // The same again, from a later list: nothing is requested, absent or deleted.
    let list = case.list(2, &entries);
    let run = case.by_rules(&list, &[INSTEAD], &[]).exits(0);
    let counts = ["by_rule", "stored", "absent", "deleted"].map(|name| run.count(name));
    assert_eq!((counts, case.site.requests_at("/w.pdf")), ([1, 0, 0, 0], 1), "{run}");

    // Without its alternate the resource itself is what there is.
    let list = case.list(3, &[resource(&w, &declares("/w")), resource(&plain, &declares("/plain"))]);
    let run = case.by_rules(&list, &[INSTEAD], &["--max-deletes", "100%"]).exits(0);
    assert_eq!((run.count("by_rule"), run.count("stored"), run.count("absent")), (0, 1, 1), "{run}");
    assert_eq!(case.copy.cat(&w), b"/w");
}

#[tokio::test]
async fn lnk_7_t2_what_was_stored_before_a_rule_stays_and_is_not_requested() {
    let case = Case::new().await;
    let [w, pdf] = ["/w", "/w.pdf"].map(|path| case.site.serve(path, path));
    let entry = |content: &str| linked(&w, &declares(content), &[&ln("alternate", &pdf, PDF)]);
    let list = case.list(1, &[entry("/w")]);
    case.sync(&list).exits(0);
    for day in 2..5 {
        let list = case.list(day, &[entry("newer")]);
        let run = case.by_rules(&list, &[INSTEAD], &["--max-deletes", "100%"]).exits(0);
        let counts = ["by_rule", "absent", "deleted", "failed"].map(|name| run.count(name));
        assert_eq!(counts, [1, 0, 0, 0], "day {day}: {run}");
    }
    assert_eq!((case.copy.cat(&w), case.site.requests_at("/w")), (b"/w".to_vec(), 1));
    assert_eq!(case.copy.state(&pdf).as_deref(), Some("present"));
    case.copy.run("audit", &[&list, "--follow-rule", INSTEAD]).exits(0);
}

#[tokio::test]
async fn lnk_7_t2_the_alternate_of_a_deleted_resource_goes_when_the_lists_omit_it() {
    let case = Case::new().await;
    let [w, pdf, other] = ["/w", "/w.pdf", "/other"].map(|path| case.site.serve(path, path));
    let entry = linked(&w, &declares("/w"), &[&ln("alternate", &pdf, PDF)]);
    let rest = resource(&other, &declares("/other"));
    let list = case.list(1, &[entry, rest.clone()]);
    let changes = |entries: &[String]| {
        let md = format!("capability=\"changelist\" from=\"{}\"", time(1));
        case.site.serve("/changes.xml", urlset(&md, entries))
    };
    let entries = [
        resource(&list, "capability=\"resourcelist\""),
        resource(&changes(&[]), "capability=\"changelist\""),
    ];
    let way_in = case.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &entries));
    let sync = |mode| case.by_rules(&way_in, &[INSTEAD], &["--max-deletes", "100%", "--mode", mode]).exits(0);
    assert_eq!(sync("auto").count("stored"), 2);

    // No record has its links, so the set waits for its lists, which tell.
    changes(&[resource(&w, &format!("change=\"deleted\" datetime=\"{}\"", time(2)))]);
    for _ in 0..2 {
        sync("auto");
        let inside = Inside::of(&case.copy, &way_in).await;
        let sets = inside.catalog.sets().await.unwrap();
        inside.close().await;
        assert!(sets.iter().any(|(_, set)| set.waiting.is_some()), "{sets:?}");
    }
    for day in 3..5 {
        case.list(day, std::slice::from_ref(&rest));
        sync("baseline");
    }
    assert_eq!(case.copy.state(&pdf).as_deref(), Some("deleted"));
    assert_eq!((case.copy.state(&other).as_deref(), case.site.requests_at("/w")), (Some("present"), 0));
}

#[tokio::test]
async fn lnk_5_each_rule_has_a_type_a_host_a_profile_and_a_limit_of_its_own() {
    let case = Case::new().await;
    let other = Site::start().await;
    let elsewhere = other.serve("/far", "/far").replace("127.0.0.1", "localhost");
    let at = |path: &str| case.site.serve(path, path);
    let [page, one, two, dc, mods] = ["/page", "/1", "/2", "/dc", "/mods"].map(at);
    let links = [
        ln("item", &one, PDF),
        ln("item", &two, PDF),
        ln("item", &elsewhere, PDF),
        ln("item", &case.site.uri("/html"), "type=\"text/html\""),
        ln("describedby", &dc, "profile=\"http://ns.test/dc\""),
        ln("describedby", &mods, "profile=\"http://ns.test/mods\""),
    ];
    let list = case.list(1, &[linked(&page, &declares("/page"), &links.each_ref().map(String::as_str))]);
    let rules =
        ["rel=item,type=application/pdf,host=127.0.0.1,max=1", "rel=describedby,profile=http://ns.test/dc"];
    let run = case.by_rules(&list, &rules, &[]).exits(1).says(&["limit-links"]);
    assert_eq!((run.count("linked"), run.count("stored")), (2, 3), "{run}");
    assert_eq!(case.copy.present().into_keys().collect::<Vec<_>>(), [one, dc, page]);
    assert!(other.requests().is_empty());
    for path in ["/2", "/html", "/mods"] {
        assert_eq!(case.site.requests_at(path), 0, "{path}");
    }
    let refused = case.copy.sync_with(&list, &["--follow-rule", "type=application/pdf"]).exits(2);
    assert!(refused.stderr.contains("needs a relation"), "{refused}");
}

#[tokio::test]
async fn lnk_5_one_target_with_several_types_is_one_resource_of_the_type_that_is_wanted() {
    let case = Case::new().await;
    let [page, file] = ["/page", "/file"].map(|path| case.site.serve(path, path));
    let types = ["text/html", "application/pdf", "application/xml"];
    let links = types.map(|media_type| ln("item", &file, &format!("type=\"{media_type}\"")));
    let list = case.list(1, &[linked(&page, &declares("/page"), &links.each_ref().map(String::as_str))]);
    let run = case.by_rules(&list, &["rel=item,type=application/*"], &[]).exits(0);
    assert_eq!((run.count("linked"), run.count("stored")), (1, 2), "{run}");
    let accepted = Some("application/pdf, */*;q=0.1".to_owned());
    assert_eq!(case.site.headers_at("/file", "accept"), [accepted]);
    // The others are told.
    let told = case.copy.run("explain", &[&page]).exits(0);
    assert!(types.iter().all(|media_type| told.stdout.contains(media_type)), "{told}");
}

#[tokio::test]
async fn lnk_7_the_declared_type_of_a_resource_is_accepted_first() {
    let case = Case::new().await;
    let [w, bare] = ["/w", "/bare"].map(|path| case.site.serve(path, path));
    let typed = format!("{} type=\"text/html; charset=utf-8\"", declares("/w"));
    let list = case.list(1, &[resource(&w, &typed), resource(&bare, &declares("/bare"))]);
    case.sync(&list).exits(0);
    assert_eq!(case.site.headers_at("/w", "accept"), [Some("text/html, */*;q=0.1".to_owned())]);
    let of_bare = &case.site.headers_at("/bare", "accept")[0];
    assert!(of_bare.as_deref().is_none_or(|accept| accept == "*/*"), "{of_bare:?}");
}
