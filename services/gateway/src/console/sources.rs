//! The list of Sources: failed and stale ones come first.

use std::sync::Arc;

use api::Page;
use axum::Extension;
use axum::extract::State;
use control::{Run, SourceSpec};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use super::condition::Condition;
use super::layout::{self, Frame};
use super::{HOME, tell};
use crate::ask::Asked;
use crate::page;
use crate::refusal::Refusal;
use crate::state::Gateway;
use crate::tokens::Caller;

/// Sources per page.
const SHOWN: u16 = 50;

/// Parameters of the list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    /// Only Sources with this text in their ID or entry URL.
    name: String,
    /// Only Sources in this condition.
    state: String,
    /// The position of the next page.
    cursor: Option<String>,
}

/// A Source in the list.
struct Item {
    /// Its sort key in the list.
    key: String,
    spec: Arc<SourceSpec>,
    run: Option<Arc<Run>>,
    condition: Condition,
}

impl Item {
    fn new(gateway: &Gateway, spec: Arc<SourceSpec>, now: Timestamp) -> Self {
        let views = gateway.views();
        let run = views.runs.get(&spec.id).map(|run| run.value);
        let tenure = views.leases.get(&spec.id).map(|lease| lease.tenure());
        let standing = run.as_ref().map(|run| run.standing(tenure.as_ref()));
        let condition = Condition::of(&spec, run.as_deref(), standing.as_ref(), now);
        let as_of = run.as_ref().and_then(|run| run.leaves().in_sync_as_of).map_or(0, Timestamp::as_second);
        // Within one condition, the Source that was last in sync longest ago comes first.
        let key = format!("{} {as_of:020} {}", condition as u8, spec.id);
        Self { key, spec, run, condition }
    }
}

/// The page.
pub(super) async fn page(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Asked(params): Asked<Params>,
) -> Result<Markup, Refusal> {
    let now = gateway.now();
    let all = gateway.views().sources.all().into_iter().map(|source| Item::new(&gateway, source.value, now));
    let text = params.name.trim().to_lowercase();
    let mut items: Vec<Item> = all.filter(|item| is_called(&item.spec, &text)).collect();
    items.sort_by(|a, b| a.key.cmp(&b.key));
    let counts =
        Condition::ALL.map(|condition| items.iter().filter(|item| item.condition == condition).count());
    items.retain(|item| params.state.is_empty() || params.state == item.condition.name());
    let shown =
        page::of_all("console", items, |item| item.key.as_str(), Some(SHOWN), params.cursor.as_deref())?;
    let frame = Frame { title: "Sources", caller: Some(&caller), path: &[], now };
    Ok(layout::page(
        &frame,
        html! {
            (filter(&params))
            (conditions(&params, &counts))
            @if !gateway.views().sources.is_live() {
                p.error role="alert" { "The control store is unreachable. This page shows the last known state." }
            }
            (table(&shown, now))
            @if let Some(next) = &shown.next {
                p { a rel="next" href={ (place(&params, &params.state)) "&cursor=" (next) } { "Next page" } }
            }
        },
    ))
}

fn is_called(spec: &SourceSpec, text: &str) -> bool {
    text.is_empty() || spec.id.as_str().contains(text) || spec.entry.as_str().to_lowercase().contains(text)
}

/// The URL of the list of Sources in this condition.
fn place(params: &Params, state: &str) -> String {
    format!("{HOME}?name={}&state={state}", tell::query(params.name.trim()))
}

fn filter(params: &Params) -> Markup {
    html! {
        form.filter role="search" aria-label="Sources" method="get" action=(HOME) {
            label for="name" { "Name or address" }
            input #name type="search" name="name" value=(params.name);
            @if !params.state.is_empty() { input type="hidden" name="state" value=(params.state); }
            button type="submit" { "Find" }
        }
    }
}

/// The number of Sources in each condition, with links to them.
fn conditions(params: &Params, counts: &[usize; 9]) -> Markup {
    let chosen = |name: &str| (params.state == name).then_some("true");
    html! {
        nav aria-label="Status" {
            ul.chips {
                li { a href=(place(params, "")) aria-current=[chosen("")] { "all " (counts.iter().sum::<usize>()) } }
                @for (condition, count) in Condition::ALL.iter().zip(counts).filter(|(_, count)| **count > 0) {
                    li { a class=(condition.gravity()) href=(place(params, condition.name())) aria-current=[chosen(condition.name())] {
                        (condition.words()) " " (count)
                    } }
                }
            }
        }
    }
}

fn table(shown: &Page<Item>, now: Timestamp) -> Markup {
    html! {
        @if shown.items.is_empty() {
            p { "No matching Source." }
        } @else {
            div.wide tabindex="0" role="region" aria-label="Sources" {
                table {
                    caption { "Sources by severity: " (shown.items.len()) " on this page" }
                    thead { tr {
                        th scope="col" { "Source" }
                        th scope="col" { "Status" }
                        th scope="col" { "Last in sync" }
                        th scope="col" { "Last run" }
                        th.number scope="col" { "Open problems" }
                    } }
                    tbody { @for item in &shown.items { (row(item, now)) } }
                }
            }
        }
    }
}

fn row(item: &Item, now: Timestamp) -> Markup {
    let id = &item.spec.id;
    let before = item.run.as_ref().map(|run| run.leaves()).unwrap_or_default();
    html! {
        tr {
            th scope="row" { a href={ (HOME) "/sources/" (id) } { (id) } br; span.hint { (item.spec.entry) } }
            td { span class={ "state " (item.condition.gravity()) } { (item.condition.words()) } }
            td { (tell::ago_or(now, before.in_sync_as_of, "never")) }
            td { @match &item.run {
                Some(run) => {
                    a href={ (HOME) "/sources/" (id) "/runs/" (run.spec.id) } { (run.state.name()) }
                    " " (tell::ago(now, run.finished_at.or(run.started_at).unwrap_or(run.spec.asked_at)))
                },
                None => "none",
            } }
            td.number { @match before.problems {
                Some(problems) if problems.open > 0 => {
                    a href={ (HOME) "/sources/" (id) "/problems" } { (tell::count(problems.open)) }
                },
                Some(_) => "0",
                None => "not counted yet",
            } }
        }
    }
}
