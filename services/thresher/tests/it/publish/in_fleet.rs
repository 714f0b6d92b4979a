//! The publisher of a fleet: it publishes the Sources that say so, over real NATS and S3 servers.

use std::collections::BTreeMap;
use std::time::Instant;

use reqwest::{Client, Response, StatusCode};
use simulated_source::{Changes, SimulatedSource, Size, SourceSpec};
use testkit::relay::Relay;
use testkit::scripted::{Reply, ScriptedServer};
use testkit::waiting::{found, until};
use url::form_urlencoded;

use super::hubs::{differences, told_in};
use super::sets::of_sets;
use super::takedown::LONGEST;
use super::{Held, originals};
use crate::common::{Destination, Fleet, Run, Service, source};
use crate::fleet::{ALL, fleet};
use crate::metrics::get;

/// A fleet with publishers, whose base is a relay that leads to one of them.
pub(super) struct Publishing {
    pub(super) fleet: Fleet,
    pub(super) relay: Relay,
    pub(super) base: String,
    pub(super) client: Client,
    _services: Vec<Service>,
}

impl Publishing {
    pub(super) async fn new() -> Self {
        let fleet = fleet().await;
        let services = ALL.iter().map(|service| fleet.start(&[service], "")).collect();
        let relay = Relay::start().unwrap();
        let base = format!("{}/", relay.url());
        let client = Client::builder().no_proxy().build().unwrap();
        Self { fleet, relay, base, client, _services: services }
    }

    /// Starts a publisher with more settings, and leads readers to it.
    pub(super) fn publisher(&self, more: &str) -> Service {
        let section = format!("publisher: {{base: '{}', listen: '127.0.0.1:0'{more}}}", self.base);
        let publisher = self.fleet.start(&["publisher"], &section);
        self.relay.lead_to(publisher.publications());
        publisher
    }

    /// Harvests a Source, which is added before.
    pub(super) async fn harvest(&self, source: &SimulatedSource) {
        self.fleet.harvest(&source.well_known()).await.exits(0);
    }

    #[track_caller]
    pub(super) fn set(&self, source: &SimulatedSource, options: &[&str]) {
        let mut command = self.fleet.command("source");
        Run::of(command.args(["set", &source.well_known()]).args(options)).exits(0);
    }

    /// The status of a path below the base.
    async fn status(&self, path: &str) -> StatusCode {
        self.client.get(format!("{}{path}", self.base)).send().await.unwrap().status()
    }

    /// Waits until a document of a set is answered so.
    pub(super) async fn answers(&self, set: &str, status: StatusCode) {
        found(format!("{set} is answered by {status}"), async || {
            let found = self.status(&format!("{set}/capabilitylist.xml")).await;

            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            (found == status).then_some(())
        })
        .await;
    }

    /// Waits until a reader has all that these Sources have.
    async fn reader_has(&self, reader: &Destination, sources: &[&SimulatedSource]) {
        let mut all: BTreeMap<String, Held> = BTreeMap::new();
        for source in sources {
            let copy = Destination::directory();
            copy.sync_with(&source.well_known(), &["--view", "none"]).exits(0);
            let present = originals(&copy, &[]).into_iter().filter(|(_, (state, ..))| state == "present");
            all.extend(present);
        }
        until("the reader has all changes", || {
            // Sets come and go, so what the reader knows of them is asked for again.
            let options = ["--view", "none", "--rediscover"];
            reader.sync_with(&format!("{}.well-known/resourcesync", self.base), &options).exits(0);
            let held = of_sets(reader, &self.base).into_iter().filter(|(_, (state, ..))| state == "present");
            held.collect::<BTreeMap<_, _>>() == all
        })
        .await;
    }
}

pub(super) fn id(source: &SimulatedSource) -> String {
    model::SourceId::of_entry(&source.well_known().parse().unwrap()).to_string()
}

#[expect(clippy::disallowed_methods, reason = "a small body of our own server")]
pub(super) async fn text(answer: Response) -> String {
    answer.text().await.unwrap()
}

pub(super) const CHANGES: Changes = Changes { create: 2, update: 3, delete: 1 };

