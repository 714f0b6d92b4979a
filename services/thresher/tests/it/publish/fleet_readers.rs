//! Who may read what publishers of a fleet serve: each Source has readers of its own.

use simulated_source::{RepositorySpec, SimulatedRepository, SimulatedSource, SourceSpec};
use testkit::waiting::found;

use super::in_fleet::{Publishing, id, text};
use crate::common::{Service, source};

#[tokio::test]
async fn each_source_has_its_own_readers() {
    let sources = [
        source(SourceSpec::default().resources(2)).await,
        source(SourceSpec::default().seed(2).resources(2)).await,
        source(SourceSpec::default().seed(3).resources(2)).await,
    ];
    let [open, by_token, near] = sources.each_ref().map(id);
    let all = Publishing::new().await;
    let tokens = all.fleet.path("readers.yaml");
    std::fs::write(&tokens, "- {name: one, token: a-token-of-a-reader}\n").unwrap();
    let more = format!(", trusted_proxies: ['127.0.0.0/8'], tokens: '{}'", tokens.display());
    let publisher = all.publisher(&more);
    for (source, options) in sources.iter().zip([
        &["--publish"][..],
        &["--publish=tokens"],
        &["--publish-network", "10.2.0.0/16", "--publish-network", "fd00:2::/32"],
    ]) {
        all.fleet.add(&source.well_known(), options);
        all.harvest(source).await;
    }
    let get = async |path: &str, token: bool, from: &str| {
        let request = all.client.get(format!("{}/{path}", publisher.publications()));
        let request = if token { request.bearer_auth("a-token-of-a-reader") } else { request };
        request.header("x-forwarded-for", from).send().await.unwrap()
    };
    let resource = |source: &SimulatedSource| {
        let uri: model::ResourceUri = source.resource_uri(0).parse().unwrap();
        format!("{}/{}", id(source), publish::PublishedPath::of(&uri).as_str())
    };
    found("all are published", async || {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        for source in &sources {
            let list = format!("{}/resourcelist.xml", id(source));
            for path in [list, resource(source)] {
                (get(&path, true, "10.2.0.1").await.status() == 200).then_some(())?;
            }
        }
        Some(())
    })
    .await;
    for (source, token, from, expected) in [
        (&sources[0], false, "192.0.2.1", 200),
        (&sources[1], false, "192.0.2.1", 401),
        (&sources[1], false, "10.2.0.1", 401),
        (&sources[1], true, "192.0.2.1", 200),
        (&sources[2], false, "192.0.2.1", 403),
        (&sources[2], true, "10.3.0.1", 403),
        (&sources[2], false, "10.2.0.1", 200),
        (&sources[2], false, "fd00:2::1", 200),
    ] {
        let document = format!("{}/resourcelist.xml", id(source));
        for path in [document, resource(source)] {
            assert_eq!(get(&path, token, from).await.status(), expected, "{path} {token} {from}");
        }
        let topic = format!("{}/notifications.xml", id(source));
        let expected = if expected == 200 { 404 } else { expected };
        assert_eq!(get(&topic, token, from).await.status(), expected, "no hub, so no topic");
    }
    // The Source Description leads to what its reader may read.
    for (token, from, sets) in [
        (false, "192.0.2.1", [true, false, false]),
        (true, "192.0.2.1", [true, true, false]),
        (true, "10.2.0.1", [true, true, true]),
    ] {
        let description = get(".well-known/resourcesync", token, from).await;
        assert!(description.headers()["cache-control"].to_str().unwrap().starts_with("private"));
        let text = text(description).await;
        assert_eq!([&open, &by_token, &near].map(|set| text.contains(set.as_str())), sets, "{from}: {text}");
    }

    // Readers change without a new publication.
    all.set(&sources[0], &["--publish=tokens"]);
    let list = format!("{open}/resourcelist.xml");
    found("the open one needs a token", async || {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        (get(&list, false, "192.0.2.1").await.status() == 401).then_some(())
    })
    .await;
    assert_eq!(get(&list, true, "192.0.2.1").await.status(), 200);
}

#[tokio::test]
async fn records_are_served_by_oai_to_those_who_may_read_their_source() {
    let files = source(SourceSpec::default().resources(2)).await;
    let repository = SimulatedRepository::start(RepositorySpec::default().records(20)).await.unwrap();
    let entry = repository.base_url();
    let records = model::SourceId::of_entry(&entry.parse().unwrap()).to_string();
    let all = Publishing::new().await;
    let more = ", trusted_proxies: ['127.0.0.0/8'], contact: archive@example.org";
    let [first, second] = [all.publisher(more), all.publisher(more)];
    all.fleet.add(&files.well_known(), &["--publish"]);
    all.fleet.add(&entry, &["--publish-network", "10.2.0.0/16"]);
    all.harvest(&files).await;
    all.fleet.harvest(&entry).await.exits(0);
    let ask = async |publisher: &Service, path: &str, from: &str| {
        let request = all.client.get(format!("{}/{path}", publisher.publications()));
        let answer = request.header("x-forwarded-for", from).send().await.unwrap();
        (answer.status().as_u16(), text(answer).await)
    };
    let list = "oai?verb=ListIdentifiers&metadataPrefix=oai_dc";
    let of_set = format!("{records}/{list}");
    for publisher in [&first, &second] {
        for path in [list, &of_set] {
            found("the records are served", async || {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                let (status, text) = ask(publisher, path, "10.2.0.1").await;
                (status == 200 && text.matches("<identifier>").count() == 20).then_some(())
            })
            .await;
        }
        let (_, text) = ask(publisher, "oai?verb=Identify", "10.2.0.1").await;
        assert!(text.contains("<adminEmail>archive@example.org</adminEmail>"), "{text}");
        assert_eq!(ask(publisher, list, "10.3.0.1").await.0, 404, "what it may read has no records");
        assert_eq!(ask(publisher, &of_set, "10.3.0.1").await.0, 403);
    }
}
