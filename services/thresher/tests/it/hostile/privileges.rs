//! Each service has a user of NATS and a key of the store. Both allow exactly the service's own work.

use std::path::Path;
use std::time::Duration;

use bus::JetStreamBus;
use fleet::NatsConfig;
use object_store::ObjectStoreExt as _;
use reqwest::StatusCode;
use secrets::Vars;
use serde_json::json;
use simulated_source::{Changes, SourceSpec};
use testkit::scripted::Reply;
use testkit::servers::{NatsServer, S3Fixture, SeaweedServer};
use testkit::waiting::until;

use crate::common::api::{ADMIN, Api};
use crate::common::console::Visitor;
use crate::common::{Fleet, Package, Service, Site, asked_for, package, resource, source, truth, urlset};

const USERS: [&str; 6] = ["scheduler", "fetcher", "unpacker", "verifier", "gateway", "publisher"];
const AT: &str = "2026-01-01T00:00:00Z";
/// The server's log line when it refuses a subject.
const REFUSED: &str = "Violation";

/// A NATS server with the users that `deploy/nats/permissions.conf` gives it.
async fn guarded() -> NatsServer {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
    let mut text = std::fs::read_to_string(root.join("deploy/nats/permissions.conf")).unwrap();
    for user in USERS {
        let variable = format!("$THRESHER_NATS_{}", user.to_uppercase());
        assert!(text.contains(&variable), "there is no user {user}");
        text = text.replace(&variable, &Fleet::password(user));
    }
    NatsServer::start_with(&text).await.unwrap()
}

/// Serves a dump of one package with these resources, and returns its URI.
fn dump(site: &Site) -> String {
    let held = Package::of_resources(AT).holds(&site.uri("/a"), "a").holds(&site.uri("/b"), "b");
    let bytes = held.zip();
    let entry = package(&site.uri("/1.zip"), &bytes, "");
    site.reply("/1.zip", Reply::ok(bytes));
    site.serve("/dump.xml", urlset(&format!("capability=\"resourcedump\" at=\"{AT}\""), &[entry]))
}

#[tokio::test]
async fn a_fleet_does_all_its_work_with_users_and_keys_that_may_do_nothing_else() {
    let nats = guarded().await;
    let s3 = SeaweedServer::start().await.unwrap();
    let mut fleet = Fleet::new(nats.url(), s3.fixture());
    let (key, secret) = s3.reading_keys();
    fleet.namespace = "thresher".to_owned();
    fleet.has_users = true;
    fleet.reading_keys = Some((key.to_owned(), secret.to_owned()));
    let site = Site::start().await;
    let source = source(SourceSpec::default().resources(300).latency(Duration::from_millis(5))).await;
    let url = source.well_known();

    // All but the scheduler wait for the streams, in whatever order they start.
    let push = fleet.push("http://127.0.0.1:9/", "");
    let inbox = fleet.inboxes("", "none-1");
    let gateway = fleet.start(&["gateway"], &with_inbox(&push, &inbox));
    let key_of_push = push.split_once("\npush: ").expect("its own line").1;
    let mut services: Vec<Service> =
        ["fetcher", "unpacker", "verifier"].iter().map(|service| fleet.start(&[service], "")).collect();
    services.push(fleet.start(&["scheduler"], &format!("push: {key_of_push}")));
    let api = Api::of(&gateway).await;
    services.push(gateway);
    let section = "publisher: {base: 'http://mirror.example/', listen: '127.0.0.1:0'}";
    let publisher = fleet.start(&["publisher"], section);
    let published = publisher.publications();
    services.push(publisher);

    // A harvest that is paused, resumes, and follows changes; a dump; an audit.
    fleet.add(&url, &["--publish"]);
    // It cannot end before it is paused.
    source.allow(20);
    fleet.run("submit", &url, &[]).exits(0);
    asked_for(&source, 20).await;
    fleet.run("pause", &url, &[]).exits(0);
    fleet.run("resume", &url, &[]).exits(0);
    source.allow_all();
    fleet.watch(&url).await.exits(0);
    source.change(Changes { create: 2, update: 3, delete: 1 });
    fleet.harvest(&url).await.exits(0);
    assert_eq!(fleet.destination().present(), truth(&source));
    let dump = dump(&site);
    fleet.add(&dump, &[]);
    fleet.harvest(&dump).await.exits(0);
    assert_eq!(fleet.destination().cat(&site.uri("/a")), b"a");
    fleet.harvest_with(&url, &["--mode", "audit"]).await.exits(0);
    fleet.destination().run("scrub", &[]).exits(0);
    let missing = site.reply("/missing", Reply::status(404));
    let list = urlset(&format!("capability=\"resourcelist\" at=\"{AT}\""), &[resource(&missing, "")]);
    let list = site.serve("/list.xml", list);
    fleet.add(&list, &[]);
    fleet.harvest(&list).await.exits(1);

    // Operators' requests to the gateway, which reads the store with a key of its own.
    let sources = api.get("/v1/sources").await.is(StatusCode::OK).json();
    let sources = sources["items"].as_array().expect("a page").clone();
    assert_eq!(sources.len(), 3, "{sources:?}");
    let dumped = sources.iter().find(|one| one["spec"]["entry"] == dump.as_str()).expect("the dump");
    let id = dumped["id"].as_str().expect("a name");
    let uri: String = url::form_urlencoded::byte_serialize(site.uri("/a").as_bytes()).collect();
    let content = api.get(&format!("/v1/sources/{id}/resources/content?uri={uri}")).await;
    assert_eq!(content.is(StatusCode::OK).body, b"a");
    let added = api.post("/v1/sources", json!({"entry": site.uri("/other.xml")})).await;
    let at = added.is(StatusCode::CREATED).header("location").to_owned();
    api.post(&format!("{at}/runs"), json!({})).await.is(StatusCode::CREATED);
    api.ask(&["plan", &url]).await.exits(0);
    api.ask(&["ignore", &missing, "--source", &list, "--note", "gone"]).await.exits(0);
    api.ask(&["retry", &missing, "--source", &list]).await.exits(0);
    Visitor::of(&api).signed_in(ADMIN).await.page("/console").await;

    // The publisher, with its lease and its membership.
    let id = model::SourceId::of_entry(&url.parse().unwrap());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    testkit::waiting::found("it is published", async || {
        let list = client.get(format!("{published}/{id}/changelist.xml")).send().await.ok()?;
        tokio::time::sleep(Duration::from_millis(50)).await;
        (list.status() == StatusCode::OK).then_some(())
    })
    .await;

    assert_eq!(refusals(&nats), Vec::<String>::new());
    for service in &services {
        let log = service.log();
        assert!(!log.contains("ermissions Violation"), "{log}");
    }

    let reading = S3Fixture { access_key: key.to_owned(), secret_key: secret.to_owned(), ..fleet.s3.clone() };
    let put = reading.store().unwrap().put(&"x".into(), "y".into()).await;
    assert!(put.is_err(), "the gateway's key writes");
}