#[tokio::test]
async fn a_fleet_publishes_the_sources_that_say_so_and_tells_their_changes() {
    let (one, two) =
        (source(SourceSpec::default().resources(12)).await, source(SourceSpec::default().seed(2)).await);
    let all = Publishing::new().await;
    let publisher = all.publisher("");
    assert_eq!(all.status(".well-known/resourcesync").await, StatusCode::NOT_FOUND, "nothing is published");
    all.fleet.add(&one.well_known(), &["--publish"]);
    all.fleet.add(&two.well_known(), &[]);
    all.answers(&id(&one), StatusCode::SERVICE_UNAVAILABLE).await;
    all.harvest(&one).await;
    all.harvest(&two).await;
    all.answers(&id(&one), StatusCode::OK).await;
    let reader = Destination::directory();
    all.reader_has(&reader, &[&one]).await;
    assert_eq!(all.status(&format!("{}/resourcelist.xml", id(&two))).await, StatusCode::NOT_FOUND);

    // A change at the Source is told by the Change List: the reader fetches what has changed, and nothing else.
    one.change(CHANGES);
    all.harvest(&one).await;
    all.reader_has(&reader, &[&one]).await;
    let run = reader.sync_with(&format!("{}.well-known/resourcesync", all.base), &["--view", "none"]);
    assert_eq!(run.exits(0).json()["mode"], "incremental");

    // Another Source joins the sets, and one leaves them.
    all.set(&two, &["--publish"]);
    all.answers(&id(&two), StatusCode::OK).await;
    all.reader_has(&Destination::directory(), &[&one, &two]).await;
    all.set(&one, &["--no-publish"]);
    all.answers(&id(&one), StatusCode::NOT_FOUND).await;
    all.reader_has(&Destination::directory(), &[&two]).await;

    // It comes back with the changes that it missed.
    one.change(CHANGES);
    all.harvest(&one).await;
    all.set(&one, &["--publish"]);
    all.answers(&id(&one), StatusCode::OK).await;
    all.reader_has(&reader, &[&one, &two]).await;
    assert_eq!(publisher.terminate().await, Some(0));
}

#[tokio::test]
async fn a_fleet_keeps_lists_of_the_past_in_archives_and_the_versions_they_name() {
    let one = source(SourceSpec::default().resources(12)).await;
    let all = Publishing::new().await;
    all.fleet.add(&one.well_known(), &["--publish", "--keep-versions", "9"]);
    let _publisher = all.publisher(", archive: all");
    all.harvest(&one).await;
    all.answers(&id(&one), StatusCode::OK).await;
    let get = async |url: &str| all.client.get(url).send().await.unwrap();
    let archive = format!("{}{}/resourcelist-archive.xml", all.base, id(&one));
    assert_eq!(get(&archive).await.status(), StatusCode::NOT_FOUND, "no list was replaced yet");
    for round in 1..3 {
        one.change(CHANGES);
        all.harvest(&one).await;
        found("the list before is in the Archive", async || {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            (text(get(&archive).await).await.matches("<url>").count() >= round).then_some(())
        })
        .await;
    }
    // What the oldest list names is all there: as it was then.
    let lists = text(get(&archive).await).await;
    let oldest = text(get(between(&lists, "<loc>", "</loc>").next().unwrap()).await).await;
    let versions: Vec<&str> = between(&oldest, "rel=\"memento\" href=\"", "\"").collect();
    assert_eq!(versions.len(), 12, "{oldest}");
    for version in versions {
        assert_eq!(get(version).await.status(), StatusCode::OK, "{version}");
    }
}

