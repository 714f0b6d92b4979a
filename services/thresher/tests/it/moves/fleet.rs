//! The owner of a Source moves it, in a fleet.

use std::time::Duration;

use super::*;
use crate::common::{Fleet, Service, wait};
use crate::fleet::{ALL, fleet};
use testkit::scripted::Reply;
use testkit::waiting::until;

fn start(fleet: &Fleet) -> Vec<Service> {
    ALL.iter().map(|service| fleet.start(&[service], "")).collect()
}

/// `thresher source move <source> <options>`, through the gateway.
async fn moving(fleet: &Fleet, source: &str, options: &[&str]) -> Run {
    let mut command = fleet.command("source");
    command.args(["move", source]).args(options);
    wait(command).await
}

/// The names and entry URLs of the Sources of the fleet.
fn sources(fleet: &Fleet) -> Vec<(String, String)> {
    let listed = Run::of(fleet.command("source").args(["ls", "--json"])).exits(0).json_lines();
    let text = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    listed.iter().map(|line| (text(line, "name"), text(line, "entry"))).collect()
}

#[tokio::test]
async fn a_source_of_a_fleet_moves_with_its_name_and_bytes_and_goes_back() {
    let source = source(SourceSpec::default().resources(40)).await;
    let (old, new) = (source.resource_list(), source.well_known());
    let fleet = fleet().await;
    let _services = start(&fleet);
    let own = |entry: &str| vec![("example".to_owned(), entry.to_owned())];
    fleet.add(&old, &["--name", "example"]);
    let early = moving(&fleet, "example", &["--to", &new]).await.exits(3);
    assert!(early.stderr.contains("never synced"), "{early}");
    fleet.harvest(&old).await.exits(0);
    moving(&fleet, "example", &["--back"]).await.exits(3).says(&["was not moved"]);
    let nothing = Site::start().await.uri("/list.xml");
    moving(&fleet, "example", &["--to", &nothing]).await.exits(3).says(&["is not moved"]);
    assert_eq!(sources(&fleet), own(&old), "a URL that leads to nothing changes nothing");

    source.reset_requests();
    let run = moving(&fleet, "example", &["--to", &new, "--json"]).await.exits(0);
    assert_eq!(source.requests().resources, 0, "what is stored is adopted: {run}");
    assert_eq!(sources(&fleet), own(&new));
    assert_eq!(fleet.destination().present().len(), 40);
    source.change(Changes { create: 1, update: 2, delete: 1 });
    let run = fleet.harvest("example").await.exits(0);
    assert_eq!(run.json()["counters"]["stored"], 3, "{run}");

    moving(&fleet, "example", &["--back"]).await.exits(0);
    assert_eq!(sources(&fleet), own(&old));
    assert_eq!(fleet.destination().present().len(), 40, "what it had before the move");
    source.refresh_resource_list();
    fleet.harvest("example").await.exits(0);
    moving(&fleet, "example", &["--back"]).await.exits(3).says(&["was not moved"]);
}

#[tokio::test]
async fn a_scheduler_that_dies_in_a_move_is_replaced_by_one_that_ends_it() {
    let site = Site::start().await;
    let uri = site.serve("/a", "a");
    let entry = resource(&uri, &format!("hash=\"sha-256:{}\" length=\"1\"", fixity::Sha256::of(b"a")));
    let list = urlset("capability=\"resourcelist\" at=\"2026-01-20T00:00:00Z\"", &[entry]);
    let (old, new) = (site.serve("/old.xml", list.clone()), site.serve("/new.xml", list));
    let fleet = fleet().await;
    let mut services = start(&fleet);
    fleet.add(&old, &["--name", "example"]);
    fleet.harvest(&old).await.exits(0);
    site.next("/new.xml", Reply::status(503).delay(Duration::from_secs(600)));
    let mut command = fleet.command("source");
    command.args(["move", "example", "--to", &new]);
    let asked = tokio::spawn(wait(command));
    until("the new list is asked for", || site.requests_at("/new.xml") == 1).await;
    services.remove(0).kill();
    let _second = fleet.start(&["scheduler"], "");
    asked.await.expect("no panic").exits(0);
    assert_eq!(sources(&fleet), [("example".to_owned(), new)]);
    assert_eq!((fleet.destination().present().len(), site.requests_at("/a")), (1, 1));
}
