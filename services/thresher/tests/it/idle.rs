//! An idle Source is polled: no run, and no catalog is opened.

use serde_json::{Value, json};
use simulated_source::{Changes, SourceSpec};
use testkit::waiting::{found, until};

use crate::common::api::{Api, fleet};
use crate::common::{requests_at, source, truth};

/// The newest run of the only Source.
async fn last_run(api: &Api) -> Option<Value> {
    api.get("/v1/runs").await.json()["items"].as_array()?.first().cloned()
}

#[tokio::test]
async fn a_source_without_news_is_polled_and_news_begins_a_run() {
    let harvested = source(SourceSpec::default().resources(5)).await;
    let (fleet, _all, api) = fleet().await;
    let follow = json!({"min_seconds": 1, "max_seconds": 1});
    let created = api.post("/v1/sources", json!({"entry": harvested.well_known(), "follow": follow})).await;
    assert_eq!(created.status, 201);
    let in_sync = |run: &Value| run["state"] == "finished" && run["in_sync"] == true;
    found("the first run ends", async || last_run(&api).await.filter(in_sync).map(drop)).await;

    // The first run has read the Resource List. A poll repeats what the next run would request.
    let polled = || requests_at(&harvested, &harvested.change_list());
    let before = polled();
    until("it is polled", || polled() >= before + 2).await;
    let run = last_run(&api).await.expect("a run")["run"].clone();
    let before = polled();
    until("it is polled again", || polled() >= before + 3).await;
    assert_eq!(last_run(&api).await.expect("a run")["run"], run, "polls are no runs");

    harvested.change(Changes { create: 2, update: 1, delete: 1 });
    let stored = |run: &Value| in_sync(run) && run["counters"]["stored"] == 3;
    let next = found("a run takes the news", async || last_run(&api).await.filter(stored)).await;
    assert_ne!(next["run"], run);
    assert_eq!(fleet.destination().present(), truth(&harvested));
}
