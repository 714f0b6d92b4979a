//! The operator's HTTP API, on a fleet that really harvests.

use crate::common::api::{ADMIN, Api, JsonBody as _, OPERATE, READ, fleet, fleet_with, send};
use crate::common::{source, truth};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use simulated_source::{Changes, Fault, SimulatedSource, Size, SourceSpec};
use testkit::scripted::ScriptedServer;

/// Adds the Source over HTTP. Returns its path.
async fn added(api: &Api, source: &SimulatedSource) -> String {
    let created =
        api.post("/v1/sources", json!({"entry": source.well_known()})).await.is(StatusCode::CREATED);
    created.header("location").to_owned()
}

/// Follows a run over HTTP to its end. Returns all its events.
async fn harvested(api: &Api, at: &str) -> Vec<Value> {
    told(api, &asked(api, at).await).await
}

/// Requests a run of a Source over HTTP. Returns its path.
async fn asked(api: &Api, at: &str) -> String {
    let run = api.post(&format!("{at}/runs"), json!({})).await.is(StatusCode::CREATED);
    run.header("location").to_owned()
}

/// The events of a run, to their end.
async fn told(api: &Api, run: &str) -> Vec<Value> {
    let events = api.get(&format!("{run}/events")).await.is(StatusCode::OK);
    assert_eq!(events.header("content-type"), "text/event-stream");
    let text = String::from_utf8(events.body).unwrap();
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

/// All items of a list, five in a page.
async fn all_pages(api: &Api, path: &str) -> Vec<Value> {
    let mut items = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = api.get(&format!("{path}?limit=5{cursor}")).await.is(StatusCode::OK).json();
        items.extend(page["items"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break items };
        cursor = format!("&cursor={next}");
    }
}

/// A path with the URI of a resource in it.
fn of_resource(at: &str, what: &str, uri: &str) -> String {
    let uri: String = url::form_urlencoded::byte_serialize(uri.as_bytes()).collect();
    format!("{at}/resources/{what}?uri={uri}")
}

#[tokio::test]
async fn a_source_is_added_harvested_and_read_by_http() {
    let source = source(SourceSpec::default().resources(12).size(Size::Range(10, 1_500_000))).await;
    let (_fleet, _all, api) = fleet().await;
    let at = added(&api, &source).await;
    let events = harvested(&api, &at).await;
    let last = events.last().expect("at least its end");
    assert_eq!(
        (&last["state"], &last["in_sync"], &last["counters"]["stored"]),
        (&"finished".into(), &true.into(), &12.into())
    );

    // Resources come in consecutive pages, and equal the Source.
    let listed = all_pages(&api, &format!("{at}/resources")).await;
    let truth = truth(&source);
    assert_eq!(listed.len(), truth.len());
    for resource in &listed {
        let (length, sha256) = &truth[resource["uri"].as_str().unwrap()];
        assert_eq!(
            (resource["length"].as_u64(), resource["sha256"].as_str()),
            (Some(*length), Some(sha256.as_str()))
        );
        assert_eq!(resource["state"], "present");
    }
    // Without links, each resource is a work of its own.
    let works = all_pages(&api, &format!("{at}/works")).await;
    let heads = |items: &[Value]| items.iter().map(|item| item["uri"].clone()).collect::<Vec<_>>();
    assert_eq!(heads(&works), heads(&listed));
    assert!(works.iter().all(|work| work["complete"] == true), "{works:?}");

    for (uri, (length, sha256)) in &truth {
        let path = of_resource(&at, "content", uri);
        let whole = api.get(&path).await.is(StatusCode::OK);
        let etag = format!("\"{sha256}\"");
        assert_eq!((whole.body.len() as u64, whole.header("etag")), (*length, etag.as_str()));
        assert_eq!(whole.header("content-length"), length.to_string());
        let from = length / 3;
        let to = length * 2 / 3;
        let range = format!("bytes={from}-{to}");
        let part = send(api.request(Method::GET, &path).header("range", &range))
            .await
            .is(StatusCode::PARTIAL_CONTENT);
        assert!(part.body == whole.body[from as usize..=to as usize], "{range} of {uri}");
        assert_eq!(part.header("content-range"), format!("bytes {from}-{to}/{length}"));
        let known = api.request(Method::GET, &path).header("if-none-match", &etag);
        assert!(send(known).await.is(StatusCode::NOT_MODIFIED).body.is_empty());
        let other = api.request(Method::GET, &path).header("range", &range).header("if-range", "\"other\"");
        assert_eq!(send(other).await.is(StatusCode::OK).body.len() as u64, *length);
        let beyond = api.request(Method::GET, &path).header("range", format!("bytes={length}-"));
        let refused = send(beyond).await.is(StatusCode::RANGE_NOT_SATISFIABLE);
        assert_eq!(refused.header("content-range"), format!("bytes */{length}"));
        let head = send(api.request(Method::HEAD, &path)).await.is(StatusCode::OK);
        assert_eq!((head.body.len(), head.header("content-length")), (0, length.to_string().as_str()));
    }
    let story =
        api.get(&of_resource(&at, "history", truth.keys().next().unwrap())).await.is(StatusCode::OK).json();
    assert_eq!(
        (&story["resource"]["state"], &story["events"][0]["event"]),
        (&"present".into(), &"created".into())
    );
    api.get(&of_resource(&at, "content", "https://nowhere.example/")).await.is(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_source_is_changed_only_by_who_has_read_it() {
    let source = source(SourceSpec::default().resources(1)).await;
    let (_fleet, _all, api) = fleet().await;
    let shown =
        api.post("/v1/sources?dry_run=true", json!({"entry": source.well_known()})).await.is(StatusCode::OK);
    let id = shown.json()["id"].as_str().unwrap().to_owned();
    api.get(&format!("/v1/sources/{id}")).await.is(StatusCode::NOT_FOUND);
    let at = added(&api, &source).await;
    assert_eq!(at, format!("/v1/sources/{id}"));
    let again = api.post("/v1/sources", json!({"entry": source.well_known()})).await.is(StatusCode::CONFLICT);
    assert_eq!(again.header("content-type"), "application/problem+json");

    let read = api.get(&at).await.is(StatusCode::OK);
    let (etag, mut wanted) = (read.header("etag").to_owned(), read.json()["spec"].clone());
    wanted["concurrency"] = json!(2);
    let change = |etag: Option<&str>, wanted: &Value| {
        let request = api.request(Method::PUT, &at).json_body(wanted);
        send(etag.map_or(request.try_clone().unwrap(), |etag| request.header("if-match", etag)))
    };
    change(None, &wanted).await.is(StatusCode::PRECONDITION_REQUIRED);
    let changed = change(Some(&etag), &wanted).await.is(StatusCode::OK);
    assert_eq!(changed.json()["spec"]["concurrency"], 2);
    assert_ne!(changed.header("etag"), etag);
    let problem = change(Some(&etag), &wanted).await.is(StatusCode::PRECONDITION_FAILED).json();
    assert_eq!((&problem["instance"], &problem["status"]), (&at.clone().into(), &412.into()));
    assert_eq!(problem["type"], "urn:thresher:problem:precondition-failed");
    wanted["include"] = json!("(");
    wanted["max_deletes_percent"] = json!(101);
    let refused = change(Some("*"), &wanted).await.is(StatusCode::UNPROCESSABLE_ENTITY).json();
    let fields: Vec<&str> =
        refused["errors"].as_array().unwrap().iter().filter_map(|e| e["field"].as_str()).collect();
    assert_eq!(fields, ["max_deletes_percent", "include"]);

    send(api.request(Method::DELETE, &at).header("if-match", &etag))
        .await
        .is(StatusCode::PRECONDITION_FAILED);
    send(api.request(Method::DELETE, &at)).await.is(StatusCode::NO_CONTENT);
    api.get(&at).await.is(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_same_submission_twice_is_one_run_and_runs_are_steered() {
    let spec = SourceSpec::default().resources(400).latency(std::time::Duration::from_millis(20));
    let source = source(spec).await;
    let (_fleet, _all, api) = fleet().await;
    let at = added(&api, &source).await;
    let api = api.with(Some(OPERATE));
    // It cannot end before it is steered.
    source.allow(20);
    let submit = |key: &'static str, body: Value| {
        send(api.request(Method::POST, &format!("{at}/runs")).header("idempotency-key", key).json_body(&body))
    };
    let first = submit("one", json!({"mode": "baseline"})).await.is(StatusCode::CREATED);
    let second = submit("one", json!({"mode": "baseline"})).await.is(StatusCode::CREATED);
    assert_eq!((first.json(), first.header("location")), (second.json(), second.header("location")));
    submit("one", json!({"mode": "audit"})).await.is(StatusCode::UNPROCESSABLE_ENTITY);
    let refused = submit("three", json!({"repair": true})).await.is(StatusCode::UNPROCESSABLE_ENTITY).json();
    assert_eq!(refused["errors"][0]["field"], "repair", "only an audit repairs: {refused}");
    submit("two", json!({})).await.is(StatusCode::CONFLICT);

    let run = first.header("location").to_owned();
    crate::common::asked_for(&source, 20).await;
    api.post(&format!("{run}/pause"), Value::Null).await.is(StatusCode::OK);
    source.allow_all();
    until_state(&api, &run, "paused").await;
    source.allow(20);
    api.post(&format!("{run}/resume"), Value::Null).await.is(StatusCode::OK);
    until_state(&api, &run, "running").await;
    send(api.with(Some(ADMIN)).request(Method::DELETE, &at)).await.is(StatusCode::CONFLICT);
    api.post(&format!("{run}/cancel"), Value::Null).await.is(StatusCode::OK);
    source.allow_all();
    let last = told(&api, &run).await.pop().unwrap();
    assert_eq!(last["state"], "cancelled");
    // A finished run stays available, even after another run.
    api.post(&format!("{run}/pause"), Value::Null).await.is(StatusCode::CONFLICT);
    api.post(&format!("{run}/approve"), Value::Null).await.is(StatusCode::CONFLICT);
    submit("two", json!({})).await.is(StatusCode::CREATED);
    assert_eq!(told(&api, &run).await.len(), 1);
    let runs = api.get(&format!("{at}/runs")).await.is(StatusCode::OK).json();
    assert_eq!(runs["items"].as_array().unwrap().len(), 2);
    assert_eq!(api.get(&run).await.is(StatusCode::OK).json()["state"], "cancelled");

    // Runs go with their Source: added again, it has none.
    let second = runs["items"][0]["run"].as_str().unwrap().to_owned();
    api.post(&format!("{at}/runs/{second}/cancel"), Value::Null).await;
    until_over(&api, &format!("{at}/runs/{second}")).await;
    send(api.with(Some(ADMIN)).request(Method::DELETE, &at)).await.is(StatusCode::NO_CONTENT);
    let admin = api.with(Some(ADMIN));
    assert_eq!(added(&admin, &source).await, at);
    let none = async || {
        let runs = api.get(&format!("{at}/runs")).await.is(StatusCode::OK).json();
        runs["items"].as_array().unwrap().is_empty().then_some(())
    };
    testkit::waiting::found("the runs are forgotten", none).await;
    api.get(&run).await.is(StatusCode::NOT_FOUND);
}

async fn until_over(api: &Api, run: &str) {
    testkit::waiting::found("the run is over", async || {
        let now = api.get(run).await.is(StatusCode::OK).json();
        ["cancelled", "finished", "failed"].iter().any(|state| now["state"] == *state).then_some(())
    })
    .await
}

async fn until_state(api: &Api, run: &str, state: &str) {
    testkit::waiting::found(format!("the run is {state}"), async || {
        let now = api.get(run).await.is(StatusCode::OK).json();
        (now["state"] == state).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_guards_run_goes_on_with_the_operators_word() {
    let source = source(SourceSpec::default().resources(40)).await;
    let (_fleet, _all, api) = fleet().await;
    let created = json!({"entry": source.well_known(), "absent": "delete", "mode": "baseline"});
    let at = api.post("/v1/sources", created).await.is(StatusCode::CREATED).header("location").to_owned();
    harvested(&api, &at).await;
    source.change(Changes { create: 0, update: 0, delete: 20 });
    source.forget_changes();
    source.refresh_resource_list();
    let run = asked(&api, &at).await;
    let stopped = told(&api, &run).await.pop().unwrap();
    assert_eq!(stopped["state"], "failed", "{stopped}");
    let word =
        api.with(Some(OPERATE)).post(&format!("{run}/approve"), Value::Null).await.is(StatusCode::CREATED);
    let done = told(&api, word.header("location")).await.pop().unwrap();
    assert_eq!((&done["state"], &done["counters"]["deleted"]), (&"finished".into(), &20.into()), "{done}");
}

#[tokio::test]
async fn what_something_else_than_the_guard_has_stopped_cannot_be_approved() {
    let (_fleet, _all, api) = fleet().await;
    // A server without ResourceSync documents, which gives the same response to every request.
    let server = ScriptedServer::start().await.unwrap();
    let created = json!({"entry": server.uri("/.well-known/resourcesync"), "mode": "baseline"});
    let at = api.post("/v1/sources", created).await.is(StatusCode::CREATED).header("location").to_owned();
    let run = asked(&api, &at).await;
    assert_eq!(told(&api, &run).await.pop().unwrap()["state"], "failed");
    let refused =
        api.post(&format!("{run}/approve"), Value::Null).await.is(StatusCode::CONFLICT).json().to_string();
    assert!(refused.contains("not because of the guard"), "{refused}");
}

#[tokio::test]
async fn problems_are_listed_and_the_owner_takes_up_the_word_about_them() {
    let source = source(SourceSpec::default().resources(20)).await;
    for index in [3, 5, 8] {
        source.set_fault(index, Fault::status(404));
    }
    let (_fleet, _all, api) = fleet().await;
    let at = added(&api, &source).await;
    harvested(&api, &at).await;
    let problems = async |parameters: &str| {
        let page = api.get(&format!("{at}/problems?{parameters}")).await.is(StatusCode::OK).json();
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["uri"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(problems("").await.len(), 3);
    assert_eq!(problems("reason=http-client-error&kind=resource").await.len(), 3);
    assert_eq!(problems("reason=timeout").await.len(), 0);
    api.get(&format!("{at}/problems?reason=bored")).await.is(StatusCode::BAD_REQUEST);
    let page = api.get(&format!("{at}/problems?limit=2")).await.is(StatusCode::OK).json();
    assert_eq!(problems(&format!("cursor={}", page["next"].as_str().unwrap())).await.len(), 1);
    let groups = api.get(&format!("{at}/problems/groups")).await.is(StatusCode::OK).json();
    assert_eq!(
        (&groups["items"][0]["reason"], &groups["items"][0]["count"]),
        (&"http-client-error".into(), &3.into())
    );

    // Two are ignored, and then one of these is not any more.
    let third = source.resource_uri(3);
    let fifth = source.resource_uri(5);
    let words = api.with(Some(OPERATE));
    let ignore = json!({"select": {"uris": [third, fifth]}, "note": "gone since 2019"});
    words.post(&format!("{at}/problems/ignore"), ignore).await.is(StatusCode::ACCEPTED);
    let undo = json!({"select": {"uris": [fifth]}, "undo": true});
    let refused = words.post(&format!("{at}/problems/ignore"), undo).await;
    let refused = refused.is(StatusCode::UNPROCESSABLE_ENTITY).json();
    assert_eq!(refused["detail"], "the body cannot be read: `undo` is named `unignore` now");
    let undo = json!({"select": {"uris": [fifth]}, "unignore": true});
    words.post(&format!("{at}/problems/ignore"), undo).await.is(StatusCode::ACCEPTED);
    words
        .post(&format!("{at}/problems/ignore"), json!({"select": {"all": true}}))
        .await
        .is(StatusCode::UNPROCESSABLE_ENTITY);
    words
        .post(&format!("{at}/problems/retry"), json!({"select": {}}))
        .await
        .is(StatusCode::UNPROCESSABLE_ENTITY);
    let waiting = api.get(&format!("{at}/problems/actions")).await.is(StatusCode::OK).json();
    assert_eq!(waiting["items"].as_array().unwrap().len(), 2);
    assert_eq!(problems("ignored=true").await.len(), 0, "the owner has not taken it up yet");

    harvested(&api, &at).await;
    let waiting = api.get(&format!("{at}/problems/actions")).await.is(StatusCode::OK).json();
    assert_eq!(waiting["items"].as_array().unwrap().len(), 0);
    // A reader is a second behind.
    testkit::waiting::found("one is ignored", async || {
        (problems("ignored=true").await == [third.clone()]).then_some(())
    })
    .await;
    assert_eq!(problems("").await.len(), 2);

    // A retry that works closes the problem.
    source.clear_faults();
    let retry = json!({"select": {"all": true}, "ignored": true});
    words.post(&format!("{at}/problems/retry"), retry).await.is(StatusCode::ACCEPTED);
    let last = harvested(&api, &at).await.pop().unwrap();
    assert_eq!(last["in_sync"], true, "{last}");
    testkit::waiting::found("nothing is ignored", async || {
        problems("ignored=true").await.is_empty().then_some(())
    })
    .await;

    testkit::waiting::found("the report has all resources", async || {
        let card = api.get(&format!("{at}/report")).await.is(StatusCode::OK).json();
        (card["coverage"]["held"] == 20).then_some(())
    })
    .await;
    let text = api.get(&format!("{at}/report?form=text")).await.is(StatusCode::OK);
    assert!(text.header("content-type").starts_with("text/plain") && !text.body.is_empty());
    let quirks = api.get("/v1/quirks").await.is(StatusCode::OK).json();
    assert!(quirks["items"].as_array().unwrap().iter().any(|quirk| quirk["name"] == "gzip"));
}

#[tokio::test]
async fn nothing_is_answered_without_a_token_that_allows_it() {
    // This test sends more wrong tokens than a client may guess in a minute.
    let (_fleet, _all, api) = fleet_with("wrong_tokens_per_minute: 10000, ").await;
    let described = api.with(Some(READ)).get("/v1/openapi.json").await.is(StatusCode::OK).json();
    assert_eq!(described["openapi"], "3.1.0");
    let mut paths = vec![
        ("/".to_owned(), Method::GET),
        ("/healthz".to_owned(), Method::GET),
        ("/v2".to_owned(), Method::POST),
    ];
    for (path, item) in described["paths"].as_object().unwrap() {
        let path = path.replace("{source}", "some-source").replace("{run}", "01ARZ3NDEKTSV4RRFFQ69G5FAV");
        for method in item.as_object().unwrap().keys() {
            let method: Method = method.to_uppercase().parse().unwrap();
            paths.extend([
                (path.clone(), method),
                (path.clone(), Method::HEAD),
                (path.clone(), Method::OPTIONS),
            ]);
        }
    }
    assert!(paths.len() > 30, "{paths:?}");
    for (path, method) in paths {
        for token in [None, Some("some other long token"), Some("")] {
            let answer = send(api.with(token).request(method.clone(), &path)).await;
            assert_eq!(answer.status, 401, "{method} {path} with {token:?}");
            assert!(answer.header("www-authenticate").starts_with("Bearer"), "{method} {path}");
        }
        if !matches!(method, Method::GET | Method::HEAD) {
            let answer = send(api.with(Some(READ)).request(method.clone(), &path)).await;
            assert_eq!(answer.status, 403, "{method} {path} to read");
        }
    }
    let create = api.with(Some(OPERATE)).post("/v1/sources", json!({"entry": "https://example.org/"})).await;
    assert_eq!(create.status, 403);
}
