//! The plan of a Source: a scheduler makes it, and the page polls until it is done.

use std::time::Duration;

use api::{Plan, PlanEstimate, PlanStrategy, Spec};
use axum::Extension;
use axum::extract::{Path, State};
use maud::{Markup, html};

use super::layout::{self, Frame};
use super::{HOME, tell};
use crate::plans;
use crate::refusal::Refusal;
use crate::state::Gateway;
use crate::tokens::Caller;

/// How long a page that follows a form waits for the plan.
const SHORT: Duration = Duration::from_secs(1);
/// How often a page polls for a plan that is not done.
const ASKS: &str = "every 1s";

/// Requests a plan and shows its progress. If no plan can be made now, the operator can still add the Source.
pub(super) async fn ask_for(gateway: &Gateway, caller: &Caller, spec: Spec) -> Markup {
    match plans::begin(gateway, caller, spec).await {
        Ok(asked) => {
            let patience = SHORT.min(Duration::from_secs(gateway.settings().plan_wait_seconds));
            shown(&Plan::from(&*plans::until_over(gateway, asked, patience).await))
        }
        Err(refusal) => html! { p { "No estimate now: " (refusal.detail()) "." } },
    }
}

/// The page of a plan, for browsers that do not poll by themselves.
pub(super) async fn page(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(plan): Path<String>,
) -> Result<Markup, Refusal> {
    let plan = Plan::from(&*plans::find(&gateway, &plan).await?);
    let frame = Frame { title: "Estimate", caller: Some(&caller), path: &[], now: gateway.now() };
    Ok(layout::page(&frame, html! { p.uri { (plan.entry) } (shown(&plan)) }))
}

/// The part of a page that shows the progress of a plan.
pub(super) async fn part(
    State(gateway): State<Gateway>,
    Path(plan): Path<String>,
) -> Result<Markup, Refusal> {
    Ok(shown(&Plan::from(&*plans::find(&gateway, &plan).await?)))
}

fn shown(plan: &Plan) -> Markup {
    let here = format!("{HOME}/plans/{}", plan.id);
    let asks = (!plan.is_over()).then(|| format!("{here}/part"));
    html! {
        div #plan role="status" hx-get=[asks.as_deref()] hx-trigger=[asks.as_ref().map(|_| ASKS)] hx-swap="outerHTML" {
            @match (&plan.estimate, &plan.message) {
                (Some(estimate), _) => (told(estimate)),
                (None, Some(why)) => p.error { "No estimate: " (why) },
                (None, None) => {
                    p {
                        "A scheduler reads the Source's documents for the estimate. It fetches no resources. "
                        a href=(here) target="_blank" { "Open the estimate" }
                    }
                },
            }
        }
    }
}

fn told(estimate: &PlanEstimate) -> Markup {
    html! {
        @if estimate.strategies.is_empty() { p { "The Source offers no resources." } } @else {
            div.wide tabindex="0" role="region" aria-label="Strategies" {
                table {
                    caption { "Strategies, estimated with " (tell::of(estimate.requests, "request", "requests")) }
                    thead { tr {
                        th scope="col" { "Strategy" }
                        th scope="col" { "Set" }
                        th.number scope="col" { "Listed" }
                        th.number scope="col" { "Stored" }
                        th.number scope="col" { "Requests" }
                        th.number scope="col" { "Bytes" }
                        th.number scope="col" { "Time" }
                        th scope="col" { "Selected" }
                    } }
                    tbody { @for way in &estimate.strategies { (row(way)) } }
                }
            }
            @if estimate.strategies_omitted > 0 { p.hint { "And " (tell::of(estimate.strategies_omitted, "more strategy", "more strategies")) "." } }
        }
        @if !estimate.unread.is_empty() {
            p { "These documents could not be read. Their entries are missing from all figures:" }
            ul { @for unread in &estimate.unread { li.uri { (unread.uri) ": " (unread.message) } } }
            @if estimate.unread_omitted > 0 { p.hint { "And " (tell::of(estimate.unread_omitted, "more", "more")) "." } }
        }
    }
}

fn row(way: &PlanStrategy) -> Markup {
    let time = |millis: u64| match millis {
        0..1_000 => "under 1 s".to_owned(),
        _ => tell::span(i64::try_from(millis / 1_000).unwrap_or(i64::MAX)),
    };
    html! {
        tr {
            th scope="row" { (way.capability) }
            td.uri { (way.set) }
            td.number { (tell::count(way.listed)) }
            td.number { (tell::count(way.stored)) }
            td.number { (tell::count(way.requests)) }
            td.number { (way.bytes.map_or("not declared".to_owned(), tell::bytes)) }
            td.number { (way.time_ms.map_or("unknown".to_owned(), time)) }
            td { @if way.chosen { span.state.good { "yes" } } @else { "no" } }
        }
    }
}
