//! The plan of a Source: a scheduler makes it, and the page polls until it is done.

use std::time::Duration;

use api::{Plan, PlanEstimate, PlanStrategy, Spec};
use axum::extract::{Path, State};
use maud::{Markup, html};

use super::layout::Column::{Number, Text};
use super::layout::{self, PageContext};
use super::{HOME, format};
use crate::api_error::ApiError;
use crate::plans;
use crate::state::Gateway;
use crate::tokens::Caller;

/// How long a page that follows a form waits for the plan.
const SHORT: Duration = Duration::from_secs(1);
/// How often a page polls for a plan that is not done.
const POLL_EVERY: &str = "every 1s";

/// Requests a plan and shows its progress. If no plan can be made now, the operator can still add the Source.
pub(super) async fn request(gateway: &Gateway, caller: &Caller, spec: Spec) -> Markup {
    match plans::begin(gateway, caller, spec).await {
        Ok(plan) => {
            let wait = SHORT.min(Duration::from_secs(gateway.settings.plan_wait_seconds));
            shown(&Plan::from(&*plans::until_over(gateway, plan, wait).await))
        }
        Err(error) => html! { p { "No estimate now: " (error.detail()) "." } },
    }
}

/// The page of a plan, for browsers that do not poll by themselves.
pub(super) async fn page(
    context: PageContext,
    caller: Caller,
    Path(plan): Path<String>,
) -> Result<Markup, ApiError> {
    let plan = Plan::from(&*plans::find(&context.gateway, &caller, &plan).await?);
    Ok(context.page("Estimate", html! { p.uri { (plan.entry) } (shown(&plan)) }))
}

/// The part of a page that shows the progress of a plan.
pub(super) async fn part(
    State(gateway): State<Gateway>,
    caller: Caller,
    Path(plan): Path<String>,
) -> Result<Markup, ApiError> {
    Ok(shown(&Plan::from(&*plans::find(&gateway, &caller, &plan).await?)))
}

fn shown(plan: &Plan) -> Markup {
    let here = format!("{HOME}/plans/{}", plan.id);
    let polled = (!plan.is_over()).then(|| format!("{here}/part"));
    html! {
        div #plan role="status" hx-get=[polled.as_deref()] hx-trigger=[polled.as_ref().map(|_| POLL_EVERY)] hx-swap="outerHTML" {
            @match (&plan.estimate, &plan.message) {
                (Some(estimate), _) => (estimated(estimate)),
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

fn estimated(estimate: &PlanEstimate) -> Markup {
    let caption =
        format!("Strategies, estimated with {}", format::counted(estimate.requests, "request", "requests"));
    let columns = [
        Text("Strategy"),
        Text("Set"),
        Number("Listed"),
        Number("Stored"),
        Number("Requests"),
        Number("Bytes"),
        Number("Time"),
        Text("Selected"),
    ];
    html! {
        @if estimate.strategies.is_empty() { p { "The Source offers no resources." } } @else {
            (layout::table("Strategies", &caption, &columns, estimate.strategies.iter().map(row)))
            @if estimate.strategies_omitted > 0 { p.hint { "And " (format::counted(estimate.strategies_omitted, "more strategy", "more strategies")) "." } }
        }
        @if !estimate.formats.is_empty() {
            p { "Metadata formats: " (estimate.formats.join(", ")) ". To harvest the files that records name, follow the links " code { "content" } "." }
        }
        @if !estimate.unread.is_empty() {
            p { "These documents could not be read. Their entries are missing from all figures:" }
            ul { @for unread in &estimate.unread { li.uri { (unread.uri) ": " (unread.message) } } }
            @if estimate.unread_omitted > 0 { p.hint { "And " (format::counted(estimate.unread_omitted, "more", "more")) "." } }
        }
    }
}

fn row(strategy: &PlanStrategy) -> Markup {
    let time = |millis: u64| match millis {
        0..1_000 => "under 1 s".to_owned(),
        _ => format::span(i64::try_from(millis / 1_000).unwrap_or(i64::MAX)),
    };
    html! {
        th scope="row" { (strategy.capability) }
        td.uri { (strategy.set) }
        td.number { (format::count(strategy.listed)) }
        td.number { (format::count(strategy.stored)) }
        td.number { (format::count(strategy.requests)) }
        td.number { (strategy.bytes.map_or("not declared".to_owned(), format::bytes)) }
        td.number { (strategy.time_ms.map_or("unknown".to_owned(), time)) }
        td { @if strategy.chosen { span.state.good { "yes" } } @else { "no" } }
    }
}
