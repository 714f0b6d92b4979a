//! A token that is limited to labels sees and changes the Sources with these labels. Any other one is for it as if it
//! were not there, whichever way it comes in.

use std::fs;
use std::time::Duration;

use model::SourceId;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use simulated_source::{Fault, SimulatedSource, SourceSpec};
use testkit::servers::{NatsFixture, S3Fixture};
use tokio::time::timeout;

use crate::common::api::{Api, JsonBody as _, send};
use crate::common::console::Visitor;
use crate::common::{Fleet, Service, source};

/// The token of an operator of the Sources with `country=jp`.
const LIMITED: &str = "a token for the Sources of one country";
/// A Source that does not exist.
const NOWHERE: &str = "https://nowhere.example/";
/// A run that does not exist.
const NO_RUN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// A fleet of these services, whose gateway also knows the limited token.
async fn fleet(services: &[&str], gateway: impl FnOnce(&Fleet) -> String) -> (Fleet, Service, Api) {
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let settings = gateway(&fleet);
    let tokens = fleet.path("tokens.yaml");
    let known = fs::read_to_string(&tokens).expect("our own folder");
    let limited = format!("{known}- {{name: japan, role: admin, match: 'country=jp', token: {LIMITED}}}\n");
    fs::write(&tokens, limited).expect("our own folder");
    let service = fleet.start(services, &settings);
    let api = Api::of(&service).await;
    (fleet, service, api)
}

/// Adds a Source with a name and a country. Returns its ID.
async fn add(api: &Api, entry: &str, name: &str, country: &str) -> String {
    let body = json!({"entry": entry, "name": name, "labels": {"country": country}});
    let created = api.post("/v1/sources", body).await.is(StatusCode::CREATED).json();
    created["id"].as_str().expect("an ID").to_owned()
}

/// Two harvested Sources, `ours` and `theirs`. The limited token sees the first one only.
struct Case {
    fleet: Fleet,
    _all: Service,
    admin: Api,
    limited: Api,
    ours: SimulatedSource,
    theirs: SimulatedSource,
    theirs_id: String,
    /// The run of `theirs`.
    run: String,
}

impl Case {
    async fn new() -> Self {
        let (fleet, all, admin) = fleet(&[], |fleet| fleet.inboxes("", "none-1")).await;
        let ours = source(SourceSpec::default().resources(3)).await;
        let theirs = source(SourceSpec::default().resources(3)).await;
        theirs.set_fault(1, Fault::status(404));
        add(&admin, &ours.well_known(), "ours", "jp").await;
        let theirs_id = add(&admin, &theirs.well_known(), "theirs", "de").await;
        admin.ask(&["run", "submit", "ours", "--watch"]).await.exits(0);
        let run = admin.ask(&["run", "submit", "theirs", "--watch", "--json"]).await.exits(1).json();
        let run = run["run"].as_str().expect("an ID").to_owned();
        let limited = admin.with(Some(LIMITED));
        Self { fleet, _all: all, admin, limited, ours, theirs, theirs_id, run }
    }
}

fn names(page: &Value, field: &str) -> Vec<String> {
    let items = page["items"].as_array().expect("a list").iter();
    items.map(|item| item.pointer(field).and_then(Value::as_str).unwrap_or("-").to_owned()).collect()
}

