//! Dump or list: the faster one is chosen.

use testkit::scripted::Reply;

use crate::common::{Destination, Package, resource, urlset};
use crate::dumps::AT;
use crate::dumps::case::Case;

#[tokio::test]
async fn where_both_are_offered_the_quicker_way_is_gone_and_plan_says_which() {
    let case = Case::new().await;
    let names: Vec<String> = (0..200).map(|n| format!("r{n:03}")).collect();
    let package =
        names.iter().fold(Package::of_resources(AT), |package, name| package.holds(&case.uri(name), name));
    let entries: Vec<String> = names
        .iter()
        .map(|name| {
            case.site.serve(&format!("/{name}"), name.as_str());
            resource(
                &case.uri(name),
                &format!("hash=\"sha-256:{}\" length=\"4\"", fixity::Sha256::of(name.as_bytes())),
            )
        })
        .collect();
    let list = urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries);
    // With so slow a Source, each request is expensive.
    case.site.reply("/list.xml", Reply::ok(list).delay(std::time::Duration::from_millis(300)));
    case.dump(&[case.package("/1.zip", package.zip(), "")]);
    let url = case.capabilities(&[("/list.xml", "resourcelist"), ("/dump.xml", "resourcedump")]);

    let plan = case.copy.run("plan", &[&url, "--json"]).exits(0).json();
    let ways: Vec<(&str, u64, bool)> = plan["strategies"]
        .as_array()
        .expect("strategies")
        .iter()
        .map(|way| {
            (
                way["capability"].as_str().unwrap(),
                way["requests"].as_u64().unwrap(),
                way["chosen"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        ways,
        [("resourcelist", 200, true), ("resourcedump", 1, true)],
        "the list says what, the dump brings it"
    );
    assert!(!std::path::Path::new(&case.copy.into).exists(), "nothing was harvested");

    let run = case.copy.sync(&url).exits(0);
    assert_eq!((run.count("listed") >= 200, run.count("stored")), (true, 200), "{run}");
    assert_eq!((case.site.requests_at("/1.zip"), case.site.requests_at("/r000")), (1, 0));

    // With everything stored, neither is needed. If the operator chooses lists, each resource is requested by itself.
    let other = Destination::directory();
    other.sync_with(&url, &["--prefer", "list"]).exits(0);
    assert_eq!((case.site.requests_at("/1.zip"), case.site.requests_at("/r000")), (1, 1));
    assert_eq!(other.present(), case.copy.present());
}

#[tokio::test]
async fn many_changes_are_not_looked_for_in_a_dump_of_an_earlier_moment() {
    let case = Case::new().await;
    let names: Vec<String> = (0..100).map(|n| format!("r{n:03}")).collect();
    let declared = |name: &String, more: &str| {
        resource(
            &case.uri(name),
            &format!("hash=\"sha-256:{}\" length=\"4\" {more}", fixity::Sha256::of(name.as_bytes())),
        )
    };
    for name in &names {
        case.site.serve(&format!("/{name}"), name.as_str());
    }
    let list: Vec<String> = names[..10].iter().map(|name| declared(name, "")).collect();
    case.site.serve("/list.xml", urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &list));
    let from = "capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"";
    case.site.reply(
        "/list-of-changes.xml",
        Reply::ok(urlset(from, &[])).delay(std::time::Duration::from_millis(300)),
    );
    case.dump(&[case.package(
        "/1.zip",
        Package::of_resources(AT).holds(&case.uri("r000"), "r000").zip(),
        "",
    )]);
    let offered = [
        ("/list.xml", "resourcelist"),
        ("/dump.xml", "resourcedump"),
        ("/list-of-changes.xml", "changelist"),
    ];
    let url = case.capabilities(&offered);
    case.copy.sync(&url).exits(0);

    let created: Vec<String> = names[10..]
        .iter()
        .map(|name| declared(name, "change=\"created\" datetime=\"2026-01-02T00:00:00Z\""))
        .collect();
    let slow = std::time::Duration::from_millis(300);
    case.site.reply("/list-of-changes.xml", Reply::ok(urlset(from, &created)).delay(slow));
    let asked = case.site.requests_at("/dump.xml");
    let run = case.copy.sync(&url).exits(0);
    assert_eq!(run.count("stored"), 90, "{run}");
    assert_eq!((case.site.requests_at("/dump.xml"), case.site.requests_at("/1.zip")), (asked, 0));
}
