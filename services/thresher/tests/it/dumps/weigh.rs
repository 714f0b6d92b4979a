//! The savings of a dump are estimated, and it is read until all of it was seen.

use testkit::scripted::Reply;

use crate::common::{Destination, Package, Process, resource, urlset};
use crate::dumps::case::Case;
use crate::dumps::{AT, DUMP};

/// Forty resources, declared with digest and length, as entries of a list.
fn forty(case: &Case) -> (Vec<String>, Vec<String>) {
    let names: Vec<String> = (0..40).map(|n| format!("r{n:02}")).collect();
    let entries = names.iter().map(|name| {
        case.site.serve(&format!("/{name}"), name.as_str());
        let digest = fixity::Sha256::of(name.as_bytes());
        resource(&case.uri(name), &format!("hash=\"sha-256:{digest}\" length=\"3\""))
    });
    let entries = entries.collect();
    (names, entries)
}

#[tokio::test]
async fn a_dump_of_which_a_package_was_let_go_of_is_read_again_until_all_of_it_was_seen() {
    let case = Case::new().await;
    let small = case.package("/1.zip", Package::of_resources(AT).holds(&case.uri("a"), "a").zip(), "");
    let dump = |packages: &[String]| {
        case.site.reply("/dump.xml", Reply::ok(urlset(DUMP, packages)).header("etag", "\"v\""));
    };
    dump(std::slice::from_ref(&small));
    let both = [("/list.xml", "resourcelist"), ("/dump.xml", "resourcedump")];
    let url = case.capabilities(&both);
    case.site.serve("/list.xml", urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &[]));
    case.copy.sync_with(&url, &["--prefer", "dump"]).exits(0);
    assert_eq!(case.site.requests_at("/1.zip"), 1);

    // Another package, of unknown size: each resource of the list is requested by itself. The package has one more
    // resource.
    let (names, entries) = forty(&case);
    let other = Package::of_resources(AT).holds(&case.uri("z"), "z");
    dump(&[small, resource(&case.site.reply("/2.zip", Reply::ok(other.zip())), "")]);
    let list = [resource(&case.uri("a"), "length=\"1\"")].into_iter().chain(entries).collect::<Vec<_>>();
    case.site.serve("/a", "a");
    case.site.serve("/list.xml", urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:05Z\"", &list));
    let run = case.copy.sync(&url).exits(0);
    assert_eq!((case.site.requests_at("/2.zip"), case.site.requests_at("/dump.xml")), (0, 2), "{run}");
    assert_eq!(case.copy.present().len(), 1 + names.len());

    let url = case.capabilities(&both[1..]);
    case.copy.sync_with(&url, &["--rediscover"]).exits(0);
    assert_eq!(
        case.site.conditions_at("/dump.xml"),
        [None, None, None],
        "it is not asked whether the dump has changed"
    );
    assert_eq!(case.site.requests_at("/2.zip"), 1);
    assert!(case.copy.present().contains_key(&case.uri("z")));
    case.copy.sync(&url).exits(0);
    assert_eq!(
        case.site.conditions_at("/dump.xml").last(),
        Some(&Some("\"v\"".to_owned())),
        "now it is known whole"
    );
}

#[tokio::test]
async fn a_dump_that_names_a_package_twice_is_read_whole_and_one_that_names_a_package_that_nobody_can_ask_for_is_not()
 {
    let case = Case::new().await;
    let one = case.package("/1.zip", Package::of_resources(AT).holds(&case.uri("a"), "a").zip(), "");
    let dump = |packages: &[String]| {
        case.site.reply("/dump.xml", Reply::ok(urlset(DUMP, packages)).header("etag", "\"v\""))
    };
    let url = dump(&[one.clone(), one.clone()]);
    case.copy.sync(&url).exits(0);
    case.copy.sync(&url).exits(0);
    let conditions = case.site.conditions_at("/dump.xml");
    assert_eq!(conditions.last(), Some(&Some("\"v\"".to_owned())), "{conditions:?}");

    let other = Destination::directory();
    dump(&[one, resource("ftp://127.0.0.1/2.zip", "")]);
    for _ in 0..2 {
        other.sync(&url).exits(1).says(&["ftp"]);
    }
    let later = case.site.conditions_at("/dump.xml").split_off(conditions.len());
    assert!(later.len() >= 2 && later.iter().all(Option::is_none), "{later:?}");
    assert_eq!(other.present(), case.copy.present());
}

#[tokio::test]
async fn a_run_that_was_killed_while_it_looked_at_a_dump_weighs_it_all_the_same() {
    let case = Case::new().await;
    let (names, entries) = forty(&case);
    // Its size is unknown, so the dump is not chosen.
    let package = Package::of_resources(AT).holds(&case.uri("r00"), "r00").zip();
    case.dump(&[resource(&case.site.reply("/1.zip", Reply::ok(package)), "")]);
    case.site.serve("/list.xml", urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries));
    let url = case.capabilities(&[("/list.xml", "resourcelist"), ("/dump.xml", "resourcedump")]);
    case.site.next("/dump.xml", Reply::ok("").delay(std::time::Duration::from_secs(600)));
    let harvest = Process::start(&mut case.copy.command("sync", &[&url]));
    harvest.kill_when(|| case.site.requests_at("/dump.xml") > 0).await;
    case.copy.sync(&url).exits(0);
    assert_eq!((case.site.requests_at("/1.zip"), case.copy.present().len()), (0, names.len()));
}

#[tokio::test]
async fn what_a_dump_may_save_is_measured_by_the_list_of_its_own_set() {
    let case = Case::new().await;
    let (names, _) = forty(&case);
    // Without lengths, the wanted share of the resources counts as that share of the dump's bytes, here all of them.
    let list = |name: &str, uris: &[String]| {
        let entries: Vec<String> = uris.iter().map(|uri| resource(uri, "")).collect();
        case.site.serve(name, urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries));
    };
    list("/list.xml", &names.iter().map(|name| case.uri(name)).collect::<Vec<_>>());
    let others: Vec<String> =
        (0..400).map(|n| case.site.serve(&format!("/other/{n}"), n.to_string())).collect();
    list("/others.xml", &others);
    let package = names
        .iter()
        .fold(Package::of_resources(AT), |package, name| package.holds(&case.uri(name), name))
        .member("padding", "z".repeat(10 << 20));
    case.dump(&[case.package("/1.zip", package.zip(), "")]);
    case.capabilities(&[("/list.xml", "resourcelist"), ("/dump.xml", "resourcedump")]);
    let own = case.site.uri("/caps.xml");
    let entry = [resource(&case.site.uri("/others.xml"), "capability=\"resourcelist\"")];
    let other = case.site.serve("/others-caps.xml", urlset("capability=\"capabilitylist\"", &entry));
    let sets = [own, other].map(|uri| resource(&uri, "capability=\"capabilitylist\""));
    let url = case.site.serve("/description.xml", urlset("capability=\"description\"", &sets));
    case.copy.sync(&url).exits(1).says(&["padding"]);
    assert_eq!((case.site.requests_at("/1.zip"), case.site.requests_at("/r00")), (1, 0));
    assert_eq!(case.copy.present().len(), 440);
}
