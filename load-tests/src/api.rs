//! The HTTP API of a fleet, for many Sources at once: the command line takes a process for each.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::plain_http::send;

/// Items of a batch and of a page: the most that the gateway takes.
const AT_ONCE: usize = 1_000;

/// The API of a gateway that needs no token.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    address: String,
}

/// A run, as far as it matters here. A later scheduler may tell more, or under other names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct RunSeen {
    /// The Source's ID.
    pub(crate) source: String,
    /// Its state.
    pub(crate) state: String,
    /// Whether all is stored, once it is finished.
    #[serde(default)]
    pub(crate) in_sync: Option<bool>,
    /// Why it failed, or what it waits for.
    #[serde(default)]
    message: Option<Value>,
    /// What it waits for, by other names.
    #[serde(default)]
    waits_for: Option<Value>,
    #[serde(default)]
    waiting: Option<Value>,
    #[serde(default)]
    parked: Option<Value>,
    /// When it was requested.
    #[serde(alias = "asked_at")]
    pub(crate) requested_at: Timestamp,
    /// When a scheduler started it.
    #[serde(default)]
    pub(crate) started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default)]
    pub(crate) finished_at: Option<Timestamp>,
    #[serde(default)]
    counters: Counters,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Counters {
    stored: u64,
    unchanged: u64,
}

/// The condition of a Source, by its last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    /// The run finished, and everything is stored.
    InSync,
    /// The run finished with problems.
    WithProblems,
    /// The run failed, or was cancelled.
    Failed,
    /// The run waits, for its Source or for an operator.
    Waiting,
    /// A scheduler works on the run.
    Running,
    /// No scheduler has started the run, or its owner is gone.
    Queued,
}

impl Condition {
    /// Its name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InSync => "in_sync",
            Self::WithProblems => "with_problems",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Queued => "queued",
        }
    }

    /// Whether the run has ended.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::InSync | Self::WithProblems | Self::Failed)
    }
}

impl RunSeen {
    /// The condition of its Source.
    pub(crate) fn condition(&self) -> Condition {
        let reasons = [&self.message, &self.waits_for, &self.waiting, &self.parked];
        let waits = reasons.into_iter().any(Option::is_some);
        match self.state.as_str() {
            "finished" if self.in_sync == Some(true) => Condition::InSync,
            "finished" => Condition::WithProblems,
            "failed" | "cancelled" => Condition::Failed,
            "paused" | "parked" | "waiting" => Condition::Waiting,
            "running" | "queued" if waits => Condition::Waiting,
            "running" => Condition::Running,
            _ => Condition::Queued,
        }
    }

    /// Resources that are stored, by its own counters.
    pub(crate) fn resources(&self) -> u64 {
        self.counters.stored + self.counters.unchanged
    }
}

impl Api {
    /// At the address of a gateway: `127.0.0.1:<port>`.
    pub(crate) fn at(address: String) -> Self {
        Self { address }
    }

    /// Adds Sources, or gives those that are there another spec. Each spec has an `entry`.
    pub(crate) fn put_sources(&self, specs: impl IntoIterator<Item = Value>) -> anyhow::Result<()> {
        let sources: Vec<Value> = specs.into_iter().map(|spec| json!({"spec": spec})).collect();
        for batch in sources.chunks(AT_ONCE) {
            self.batch("/v1/sources:batch", &json!({"sources": batch}))?;
        }
        Ok(())
    }

    /// Requests a run of each Source.
    pub(crate) fn submit(&self, sources: &[String]) -> anyhow::Result<()> {
        for batch in sources.chunks(AT_ONCE) {
            self.batch("/v1/runs:batch", &json!({"sources": batch}))?;
        }
        Ok(())
    }

    /// The last run of each Source, by the Source's ID.
    pub(crate) fn runs(&self) -> anyhow::Result<BTreeMap<String, RunSeen>> {
        #[derive(Deserialize)]
        struct Page {
            items: Vec<RunSeen>,
            next: Option<String>,
        }
        let mut runs = BTreeMap::new();
        let mut cursor = String::new();
        loop {
            let page = self.ask("GET", &format!("/v1/runs?limit={AT_ONCE}{cursor}"), None)?;
            let page: Page = serde_json::from_str(&page).context("the list of runs is not as expected")?;
            runs.extend(page.items.into_iter().map(|run| (run.source.clone(), run)));
            match page.next {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(runs),
            }
        }
    }

    /// Fails when an item of the batch is refused.
    fn batch(&self, path: &str, items: &Value) -> anyhow::Result<()> {
        #[derive(Deserialize)]
        struct Results {
            items: Vec<Value>,
        }
        let results = self.ask("POST", path, Some(&items.to_string()))?;
        let results: Results = serde_json::from_str(&results).context("the results are not as expected")?;
        let refused = results.items.iter().find(|item| item.get("problem").is_some_and(|of| !of.is_null()));
        ensure!(refused.is_none(), "{path} refused an item: {}", refused.unwrap_or(&Value::Null));
        Ok(())
    }

    fn ask(&self, method: &str, path: &str, json: Option<&str>) -> anyhow::Result<String> {
        let response = send(&self.address, method, path, json)?;
        let start: String = response.body.chars().take(400).collect();
        ensure!(response.status == 200, "{method} {path} is answered with {}: {start}", response.status);
        Ok(response.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> RunSeen {
        let mut value: Value = serde_json::from_str(text).unwrap();
        value["source"] = json!("a-1");
        value["requested_at"] = json!("2026-01-01T00:00:00Z");
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_condition_follows_from_the_state_and_from_what_is_waited_for() {
        for (text, condition) in [
            (r#"{"state":"queued"}"#, Condition::Queued),
            (r#"{"state":"queued","waits_for":"the Source does not answer"}"#, Condition::Waiting),
            (
                r#"{"state":"queued","parked":{"reason":"source","until":"2026-01-01T00:00:00Z"}}"#,
                Condition::Waiting,
            ),
            (r#"{"state":"queued","message":null}"#, Condition::Queued),
            (r#"{"state":"running","started_at":"2026-01-01T00:00:01Z"}"#, Condition::Running),
            (r#"{"state":"running","message":"connect: refused"}"#, Condition::Waiting),
            (r#"{"state":"interrupted"}"#, Condition::Queued),
            (r#"{"state":"finished","in_sync":true}"#, Condition::InSync),
            (r#"{"state":"finished","in_sync":false}"#, Condition::WithProblems),
            (r#"{"state":"failed","message":"too long"}"#, Condition::Failed),
        ] {
            assert_eq!(run(text).condition(), condition, "{text}");
        }
    }

    #[test]
    fn resources_are_those_stored_now_and_before() {
        let seen = run(r#"{"state":"finished","counters":{"stored":15,"unchanged":5,"failed":1}}"#);
        assert_eq!(seen.resources(), 20);
        assert_eq!(run(r#"{"state":"queued"}"#).resources(), 0);
    }
}
