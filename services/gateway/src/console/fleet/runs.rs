//! The list of runs by state: the current or last run of each Source.

use std::sync::Arc;

use api::schema::STATES;
use control::{Run, RunStatus, WaitReason};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use super::waits::RunLink;
use super::{run_link, shortened};
use crate::api_error::ApiError;
use crate::console::layout::Column::{Number, Text};
use crate::console::layout::{self, PageContext};
use crate::console::{RUNS, chart, format, live, source};
use crate::extract::Query;
use crate::pagination;
use crate::runs;
use crate::state::Gateway;
use crate::tokens::Caller;

/// Runs per page.
const SHOWN: u16 = 50;

/// Parameters of the list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::console) struct Params {
    /// Only runs in this state.
    state: String,
    /// Only waiting runs with this reason.
    reason: String,
    /// The position of the next page.
    cursor: Option<String>,
}

/// The page.
pub(in crate::console) async fn page(
    context: PageContext,
    caller: Caller,
    Query(params): Query<Params>,
) -> Result<Markup, ApiError> {
    let gateway = &context.gateway;
    let mut counts = [0_u64; STATES.len()];
    // They come in the order of the Source IDs, as pages need them.
    let mut found: Vec<Arc<Run>> = Vec::new();
    live::for_each_source(gateway, Some(&caller), |_, run, term| {
        let Some(run) = run else { return };
        let status = run.status(term);
        if let Some(place) = STATES.iter().position(|state| *state == status.name()) {
            counts[place] += 1;
        }
        if params.admits(&status) {
            found.push(Arc::clone(run));
        }
    });
    let cursor = params.cursor.as_deref();
    let shown = pagination::paginate(
        "console-runs",
        found.iter(),
        |run| run.spec.source.as_str(),
        Some(SHOWN),
        cursor,
    )?;
    let content = html! {
        (filter(&params, &counts))
        @if shown.items.is_empty() { p { "No matching run." } } @else {
            (table(gateway, &shown.items, context.now))
        }
        @if let Some(next) = &shown.next {
            p { a rel="next" href={ (url(&params.state, &params.reason)) "&cursor=" (next) } { "Next page" } }
        }
    };
    Ok(context.page("Runs", content))
}

impl Params {
    fn admits(&self, status: &RunStatus<'_>) -> bool {
        let has_reason = || matches!(status, RunStatus::Waiting(wait) if wait.reason.as_str() == self.reason);
        (self.state.is_empty() || self.state == status.name()) && (self.reason.is_empty() || has_reason())
    }
}

fn url(state: &str, reason: &str) -> String {
    format!("{RUNS}?state={}&reason={}", format::query(state), format::query(reason))
}

/// The number of runs by state, with links to them.
fn filter(params: &Params, counts: &[u64]) -> Markup {
    let chosen = |state: &str| (params.state == state).then_some("true");
    let reason = |reason: &str| (params.reason == reason).then_some("true");
    html! {
        nav aria-label="State" {
            ul.chips {
                li { a href=(RUNS) aria-current=[chosen("")] { "all " (format::count(counts.iter().sum())) } }
                @for (state, count) in STATES.iter().zip(counts).filter(|(_, count)| **count > 0) {
                    li { a href=(url(state, "")) aria-current=[chosen(state)] { (state) " " (format::count(*count)) } }
                }
            }
        }
        @if params.state == "waiting" {
            nav aria-label="Reason" {
                ul.chips {
                    li { a href=(url("waiting", "")) aria-current=[reason("")] { "all reasons" } }
                    @for each in WaitReason::ALL {
                        li { a href=(url("waiting", each.as_str())) aria-current=[reason(each.as_str())] { (each.as_str()) } }
                    }
                }
            }
        }
    }
}

fn table(gateway: &Gateway, shown: &[&Arc<Run>], now: Timestamp) -> Markup {
    let columns = [
        Text("Source"),
        Text("State"),
        Text("Reason"),
        Text("Next try"),
        Text("Mode"),
        Text("Requested"),
        Number("Stored"),
        Number("Pending"),
    ];
    let row = |run: &&Arc<Run>| {
        let told = runs::present(gateway, run);
        let pending = run.progress.pending.filter(|_| !told.is_over());
        html! {
            th scope="row" { (run_link(&RunLink::of(run))) }
            td { (source::state(&told)) }
            td { (told.message.as_deref().map_or("none".to_owned(), shortened)) }
            td { (format::ago_or(now, run.waiting.as_ref().filter(|_| told.state == "waiting").map(|wait| wait.until), "none")) }
            td { (chart::name(&told.mode)) }
            td { (format::ago(now, told.requested_at)) }
            td.number { (format::count(told.counters.stored)) }
            td.number { (pending.map_or("none".to_owned(), format::count)) }
        }
    };
    let caption = format!("The current or last run of each Source: {} on this page", shown.len());
    layout::table("Runs", &caption, &columns, shown.iter().map(row))
}

#[cfg(test)]
mod tests {
    use control::RunWait;

    use super::*;

    #[test]
    fn a_list_is_limited_to_a_state_and_a_reason() {
        let now = Timestamp::UNIX_EPOCH;
        let silent = RunWait::unreachable(None, "no answer".to_owned(), now);
        let silent = RunStatus::Waiting(&silent);
        let admits = |state: &str, reason: &str, status: &RunStatus<'_>| {
            let params = Params { state: state.to_owned(), reason: reason.to_owned(), cursor: None };
            params.admits(status)
        };
        assert!(admits("", "", &RunStatus::Queued) && admits("queued", "", &RunStatus::Queued));
        assert!(!admits("waiting", "", &RunStatus::Queued) && !admits("", "turn", &RunStatus::Queued));
        assert!(admits("waiting", "", &silent) && admits("waiting", "unreachable", &silent));
        assert!(!admits("waiting", "turn", &silent) && !admits("failed", "", &silent));
    }

    #[test]
    fn what_is_typed_into_the_url_stays_data() {
        assert_eq!(url("a&b", "<c>"), "/console/runs?state=a%26b&reason=%3Cc%3E");
    }
}
