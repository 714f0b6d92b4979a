//! Signposting as the only way in: landing pages, Signmaps, the catalog of a host's interfaces (FAIRiCat). Each test is
//! named after the rule that it shows.

mod ways_in;

use std::collections::BTreeMap;

use fixity::Sha256;
use serde_json::Value;
use simulated_source::{PageFault, PageSitemap, PagesSpec, SimulatedPages};
use testkit::scripted::Reply;

use crate::common::{Destination, Process, Run, Site};
use crate::fleet::{ALL, fleet, listed};

/// A site of landing pages, and a copy of what they lead to.
struct Case {
    source: SimulatedPages,
    copy: Destination,
}

impl Case {
    async fn of(spec: PagesSpec) -> Self {
        let source = SimulatedPages::start(spec).await.expect("a free port on loopback");
        Self { source, copy: Destination::directory() }
    }

    #[track_caller]
    fn sync(&self, url: &str, options: &[&str]) -> Run {
        self.copy.sync_with(url, &[&["--retries", "0"], options].concat())
    }

    /// Checks that all files and metadata are held as they are now, and nothing else.
    #[track_caller]
    fn holds_all(&self) {
        assert_eq!(self.copy.present(), digests(&self.source.expected()));
    }

    /// Requests of landing pages.
    fn pages_asked(&self) -> u64 {
        self.source.requests_below("/w/")
    }

    #[track_caller]
    fn works(&self) -> Vec<Value> {
        self.copy.run("ls", &["--group", "--json"]).exits(0).json_lines()
    }
}

