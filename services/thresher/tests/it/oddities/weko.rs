//! WEKO repositories.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::{Case, LIST, counted, dated, from_now, inspect, nothing_lost};
use crate::common::{Destination, Package, package, resource, urlset};
use testkit::scripted::Reply;

#[tokio::test]
async fn oddity_20_several_resource_lists_and_dumps_in_one_capability_list() {
    let case = Case::new().await;
    let paths: [String; 20] = std::array::from_fn(|n| format!("/{n:02}"));
    let uris = case.bodies(paths.each_ref().map(String::as_str));
    let entries = uris.each_ref().map(|uri| dated(uri, "2025-01-01", "length=\"3\""));
    let list =
        |day: u32, entries: &[String]| urlset(&LIST.replace("01-01", &format!("01-{day:02}")), entries);
    let serve = |path: &str, day, entries: &[String]| {
        let version = format!("\"{day}\"");
        case.site.reply(path, Reply::ok(list(day, entries)).header("etag", version));
    };
    serve("/a.xml", 1, &entries[..10]);
    serve("/b.xml", 1, &entries[10..]);
    let documents = [
        ("/a.xml", "resourcelist"),
        ("/a-dump.xml", "resourcedump"),
        ("/b.xml", "resourcelist"),
        ("/b-dump.xml", "resourcedump"),
    ];
    let url = case.capabilities(&documents);
    let run = case.sync(&url).exits(0);
    counted(&run, &[("repeated-capability", 2)]);
    assert_eq!((run.count("listed"), run.count("stored")), (20, 20), "{run}");
    case.holds_only(&uris);

    // A resource that moved from one list to the other is in the set. Only a resource in none of the lists is absent,
    // and all must have been read. An unchanged list is reread for that.
    let moved = [&entries[1..10], &entries[10..]].concat();
    serve("/a.xml", 2, &[]);
    serve("/b.xml", 2, &moved);
    let run = case.sync(&url).exits(0);
    assert_eq!((run.count("deleted"), run.count("absent")), (0, 1), "{run}");
    case.holds_only(&uris);
    serve("/a.xml", 3, &[]);
    case.site.reply("/b.xml", Reply::status(500));
    let run = case.sync(&url).exits(1);
    nothing_lost(&run);
    case.holds_only(&uris);
    serve("/a.xml", 4, &[]);
    serve("/b.xml", 4, &moved);
    let run = case.sync(&url).exits(0);
    assert_eq!((run.count("deleted"), run.count("absent")), (1, 0), "{run}");
    assert_eq!(case.copy.present().len(), 19);

    // A resource missing from the lists that were found may be in one that an unreadable entry names.
    serve("/a.xml", 5, &entries[1..10]);
    let a = resource(&case.site.uri("/a.xml"), "capability=\"resourcelist\"");
    let unreadable = "  <url><rs:md capability=\"resourcelist\"/></url>\n".to_owned();
    case.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &[a, unreadable]));
    let run = case.sync_with(&url, &["--absent", "delete", "--max-deletes", "100%"]);
    nothing_lost(&run);
    assert_eq!(case.copy.present().len(), 19);
}

#[tokio::test]
async fn oddity_21_dump_of_one_package_for_each_record() {
    let case = Case::new().await;
    let uris: Vec<String> = (0..100).map(|n| case.site.uri(&format!("/{n}"))).collect();
    let packages: Vec<String> = (0..100)
        .map(|n| {
            let path = format!("/{n}");
            let bytes = Package::of_resources("2026-01-01T00:00:00Z").holds(&uris[n], &path).zip();
            let entry = package(&case.site.uri(&format!("{path}.zip")), &bytes, "");
            case.site.reply(&format!("{path}.zip"), Reply::ok(bytes));
            entry
        })
        .collect();
    let dump = "capability=\"resourcedump\" at=\"2026-01-01T00:00:00Z\"";
    let dump = case.site.serve("/dump.xml", urlset(dump, &packages));
    let url = case.capabilities(&[("/dump.xml", "resourcedump")]);
    let run = case.sync(&url).exits(0);
    assert_eq!((run.count("listed"), run.count("stored")), (100, 100), "{run}");
    case.holds_only(&uris);
    assert!((0..100).all(|n| case.site.requests_at(&format!("/{n}.zip")) == 1));
    let lines = inspect(&dump);
    assert_eq!(
        (lines.len(), &lines[101]["entries"], &lines[101]["quirks"]),
        (102, &100.into(), &serde_json::json!({}))
    );
}

