//! The first page: the whole fleet at a glance. Each figure that counts Sources or runs links to their list.
//!
//! `overview` counts everything in one pass over the live views. `sampler` records a few figures each minute, and
//! `charts` draws them. `runs` is the list of runs by state.

mod charts;
mod overview;
mod runs;
mod sampler;
mod services;
mod top;
mod waits;

use axum::http::Uri;
use axum::response::{IntoResponse, Redirect, Response};
use control::Sample;
use jiff::Timestamp;
use maud::{Markup, html};

use self::overview::{Active, Failure, Overview};
use self::waits::{RunLink, WaitsFor};
use super::layout::Column::{Number, Text};
use super::layout::{self, PageContext, source_url};
use super::source_health::SourceHealth;
use super::{RUNS, SOURCES, format};
use crate::tokens::Caller;

pub(super) use self::runs::page as runs_page;
pub(crate) use self::sampler::sample;

/// The page. A URL with a query is that of the list of Sources, which was here before.
pub(super) async fn page(context: PageContext, caller: Caller, uri: Uri) -> Response {
    if let Some(query) = uri.query().filter(|query| !query.is_empty()) {
        return Redirect::permanent(&format!("{SOURCES}?{query}")).into_response();
    }
    let gateway = &context.gateway;
    let now = context.now;
    let overview = Overview::of(gateway, Some(&caller), now);
    // Samples and services are those of the whole fleet, which a limited token does not see.
    let samples = if caller.sees_all() { charts::recent(gateway, now) } else { Vec::new() };
    let views = &gateway.views;
    let is_live = views.sources.is_live() && views.runs.is_live() && views.leases.is_live();
    let content = html! {
        @if !is_live {
            p.error role="alert" { "The control store is unreachable. This page shows the last known state." }
        }
        (sources(&overview))
        (figures(&overview, samples.last().map(|sample| &**sample), now))
        (active(&overview, now))
        (waiting(&overview, now))
        (failures(&overview, now))
        @if caller.sees_all() {
            (charts::section(&samples, now))
            (services::section(gateway, &overview, now))
        }
    };
    context.page("Fleet", content).into_response()
}

/// The number of Sources by health, with links to them.
fn sources(overview: &Overview) -> Markup {
    html! {
        section aria-labelledby="sources" {
            h2 #sources { "Sources" }
            ul.chips {
                li { a href=(SOURCES) { "all " (format::count(overview.sources())) } }
                @for health in SourceHealth::all().into_iter().filter(|health| overview.with(*health) > 0) {
                    li { a class=(health.severity()) href={ (SOURCES) "?state=" (health.name()) } {
                        (health.label()) " " (format::count(overview.with(health)))
                    } }
                }
            }
        }
    }
}

fn figures(overview: &Overview, last: Option<&Sample>, now: Timestamp) -> Markup {
    let waiting = |waits_for| overview.waits(waits_for).count;
    let parked = waiting(WaitsFor::Answer) + waiting(WaitsFor::RetryAfter) + waiting(WaitsFor::Turn);
    // An old sample says nothing about the present.
    let last = last.filter(|sample| now.duration_since(sample.at).as_secs() < 180);
    html! {
        section aria-labelledby="now" {
            h2 #now { "Now" }
            dl.figures {
                dt { "Active runs" }
                dd { a href={ (RUNS) "?state=running" } { (format::count(overview.active.count())) } }
                dt { "Queued runs" }
                dd { a href={ (RUNS) "?state=queued" } { (format::count(waiting(WaitsFor::Place))) } }
                dt { "Waiting runs" }
                dd { a href={ (RUNS) "?state=waiting" } { (format::count(parked)) } }
                dt { "Pending" }
                dd { (format::counted(overview.pending, "resource", "resources")) }
                dt { "Stored" }
                dd { @match last.and_then(|sample| sample.stored) {
                    Some(stored) => { (format::count(stored)) " in the last minute" },
                    None => "not measured yet",
                } }
                dt { "Received" }
                dd { @match last.and_then(|sample| sample.bytes) {
                    Some(bytes) => { (format::bytes(bytes)) " in the last minute" },
                    None => "not measured yet",
                } }
            }
        }
    }
}

