//! Change Notifications of a publication to an external hub.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use reqwest::Client;
use resourcesync::{Capability, Change, Item, Mode, Options, Reader, relation};
use simulated_source::{Changes, SimulatedSource, SourceSpec};
use testkit::scripted::{Recorded, Reply, ScriptedServer};
use testkit::waiting::until;

use super::Served;
use crate::common::{Destination, Run, source, thresher};

/// What the hub took: each request was answered as the script says.
pub(super) struct Heard {
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
    pub(super) changes: Vec<(String, Change, Timestamp)>,
}

pub(super) fn heard(payload: &[u8]) -> Heard {
    let options = Options { mode: Mode::Strict, ..Options::default() };
    let mut reader = Reader::new(payload, options).unwrap();
    let header = reader.header().unwrap().clone();
    assert_eq!(header.capability, Some(Capability::ChangeNotification));
    let mut changes = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        let Item::Entry(entry) = item else { panic!("a bad entry in a notification") };
        let at = entry.metadata.datetime.unwrap().instant();
        let original = entry.link(relation::VIA).unwrap().href.clone();
        changes.push((original, entry.metadata.change.unwrap(), at));
    }
    assert_eq!(reader.summary().quirks.iter().count(), 0);
    Heard { from: header.from.unwrap().instant(), until: header.until.unwrap().instant(), changes }
}

fn told(requests: &[Recorded]) -> BTreeMap<String, Change> {
    told_in(&requests.iter().map(|request| request.body.clone()).collect::<Vec<_>>())
}

/// Checks that the intervals join, and that the changes are in order. Returns the last state of each resource.
#[track_caller]
pub(super) fn told_in(payloads: &[Bytes]) -> BTreeMap<String, Change> {
    let mut last: Option<Timestamp> = None;
    let mut told = BTreeMap::new();
    for payload in payloads {
        let Heard { from, until, changes } = heard(payload);
        assert!(last.is_none_or(|last| last == from), "{last:?} and {from}: intervals join");
        assert!(from < until && !changes.is_empty());
        let mut before = from;
        for (original, change, at) in changes {
            assert!(at > before && at <= until, "{original} is out of order");
            before = at;
            told.insert(original, change);
        }
        last = Some(until);
    }
    told
}

pub(super) async fn changed(source: &SimulatedSource, copy: &Destination) -> BTreeMap<String, Change> {
    changed_by(source, copy, Changes { create: 2, update: 3, delete: 1 }).await
}

/// Changes the Source so, harvests that, and returns what has changed in the copy.
pub(super) async fn changed_by(
    source: &SimulatedSource,
    copy: &Destination,
    changes: Changes,
) -> BTreeMap<String, Change> {
    let before = copy.present();
    source.change(changes);
    copy.sync(&source.well_known()).exits(0);
    differences(&before, &copy.present())
}

/// What has changed between two states of a copy.
pub(super) fn differences(
    before: &BTreeMap<String, (u64, String)>,
    after: &BTreeMap<String, (u64, String)>,
) -> BTreeMap<String, Change> {
    let kept = after.iter().filter(|(uri, held)| before.get(*uri) != Some(held)).map(|(uri, _)| {
        (uri.clone(), if before.contains_key(uri) { Change::Updated } else { Change::Created })
    });
    let gone =
        before.keys().filter(|uri| !after.contains_key(*uri)).map(|uri| (uri.clone(), Change::Deleted));
    kept.chain(gone).collect()
}

#[tokio::test]
async fn acc_6_a_hub_gets_every_change_in_order_through_failures_and_kills() {
    let source = source(SourceSpec::default().resources(20)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let hub = ScriptedServer::start().await.unwrap();
    let url = hub.uri("/hub");
    hub.always("/hub", Reply::status(202));
    let mut served = Served::with_hub(&copy, &url);
    let requests = || hub.requests_at("/hub");

    let mut expected = changed(&source, &copy).await;
    until("the hub has the changes", || told(&requests()) == expected).await;
    // There may be several, where it looked in the middle of a harvest.
    let last = requests().pop().unwrap();
    assert_eq!(last.header("content-type"), Some("application/xml"));
    let topic = format!("{}notifications.xml", served.base);
    let link = last.header("link").unwrap();
    for part in [format!("<{topic}>; rel=\"self\""), format!("<{url}>; rel=\"hub\"")] {
        assert!(link.contains(&part), "{link}");
    }
    let client = Client::builder().no_proxy().build().unwrap();
    let found = client.get(&topic).send().await.unwrap();
    let links: Vec<_> = found.headers().get_all("link").iter().map(|link| link.to_str().unwrap()).collect();
    assert!(links.join(", ").contains(&format!("<{topic}>; rel=\"self\"")), "{links:?}");
    #[expect(clippy::disallowed_methods, reason = "a small body of our own server")]
    let body = found.bytes().await.unwrap();
    assert_eq!(body, last.body, "the topic has the newest payload");

    // A hub that is down for a while gets it later, and a publisher that is killed meanwhile goes on.
    let taken = requests().len();
    hub.push("/hub", Reply::status(503));
    expected.extend(changed(&source, &copy).await);
    until("the hub refused one", || requests().len() > taken).await;
    served.restart_with_hub(&copy, &url);
    expected.extend(changed(&source, &copy).await);
    until("the hub has all changes", || {
        let mut all = requests();
        // It comes again, with the changes since.
        all.remove(taken);
        told(&all) == expected
    })
    .await;
}

#[tokio::test]
async fn the_capability_list_leads_to_topic_and_hub() {
    let source = source(SourceSpec::default().resources(3)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let hub = ScriptedServer::start().await.unwrap();
    let served = Served::with_hub(&copy, &hub.uri("/hub"));
    let list = format!("{}capabilitylist.xml", served.base);
    let run = Run::of(thresher().args(["inspect", "--strict", &list])).exits(0);
    let lines = run.json_lines();
    assert_eq!(lines.last().unwrap()["quirks"], serde_json::json!({}), "{run}");
    assert!(run.stdout.contains("change-notification") && run.stdout.contains(&hub.uri("/hub")), "{run}");
    let reader = Destination::directory();
    reader.sync(&served.well_known()).exits(0);
    assert_eq!(reader.present().len(), 3);
}

#[tokio::test]
async fn a_hub_that_is_pinged_fetches_the_topic_and_gets_the_payload() {
    let source = source(SourceSpec::default().resources(5)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let hub = ScriptedServer::start().await.unwrap();
    hub.always("/hub", Reply::status(204));
    let served = Served::with(&copy, &["--ping-hub", &hub.uri("/hub")]);
    let expected = changed(&source, &copy).await;
    until("the hub is told", || !hub.requests_at("/hub").is_empty()).await;
    let topic = format!("{}notifications.xml", served.base);
    let form: Vec<(String, String)> =
        url::form_urlencoded::parse(&hub.requests_at("/hub")[0].body).into_owned().collect();
    let expected_form = [("hub.mode", "publish"), ("hub.url", topic.as_str())];
    assert_eq!(form, expected_form.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let client = Client::builder().no_proxy().build().unwrap();
    let found = client.get(&topic).send().await.unwrap();
    assert!(found.headers()["link"].to_str().unwrap().contains(&hub.uri("/hub")), "{:?}", found.headers());
    #[expect(clippy::disallowed_methods, reason = "a small body of our own server")]
    let payload = found.bytes().await.unwrap();
    assert_eq!(told_in(&[payload]), expected);
}