/// The gateway of `push`, with the inboxes of another one.
fn with_inbox(push: &str, inboxes: &str) -> String {
    let (_, inbox) = inboxes.split_once("inbox: {").expect("there are inboxes");
    let (inbox, _) = inbox.split_once('}').expect("they end");
    push.replacen("gateway: {", &format!("gateway: {{inbox: {{{inbox}}}, "), 1)
}

fn refusals(nats: &NatsServer) -> Vec<String> {
    nats.log().lines().filter(|line| line.contains(REFUSED)).map(str::to_owned).collect()
}

/// The connection of a service.
async fn connected(nats: &NatsServer, user: &str) -> JetStreamBus {
    let config = json!({
        "servers": [nats.url()], "max_megabytes_per_stream": 0, "make_streams": user == "scheduler",
        "credentials": {"user": user, "password": {"env": "PASSWORD"}},
    });
    let config: NatsConfig = serde_json::from_value(config).unwrap();
    let vars = Vars::from([("PASSWORD", Fleet::password(user).as_str())]);
    JetStreamBus::connect(config, &vars).await.unwrap()
}

#[tokio::test]
async fn no_service_may_do_the_work_of_another() {
    let nats = guarded().await;
    let scheduler = connected(&nats, "scheduler").await;
    let none: &[u8] = b"";
    for (user, subjects) in [
        (
            "gateway",
            &[
                "thresher.fetch.x.s",
                "thresher.outcomes.s",
                "thresher.dead.s",
                "$JS.API.STREAM.PURGE.thresher-fetch",
                "$JS.API.STREAM.DELETE.thresher-fetch",
                "$JS.API.STREAM.UPDATE.thresher-fetch",
                "$JS.API.CONSUMER.MSG.NEXT.thresher-fetch.x",
                "$KV.thresher-leases.s",
                "$KV.thresher-members.s",
                "_INBOX.scheduler.x",
            ][..],
        ),
        ("fetcher", &["thresher.fetch.x.s", "$KV.thresher-sources.s", "$JS.API.STREAM.PURGE.thresher-fetch"]),
        (
            "verifier",
            &["thresher.fetch.x.s", "$KV.thresher-runs.s", "$JS.API.STREAM.INFO.KV_thresher-sources"],
        ),
        ("unpacker", &["thresher.verify.s", "$KV.thresher-runs.s"]),
        ("scheduler", &["$JS.API.STREAM.DELETE.thresher-fetch", "$KV.thresher-sessions.s"]),
    ] {
        let bus = if user == "scheduler" { scheduler.clone() } else { connected(&nats, user).await };
        let client = bus.context().client();
        for subject in subjects {
            client.publish((*subject).to_owned(), none.into()).await.unwrap();
        }
        // It may not subscribe to the responses for other users.
        let _refused = client.subscribe("_INBOX.>".to_owned()).await.unwrap();
        client.flush().await.unwrap();
        for subject in subjects.iter().chain(&["_INBOX.>"]) {
            let what = format!("{user} is refused {subject}");
            until(what, || refusals(&nats).iter().any(|line| is_of(line, user, subject))).await;
        }
    }
}

/// Whether the server has logged there that it refused a subject to a user.
fn is_of(line: &str, user: &str, subject: &str) -> bool {
    line.contains(&format!("user:{user}\"")) && line.contains(&format!("Subject \"{subject}\""))
}