#[tokio::test]
async fn a_source_says_itself_whether_its_lists_of_the_past_stay() {
    let (kept, plain) =
        (source(SourceSpec::default().resources(4)).await, source(SourceSpec::default().seed(2)).await);
    let all = Publishing::new().await;
    let _publisher = all.publisher("");
    for source in [&kept, &plain] {
        all.fleet.add(&source.well_known(), &["--publish"]);
        all.harvest(source).await;
        all.answers(&id(source), StatusCode::OK).await;
    }
    all.set(&kept, &["--publish-archive", "all"]);
    let get = async |path: &str| all.client.get(format!("{}{path}", all.base)).send().await.unwrap();
    let archive = |source: &SimulatedSource| format!("{}/resourcelist-archive.xml", id(source));
    found("the Source has an Archive", async || {
        kept.change(Changes { update: 1, ..Changes::default() });
        plain.change(Changes { update: 1, ..Changes::default() });
        all.harvest(&kept).await;
        all.harvest(&plain).await;
        (get(&archive(&kept)).await.status() == 200).then_some(())
    })
    .await;
    // It is written after the Archive.
    found("the Capability List names the Archive", async || {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let capabilities = text(get(&format!("{}/capabilitylist.xml", id(&kept))).await).await;
        capabilities.contains("resourcelist-archive.xml").then_some(())
    })
    .await;
    assert_eq!(get(&archive(&plain)).await.status(), StatusCode::NOT_FOUND, "the other one has none");

    // Without it, the Archive leaves the Capability List, also without a change at the Source.
    all.set(&kept, &["--publish-archive", "off"]);
    found("the Capability List names no Archive", async || {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let capabilities = text(get(&format!("{}/capabilitylist.xml", id(&kept))).await).await;
        (!capabilities.contains("-archive")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_set_by_rule_is_followed_by_its_own_lists_and_goes_with_its_rule() {
    let one = source(SourceSpec::default().resources(12)).await;
    let all = Publishing::new().await;
    let _publisher = all.publisher("");
    all.fleet.add(&one.well_known(), &["--publish", "--publish-set", "low=/000000[0-5][.]bin$"]);
    all.harvest(&one).await;
    all.answers(&id(&one), StatusCode::OK).await;
    let path = |set: &str| format!("{}/sets/{set}/capabilitylist.xml", id(&one));
    let follows = async |reader: &Destination, set: &str, is_in: &dyn Fn(u64) -> bool| {
        until("the reader has the set", || {
            let run = reader.sync_with(&format!("{}{}", all.base, path(set)), &["--view", "none"]);
            run.exits(0);
            let held = of_sets(reader, &all.base).into_iter().filter(|(_, (state, ..))| state == "present");
            let held: BTreeMap<_, _> = held.collect();
            let wanted = originals(&all.fleet.destination(), &[]).into_iter();
            let wanted = wanted.filter(|(uri, (state, ..))| {
                state == "present" && one.resource_index(uri).is_some_and(is_in)
            });
            held == wanted.collect::<BTreeMap<_, _>>()
        })
        .await;
    };
    let reader = Destination::directory();
    follows(&reader, "low", &|index| index < 6).await;
    for _ in 0..2 {
        one.change(Changes { create: 2, update: 6, delete: 2 });
        all.harvest(&one).await;
        follows(&reader, "low", &|index| index < 6).await;
    }
    let description = all.client.get(format!("{}.well-known/resourcesync", all.base)).send().await.unwrap();
    assert!(text(description).await.contains(&path("low")));

    all.set(&one, &["--publish-set", "odd=[13579][.]bin$"]);
    // One after the other, in an order that is no matter here.
    found("the set with the other rule is there, and the first one is gone", async || {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let found = (all.status(&path("odd")).await, all.status(&path("low")).await);
        let told = all.client.get(format!("{}.well-known/resourcesync", all.base)).send().await.unwrap();
        let told = text(told).await;
        let is_told = told.contains(&path("odd")) && !told.contains(&path("low"));
        (found == (StatusCode::OK, StatusCode::NOT_FOUND) && is_told).then_some(())
    })
    .await;
    follows(&Destination::directory(), "odd", &|index| index % 2 == 1).await;
    let refused =
        Run::of(all.fleet.command("source").args(["set", &one.well_known(), "--publish-set", "x=("]));
    assert!(refused.exits(2).stderr.contains("publish_sets"));
}

#[tokio::test]
async fn a_fleet_leads_readers_to_the_bucket_and_pings_hubs_that_fetch_the_topic() {
    let one = source(SourceSpec::default().resources(3).size(Size::Fixed(12 << 20))).await;
    let hub = ScriptedServer::start().await.unwrap();
    hub.always("/hub", Reply::status(204));
    let all = Publishing::new().await;
    let more = format!(", redirect_seconds: 900, ping_hubs: ['{}']", hub.uri("/hub"));
    let _publisher = all.publisher(&more);
    all.fleet.add(&one.well_known(), &["--publish"]);
    all.harvest(&one).await;
    all.answers(&id(&one), StatusCode::OK).await;
    let client = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let url = found("the Resource List names a resource", async || {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let list = client.get(format!("{}{}/resourcelist.xml", all.base, id(&one))).send().await.unwrap();
        between(&text(list).await, "<loc>", "</loc>").next().map(str::to_owned)
    })
    .await;
    let led = client.get(&url).send().await.unwrap();
    assert_eq!(led.status(), StatusCode::TEMPORARY_REDIRECT);
    let at = led.headers()["location"].to_str().unwrap();
    let range = client.get(at).header("range", "bytes=0-9").send().await.unwrap();
    assert_eq!(range.status(), StatusCode::PARTIAL_CONTENT, "the bucket takes the URL");

    let stored = all.fleet.destination();
    let before = stored.present();
    one.change(Changes { update: 1, ..Changes::default() });
    all.harvest(&one).await;
    let expected = differences(&before, &stored.present());
    until("the hub is told", || !hub.requests_at("/hub").is_empty()).await;
    let topic = format!("{}{}/notifications.xml", all.base, id(&one));
    let form = form_urlencoded::parse(&hub.requests_at("/hub")[0].body).into_owned().collect::<Vec<_>>();
    let wanted = [("hub.mode", "publish"), ("hub.url", topic.as_str())];
    assert_eq!(form, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
    found("the topic tells the change", async || {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        let payload = text(all.client.get(&topic).send().await.unwrap()).await;
        let told = (!payload.is_empty()).then(|| told_in(&[payload.into()]))?;
        expected.iter().all(|(uri, change)| told.get(uri) == Some(change)).then_some(())
    })
    .await;
}

/// The texts between two others.
fn between<'t>(text: &'t str, begin: &'t str, end: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(begin).skip(1).filter_map(move |rest| Some(rest.split_once(end)?.0))
}

#[tokio::test]
async fn a_publisher_that_is_killed_is_followed_by_one_that_misses_no_change() {
    let one = source(SourceSpec::default().resources(12)).await;
    let all = Publishing::new().await;
    all.fleet.add(&one.well_known(), &["--publish"]);
    let mut publisher = all.publisher("");
    all.harvest(&one).await;
    all.answers(&id(&one), StatusCode::OK).await;
    let reader = Destination::directory();
    all.reader_has(&reader, &[&one]).await;
    for _ in 0..3 {
        one.change(CHANGES);
        all.harvest(&one).await;
        // It may be in the middle of the publication.
        publisher.kill();
        publisher = all.publisher("");
        all.reader_has(&reader, &[&one]).await;
    }
}

/// How many publications a publisher has made or tried, by its metrics.
fn publications(publisher: &Service) -> u64 {
    let metrics = get(&publisher.admin(), "/metrics");
    let counts = metrics.lines().filter(|line| line.starts_with("thresher_publisher_publications_total{"));
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn of_two_publishers_one_makes_a_publication_and_both_serve_it() {
    let one = source(SourceSpec::default().resources(12)).await;
    let all = Publishing::new().await;
    let [first, second] = [all.publisher(""), all.publisher("")];
    all.fleet.add(&one.well_known(), &["--publish"]);
    all.harvest(&one).await;
    for publisher in [&first, &second] {
        all.relay.lead_to(publisher.publications());
        all.answers(&id(&one), StatusCode::OK).await;
        all.reader_has(&Destination::directory(), &[&one]).await;
    }
    let made = [publications(&first), publications(&second)];
    assert!(made.contains(&0) && made != [0, 0], "one of them makes it: {made:?}");

    // The publisher that makes it is killed, and the other one takes over.
    let (maker, other) = if made[0] > 0 { (first, second) } else { (second, first) };
    all.relay.lead_to(other.publications());
    let reader = Destination::directory();
    all.reader_has(&reader, &[&one]).await;
    maker.kill();
    one.change(CHANGES);
    all.harvest(&one).await;
    all.reader_has(&reader, &[&one]).await;
    assert!(publications(&other) > 0);
}

#[tokio::test]
async fn acc_7_what_is_withdrawn_is_gone_at_each_publisher_and_told_as_deleted() {
    let one = source(SourceSpec::default().resources(12)).await;
    let all = Publishing::new().await;
    let withdrawn = all.fleet.path("withdrawn.txt");
    std::fs::write(&withdrawn, "# nothing yet\n").unwrap();
    let more = format!(", takedown: '{}'", withdrawn.display());
    let publishers = [all.publisher(&more), all.publisher(&more)];
    all.fleet.add(&one.well_known(), &["--publish"]);
    all.harvest(&one).await;
    all.answers(&id(&one), StatusCode::OK).await;
    let reader = Destination::directory();
    all.reader_has(&reader, &[&one]).await;
    let uri: model::ResourceUri = one.resource_uri(3).parse().unwrap();
    let path = format!("{}/{}", id(&one), publish::PublishedPath::of(&uri).as_str());
    let url = format!("{}{path}", all.base);
    assert_eq!(reader.state(&url).as_deref(), Some("present"));

    std::fs::write(&withdrawn, format!("{uri}\n")).unwrap();
    let begun = Instant::now();
    for publisher in &publishers {
        found("it is gone", async || {
            let answer = all.client.get(format!("{}/{path}", publisher.publications())).send().await.ok()?;
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            (answer.status() == StatusCode::GONE).then_some(())
        })
        .await;
    }
    until("the reader has deleted it", || {
        let options = ["--view", "none"];
        reader.sync_with(&format!("{}.well-known/resourcesync", all.base), &options).exits(0);
        reader.state(&url).as_deref() == Some("deleted")
    })
    .await;
    assert!(begun.elapsed() <= LONGEST, "it took {:?}", begun.elapsed());
    assert_eq!(reader.present().len(), 11);
    let stored = all.fleet.destination();
    assert_eq!(stored.state(uri.as_str()).as_deref(), Some("present"), "it stays stored");
}
