//! Names and labels of Sources: at the command line, over HTTP and in the console.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use simulated_source::{Fault, SourceSpec};
use testkit::servers::{NatsFixture, S3Fixture};

use crate::common::api::{ADMIN, Api, JsonBody as _, OPERATE, READ, send};
use crate::common::console::Visitor;
use crate::common::{Fleet, Service, source};

/// A gateway and no other service: requested runs stay queued.
async fn gateway() -> (Fleet, Service, Api) {
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let gateway = fleet.start(&["gateway"], &fleet.gateway());
    let api = Api::of(&gateway).await;
    (fleet, gateway, api)
}

/// A view of the gateway is a moment behind.
async fn seen(api: &Api, path: &str, count: usize) -> Vec<Value> {
    testkit::waiting::found(format!("{path} has {count} items"), async || {
        let items =
            api.get(path).await.is(StatusCode::OK).json()["items"].as_array().expect("a list").clone();
        (items.len() == count).then_some(items)
    })
    .await
}

#[tokio::test]
async fn a_source_is_called_by_its_name_wherever_people_refer_to_it() {
    let (_fleet, _gateway, api) = gateway().await;
    let url = "https://example.org/";
    let add = ["source", "add", url, "--name", "zenodo", "--title", "The example", "--label", "country=jp"];
    let more = ["--label", "tier=1", "--notes", "Ask first.", "--source-contact", "Ada", "--no-run"];
    let added = api.ask(&[&add[..], &more].concat()).await.exits(0);
    assert!(added.stdout.starts_with("zenodo added"), "{added}");
    let item = seen(&api, "/v1/sources", 1).await.remove(0);
    let id = item["id"].as_str().expect("an ID").to_owned();
    let expected = json!({"country": "jp", "tier": "1"});
    assert_eq!((&item["spec"]["name"], &item["spec"]["labels"]), (&json!("zenodo"), &expected));

    let listed = api.ask(&["source", "ls"]).await.exits(0).stdout;
    assert!(
        listed.contains("zenodo") && listed.contains(&id) && listed.contains("country=jp tier=1"),
        "{listed}"
    );
    let shown = api.ask(&["source", "show", "zenodo"]).await.exits(0).stdout;
    assert!(shown.starts_with(&format!("# source ID: {id}\n")) && shown.contains("name: zenodo"), "{shown}");
    let run = api.ask(&["run", "submit", "zenodo"]).await.exits(0).stdout.trim().to_owned();
    let lines = api.ask(&["run", "ls", "--json"]).await.exits(0).json_lines();
    assert_eq!(
        (&lines[0]["name"], &lines[0]["source"], &lines[0]["run"]),
        (&json!("zenodo"), &json!(id), &json!(run))
    );
    let cancelled = api.ask(&["run", "cancel", "zenodo"]).await.exits(0);
    assert!(cancelled.stdout.contains(" of zenodo: cancelled"), "{cancelled}");

    for path in ["", "/runs", &format!("/runs/{run}"), "/subscriptions", "/problems/actions"] {
        let by_name = api.get(&format!("/v1/sources/zenodo{path}")).await.is(StatusCode::OK).json();
        assert_eq!(by_name, api.get(&format!("/v1/sources/{id}{path}")).await.json(), "{path}");
    }
    let batch = json!({"sources": ["zenodo", "arxiv"]});
    let asked = api.post("/v1/runs:batch", batch).await.is(StatusCode::OK).json();
    assert_eq!(asked["items"][0]["run"]["name"], "zenodo", "{asked}");
    assert_eq!(asked["items"][1]["problem"]["status"], 404, "{asked}");

    let visitor = Visitor::of(&api).signed_in(ADMIN).await;
    let page = visitor.page("/console/sources/zenodo").await;
    for part in ["<h1>zenodo</h1>", &id, "The example", "country=jp, tier=1", "Ask first.", "Ada"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let list = visitor.page("/console/sources").await;
    assert!(list.contains(">zenodo</a>") && list.contains(&id), "{list}");
    assert!(
        visitor.page("/console/sources?name=the+exam").await.contains(">zenodo</a>"),
        "its title is found too"
    );
    let below = visitor.page(&format!("/console/sources/{id}/settings")).await;
    assert!(below.contains(&format!("<a href=\"/console/sources/{id}\">zenodo</a>")), "{below}");
}

#[tokio::test]
async fn a_name_is_unique_can_change_and_the_id_stays() {
    let (fleet, _gateway, api) = gateway().await;
    let [one, two] = ["https://one.example/", "https://two.example/"];
    api.ask(&["source", "add", one, "--name", "zenodo", "--no-run"]).await.exits(0);
    let taken = api.ask(&["source", "add", two, "--name", "zenodo", "--no-run"]).await.exits(3);
    taken.complains(&["another Source is named zenodo"], &["choose another name"]);
    api.get("/v1/sources/zenodo").await.is(StatusCode::OK);
    let body = json!({"entry": two, "name": "zenodo"});
    for path in ["/v1/sources", "/v1/sources?dry_run=true"] {
        let refused = api.post(path, body.clone()).await.is(StatusCode::CONFLICT).json();
        assert_eq!(refused["errors"][0]["field"], "name", "{path}: {refused}");
    }
    for path in ["/v1/sources:batch", "/v1/sources:batch?dry_run=true"] {
        let refused = api.post(path, json!({"sources": [{"spec": body}]})).await.is(StatusCode::OK).json();
        assert_eq!(refused["items"][0]["problem"]["status"], 409, "{path}: {refused}");
    }
    let wrong = api.post("/v1/sources", json!({"entry": two, "name": "Two"})).await;
    assert!(
        wrong.is(StatusCode::UNPROCESSABLE_ENTITY).json()["detail"].as_str().expect("a text").contains("a-z")
    );

    let id = api.get("/v1/sources/zenodo").await.json()["id"].clone();
    api.ask(&["source", "set", "zenodo", "--name", "zenodo.org", "--label", "a=b"]).await.exits(0);
    api.get("/v1/sources/zenodo").await.is(StatusCode::NOT_FOUND);
    assert_eq!(api.get("/v1/sources/zenodo.org").await.is(StatusCode::OK).json()["id"], id);
    api.ask(&["source", "show", "zenodo"]).await.exits(2).complains(&["zenodo"], &["source ls"]);
    api.ask(&["source", "add", two, "--name", "zenodo", "--no-run"]).await.exits(0);
    api.ask(&["source", "set", one, "--unset", "name", "--unlabel", "a", "--notes", "x"]).await.exits(0);
    api.get("/v1/sources/zenodo.org").await.is(StatusCode::NOT_FOUND);
    let spec = api.get(&format!("/v1/sources/{}", id.as_str().expect("an ID"))).await.json()["spec"].clone();
    assert_eq!((&spec["name"], &spec["labels"], &spec["notes"]), (&Value::Null, &Value::Null, &json!("x")));
    let follow =
        ["source", "set", one, "--follow-links", "item", "--follow-type", "text/*", "--follow-max", "7"];
    api.ask(&follow).await.exits(0);
    let of = format!("/v1/sources/{}", id.as_str().expect("an ID"));
    let spec = api.get(&of).await.json()["spec"].clone();
    let followed = ["follow_links", "follow_types", "follow_max", "notes"].map(|field| spec[field].clone());
    assert_eq!(followed, [json!(["item"]), json!(["text/*"]), json!(7), json!("x")]);
    let rule = "rel=alternate,type=text/*,instead";
    api.ask(&["source", "set", one, "--follow-rule", rule]).await.exits(0);
    let spec = api.get(&of).await.json()["spec"].clone();
    assert_eq!((&spec["follow_links"], &spec["follow_rules"]), (&Value::Null, &json!([rule])), "{spec}");
    api.ask(&["source", "set", one, "--unset", "follow-links"]).await.exits(0);
    let spec = api.get(&of).await.json()["spec"].clone();
    let followed = ["follow_links", "follow_max", "follow_rules"].map(|field| spec[field].clone());
    assert_eq!(followed, [Value::Null, Value::Null, Value::Null], "{spec}");
    api.ask(&["source", "set", one, "--encoding", "latin1"]).await.exits(0);
    assert_eq!(api.get(&of).await.json()["spec"]["encoding"], "windows-1252");
    api.ask(&["source", "set", one, "--unset", "encoding"]).await.exits(0);
    assert_eq!(api.get(&of).await.json()["spec"]["encoding"], Value::Null);
    api.ask(&["source", "set", one, "--publish-archive", "90days"]).await.exits(0);
    assert_eq!(api.get(&of).await.json()["spec"]["publish_archive"], "90d");
    api.ask(&["source", "set", one, "--unset", "publish-archive"]).await.exits(0);
    assert_eq!(api.get(&of).await.json()["spec"]["publish_archive"], Value::Null);
    api.ask(&["source", "set", one]).await.exits(2);
    api.ask(&["source", "set", "zenodo", "--title", "a\u{1b}[31m"]).await.exits(2);
    api.ask(&["source", "rm", "zenodo"]).await.exits(0);

    let text = "- {entry: 'https://a.example/', name: a, labels: {year: '2026'}}\n- {entry: 'https://b.example/', name: a}\n";
    let file = fleet.path("sources.yaml");
    std::fs::write(&file, text).expect("our own folder");
    let file = file.display().to_string();
    api.ask(&["apply", "-f", &file]).await.exits(2).complains(&["named a"], &["rename"]);
    std::fs::write(&file, text.replace(", name: a}", ", name: b}")).expect("our own folder");
    let lines = api.ask(&["apply", "-f", &file, "--json"]).await.exits(0).json_lines();
    assert_eq!(
        (&lines[0]["name"], &lines[1]["name"], &lines[1]["done"]),
        (&json!("a"), &json!("b"), &json!("created"))
    );
}

#[tokio::test]
async fn labels_select_sources_for_lists_runs_and_pauses() {
    let (_fleet, _gateway, api) = gateway().await;
    let source = |n: usize, labels: Value| {
        let spec =
            json!({"entry": format!("https://s{n}.example/"), "name": format!("s{n}"), "labels": labels});
        json!({ "spec": spec })
    };
    let labelled = |n: usize, country: &str| source(n, json!({ "country": country }));
    let sources = [labelled(0, "jp"), labelled(1, "jp"), labelled(2, "de"), source(3, json!({}))];
    let batch = json!({ "sources": sources });
    api.post("/v1/sources:batch", batch).await.is(StatusCode::OK);
    seen(&api, "/v1/sources", 4).await;
    let names = async |words: &[&str]| -> Vec<String> {
        let lines = api.ask(&[words, &["--json"]].concat()).await.exits(0).json_lines();
        let mut names: Vec<_> =
            lines.iter().map(|line| line["name"].as_str().expect("a name").to_owned()).collect();
        names.sort();
        names
    };
    for (selector, expected) in [
        ("country=jp", &["s0", "s1"][..]),
        ("country!=jp", &["s2", "s3"]),
        ("country", &["s0", "s1", "s2"]),
        ("!country", &["s3"]),
        ("country,country!=de", &["s0", "s1"]),
    ] {
        assert_eq!(names(&["source", "ls", "--match", selector]).await, expected, "{selector}");
        let query = url::form_urlencoded::byte_serialize(selector.as_bytes()).collect::<String>();
        let first = api.get(&format!("/v1/sources?limit=1&match={query}")).await.is(StatusCode::OK).json();
        assert_eq!(first["next"].is_string(), expected.len() > 1, "the list stays in pages: {first}");
        let visitor = Visitor::of(&api).signed_in(READ).await;
        let page = visitor.page(&format!("/console/sources?match={query}")).await;
        for name in ["s0", "s1", "s2", "s3"] {
            assert_eq!(
                page.contains(&format!(">{name}</a>")),
                expected.contains(&name),
                "{selector}: {page}"
            );
        }
    }
    let refused = api.get("/v1/sources?match=country%3D%3Djp").await.is(StatusCode::BAD_REQUEST).json();
    assert!(refused["detail"].as_str().expect("a text").contains("write one ="), "{refused}");
    api.ask(&["source", "ls", "--match", "https://*"]).await.exits(2);

    // Runs: a summary, and the exit status of the first refusal.
    let asked = api.ask(&["run", "submit", "--match", "country=jp"]).await.exits(0);
    asked.says(&["2 runs submitted, 0 already running, 0 refused, of 2 Sources"]);
    testkit::waiting::found("the runs are listed", async || {
        (names(&["run", "ls", "--match", "country=jp"]).await == ["s0", "s1"]).then_some(())
    })
    .await;
    let asked = api.ask(&["run", "submit", "--all"]).await.exits(3);
    asked.says(&["2 runs submitted, 2 already running, 0 refused, of 4 Sources"]);
    testkit::waiting::found("the run of the Source without labels is listed", async || {
        (names(&["run", "ls", "--match", "!country"]).await == ["s3"]).then_some(())
    })
    .await;
    api.ask(&["run", "submit", "--match", "country=fr"])
        .await
        .exits(2)
        .complains(&["Source"], &["source ls"]);

    // Pauses.
    let operator = api.with(Some(OPERATE));
    operator.ask(&["source", "pause", "--all"]).await.exits(2).complains(&["admin"], &["needs the role"]);
    let paused = api.ask(&["source", "pause", "--match", "country=jp"]).await.exits(0);
    assert_eq!(paused.stdout.lines().collect::<Vec<_>>().len(), 2, "{paused}");
    paused.says(&["2 paused, 0 unchanged, 0 refused, of 2 Sources"]);
    let enabled =
        async |name: &str| api.get(&format!("/v1/sources/{name}")).await.json()["spec"]["enabled"].clone();
    assert_eq!((enabled("s0").await, enabled("s2").await), (json!(false), json!(true)));
    let again = api.ask(&["source", "pause", "s0", "https://s2.example/", "s0", "--json"]).await.exits(0);
    let done: Vec<Value> =
        again.json_lines().iter().map(|line| json!([line["name"], line["done"]])).collect();
    assert_eq!(json!(done), json!([["s0", "unchanged"], ["s2", "paused"]]));
    api.ask(&["source", "pause", "nothing"]).await.exits(2).complains(&["nothing"], &["source ls"]);
    api.ask(&["source", "pause"]).await.exits(2);
    api.ask(&["source", "pause", "s0", "--all"]).await.exits(2);
    testkit::waiting::found("the list shows the pauses", async || {
        let lines = api.ask(&["source", "ls", "--json"]).await.exits(0).json_lines();
        (lines.iter().filter(|line| line["enabled"] == false).count() == 3).then_some(())
    })
    .await;
    api.ask(&["source", "resume", "--all"]).await.exits(0).says(&["3 resumed, 1 unchanged"]);
    assert_eq!(enabled("s2").await, json!(true));
}

#[tokio::test]
async fn a_form_keeps_what_describes_a_source() {
    let (_fleet, _gateway, api) = gateway().await;
    let visitor = Visitor::of(&api).signed_in(ADMIN).await;
    let form = [
        ("entry", "https://example.org/"),
        ("name", "zenodo"),
        ("labels", "country=jp tier=1"),
        ("title", "A <b>"),
    ];
    visitor
        .post("/console/sources", &[&form[..], &[("add", "yes")]].concat())
        .await
        .is(StatusCode::SEE_OTHER);
    let page = visitor.page("/console/sources/zenodo/settings").await;
    assert!(page.contains("value=\"country=jp tier=1\"") && page.contains("value=\"zenodo\""), "{page}");
    assert!(page.contains("value=\"A &lt;b&gt;\""), "{page}");
    let wrong = [("entry", "https://b.example/"), ("labels", "jp"), ("add", "yes")];
    let refused = visitor.post("/console/sources", &wrong).await.is(StatusCode::UNPROCESSABLE_ENTITY).text();
    assert!(refused.contains("country=jp") && refused.contains("href=\"#labels\""), "{refused}");
    let taken = [("entry", "https://b.example/"), ("name", "zenodo"), ("add", "yes")];
    let refused = visitor.post("/console/sources", &taken).await.is(StatusCode::UNPROCESSABLE_ENTITY).text();
    assert!(refused.contains("another Source is named zenodo"), "{refused}");
    let put = api.request(Method::PUT, "/v1/sources/zenodo").header("if-match", "*");
    let labels: serde_json::Map<_, _> = (0..17).map(|n| (format!("k{n}"), json!("v"))).collect();
    let many = json!({"entry": "https://example.org/", "labels": labels});
    let refused = send(put.json_body(&many)).await.is(StatusCode::UNPROCESSABLE_ENTITY).json();
    assert_eq!(refused["errors"][0]["field"], "labels", "{refused}");
}

#[tokio::test]
async fn the_title_of_the_entry_page_is_proposed_until_an_operator_sets_one() {
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let service = fleet.start(&[], &fleet.gateway());
    let api = Api::of(&service).await;
    let site = source(SourceSpec::default().resources(2)).await;
    // So discovery reads the page.
    site.set_fault(site.well_known(), Fault::status(404));
    api.ask(&["source", "add", &format!("{}/", site.url()), "--name", "site", "--no-run"]).await.exits(0);
    assert_eq!(api.get("/v1/sources/site").await.json()["proposed_title"], Value::Null);
    api.ask(&["run", "submit", "site", "--watch"]).await.exits(0);
    let proposed = testkit::waiting::found("a title is proposed", async || {
        api.get("/v1/sources/site").await.json()["proposed_title"].as_str().map(str::to_owned)
    });
    assert_eq!(proposed.await, "A simulated Source");
    let listed = api.ask(&["source", "ls", "--json"]).await.exits(0).json();
    assert_eq!((&listed["proposed_title"], &listed["title"]), (&json!("A simulated Source"), &Value::Null));
    let listed = api.ask(&["source", "ls"]).await.exits(0).stdout;
    let shown = api.ask(&["source", "show", "site"]).await.exits(0).stdout;
    assert!(listed.contains("A simulated Source"), "{listed}");
    assert!(shown.contains("# proposed title: A simulated Source\n"), "{shown}");
    let visitor = Visitor::of(&api).signed_in(READ).await;
    for path in ["/console/sources?name=a+simulated", "/console/sources/site"] {
        let page = visitor.page(path).await;
        assert!(page.contains("A simulated Source"), "{path}: {page}");
    }

    api.ask(&["source", "set", "site", "--title", "Ours"]).await.exits(0);
    let titled = testkit::waiting::found("the title is seen", async || {
        Some(visitor.page("/console/sources").await).filter(|page| page.contains("Ours"))
    });
    assert!(!titled.await.contains("A simulated Source"));
    // The next run reads the page again, or not; the title of the operator stays.
    api.ask(&["run", "submit", "site", "--watch"]).await.exits(0);
    let shown = api.ask(&["source", "show", "site"]).await.exits(0).stdout;
    assert!(shown.contains("title: Ours") && !shown.contains("proposed"), "{shown}");
}