fn digests(bodies: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, (u64, String)> {
    let digest = |body: &Vec<u8>| (body.len() as u64, Sha256::of(body).to_string());
    bodies.iter().map(|(uri, body)| (uri.clone(), digest(body))).collect()
}

/// SIG-4 to SIG-6: a page is the way in, whichever place its links are in, and costs one request.
#[tokio::test]
async fn sig_6_a_landing_page_is_a_group_and_its_files_and_metadata_are_held() {
    let (no, yes) = (false, true);
    for (header, head, link_set) in [(yes, no, no), (no, yes, no), (no, no, yes), (yes, yes, yes)] {
        let spec = PagesSpec {
            pages: 1,
            header,
            head,
            link_set,
            sitemap: PageSitemap::None,
            ..PagesSpec::default()
        };
        let case = Case::of(spec).await;
        let page = case.source.page(0);
        let run = case.sync(&page, &[]).exits(0);
        assert_eq!((run.count("listed"), run.count("stored")), (3, 3), "{header} {head} {link_set}: {run}");
        assert_eq!(run.json()["in_sync"], true, "{run}");
        case.holds_all();
        assert_eq!(case.pages_asked(), 1, "discovery's answer is used");
        assert_eq!(case.source.requests_below("/ls/"), u64::from(link_set));

        let works = case.works();
        let [work] = &works[..] else { panic!("{works:?}") };
        assert_eq!((&work["uri"], &work["landing_page"]), (&page.as_str().into(), &page.as_str().into()));
        assert_eq!(
            (work["files"].as_array().unwrap().len(), work["complete"].as_bool()),
            (2, Some(true)),
            "{work}"
        );
        assert_eq!(work["metadata"][0]["uri"], case.source.metadata(0), "{work}");
        assert!(work["cite_as"][0].as_str().unwrap().ends_with("/id/0"), "{work}");
        assert!(work["licenses"][0].as_str().unwrap().ends_with("/license"), "{work}");
        let told = case.copy.explain(&case.source.item(0, 0));
        assert!(told.contains(&format!("linked from {page} as item")), "{told}");

        // Nothing new: the page is asked on condition, and nothing else.
        case.source.reset_requests();
        let run = case.sync(&page, &[]).exits(0);
        assert_eq!((run.count("unchanged"), run.count("stored")), (3, 0), "{run}");
        let asked: Vec<String> =
            case.source.requests().into_keys().filter(|path| path != "/robots.txt").collect();
        assert_eq!(asked, if link_set { vec!["/ls/0", "/w/0"] } else { vec!["/w/0"] });
        assert_eq!(case.pages_asked(), 1);

        // A changed file changes its page: the others are asked on condition.
        case.source.update_item(0, 1);
        let run = case.sync(&page, &[]).exits(0);
        assert_eq!(run.count("stored"), 1, "{run}");
        case.holds_all();
    }
}

/// SIG-3: a sitemap that names the files of its pages, beside `loc` or within it, costs no request of a page.
#[tokio::test]
async fn sig_3_a_signmap_is_read_in_both_forms_and_asks_no_page() {
    for sitemap in [PageSitemap::Signmap, PageSitemap::SignmapInLoc] {
        let case = Case::of(PagesSpec { sitemap, ..PagesSpec::default() }).await;
        let run = case.sync(&case.source.sitemap(), &[]).exits(0);
        assert_eq!((run.count("stored"), case.pages_asked()), (9, 0), "{run}");
        case.holds_all();
        let within = if sitemap == PageSitemap::SignmapInLoc { 15 } else { 0 };
        assert_eq!(run.json()["quirks"]["link-in-loc"].as_u64().unwrap_or_default(), within, "{run}");
        assert_eq!(case.works().len(), 3);

        case.source.reset_requests();
        case.source.update_item(1, 0);
        let run = case.sync(&case.source.sitemap(), &[]).exits(0);
        assert_eq!((run.count("stored"), case.pages_asked()), (1, 0), "{run}");
        assert_eq!(case.source.requests_below("/f/"), 2, "the files of the page that changed");
        case.holds_all();

        // A list without a time says nothing by what it omits.
        case.source.drop_page(2);
        let run = case.sync(&case.source.sitemap(), &["--max-deletes", "100%"]).exits(0);
        assert_eq!((run.count("absent"), run.count("deleted")), (3, 0), "{run}");
        let run = case.sync(&case.source.sitemap(), &["--max-deletes", "100%"]).exits(0);
        assert_eq!((run.count("absent"), run.count("deleted")), (3, 0), "{run}");
    }
}

/// A page that says all that it may, in its header and in its head: files and metadata are held, statements are shown.
#[tokio::test]
async fn sig_4_a_page_says_what_belongs_to_its_work_and_who_made_it() {
    let site = Site::start().await;
    site.reply("/.well-known/resourcesync", Reply::status(404));
    let files = [("/f.pdf", "application/pdf"), ("/f.csv", "text/csv")];
    for (path, media_type) in files {
        site.reply(path, Reply::ok(path.to_owned()).header("content-type", media_type));
    }
    let back = "</w>; rel=\"describes\"";
    site.reply("/m.xml", Reply::ok("m").header("content-type", "application/xml").header("link", back));
    let header = "</f.pdf>; rel=item; type=\"application/pdf\", </m.xml>; rel=describedby; \
                  type=\"application/xml\", <https://doi.test/10.1/w>; rel=cite-as, \
                  <https://orcid.test/1>; rel=author, <https://orcid.test/2>; rel=author";
    let head = "<html><head><title>w</title><link rel=item href=/f.csv type=text/csv>\
                <link rel=license href=https://l.test/by><link rel=type href=https://schema.org/AboutPage>";
    let page = Reply::ok(head).header("content-type", "text/html").header("link", header);
    let page = site.reply("/w", page);
    let copy = Destination::directory();
    let run = copy.sync(&page).exits(0);
    assert_eq!(run.count("stored"), 3, "{run}");
    let works = copy.run("ls", &["--group", "--json"]).exits(0).json_lines();
    let [work] = &works[..] else { panic!("{works:?}") };
    let uris = |part: &str| -> Vec<String> {
        let members = work[part].as_array().unwrap().iter();
        members.map(|one| one["uri"].as_str().unwrap().to_owned()).collect()
    };
    let mut held = uris("files");
    held.sort();
    assert_eq!(held, [site.uri("/f.csv"), site.uri("/f.pdf")]);
    assert_eq!((uris("metadata"), &work["complete"]), (vec![site.uri("/m.xml")], &true.into()));
    assert_eq!(work["cite_as"], serde_json::json!(["https://doi.test/10.1/w"]));
    assert_eq!(work["authors"], serde_json::json!(["https://orcid.test/1", "https://orcid.test/2"]));
    assert_eq!(work["licenses"], serde_json::json!(["https://l.test/by"]));
    for (path, _) in files {
        assert_eq!(copy.cat(&site.uri(path)), path.as_bytes());
    }
}

/// ACC-10: a second run asks only what changed, and each page at most once.
#[tokio::test]
async fn acc_10_a_second_run_asks_only_what_changed() {
    for (lastmod, asked) in [(true, 1), (false, 3)] {
        let case = Case::of(PagesSpec { catalog: true, lastmod, ..PagesSpec::default() }).await;
        case.sync(&case.source.url(), &[]).exits(0);
        assert_eq!(case.pages_asked(), 3);
        case.source.reset_requests();
        case.source.update_item(1, 1);
        let run = case.sync(&case.source.url(), &[]).exits(0);
        assert_eq!((run.count("stored"), run.count("unchanged")), (1, 8), "{run}");
        assert_eq!(
            case.pages_asked(),
            asked,
            "those that their sitemap does not tell of are asked on condition"
        );
        assert_eq!(case.source.requests_below("/f/1/"), 2);
        assert_eq!(case.source.requests_below("/f/"), 2, "{run}");
        case.holds_all();
    }
}

/// SIG-6: a file that its page links to no longer is absent, and deleted under the guard only.
#[tokio::test]
async fn sig_6_a_file_that_vanished_is_absent_and_goes_under_the_guard() {
    let case = Case::of(PagesSpec { catalog: true, ..PagesSpec::default() }).await;
    let url = case.source.url();
    case.sync(&url, &[]).exits(0);
    let gone = case.source.item(1, 1);
    case.source.drop_item(1, 1);
    for _ in 0..2 {
        let run = case.sync(&url, &["--max-deletes", "100%"]).exits(0);
        assert_eq!((run.count("absent"), run.count("deleted")), (1, 0), "one hour between two looks: {run}");
        assert_eq!(case.copy.state(&gone).as_deref(), Some("present"));
    }
    let run = case.sync(&url, &["--absent", "delete", "--max-deletes", "0%"]).exits(3);
    assert_eq!(case.copy.state(&gone).as_deref(), Some("present"), "{run}");
    let run = case.sync(&url, &["--absent", "delete", "--max-deletes", "100%"]).exits(0);
    assert_eq!(run.count("deleted"), 1, "{run}");
    assert_eq!(case.copy.state(&gone).as_deref(), Some("deleted"));
    case.holds_all();
}

/// SIG-6: what is on another host is taken by rule only, and told.
#[tokio::test]
async fn sig_6_files_on_other_hosts_are_told_and_taken_by_rule() {
    let (site, other) = (Site::start().await, Site::start().await);
    let elsewhere = other.serve("/b.pdf", "b").replace("127.0.0.1", "localhost");
    let own = site.serve("/a.pdf", "a");
    let links = format!(
        "</a.pdf>; rel=item; type=\"application/pdf\", <{elsewhere}>; rel=item; type=\"application/pdf\""
    );
    let page = site
        .reply("/w", Reply::ok("<title>w</title>").header("content-type", "text/html").header("link", links));
    site.reply("/.well-known/resourcesync", Reply::status(404));
    let copy = Destination::directory();
    let run = copy.sync(&page).exits(0);
    assert_eq!((run.count("stored"), &run.json()["quirks"]["item-elsewhere"]), (1, &1.into()), "{run}");
    assert_eq!(copy.cat(&own), b"a");
    let run = copy.sync_with(&page, &["--follow-links", "item", "--allow-address", "127.0.0.0/8"]);
    assert_eq!(run.count("stored"), 1, "{run}");
    assert_eq!(copy.cat(&elsewhere), b"b");
    // Without the rule again, it stays.
    let run = copy.sync(&page).exits(0);
    assert_eq!((run.count("absent"), copy.state(&elsewhere).as_deref()), (0, Some("present")), "{run}");
}

/// SIG-7, T2: a header that is cut is never complete beside a link set.
#[tokio::test]
async fn sig_7_t2_a_header_that_is_cut_beside_a_set_of_500() {
    let spec = PagesSpec {
        pages: 1,
        items: 500,
        link_set: true,
        sitemap: PageSitemap::None,
        fault: Some(PageFault::HeaderCut),
        ..PagesSpec::default()
    };
    let case = Case::of(spec).await;
    let run = case.sync(&case.source.page(0), &[]).exits(0);
    assert_eq!((run.count("stored"), &run.json()["quirks"]["header-incomplete"]), (501, &1.into()), "{run}");
    case.holds_all();
}

/// SIG-7, T3 and ACC-10: of each fault every file is held or told, by its name, with one request a page.
#[tokio::test]
async fn sig_7_t3_each_fault_costs_at_most_its_own_link() {
    for fault in PageFault::ALL {
        let spec = PagesSpec {
            header: !is_of_set(fault),
            link_set: is_of_set(fault) || matches!(fault, PageFault::HeaderCut | PageFault::HeaderTooLong),
            sitemap: PageSitemap::Signmap,
            catalog: true,
            fault: Some(fault),
            ..PagesSpec::default()
        };
        let case = Case::of(spec).await;
        let run = case.sync(&case.source.url(), &[]);
        let quirk = match fault {
            PageFault::HeaderTooLong => "no-page",
            PageFault::HeaderCut => "header-incomplete",
            PageFault::Wrapped => "wrapped",
            PageFault::ExtraMembers => "extra-members",
            PageFault::NotAcceptable => "not-acceptable",
            PageFault::OddMediaType | PageFault::PlainJson => "odd-media-type",
            PageFault::StrayComma => "stray-comma",
            PageFault::NestedQuotes => "nested-quotes",
            PageFault::NoAngleBrackets => "no-angle-brackets",
            PageFault::RelationCase => "relation-case",
            PageFault::SeveralCiteAs => "several-cite-as",
            PageFault::FalseType | PageFault::DeadItem => "",
        };
        let mut held = case.source.expected();
        let firsts = [0, 1, 2].map(|page| case.source.item(page, 0));
        if quirk.is_empty() {
            // The file is a problem, and the others are held.
            assert_eq!(
                (run.exit, run.count("failed"), run.count("stored")),
                (Some(1), 3, 6),
                "{fault:?}: {run}"
            );
            let reason = if fault == PageFault::DeadItem { "http-client-error" } else { "unexpected-html" };
            let problems = case.copy.run("problems", &["--json"]).exits(0).json_lines();
            let told = problems.iter().map(|one| (one["uri"].as_str(), one["reason"].as_str()));
            let expected = firsts.iter().map(|uri| (Some(uri.as_str()), Some(reason)));
            assert_eq!(told.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{fault:?}: {problems:?}");
            held.retain(|uri, _| !firsts.contains(uri));
        } else {
            assert_eq!((run.exit, &run.json()["quirks"][quirk]), (Some(0), &3.into()), "{fault:?}: {run}");
            if fault == PageFault::NoAngleBrackets {
                held.retain(|uri, _| !firsts.contains(uri));
            }
        }
        assert_eq!(case.copy.present(), digests(&held), "{fault:?}: {run}");
        assert_eq!(case.pages_asked(), 3, "{fault:?}: one request a page");
    }
}

fn is_of_set(fault: PageFault) -> bool {
    use PageFault::{ExtraMembers, NotAcceptable, OddMediaType, PlainJson, StrayComma, Wrapped};
    matches!(fault, Wrapped | ExtraMembers | NotAcceptable | OddMediaType | PlainJson | StrayComma)
}

/// ACC-10: a page that cannot be read is a problem, what is known of it stays, and it is asked again.
#[tokio::test]
async fn acc_10_a_page_that_fails_is_told_and_asked_again() {
    let site = Site::start().await;
    let page = |content: &str| {
        Reply::ok(content.to_owned()).header("content-type", "text/html").header(
            "link",
            "</f.pdf>; rel=item; type=\"application/pdf\", </m>; rel=describedby; type=\"text/xml\"",
        )
    };
    let uri = site.reply("/w", page("<title>w</title>"));
    site.reply("/.well-known/resourcesync", Reply::status(404));
    let file = site.serve("/f.pdf", "f");
    site.serve("/m", "m");
    let copy = Destination::directory();
    copy.sync_with(&uri, &["--retries", "0"]).exits(0);
    site.reply("/w", Reply::status(503));
    let run = copy.sync_with(&uri, &["--retries", "0"]).exits(1);
    assert_eq!((run.count("absent"), copy.state(&file).as_deref()), (0, Some("present")), "{run}");
    let told = copy.run("problems", &[]).exits(0);
    assert!(told.stdout.contains("landing page"), "{told}");
    site.reply("/w", page("<title>w</title>"));
    let run = copy.sync(&uri).exits(0);
    assert_eq!(run.json()["in_sync"], true, "{run}");
}

/// A process that is killed while it reads pages loses nothing, and asks for no page twice that it has planned.
#[tokio::test]
async fn a_kill_in_the_middle_of_the_pages_loses_nothing() {
    let latency = Some(std::time::Duration::from_millis(20));
    let case = Case::of(PagesSpec { pages: 150, catalog: true, latency, ..PagesSpec::default() }).await;
    let url = case.source.url();
    // It cannot end before it is killed.
    case.source.allow("/w/", 70);
    let process = Process::start(&mut case.copy.command("sync", &[&url]));
    process.kill_when(|| case.pages_asked() > 60).await;
    case.source.allow_all();
    let run = case.sync(&url, &[]).exits(0);
    case.holds_all();
    assert_eq!(run.json()["in_sync"], true, "{run}");
    let again = case.source.requests().values().filter(|times| **times > 1).count();
    assert!(case.pages_asked() < 150 + 64, "{again}: {run}");
    let run = case.sync(&url, &[]).exits(0);
    assert_eq!((run.count("unchanged"), run.count("absent")), (450, 0), "{run}");
}

#[tokio::test]
async fn an_audit_of_landing_pages_is_refused() {
    let case = Case::of(PagesSpec { catalog: true, ..PagesSpec::default() }).await;
    case.sync(&case.source.url(), &[]).exits(0);
    let run = case.copy.run("audit", &[&case.source.url()]).exits(3);
    run.complains(&["landing pages (Signposting)", "audit does not read"], &["--mode baseline"]);
}

/// The kind needs nothing in a fleet but the option, for entries of a plain sitemap.
#[tokio::test]
async fn a_fleet_harvests_landing_pages_as_a_laptop_does() {
    let case = Case::of(PagesSpec { robots: true, link_set: true, ..PagesSpec::default() }).await;
    let url = case.source.url();
    let fleet = fleet().await;
    let _services: Vec<_> = ALL.iter().map(|service| fleet.start(&[service], "")).collect();
    fleet.add(&url, &["--landing-pages"]);
    fleet.harvest(&url).await.exits(0);
    case.sync(&url, &["--landing-pages"]).exits(0);
    case.holds_all();
    assert_eq!(listed(&fleet.destination()), listed(&case.copy));
    case.source.update_item(2, 0);
    fleet.harvest(&url).await.exits(0);
    assert_eq!(fleet.destination().present(), digests(&case.source.expected()));
}

/// A site whose sitemap lists this many pages, with one file each.
async fn site_of_pages(pages: u32, link_set: Option<&str>) -> (Site, String) {
    let site = Site::start().await;
    let rel = link_set.map_or("item", |_| "linkset");
    let mut entries = String::new();
    for page in 0..pages {
        let file = site.serve(&format!("/f/{page}"), page.to_string());
        let target = link_set.map_or_else(|| file.clone(), |_| site.uri(&format!("/ls/{page}")));
        let reply = Reply::ok("<title>w</title>").header("content-type", "text/html");
        let uri = site.reply(
            &format!("/w/{page}"),
            reply.header("link", format!("<{target}>; rel={rel}; type=\"text/plain\"")),
        );
        if let Some(others) = link_set {
            let set = format!(
                r#"{{"linkset": [{{"anchor": "{uri}", "item": [{{"href": "{file}"}}], "author": [{others}]}}]}}"#
            );
            let reply = Reply::ok(set).header("content-type", "application/linkset+json");
            site.reply(&format!("/ls/{page}"), reply);
        }
        entries += &format!("<url><loc>{uri}</loc></url>");
    }
    let sitemap =
        format!(r#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>"#);
    let sitemap = site.serve("/sitemap.xml", sitemap);
    (site, sitemap)
}

#[tokio::test]
async fn a_slow_page_does_not_hold_up_the_others() {
    let (site, sitemap) = site_of_pages(40, None).await;
    site.next("/w/0", Reply::status(503).delay(std::time::Duration::from_secs(600)));
    let copy = Destination::directory();
    let process = Process::start(&mut copy.command("sync", &[&sitemap, "--landing-pages"]));
    process.kill_when(|| (1..40).all(|page| site.requests_at(&format!("/w/{page}")) > 0)).await;
    let run = copy.sync_with(&sitemap, &["--landing-pages"]).exits(0);
    assert_eq!((copy.present().len(), run.json()["in_sync"].as_bool()), (40, Some(true)), "{run}");
}

/// Of pages that are read at the same time, one holds a large link set; the others wait for it.
#[tokio::test]
async fn large_link_sets_at_the_same_time_are_all_read() {
    let authors: Vec<String> = (0..30_000).map(|n| format!(r#"{{"href": "/a/{n}"}}"#)).collect();
    let (site, sitemap) = site_of_pages(6, Some(&authors.join(","))).await;
    let copy = Destination::directory();
    let run = copy.sync_with(&sitemap, &["--landing-pages"]).exits(0);
    assert_eq!(copy.present().len(), 6, "{run}");
    for page in 0..6 {
        assert!((1..=2).contains(&site.requests_at(&format!("/ls/{page}"))), "{page}: {run}");
    }
}

/// A catalog that does not answer for once does not make resources of landing pages.
#[tokio::test]
async fn a_catalog_that_fails_once_changes_nothing_of_what_a_sitemap_is() {
    let (site, sitemap) = site_of_pages(2, None).await;
    site.reply("/", Reply::ok("<title>x</title>").header("content-type", "text/html"));
    site.reply("/.well-known/resourcesync", Reply::status(404));
    site.serve("/robots.txt", format!("Sitemap: {sitemap}\n"));
    let interface = |url: &str, documentation: &str| {
        format!(r#"{{"anchor": "{url}", "service-doc": [{{"href": "{documentation}"}}]}}"#)
    };
    let interfaces = [
        interface(&site.uri("/w/0"), "https://signposting.org/FAIR/"),
        interface(&sitemap, "https://www.sitemaps.org/protocol.html"),
    ];
    let catalog = Reply::ok(format!(r#"{{"linkset": [{}]}}"#, interfaces.join(", ")));
    site.reply("/.well-known/api-catalog", catalog.header("content-type", "application/linkset+json"));
    let copy = Destination::directory();
    let options = ["--retries", "0", "--rediscover"];
    copy.sync_with(&site.uri("/"), &options).exits(0);
    let held = copy.present();
    assert_eq!(held.len(), 2);
    site.next("/.well-known/api-catalog", Reply::status(503));
    let run = copy.sync_with(&site.uri("/"), &options).exits(1);
    assert_eq!((copy.present(), run.count("absent")), (held, 0), "{run}");
    assert_eq!(copy.sync_with(&site.uri("/"), &options).exits(0).json()["in_sync"], true);
}

/// SIG-5: a link set beyond a limit is a problem of its page, by name, and what came before it is held.
#[tokio::test]
async fn sig_5_a_link_set_beyond_a_limit_is_a_problem_of_its_page() {
    let site = Site::start().await;
    let json = "application/linkset+json";
    let header = format!("</f>; rel=item; type=\"text/plain\", </ls>; rel=linkset; type=\"{json}\"");
    let page = site.reply(
        "/w",
        Reply::ok("<title>w</title>").header("content-type", "text/html").header("link", header),
    );
    site.reply("/.well-known/resourcesync", Reply::status(404));
    let file = site.serve("/f", "f");
    let other = site.serve("/g", "g");
    let many: Vec<String> = (0..100_000).map(|n| format!(r#"{{"href": "/a/{n}"}}"#)).collect();
    let many = format!(
        r#"{{"linkset": [{{"anchor": "{page}", "item": [{{"href": "/g"}}], "author": [{}]}}]}}"#,
        many.join(",")
    );
    let long = " ".repeat(16 * 1024 * 1024) + "{}";
    for (body, why, held) in [(long, "bytes", vec![&file]), (many, "links", vec![&file, &other])] {
        site.reply("/ls", Reply::ok(body).header("content-type", json));
        let copy = Destination::directory();
        let run = copy.sync_with(&page, &["--retries", "0"]).exits(1);
        assert_eq!(copy.present().keys().collect::<Vec<_>>(), held, "{run}");
        let told = copy.run("problems", &[]).exits(0);
        assert!(told.stdout.contains("landing page") && told.stdout.contains(why), "{told}");
    }
}