fn active(overview: &Overview, now: Timestamp) -> Markup {
    let runs = &overview.active;
    let columns = [
        Text("Source"),
        Text("Began"),
        Text("Scheduler"),
        Number("Planned"),
        Number("Stored"),
        Number("Pending"),
    ];
    let row = |run: &Active| {
        html! {
            th scope="row" {
                (run_link(&run.link))
                @if let Some(why) = &run.waits_for { br; span.hint { (why) } }
            }
            td { (format::ago(now, run.began)) }
            td { (run.owner) }
            td.number { (format::count(run.planned)) }
            td.number { (format::count(run.stored)) }
            td.number { (run.pending.map_or("not known".to_owned(), format::count)) }
        }
    };
    let caption = format!("Runs that began first: {} of {}", runs.items().len(), format::count(runs.count()));
    html! {
        section aria-labelledby="active" {
            h2 #active { "Active runs" }
            @if runs.count() == 0 { p { "No scheduler works on a run." } } @else {
                (layout::table("Active runs", &caption, &columns, runs.items().map(row)))
                p { a href={ (RUNS) "?state=running" } { "All active runs" } }
            }
        }
    }
}

fn waiting(overview: &Overview, now: Timestamp) -> Markup {
    let columns = [Text("Waits for"), Number("Runs"), Text("Waits the longest"), Text("Next try")];
    let run = |first: &Option<(Timestamp, RunLink)>, without: &'static str| {
        html! { @match first {
            Some((at, link)) => { (run_link(link)) ", " (format::ago(now, *at)) },
            None => (without),
        } }
    };
    let row = |waits_for: WaitsFor| {
        let waits = overview.waits(waits_for);
        html! {
            th scope="row" { (waits_for.label()) }
            td.number { a href={ (RUNS) "?" (waits_for.query()) } { (format::count(waits.count)) } }
            td { (run(&waits.longest, "not known")) }
            td { (run(&waits.next, "no set time")) }
        }
    };
    let some: Vec<WaitsFor> =
        WaitsFor::ALL.into_iter().filter(|waits_for| overview.waits(*waits_for).count > 0).collect();
    html! {
        section aria-labelledby="waiting" {
            h2 #waiting { "Waiting" }
            @if some.is_empty() { p { "No run waits." } } @else {
                (layout::table("Waiting", "Runs by what they wait for", &columns, some.into_iter().map(row)))
            }
        }
    }
}

fn failures(overview: &Overview, now: Timestamp) -> Markup {
    let failures = &overview.failures;
    let columns = [Text("Source"), Text("Failed"), Text("Reason")];
    let row = |failure: &Failure| {
        html! {
            th scope="row" { (run_link(&failure.link)) }
            td { (format::ago(now, failure.at)) }
            td { (shortened(&failure.why)) }
        }
    };
    let caption = format!("Newest first: {} of {}", failures.items().len(), format::count(failures.count()));
    html! {
        section aria-labelledby="failures" {
            h2 #failures { "Last failures" }
            @if failures.count() == 0 { p { "No Source's last run failed." } } @else {
                (layout::table("Last failures", &caption, &columns, failures.items().map(row)))
                p { a href={ (RUNS) "?state=failed" } { "All failed runs" } }
            }
        }
    }
}

/// A Source, with a link to its run.
fn run_link(link: &RunLink) -> Markup {
    html! { a href={ (source_url(&link.source)) "/runs/" (link.run) } { (link.source) } }
}

/// The beginning of a message, which may contain what a Source has sent.
fn shortened(message: &str) -> String {
    const MOST: usize = 300;
    match message.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_at_a_character() {
        assert_eq!(shortened("gone"), "gone");
        let long = "ä".repeat(1_000);
        assert_eq!(shortened(&long).chars().count(), 301);
    }
}