#[tokio::test]
async fn oddity_22_times_of_last_modification_are_those_of_the_request() {
    let case = Case::new().await;
    let [with_digest, without] = case.bodies(["/1", "/2"]);
    let sha256 = fixity_of("/1");
    let serve = |minutes| {
        let now = from_now(minutes);
        let entries =
            [dated(&with_digest, &now, &format!("hash=\"{sha256}\"")), dated(&without, &now, "length=\"2\"")];
        case.list(LIST, &entries)
    };
    let url = serve(-20);
    case.sync(&url).exits(0);
    serve(-10);
    let run = case.sync(&url).exits(0);
    counted(&run, &[]);
    assert_eq!((run.count("stored"), run.count("unchanged")), (0, 2), "no new version: {run}");
    assert_eq!(case.site.requests_at("/1"), 1, "a digest that is the same says more than a time");
    assert_eq!(case.site.requests_at("/2"), 2, "without one it is looked at");

    // The same in a manifest, which belongs to a dump. Dumps are not harvested yet.
    let manifest = |minutes| {
        let entry = dated(&with_digest, &from_now(minutes), "path=\"/1\"");
        let md = "capability=\"resourcedump-manifest\" at=\"2026-01-01T00:00:00Z\"";
        inspect(&case.site.serve("/manifest.xml", urlset(md, &[entry])))
    };
    let first = manifest(-20);
    let second = manifest(-10);
    assert_ne!(first[1]["lastmod"], second[1]["lastmod"]);
    assert_eq!((&first[1]["path"], &first[2]["quirks"]), (&second[1]["path"], &second[2]["quirks"]));
}

#[tokio::test]
async fn oddity_23_digest_under_another_algorithms_name() {
    let case = Case::new().await;
    let uris = case.bodies(["/1", "/2"]);
    let [cut, wrong] = &uris;
    // An md5 under the name sha-256 cannot be one. It verifies nothing, but a change of it indicates a change.
    let entry = |md5: &str| resource(cut, &format!("hash=\"sha-256:{md5}\" length=\"2\""));
    let url = case.list(LIST, &[entry("1584abdf8ebdc9802ac0c6a7402c03b6")]);
    let run = case.sync(&url).exits(0);
    counted(&run, &[]);
    case.holds(cut, "/1");
    assert!(case.copy.explain(cut).contains("(unsupported)"));
    case.sync(&url).exits(0);
    assert_eq!(case.site.requests_at("/1"), 1, "the same value again");
    case.list(LIST, &[entry("900150983cd24fb0d6963f7d28e17f72")]);
    case.sync(&url).exits(0);
    assert_eq!(case.site.requests_at("/1"), 2, "another value");

    // A digest of the right length cannot be told from a false one. Its resource is a problem, and not current.
    let other = resource(wrong, &format!("hash=\"sha-256:{}\"", "ab".repeat(32)));
    case.list(LIST, &[entry("900150983cd24fb0d6963f7d28e17f72"), other]);
    case.sync(&url).exits(1).says(&[wrong, "digest-mismatch"]);
    assert_eq!(case.copy.state(wrong).as_deref(), Some("problem"));
    case.holds(cut, "/1");
}

#[tokio::test]
async fn oddity_24_private_query_parameters_choose_an_interval() {
    let case = Case::new().await;
    let uris = case.bodies(["/1", "/2"]);
    let spring = "/list.xml?from_date=2026-01-01&to_date=2026-06-30";
    let autumn = "/list.xml?from_date=2026-07-01&to_date=2026-12-31";
    case.site.serve(spring, urlset(LIST, &[resource(&uris[0], "")]));
    case.site.serve(autumn, urlset(LIST, &[resource(&uris[1], "")]));
    let url = case.capabilities(&[(spring, "resourcelist"), (autumn, "resourcelist")]);
    let run = case.sync(&url).exits(0);
    counted(&run, &[("repeated-capability", 1), ("entry-without-metadata", 2)]);
    case.holds_only(&uris);
    let asked: Vec<String> =
        case.site.paths().into_iter().filter(|path| path.starts_with("/list.xml")).collect();
    assert_eq!(asked, [spring, autumn], "each as it is written, and none that nobody wrote");

    // A list whose URL has such a query is a Source of its own.
    let copy = Destination::directory();
    copy.sync(&case.site.uri(autumn)).exits(0);
    assert_eq!(copy.ls().into_keys().collect::<Vec<_>>(), [uris[1].clone()]);
}

#[tokio::test]
async fn oddity_25_tls_too_old_is_refused_with_that_word() {
    let old = old_tls();
    let url = format!("https://{old}/list.xml");
    let tls = ["no secure connection", &old];
    Destination::directory().sync(&url).exits(3).complains(&tls, &["tls 1.2"]);

    // If only a resource is at such a server, that is a problem with this reason, and the others are stored.
    let case = Case::new().await;
    let [own] = case.bodies(["/1"]);
    let behind = format!("https://{old}/2");
    let url = case.list(LIST, &[resource(&own, ""), resource(&behind, "")]);
    let run = case.sync(&url).exits(1).says(&[&behind, "(tls)"]);
    assert_eq!((run.count("stored"), run.count("failed")), (1, 1), "{run}");
    nothing_lost(&run);
    case.holds(&own, "/1");
    assert_eq!(case.copy.state(&behind).as_deref(), Some("problem"));
}

/// A server that responds to every greeting like servers that know TLS 1.0 at best: with the alert `protocol_version`.
/// Returns host and port.
fn old_tls() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
    let address = listener.local_addr().expect("it is bound").to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut greeting = [0; 4096];
            let _ = stream.read(&mut greeting);
            let _ = stream.write_all(&[21, 3, 1, 0, 2, 2, 70]);
        }
    });
    address
}

/// The sha-256 of a body, as a Source declares it.
fn fixity_of(body: &str) -> String {
    fixity::Digest::from(fixity::Sha256::of(body.as_bytes())).to_string()
}
