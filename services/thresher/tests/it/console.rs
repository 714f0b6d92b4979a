//! The console's pages, as a browser without JavaScript requests them, on a fleet that really harvests.

use crate::common::api::{ADMIN, Api, OPERATE, READ, fleet};
use crate::common::console::Visitor;
use crate::common::source;
use reqwest::{Method, StatusCode};
use serde_json::json;
use simulated_source::{Fault, SimulatedSource, SourceSpec};
use testkit::waiting::found;

/// The page of a Source that was added by the API.
async fn added(api: &Api, source: &SimulatedSource) -> String {
    let body = json!({"entry": source.well_known()});
    let created = api.post("/v1/sources", body).await.is(StatusCode::CREATED);
    created.header("location").replacen("/v1", "/console", 1)
}

/// Requests a run by a form and follows it to its end. Returns its page.
async fn harvested(visitor: &Visitor, at: &str) -> String {
    let asked = visitor.post(&format!("{at}/runs"), &[("mode", "auto")]).await.is(StatusCode::SEE_OTHER);
    over(visitor, asked.header("location")).await
}

async fn over(visitor: &Visitor, run: &str) -> String {
    found("the run is over", async || {
        let page = visitor.page(run).await;
        (page.contains("finished, ") || page.contains(">failed<")).then_some(page)
    })
    .await
}