#[tokio::test]
async fn every_route_about_another_source_answers_as_if_it_were_not_there() {
    let case = Case::new().await;
    let Case { admin, limited, theirs_id, run, .. } = &case;
    let before = admin.get("/v1/sources/theirs").await.is(StatusCode::OK).json();
    let nowhere = SourceId::of_entry(&NOWHERE.parse().expect("a URL")).to_string();
    let described = admin.get("/v1/openapi.json").await.is(StatusCode::OK).json();
    let mut tried = 0;
    for (path, item) in described["paths"].as_object().expect("an object") {
        if !path.contains("{source}") {
            continue;
        }
        for method in item.as_object().expect("an object").keys() {
            let method: Method = method.to_uppercase().parse().expect("a method");
            let ask = async |source: &str, run: &str| {
                let path = path.replace("{source}", source).replace("{run}", run);
                let answer = send(limited.request(method.clone(), &path).json_body(&json!({}))).await;
                let answer = answer.is(StatusCode::NOT_FOUND).json();
                answer.to_string().replace(source, "SOURCE").replace(run, "RUN")
            };
            assert_eq!(ask(theirs_id, run).await, ask(&nowhere, NO_RUN).await, "{method} {path}");
            assert_eq!(ask("theirs", run).await, ask("missing", NO_RUN).await, "{method} {path}");
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried}");
    assert_eq!(
        admin.get("/v1/sources/theirs").await.is(StatusCode::OK).json()["revision"],
        before["revision"]
    );
    let runs = admin.get("/v1/sources/theirs/runs").await.is(StatusCode::OK).json();
    assert_eq!(names(&runs, "/run"), [run.as_str()], "no run was requested or steered");
    let actions = admin.get("/v1/sources/theirs/problems/actions").await.is(StatusCode::OK).json();
    assert_eq!(actions["items"], json!([]));

    // The same routes are there for the Source that it sees.
    let uri: String = url::form_urlencoded::byte_serialize(case.ours.resource_uri(1).as_bytes()).collect();
    for path in [
        "",
        "/runs",
        "/resources",
        &format!("/resources/content?uri={uri}"),
        &format!("/resources/history?uri={uri}"),
        "/problems",
        "/problems/groups",
        "/problems/actions",
        "/report",
        "/subscriptions",
    ] {
        limited.get(&format!("/v1/sources/ours{path}")).await.is(StatusCode::OK);
    }
}

#[tokio::test]
async fn lists_and_commands_show_the_sources_of_the_token_alone() {
    let case = Case::new().await;
    let Case { limited, theirs_id, .. } = &case;
    for (path, field) in [("/v1/sources", "/spec/name"), ("/v1/runs", "/name")] {
        for query in ["", "?match=country", "?limit=1"] {
            let page = limited.get(&format!("{path}{query}")).await.is(StatusCode::OK).json();
            assert_eq!(
                (names(&page, field), &page["next"]),
                (vec!["ours".to_owned()], &Value::Null),
                "{path}{query}"
            );
        }
        let none = limited.get(&format!("{path}?match=country%3Dde")).await.is(StatusCode::OK).json();
        assert_eq!(none["items"], json!([]), "{path}");
    }
    assert_eq!(limited.ask(&["problems", "--json"]).await.exits(0).stdout, "");
    assert_eq!(case.admin.ask(&["problems", "--json"]).await.exits(0).json_lines().len(), 1);
    let listed = case.admin.ask(&["problems", "--json", "--match", "country=de"]).await.exits(0).json_lines();
    assert_eq!((&listed[0]["name"], &listed[0]["source"]), (&json!("theirs"), &json!(theirs_id)));
    assert_eq!(case.admin.ask(&["problems", "--json", "--match", "country=jp"]).await.exits(0).stdout, "");
    let text = case.admin.ask(&["problems"]).await.exits(0).stdout;
    assert_eq!(text.lines().next(), Some("Source theirs:"), "of several Sources: {text}");
    let text = case.admin.ask(&["problems", "--source", "theirs"]).await.exits(0).stdout;
    assert!(!text.contains("Source theirs"), "there is only one: {text}");
    limited.ask(&["problems", "--source", "theirs"]).await.exits(2).complains(&["theirs"], &["source ls"]);
    limited.ask(&["source", "pause", "--all", "--json"]).await.exits(0);
    assert_eq!(case.admin.get("/v1/sources/theirs").await.json()["spec"]["enabled"], true);
    assert_eq!(case.admin.get("/v1/sources/ours").await.json()["spec"]["enabled"], false);

    // Inboxes.
    let inbox = async |path: &str| limited.get(&format!("/ldn/{path}")).await;
    let ours = case.admin.get("/v1/sources/ours").await.json()["id"].as_str().expect("an ID").to_owned();
    inbox(&format!("sources/{ours}/inbox")).await.is(StatusCode::OK);
    let hidden = inbox(&format!("sources/{theirs_id}/inbox")).await.is(StatusCode::NOT_FOUND).json();
    let nowhere = SourceId::of_entry(&NOWHERE.parse().expect("a URL")).to_string();
    let missing = inbox(&format!("sources/{nowhere}/inbox")).await.is(StatusCode::NOT_FOUND).json();
    assert_eq!(hidden.to_string().replace(theirs_id, ""), missing.to_string().replace(&nowhere, ""));
    inbox("inbox").await.is(StatusCode::FORBIDDEN);
    assert!(!case.fleet.destination().present().is_empty());
}

#[tokio::test]
async fn what_it_writes_has_its_labels_and_other_sources_stay_as_they_are() {
    let case = Case::new().await;
    let Case { admin, limited, theirs_id, .. } = &case;
    let before = admin.get("/v1/sources/theirs").await.is(StatusCode::OK).json();
    let theirs = case.theirs.well_known();
    let with = |entry: &str, country: &str| json!({"entry": entry, "labels": {"country": country}});
    let is_limit = |answer: &Value| answer["detail"].as_str().is_some_and(|said| said.contains("country=jp"));

    // One at a time.
    for body in [json!({"entry": NOWHERE}), with(NOWHERE, "de")] {
        for path in ["/v1/sources", "/v1/sources?dry_run=true", "/v1/sources/plan"] {
            let refused = limited.post(path, body.clone()).await.is(StatusCode::FORBIDDEN).json();
            assert!(is_limit(&refused), "{path}: {refused}");
        }
    }
    for path in ["/v1/sources", "/v1/sources?dry_run=true", "/v1/sources/plan"] {
        let refused = limited.post(path, with(&theirs, "jp")).await.is(StatusCode::CONFLICT).json();
        assert!(!refused.to_string().contains("theirs"), "{path}: {refused}");
    }
    let named = json!({"entry": NOWHERE, "name": "theirs", "labels": {"country": "jp"}});
    let refused = limited.post("/v1/sources", named).await.is(StatusCode::CONFLICT).json();
    assert!(!refused.to_string().contains(theirs_id), "{refused}");
    limited.post("/v1/sources", with(NOWHERE, "jp")).await.is(StatusCode::CREATED);
    for country in ["de", ""] {
        let put = limited.request(Method::PUT, "/v1/sources/ours").header("if-match", "*");
        let refused = send(put.json_body(&with(&case.ours.well_known(), country))).await;
        assert!(is_limit(&refused.is(StatusCode::FORBIDDEN).json()), "{country}");
    }
    limited.ask(&["source", "set", "ours", "--label", "country=de"]).await.exits(2);
    limited.ask(&["source", "set", "ours", "--label", "tier=1"]).await.exits(0);

    // Batches.
    let spec = |spec: Value| json!({"spec": spec});
    let new = "https://new.example/";
    let unlabelled = spec(json!({"entry": new}));
    let sources =
        [spec(with(&theirs, "jp")), spec(before["spec"].clone()), unlabelled, spec(with(new, "jp"))];
    let batch = json!({ "sources": sources });
    let answer = limited.post("/v1/sources:batch", batch).await.is(StatusCode::OK).json();
    assert_eq!(names(&answer, "/done"), ["refused", "refused", "refused", "created"], "{answer}");
    let runs = json!({"sources": ["theirs", theirs_id, "ours", "missing"]});
    let answer = limited.post("/v1/runs:batch", runs).await.is(StatusCode::OK).json();
    let status: Vec<_> = (0..4).map(|n| answer["items"][n]["problem"]["status"].clone()).collect();
    assert_eq!(json!(status), json!([404, 404, null, 404]), "{answer}");
    assert_eq!(admin.get("/v1/sources/theirs").await.is(StatusCode::OK).json(), before);

    // Plans.
    let plan = admin.post("/v1/sources/plan", json!({"entry": theirs})).await.json();
    let path = format!("/v1/plans/{}", plan["id"].as_str().expect("an ID"));
    admin.get(&path).await.json();
    let hidden = limited.get(&path).await.is(StatusCode::NOT_FOUND).json();
    let missing = limited.get(&format!("/v1/plans/{NO_RUN}")).await.is(StatusCode::NOT_FOUND).json();
    let id = plan["id"].as_str().expect("an ID");
    assert_eq!(hidden.to_string().replace(id, ""), missing.to_string().replace(NO_RUN, ""));
    let plan = limited.post("/v1/sources/plan", json!({"entry": case.ours.well_known()})).await;
    assert!(matches!(plan.status, 200 | 202), "{plan:?}");
    limited.get(&format!("/v1/plans/{}", plan.json()["id"].as_str().expect("an ID"))).await.json()["estimate"].as_object();
}

#[tokio::test]
async fn the_console_shows_and_takes_what_the_api_does() {
    let case = Case::new().await;
    let Case { theirs_id, run, .. } = &case;
    let visitor = Visitor::of(&case.limited).signed_in(LIMITED).await;
    let list = visitor.page("/console/sources").await;
    assert!(list.contains(">ours</a>") && !list.contains("theirs") && list.contains("all 1"), "{list}");
    assert!(!visitor.page("/console/sources?name=theirs").await.contains(theirs_id));
    // The first page counts what the token is for, and says nothing of the whole fleet.
    let fleet = visitor.page("/console").await;
    assert!(fleet.contains("all 1") && !fleet.contains(theirs_id), "{fleet}");
    assert!(!fleet.contains("id=\"services\"") && !fleet.contains("id=\"hours\""), "{fleet}");
    assert!(!visitor.page("/console/runs").await.contains(theirs_id));
    let run = format!("/runs/{run}");
    let progress = format!("{run}/progress");
    let pages = [
        "",
        "/settings",
        "/resources",
        "/resources/history?uri=x",
        "/resources/content?uri=x",
        "/problems",
        "/report",
        &run,
        &progress,
    ];
    let steps = ["pause", "resume", "cancel", "approve"].map(|step| format!("{run}/{step}"));
    let forms = ["/settings", "/delete", "/runs", "/problems/retry", "/problems/ignore"].into_iter();
    let forms: Vec<&str> = forms.chain(steps.iter().map(String::as_str)).collect();
    for source in [theirs_id, "theirs"] {
        let at = format!("/console/sources/{source}");
        for page in pages {
            let answer = visitor.get(&format!("{at}{page}")).await.is(StatusCode::NOT_FOUND).text();
            assert!(answer.contains(&format!("there is no source {source}")), "{page}: {answer}");
        }
        for form in &forms {
            visitor.post(&format!("{at}{form}"), &[("all", "on")]).await.is(StatusCode::NOT_FOUND);
        }
    }
    visitor.page("/console/sources/ours").await;
    let form = [("entry", NOWHERE), ("add", "yes")];
    let refused = visitor.post("/console/sources", &form).await.is(StatusCode::UNPROCESSABLE_ENTITY).text();
    assert!(refused.contains("limited to Sources with country=jp"), "{refused}");
    let plan = case.admin.post("/v1/sources/plan", json!({"entry": case.theirs.well_known()})).await.json();
    for part in ["", "/part"] {
        let path = format!("/console/plans/{}{part}", plan["id"].as_str().expect("an ID"));
        visitor.get(&path).await.is(StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn an_event_stream_ends_when_its_source_gets_other_labels() {
    let (_fleet, _gateway, admin) = fleet(&["gateway"], Fleet::gateway).await;
    add(&admin, "https://example.org/", "ours", "jp").await;
    let run = admin.post("/v1/sources/ours/runs", json!({})).await.is(StatusCode::CREATED).json();
    let at = format!("/v1/sources/ours/runs/{}", run["run"].as_str().expect("an ID"));
    let limited = admin.with(Some(LIMITED));
    let mut told = limited.request(Method::GET, &format!("{at}/events")).send().await.expect("an answer");
    assert!(told.chunk().await.expect("it goes on").is_some(), "the present state comes first");
    admin.ask(&["source", "set", "ours", "--label", "country=de"]).await.exits(0);
    // The view of the gateway is a moment behind.
    testkit::waiting::found("the Source is listed with its label", async || {
        let found = admin.get("/v1/sources?match=country%3Dde").await.is(StatusCode::OK).json();
        (found["items"].as_array().map(Vec::len) == Some(1)).then_some(())
    })
    .await;
    admin.post(&format!("{at}/cancel"), json!({})).await.is(StatusCode::OK);
    let mut rest = Vec::new();
    let reading = async {
        while let Some(piece) = told.chunk().await.expect("it ends as it should") {
            rest.extend_from_slice(&piece);
        }
    };
    timeout(Duration::from_secs(60), reading).await.expect("it ends");
    let rest = String::from_utf8_lossy(&rest);
    assert!(!rest.contains("cancelled"), "{rest}");
    limited.get(&at).await.is(StatusCode::NOT_FOUND);
}
