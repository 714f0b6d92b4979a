//! A hub that is down for longer than changes wait for it: subscribers see the gap, and the lists heal it.

use publish::Policy;
use simulated_source::{Changes, SourceSpec};
use testkit::scripted::{Reply, ScriptedServer};
use testkit::waiting::until;

use super::hubs::{changed, heard, told_in};
use super::past::Past;
use super::{Served, originals};
use crate::common::{Destination, source};

#[tokio::test]
async fn acc_6_changes_of_more_than_a_day_are_dropped_with_a_gap_and_lists_heal_it() {
    let source = source(SourceSpec::default().resources(20)).await;
    let copy = Destination::directory();
    let url = source.well_known();
    copy.sync(&url).exits(0);
    let hub = ScriptedServer::start().await.unwrap();
    hub.always("/hub", Reply::status(503));
    let hub_url = hub.uri("/hub");
    let mut served = Served::idle();
    let base = served.base.clone();
    let past = Past { copy: &copy, url: &url, base: &base, dumps: false, policy: Policy::default() };
    past.publish(50).await;
    // The hub is to be told from here on, and a subscriber of it holds all of this.
    served.restart_with_hub(&copy, &hub_url);
    let subscriber = Destination::directory();
    subscriber.sync(&served.well_known()).exits(0);
    let before = subscriber.present().len();
    served.stop();

    // The hub takes nothing for 25 hours.
    source.change(Changes { create: 2, update: 3, delete: 1 });
    copy.sync(&url).exits(0);
    assert_eq!(past.publish(25).await.changes, 6);
    hub.always("/hub", Reply::status(202));
    served.restart_with_hub(&copy, &hub_url);
    let expected = changed(&source, &copy).await;
    let payloads = || hub.requests_at("/hub").into_iter().map(|one| one.body).collect::<Vec<_>>();
    until("the hub is told of the last changes", || told_in(&payloads()) == expected).await;

    // The subscriber holds what was published 50 hours ago; the first interval begins a day ago.
    let begins = heard(&payloads()[0]).from;
    let day = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24);
    let late = (begins - day).total(jiff::Unit::Minute).unwrap();
    assert!((-10.0..=0.0).contains(&late), "it begins {late} minutes after the last day");
    assert_eq!(subscriber.present().len(), before);
    let run = subscriber.sync(&served.well_known()).exits(0);
    assert_eq!((run.json()["mode"].as_str(), run.count("gaps")), (Some("incremental"), 0), "{run}");
    assert_eq!(originals(&subscriber, &[&base]), originals(&copy, &[]));
}