#[tokio::test]
async fn nobody_sees_a_page_who_has_not_signed_in_and_a_wrong_token_is_refused() {
    let (_fleet, _all, api) = fleet().await;
    let stranger = Visitor::of(&api);
    for path in
        ["/console", "/console/sources/a", "/console/sources/a/resources/content?uri=x", "/console/nowhere"]
    {
        let answer = stranger.get(path).await.is(StatusCode::SEE_OTHER);
        assert!(answer.header("location").starts_with("/console/sign-in?next=%2Fconsole"), "{path}");
        assert!(answer.body.is_empty(), "{path}");
    }
    stranger.post("/console/sources", &[("entry", "https://example.org/")]).await.is(StatusCode::SEE_OTHER);
    let form = stranger.page("/console/sign-in").await;
    assert!(form.contains("type=\"password\"") && form.contains("for=\"token\""), "{form}");
    for wrong in ["", "some other long token", "a token to read wit"] {
        let refused =
            stranger.post("/console/sign-in", &[("token", wrong)]).await.is(StatusCode::UNAUTHORIZED);
        assert!(refused.text().contains("not known here") && refused.header("set-cookie").is_empty());
    }
    // A cookie with an unknown value is rejected.
    let forged = stranger.request(Method::GET, "/console").header("cookie", "thresher-session=AAAA");
    crate::common::api::send(forged).await.is(StatusCode::SEE_OTHER);

    // Assets of pages are no secret, and come from this origin alone.
    for asset in form.split('"').filter(|text| text.starts_with("/console/assets/")) {
        let sent = stranger.get(asset).await.is(StatusCode::OK);
        assert!(sent.header("cache-control").contains("immutable") && !sent.body.is_empty(), "{asset}");
    }
    assert!(
        !form.contains("http://") && !form.contains("https://"),
        "nothing is asked of anybody else: {form}"
    );

    let answer =
        stranger.post("/console/sign-in", &[("token", READ), ("next", "/console?state=never-synced")]).await;
    let answer = answer.is(StatusCode::SEE_OTHER);
    assert_eq!(answer.header("location"), "/console?state=never-synced");
    let cookie = answer.header("set-cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(READ), "the token itself is not kept");
    let reader = stranger.signed_in(READ).await;
    let answer = reader.get("/console").await.is(StatusCode::OK);
    let policy = answer.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; script-src 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(policy.contains("frame-ancestors 'none'"), "no other site shows a page in its own: {policy}");
    assert_eq!(answer.header("cache-control"), "no-store");
    reader.post("/console/sign-out", &[]).await.is(StatusCode::SEE_OTHER);
    reader.get("/console").await.is(StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn a_session_is_over_when_its_token_is_not_good_any_more() {
    let (fleet, _all, api) = fleet().await;
    let reader = Visitor::of(&api).signed_in(READ).await;
    reader.page("/console").await;
    let line = format!("- {{name: other, role: read, token: {OPERATE}}}\n");
    std::fs::write(fleet.path("tokens.yaml"), line).unwrap();
    found("the session is over", async || (reader.get("/console").await.status == 303).then_some(())).await;
}

#[tokio::test]
async fn forms_are_for_those_who_may_send_them_and_come_from_these_pages() {
    let source = source(SourceSpec::default().resources(3)).await;
    let (_fleet, _all, api) = fleet().await;
    let at = added(&api, &source).await;
    let stranger = Visitor::of(&api);
    let reader = stranger.signed_in(READ).await;
    let operator = stranger.signed_in(OPERATE).await;
    let admin = stranger.signed_in(ADMIN).await;
    assert!(!reader.page(&at).await.contains("Start run"));
    assert!(operator.page(&at).await.contains("Start run"));
    assert!(!operator.page("/console").await.contains("Add a Source"));
    assert!(admin.page("/console").await.contains("Add a Source"));
    let refused = reader.post(&format!("{at}/runs"), &[]).await.is(StatusCode::FORBIDDEN);
    assert!(refused.text().contains("needs the role operate"), "{}", refused.text());
    operator.post("/console/sources", &[("entry", "https://example.org/")]).await.is(StatusCode::FORBIDDEN);
    operator.get("/console/add").await.is(StatusCode::FORBIDDEN);
    // Another site's page sends a form in the operator's name. A browser would not even send the cookie.
    for origin in ["https://evil.example", "null"] {
        operator.post_from(origin, &format!("{at}/runs"), &[]).await.is(StatusCode::FORBIDDEN);
        stranger.post_from(origin, "/console/sign-in", &[("token", READ)]).await.is(StatusCode::FORBIDDEN);
    }
    assert!(operator.page(&at).await.contains("No runs yet."), "nothing was asked for");
    // The same form twice requests one run.
    let key = [("mode", "auto"), ("key", "one")];
    let first = operator.post(&format!("{at}/runs"), &key).await.is(StatusCode::SEE_OTHER);
    let second = operator.post(&format!("{at}/runs"), &key).await.is(StatusCode::SEE_OTHER);
    assert_eq!(first.header("location"), second.header("location"));
    reader.get("/console/nowhere").await.is(StatusCode::NOT_FOUND);
    let none = reader.get("/console/sources/none").await.is(StatusCode::NOT_FOUND);
    assert!(
        none.header("content-type").starts_with("text/html") && none.text().contains("<h1>Not found</h1>")
    );
}

/// The plan that a page shows or waits for, once it is ready, as the plan's page shows it.
async fn planned(visitor: &Visitor, shown: &str) -> String {
    if shown.contains("estimated with") {
        return shown.to_owned();
    }
    let part =
        shown.split("hx-get=\"").nth(1).expect("the page waits for it").split('"').next().unwrap().to_owned();
    let there = found("the plan is there", async || {
        let told = visitor.page(&part).await;
        (!told.contains("hx-get")).then_some(told)
    });
    there.await;
    visitor.page(part.strip_suffix("/part").unwrap()).await
}

#[tokio::test]
async fn what_is_wanted_of_a_source_is_changed_by_a_form_and_not_over_somebody_elses_change() {
    let (_fleet, _all, api) = fleet().await;
    let body = json!({"entry": "https://example.org/", "keep_versions": 2, "schedule": {"times": {"cron": "0 3 * * *"}, "jitter_seconds": 60}});
    let created = api.post("/v1/sources", body).await.is(StatusCode::CREATED);
    let record = created.header("location").to_owned();
    let at = record.replacen("/v1", "/console", 1);
    let (admin, operator) =
        (Visitor::of(&api).signed_in(ADMIN).await, Visitor::of(&api).signed_in(OPERATE).await);
    assert!(!operator.page(&at).await.contains("Change settings"));
    operator.get(&format!("{at}/settings")).await.is(StatusCode::FORBIDDEN);
    assert!(admin.page(&at).await.contains("Change settings"));

    let form = admin.page(&format!("{at}/settings")).await;
    assert!(form.contains("value=\"0 3 * * *\"") && form.contains("readonly"), "{form}");
    let revision = form.split("name=\"revision\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let sent = [
        ("revision", revision),
        ("entry", "https://example.org/"),
        ("when", "every"),
        ("every", "90m"),
        ("on_hold", "on"),
    ];
    let wrong = [sent.as_slice(), &[("include", "(")]].concat();
    let refused =
        admin.post(&format!("{at}/settings"), &wrong).await.is(StatusCode::UNPROCESSABLE_ENTITY).text();
    assert!(refused.contains("aria-invalid=\"true\"") && refused.contains("value=\"90m\""), "{refused}");
    operator.post(&format!("{at}/settings"), &sent).await.is(StatusCode::FORBIDDEN);
    let changed = admin.post(&format!("{at}/settings"), &sent).await.is(StatusCode::SEE_OTHER);
    assert_eq!(changed.header("location"), at);
    let wanted = &api.get(&record).await.json()["spec"];
    assert_eq!(
        (&wanted["schedule"], &wanted["enabled"], &wanted["keep_versions"]),
        (&json!({"times": {"every_seconds": 5_400}}), &false.into(), &serde_json::Value::Null)
    );
    // The same form again: the settings that it was filled from have changed.
    let refused =
        admin.post(&format!("{at}/settings"), &sent).await.is(StatusCode::UNPROCESSABLE_ENTITY).text();
    assert!(refused.contains("role=\"alert\"") && refused.contains("value=\"90m\""), "{refused}");

    admin.post(&format!("{at}/delete"), &[("revision", revision)]).await.is(StatusCode::PRECONDITION_FAILED);
    let form = admin.page(&format!("{at}/settings")).await;
    let revision = form.split("name=\"revision\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let gone = admin.post(&format!("{at}/delete"), &[("revision", revision)]).await.is(StatusCode::SEE_OTHER);
    assert_eq!(gone.header("location"), "/console/sources");
    api.get(&record).await.is(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_source_is_added_harvested_and_looked_at_by_its_pages() {
    let source = source(SourceSpec::default().resources(60)).await;
    let (_fleet, _all, api) = fleet().await;
    let visitor = Visitor::of(&api).signed_in(ADMIN).await;

    let add = visitor.page("/console/add").await;
    assert!(add.contains("Entry URL") && !add.contains("Add Source"), "{add}");
    let entry = source.well_known();
    let wrong = [("entry", entry.as_str()), ("include", "("), ("contact", "<me>")];
    let refused = visitor.post("/console/sources", &wrong).await.is(StatusCode::UNPROCESSABLE_ENTITY).text();
    assert!(refused.contains("aria-invalid=\"true\"") && refused.contains("href=\"#include\""), "{refused}");
    assert!(refused.contains("value=\"&lt;me&gt;\""), "what was typed is still there: {refused}");
    let fields = [("entry", entry.as_str()), ("when", "every"), ("every", "6h"), ("run", "on")];
    let shown = visitor.post("/console/sources", &fields).await.is(StatusCode::OK).text();
    assert!(shown.contains("Nothing is stored yet.") && shown.contains("every 6 h"), "{shown}");
    let plan = planned(&visitor, &shown).await;
    assert!(
        plan.contains("<th scope=\"row\">resourcelist</th>") && plan.contains("<td class=\"number\">60</td>"),
        "{plan}"
    );
    assert_eq!(source.requests().resources, 0, "only documents are read for a plan");
    assert!(visitor.page("/console/sources").await.contains("No matching Source."));
    let add = [fields.as_slice(), &[("add", "yes")]].concat();
    let run = visitor.post("/console/sources", &add).await.is(StatusCode::SEE_OTHER);
    let run = run.header("location").to_owned();
    let page = over(&visitor, &run).await;
    assert!(page.contains("finished, in sync") && page.contains("<dt>Stored</dt><dd>60</dd>"), "{page}");
    assert!(!page.contains("hx-get"), "what is over is not asked for again: {page}");
    let again = visitor.post("/console/sources", &add).await.is(StatusCode::UNPROCESSABLE_ENTITY).text();
    assert!(again.contains("role=\"alert\""), "it was added before: {again}");

    let list = visitor.page("/console/sources").await;
    assert!(list.contains("in sync</span>") && list.contains("<th scope=\"row\">"), "{list}");
    let at = run.split_once("/runs/").unwrap().0.to_owned();
    let page = visitor.page(&at).await;
    for part in ["Status", "Runs", "Settings", "Throughput", "Figures", "every 6 h"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // Resources come in pages.
    let first = visitor.page(&format!("{at}/resources")).await;
    let next = first.split("rel=\"next\" href=\"").nth(1).expect("there is more").split('"').next().unwrap();
    let second = visitor.page(&next.replace("&amp;", "&")).await;
    let stories = |page: &str| page.matches("/resources/history?uri=").count();
    assert_eq!((stories(&first), stories(&second)), (50, 10));
    let story = first.split("href=\"").find(|part| part.contains("/resources/history?uri=")).unwrap();
    let story = story.split('"').next().unwrap().replace("&amp;", "&");
    let told = visitor.page(&story).await;
    assert!(told.contains("stored and verified, sha-256") && told.contains("Stored bytes"), "{told}");
    let content = visitor.get(&story.replace("/history?", "/content?")).await.is(StatusCode::OK);
    assert!(!content.body.is_empty());
    let policy = content.header("content-security-policy");
    assert!(policy.starts_with("sandbox"), "what a Source made is not run in our name: {policy}");
    let unknown = visitor.get(&format!("{at}/resources/history?uri=https://nowhere.example/")).await;
    unknown.is(StatusCode::NOT_FOUND);
    let card = visitor.page(&format!("{at}/report")).await;
    assert!(card.contains("<dt>Stored</dt><dd>60</dd>") && card.contains("Findings"), "{card}");
}

#[tokio::test]
async fn a_problem_is_seen_ignored_tried_again_and_healed_by_forms() {
    let source = source(SourceSpec::default().resources(10)).await;
    for index in [3, 5] {
        source.set_fault(index, Fault::status(404));
    }
    let (_fleet, _all, api) = fleet().await;
    let at = added(&api, &source).await;
    let visitor = Visitor::of(&api).signed_in(OPERATE).await;
    assert!(visitor.get(&format!("{at}/problems")).await.text().contains("was not harvested yet"));
    let run = harvested(&visitor, &at).await;
    assert!(run.contains("finished, with problems"), "{run}");
    let list = visitor.page("/console/sources?state=problems").await;
    assert!(list.contains(">problems</span>") && list.contains("/problems\">2</a>"), "{list}");
    let problems = format!("{at}/problems");
    let page = visitor.page(&problems).await;
    assert!(page.contains("http-client-error") && page.contains(&source.resource_uri(3)), "{page}");
    let group = [("reason", "http-client-error"), ("kind", "resource")];
    // A message is required.
    visitor.post(&format!("{problems}/ignore"), &group).await.is(StatusCode::UNPROCESSABLE_ENTITY);
    let ignore = [group.as_slice(), &[("note", "gone since <2019>")]].concat();
    let said = visitor.post(&format!("{problems}/ignore"), &ignore).await.is(StatusCode::SEE_OTHER);
    let page = visitor.page(said.header("location")).await;
    assert!(page.contains("Action queued.") && page.contains("gone since &lt;2019&gt;"), "{page}");
    let run = harvested(&visitor, &at).await;
    assert!(run.contains("finished, in sync"), "{run}");
    found("both are ignored", async || {
        visitor.page(&format!("{problems}?ignored=true")).await.contains("Stop ignoring").then_some(())
    })
    .await;
    source.clear_faults();
    let again = [group.as_slice(), &[("ignored", "true")]].concat();
    visitor.post(&format!("{problems}/retry"), &again).await.is(StatusCode::SEE_OTHER);
    let run = harvested(&visitor, &at).await;
    assert!(run.contains("finished, in sync") && run.contains("<dt>Stored</dt><dd>2</dd>"), "{run}");
    found("nothing is ignored", async || {
        visitor.page(&format!("{problems}?ignored=true")).await.contains("No problems.").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_run_is_steered_by_forms_and_its_page_asks_again_for_what_changes() {
    let spec = SourceSpec::default().resources(400).latency(std::time::Duration::from_millis(20));
    let source = source(spec).await;
    let (_fleet, _all, api) = fleet().await;
    let at = added(&api, &source).await;
    let visitor = Visitor::of(&api).signed_in(OPERATE).await;
    // It cannot end before it is steered.
    source.allow(20);
    let asked = visitor.post(&format!("{at}/runs"), &[]).await.is(StatusCode::SEE_OTHER);
    let run = asked.header("location").to_owned();
    crate::common::asked_for(&source, 20).await;
    let stands = async |state: &str| {
        found(format!("the run is {state}"), async || {
            let page = visitor.page(&run).await;
            page.contains(&format!(">{state}<")).then_some(page)
        })
        .await
    };
    let page = stands("running").await;
    assert!(page.contains("hx-trigger=\"every 2s\"") && page.contains("Refresh"), "{page}");
    let part = visitor.page(&format!("{run}/progress?seen=running")).await;
    assert!(part.starts_with("<div id=\"progress\""), "{part}");
    visitor.post(&format!("{run}/pause"), &[]).await.is(StatusCode::SEE_OTHER);
    source.allow_all();
    assert!(stands("paused").await.contains("Resume"));
    let part = visitor.get(&format!("{run}/progress?seen=running")).await;
    assert_eq!(part.header("hx-refresh"), "true", "the page has other forms now");
    source.allow(20);
    visitor.post(&format!("{run}/resume"), &[]).await.is(StatusCode::SEE_OTHER);
    stands("running").await;
    visitor.post(&format!("{run}/cancel"), &[]).await.is(StatusCode::SEE_OTHER);
    source.allow_all();
    let page = stands("cancelled").await;
    assert!(!page.contains("/cancel\""), "nothing is left to be steered: {page}");
    let refused = visitor.post(&format!("{run}/pause"), &[]).await.is(StatusCode::CONFLICT);
    assert!(refused.text().contains("<h1>Conflict</h1>"), "{}", refused.text());
}
