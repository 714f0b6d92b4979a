//! Ways from a bare host, or from an entry page, to its landing pages (SIG-1 to SIG-3, SIG-7 T1).

use simulated_source::{PageSitemap, PagesSpec, RepositorySpec, SimulatedRepository};
use testkit::scripted::Reply;

use super::Case;
use crate::common::{Destination, Run, Site, resource, thresher, urlset};

/// SIG-1, SIG-2 and T1: a bare host, its catalog, its Signmap of 1,000 pages, and a rule.
#[tokio::test]
async fn sig_7_t1_a_host_with_a_catalog_and_a_signmap_needs_no_page() {
    let spec =
        PagesSpec { pages: 1_000, catalog: true, sitemap: PageSitemap::Signmap, ..PagesSpec::default() };
    let case = Case::of(spec).await;
    let run = case.sync(&case.source.url(), &["--only", "type=application/pdf"]).exits(0);
    assert_eq!(
        (run.count("stored"), run.count("out_of_scope"), case.pages_asked()),
        (1_000, 2_000, 0),
        "{run}"
    );
    assert!(case.copy.ls().keys().all(|uri| uri.ends_with(".pdf")));

    let found = Run::of(thresher().args(["discover", &case.source.url()])).exits(0);
    for text in [
        "interface Signmap  ",
        "Signposting  list of landing pages ",
        "attempted well-known",
        "/sitemap.xml  (api-catalog",
    ] {
        assert!(found.stdout.contains(text), "{text}: {found}");
    }
}

