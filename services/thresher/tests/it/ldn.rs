//! Notifications that start runs of a Source, and senders that misuse them.

use std::time::{Duration, Instant};

use crate::common::api::{Api, send};
use crate::common::ldn::{
    JSON_LD, ORIGIN, REGISTRY, REPOSITORY, added, fleet, gateway, left, plain_update, post, py_ldnlib, update,
};
use crate::common::source;
use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};
use simulated_source::{Changes, SourceSpec};
use testkit::waiting::found;

/// The current or last run of a Source and those before it, newest first.
async fn runs(api: &Api, source: &str) -> Vec<Value> {
    let page = api.get(&format!("/v1/sources/{source}/runs")).await.is(StatusCode::OK).json();
    page["items"].as_array().expect("a list").clone()
}

/// The first runs of a Source, as soon as this many have ended.
async fn finished(api: &Api, source: &str, count: usize) -> Vec<Value> {
    found(format!("{count} runs are over"), async || {
        let runs = runs(api, source).await;
        let over = runs.iter().filter(|run| run["state"] == "finished").count();
        (over >= count && over == runs.len()).then_some(runs)
    })
    .await
}

#[tokio::test]
async fn what_a_repository_announces_is_looked_at_in_few_runs_and_other_things_are_kept() {
    let harvested = source(SourceSpec::default().resources(5)).await;
    let fleet = fleet().await;
    let settings =
        format!("scheduler: {{hint_debounce_seconds: 1}}\n{}", fleet.inboxes("per_second: 1000", "none-1"));
    let all = fleet.start(&[], &settings);
    let api = Api::of(&all).await;
    let id = added(&api, &harvested.well_known()).await;
    let inbox = format!("/ldn/sources/{id}/inbox");

    // Notifications of other activities, or about something else, are kept and start no run.
    let like = json!({"type": "Like", "object": format!("{}/1", harvested.url())});
    left(&api, &inbox, &like).await.is(StatusCode::CREATED);
    left(&api, &inbox, &update("https://elsewhere.example.com/1")).await.is(StatusCode::CREATED);

    // The first one starts a run, although the Source has no schedule and no operator requested it.
    left(&api, &inbox, &update(&format!("{}/1", harvested.url()))).await.is(StatusCode::CREATED);
    let first = finished(&api, &id, 1).await;
    assert_eq!((first.len(), &first[0]["requested_by"]), (1, &"hint".into()));
    assert_eq!(first[0]["counters"]["stored"], 5);

    // Many different notifications in the common inbox start few runs. The last of these has seen the change.
    harvested.change(Changes { create: 2, update: 1, delete: 1 });
    let object = |n: usize| format!("{}/resource?{n}", harvested.url());
    let kinds = ["Create", "Update", "Delete", "Announce"];
    let posts = (0..40).map(|n| {
        let body = json!({"type": kinds[n % 4], "object": object(n)});
        let api = api.clone();
        async move { left(&api, "/ldn/inbox", &body).await.is(StatusCode::CREATED) }
    });
    join_all(posts).await;
    let later = finished(&api, &id, 2).await;
    assert!(later.len() <= 4, "{} runs of 41 notifications", later.len());
    let settled = |run: &Value| {
        run["counters"]["stored"].as_u64().unwrap() + run["counters"]["deleted"].as_u64().unwrap()
    };
    assert_eq!(later.iter().map(settled).sum::<u64>(), 5 + 3 + 1, "{later:?}");
    assert!(later.iter().all(|run| run["requested_by"] == "hint"));
    let kept = api.get(&inbox).await.is(StatusCode::OK).json();
    assert_eq!(kept["contains"].as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn a_sender_that_speaks_for_a_source_may_name_anything_of_it() {
    let fleet = fleet().await;
    let harvested = source(SourceSpec::default().resources(1)).await;
    let id = model::SourceId::of_entry(&harvested.well_known().parse().unwrap()).to_string();
    let all = fleet.start(&[], &fleet.inboxes("", &id));
    let api = Api::of(&all).await;
    assert_eq!(added(&api, &harvested.well_known()).await, id);
    left(&api, "/ldn/inbox", &update("https://doi.example.org/10.1/x")).await.is(StatusCode::CREATED);
    assert_eq!(runs(&api, &id).await.len(), 0);
    let registry =
        post(&api, "/ldn/inbox", JSON_LD, update("https://doi.example.org/10.1/x")).bearer_auth(REGISTRY);
    send(registry).await.is(StatusCode::CREATED);
    assert_eq!(finished(&api, &id, 1).await[0]["requested_by"], "hint");
}

#[tokio::test]
async fn what_was_answered_with_201_outlives_the_gateway_and_is_taken_up_by_whoever_comes() {
    let harvested = source(SourceSpec::default().resources(2)).await;
    let fleet = fleet().await;
    let (alone, api) = gateway(&fleet, "").await;
    let id = added(&api, &harvested.well_known()).await;
    let created = left(&api, "/ldn/inbox", &update(&harvested.url())).await.is(StatusCode::CREATED);
    alone.kill();
    let at = created.path(&api, "location");
    let all = fleet.start(&[], &fleet.inboxes("", "none-1"));
    let api = Api::of(&all).await;
    assert_eq!(api.get(&at).await.is(StatusCode::OK).json(), update(&harvested.url()));
    assert_eq!(finished(&api, &id, 1).await[0]["requested_by"], "hint");
}

#[tokio::test]
async fn a_flood_is_refused_or_pushes_out_its_own_and_honest_ones_are_served() {
    let fleet = fleet().await;
    let (gateway, api) = gateway(&fleet, "max_per_sender: 20, per_second: 40, body_bytes: 20000").await;
    let entry = "https://repo.example.org/";
    added(&api, entry).await;
    let honest =
        left(&api, "/ldn/inbox", &update(entry)).await.is(StatusCode::CREATED).path(&api, "location");
    let before = resident(&gateway);
    let review = |n: usize| json!({"type": "Announce", "origin": {"id": ORIGIN}, "object": "https://elsewhere.example.com/", "summary": format!("{n}{}", "a".repeat(15_000))});
    // Strangers with connections of their own.
    let strangers = Api::of(&gateway).await;
    // Strangers: some with a known origin, some unknown, some with invalid bodies.
    let flood = async {
        let mut answers = Vec::new();
        for wave in 0..10 {
            let posts = (0..100).map(|n| {
                let body = match n % 4 {
                    0 => "a".repeat(100_000),
                    1 => json!({"type": "Announce", "origin": {"id": "https://x.example"}}).to_string(),
                    _ => review(wave * 100 + n).to_string(),
                };
                let request = post(&strangers, "/ldn/inbox", JSON_LD, body);
                // The gateway may close the connection when it refuses a body before reading it.
                async move { request.send().await.map_or(0, |answer| answer.status().as_u16()) }
            });
            answers.extend(join_all(posts).await);
        }
        answers
    };
    let work = async {
        let mut answers = Vec::new();
        for n in 0..20 {
            answers.push(left(&api, "/ldn/inbox", &update(&format!("{entry}{n}"))).await.status);
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        answers
    };
    let began = Instant::now();
    let (flooded, served) = tokio::join!(flood, work);
    let most = 40 * (2 + began.elapsed().as_secs() as usize);
    assert_eq!(served, [201; 20], "the honest one has a rate and places of its own");
    assert!(flooded.iter().all(|status| [0, 201, 403, 413, 429].contains(status)), "{flooded:?}");
    let taken = flooded.iter().filter(|status| **status == 201).count();
    assert!((1..=most).contains(&taken), "{taken} are taken, and {most} may be");
    let kept = api.get("/ldn/inbox?limit=1000").await.is(StatusCode::OK).json();
    let kept: Vec<_> =
        kept["contains"].as_array().unwrap().iter().map(|iri| iri.as_str().unwrap().to_owned()).collect();
    assert!(kept.len() <= 20 + 20, "{} are kept", kept.len());
    // Of the honest sender's 21, its own newest 20.
    let own = api.with(Some(REPOSITORY)).get("/ldn/inbox?limit=1000").await.is(StatusCode::OK).json();
    assert_eq!(own["contains"].as_array().map(Vec::len), Some(20));
    api.get(&honest).await.is(StatusCode::NOT_FOUND);
    let grown = resident(&gateway).saturating_sub(before);
    assert!(grown < 64 * 1024 * 1024, "it takes {grown} bytes more");
}

/// The memory of a process, in bytes.
fn resident(service: &crate::common::Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn one_byte_a_second_is_given_up_and_keeps_nobody_else_waiting() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "body_timeout_seconds: 2, per_second: 100").await;
    let address = api.base.strip_prefix("http://").unwrap().to_owned();
    // As many connections as strangers may have.
    let mut slow = Vec::new();
    for _ in 0..32 {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let head = format!(
            "POST /ldn/inbox HTTP/1.1\r\nHost: {address}\r\nContent-Type: {JSON_LD}\r\nContent-Length: 100\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    left(&api, "/ldn/inbox", &update("https://repo.example.org/")).await.is(StatusCode::CREATED);
    for mut stream in slow {
        let mut answer = vec![0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8(answer).unwrap(), "HTTP/1.1 408");
    }
    // The connections are free again.
    let review =
        json!({"type": "Announce", "origin": {"id": ORIGIN}, "object": "https://elsewhere.example.com/"});
    send(post(&api, "/ldn/inbox", JSON_LD, review)).await.is(StatusCode::CREATED);
}

/// A third-party sender and a third-party consumer.
#[tokio::test]
async fn py_ldnlib_finds_the_inbox_sends_and_reads_back() {
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "").await;
    let id = added(&api, "https://repo.example.org/").await;
    let notification = plain_update("https://repo.example.org/a.pdf");
    let target = format!("{}/ldn/sources/{id}", api.base);
    let said = py_ldnlib(&target, &notification).await;
    assert_eq!(said["inbox"], format!("{target}/inbox"));
    assert_eq!((said["listed"].as_array().map(Vec::len), &said["read"]), (Some(1), &json!([notification])));
}