/// SIG-1: the other ways from a bare host, one step after the other.
#[tokio::test]
async fn sig_1_each_step_leads_to_the_pages() {
    let plain = PagesSpec::default();
    for (name, spec, options) in [
        ("catalog", PagesSpec { catalog: true, ..plain.clone() }, &[][..]),
        ("robots", PagesSpec { robots: true, sitemap: PageSitemap::Signmap, ..plain.clone() }, &[]),
        ("sitemap.xml", PagesSpec { sitemap: PageSitemap::Signmap, ..plain.clone() }, &[]),
        ("option", PagesSpec { robots: true, ..plain.clone() }, &["--landing-pages"]),
    ] {
        let is_signmap = spec.sitemap == PageSitemap::Signmap;
        let case = Case::of(spec).await;
        let run = case.sync(&case.source.url(), options).exits(0);
        assert_eq!(run.count("stored"), 9, "{name}: {run}");
        assert_eq!(case.pages_asked(), if is_signmap { 0 } else { 3 }, "{name}: one request a page");
        case.holds_all();
    }
    // Without the option, the entries of a plain sitemap are resources.
    let case = Case::of(PagesSpec { robots: true, ..plain }).await;
    let run = case.sync(&case.source.url(), &[]).exits(0);
    assert_eq!((run.count("stored"), case.copy.state(&case.source.page(0)).as_deref()), (3, Some("present")));
    // With it, they are groups, and what was stored of them stays.
    let run = case.sync(&case.source.url(), &["--landing-pages"]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted")), (9, 0), "{run}");
    let works = case.works();
    assert_eq!(
        works.iter().map(|work| work["files"].as_array().unwrap().len()).collect::<Vec<_>>(),
        [2, 2, 2]
    );
}

/// SIG-1: ResourceSync, then OAI-PMH win where a host has them.
#[tokio::test]
async fn sig_1_resourcesync_wins_where_the_catalog_names_it() {
    let site = Site::start().await;
    let entry = |path: &str, documentation: &str| {
        format!(r#"{{"anchor": "{}", "service-doc": [{{"href": "{documentation}"}}]}}"#, site.uri(path))
    };
    let catalog = [
        entry("/signmap.xml", "https://signposting.org/Signmap/"),
        entry("/caps.xml", "http://www.openarchives.org/rs/1.1/resourcesync"),
    ];
    let catalog = format!(r#"{{"linkset": [{}]}}"#, catalog.join(", "));
    site.reply("/", Reply::ok("<title>x</title>").header("content-type", "text/html"));
    site.reply("/.well-known/resourcesync", Reply::status(404));
    site.reply(
        "/.well-known/api-catalog",
        Reply::ok(catalog).header("content-type", "application/linkset+json"),
    );
    let file = site.serve("/a", "a");
    let list = site.serve(
        "/list.xml",
        urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &[resource(&file, "")]),
    );
    site.serve(
        "/caps.xml",
        urlset("capability=\"capabilitylist\"", &[resource(&list, "capability=\"resourcelist\"")]),
    );
    let copy = Destination::directory();
    let run = copy.sync(&site.uri("/")).exits(0);
    assert_eq!((run.count("stored"), site.requests_at("/signmap.xml")), (1, 0), "{run}");
}

/// A catalog of interfaces: URLs, each with its documentation.
fn catalog_of(interfaces: &[(&str, &str)]) -> String {
    let one = |(url, documentation): &(&str, &str)| {
        format!(
            r#"{{"anchor": "{url}", "service-doc": [{{"href": "{documentation}", "type": "text/html"}}]}}"#
        )
    };
    format!(r#"{{"linkset": [{}]}}"#, interfaces.iter().map(one).collect::<Vec<_>>().join(", "))
}

fn link_set(body: String) -> Reply {
    Reply::ok(body).header("content-type", "application/linkset+json")
}

fn html() -> Reply {
    Reply::ok("<title>x</title>").header("content-type", "text/html")
}

const SIGNMAP: &str = "https://signposting.org/Signmap/";
const OAI: &str = "http://www.openarchives.org/OAI/openarchivesprotocol.html";

#[tokio::test]
async fn sig_1_oai_pmh_wins_over_a_list_of_pages() {
    let repository = RepositorySpec::default().records(7);
    let repository = SimulatedRepository::start(repository).await.expect("a free port on loopback");
    let site = Site::start().await;
    site.reply("/", html());
    site.reply("/.well-known/resourcesync", Reply::status(404));
    let base = repository.base_url();
    let interfaces = catalog_of(&[(&site.uri("/signmap.xml"), SIGNMAP), (&base, OAI)]);
    site.reply("/.well-known/api-catalog", link_set(interfaces));
    let copy = Destination::directory();
    let run = copy.sync(&site.uri("/")).exits(0);
    assert_eq!((run.count("stored"), site.requests_at("/signmap.xml")), (7, 0), "{run}");
    assert!(copy.present().keys().all(|uri| uri.starts_with(&base)), "{run}");
    let found = Run::of(thresher().args(["discover", &site.uri("/")])).exits(0).stdout;
    assert!(found.contains("interface OAI-PMH") && found.contains("interface Signmap"), "{found}");
}

/// The entry page's own link leads to the catalog, or the catalog is below it. Each step is one request, and later
/// runs do not repeat what led nowhere.
#[tokio::test]
async fn sig_1_the_entry_page_names_its_catalog_or_has_it_below() {
    for (entry, place, header) in [
        ("/", "/interfaces", Some("</interfaces>; rel=\"api-catalog\"; type=\"application/linkset+json\"")),
        ("/repo/", "/repo/.well-known/api-catalog", None),
        ("/repo", "/repo/.well-known/api-catalog", None),
    ] {
        let case = Case::of(PagesSpec { sitemap: PageSitemap::Signmap, ..PagesSpec::default() }).await;
        let site = Site::start().await;
        site.reply(entry, header.map_or(html(), |header| html().header("link", header)));
        site.reply("/.well-known/resourcesync", Reply::status(404));
        site.reply(place, link_set(catalog_of(&[(&case.source.sitemap(), SIGNMAP)])));
        let run = case.sync(&site.uri(entry), &[]).exits(0);
        assert_eq!(run.count("stored"), 9, "{entry}: {run}");
        case.holds_all();
        let mut asked = site.paths();
        asked.sort();
        let mut expected = [entry, "/.well-known/resourcesync", place];
        expected.sort_unstable();
        assert_eq!(asked, expected, "each step is asked once");

        case.source.reset_requests();
        let run = case.sync(&site.uri(entry), &[]).exits(0);
        assert_eq!(run.count("unchanged"), 9, "{entry}: {run}");
        assert_eq!(site.paths().len(), 3, "what was found out is remembered: {:?}", site.paths());
    }
}

/// A catalog as it is found: with a stray comma, an odd media type, and interfaces of all kinds.
#[tokio::test]
async fn sig_2_a_catalog_names_interfaces_of_each_kind_whatever_its_oddities() {
    let case = Case::of(PagesSpec { sitemap: PageSitemap::Signmap, ..PagesSpec::default() }).await;
    let site = Site::start().await;
    site.reply("/", html());
    site.reply("/.well-known/resourcesync", Reply::status(404));
    let signmap = case.source.sitemap();
    let interfaces = catalog_of(&[
        (&site.uri("/inbox"), "https://www.w3.org/TR/ldn/"),
        (&case.source.page(0), "https://signposting.org/FAIR/"),
        (&signmap, SIGNMAP),
        (&site.uri("/api"), "https://example.org/api"),
    ]);
    let odd = interfaces.replace("}]}]}", "}]},]}");
    assert_ne!(odd, interfaces);
    site.reply("/.well-known/api-catalog", Reply::ok(odd).header("content-type", "application/json+linkset"));
    let found = Run::of(thresher().args(["discover", &site.uri("/")])).exits(0).stdout;
    for text in [
        "interface Linked Data Notifications",
        "interface Signposting",
        "interface Signmap",
        "interface other",
    ] {
        assert!(found.contains(text), "{text}: {found}");
    }
    let run = case.sync(&site.uri("/"), &[]).exits(0);
    assert_eq!(run.count("stored"), 9, "{run}");
    case.holds_all();
    assert_eq!((site.requests_at("/inbox"), site.requests_at("/api")), (0, 0));
}
