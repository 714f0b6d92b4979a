//! The list of Sources: failed and stale ones come first.

use std::sync::Arc;

use api::Page;
use control::{Run, SourceSpec};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::Column::{Number, Text};
use super::layout::{self, PageContext};
use super::source_health::SourceHealth;
use super::source_query::{self, SourceQuery};
use super::{HOME, SOURCES, bulk, format};
use crate::access::SourceFilter;
use crate::api_error::ApiError;
use crate::extract::Query;
use crate::pagination;
use crate::state::Gateway;
use crate::tokens::Caller;

/// Sources per page.
const SHOWN: u16 = 50;

/// Parameters of the list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    name: String,
    #[serde(rename = "match")]
    selector: String,
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
    health: SourceHealth,
}

impl Item {
    fn new(gateway: &Gateway, spec: Arc<SourceSpec>, now: Timestamp) -> Self {
        let views = &gateway.views;
        let run = views.runs.get(&spec.id).map(|run| run.value);
        let term = views.leases.get(&spec.id).map(|lease| lease.term());
        let status = run.as_ref().map(|run| run.status(term.as_ref()));
        let health = SourceHealth::of(&spec, run.as_deref(), status.as_ref(), now);
        let as_of = run.as_ref().and_then(|run| run.leaves().in_sync_as_of).map_or(0, Timestamp::as_second);
        // With the same health, the Source that was last in sync longest ago comes first.
        let key = format!("{} {as_of:020} {}", health as u8, spec.id);
        Self { key, spec, run, health }
    }

    fn contains(&self, text: &str) -> bool {
        source_query::contains(text, &self.spec, self.run.as_deref())
    }
}

/// The page.
pub(super) async fn page(
    context: PageContext,
    caller: Caller,
    Query(params): Query<Params>,
) -> Result<Markup, ApiError> {
    let gateway = &context.gateway;
    let now = context.now;
    let Params { name, selector, state, cursor } = params;
    let query = SourceQuery { name, selector, state };
    let selector = query.selector()?;
    let filter = SourceFilter::new(&caller, selector.as_ref());
    let text = query.text();
    let all = gateway.views.sources.all().into_iter();
    let seen = all.filter(|source| filter.admits(source));
    let items = seen.map(|source| Item::new(gateway, source.value, now));
    let mut items: Vec<Item> = items.filter(|item| item.contains(&text)).collect();
    items.sort_by(|a, b| a.key.cmp(&b.key));
    let counts = SourceHealth::all().map(|health| items.iter().filter(|item| item.health == health).count());
    items.retain(|item| query.state.is_empty() || query.state == item.health.name());
    let shown =
        pagination::paginate("console", items, |item| item.key.as_str(), Some(SHOWN), cursor.as_deref())?;
    let and = if query.url_query().is_empty() { "?" } else { "&" };
    let content = html! {
        (search(&query))
        (health_filter(&query, &counts))
        @if !gateway.views.sources.is_live() {
            p.error role="alert" { "The control store is unreachable. This page shows the last known state." }
        }
        (table(&shown, now))
        @if let Some(next) = &shown.next {
            p { a rel="next" href={ (query.list_url()) (and) "cursor=" (next) } { "Next page" } }
        }
        @if !shown.items.is_empty() { (bulk::links(&context, &query)) }
    };
    Ok(context.page("Sources", content))
}

fn search(query: &SourceQuery) -> Markup {
    html! {
        form.filter role="search" aria-label="Sources" method="get" action=(SOURCES) {
            label for="name" { "Name or address" }
            input #name type="search" name="name" value=(query.name);
            label for="match" { "Labels" }
            input id="match" type="search" name="match" value=(query.selector) placeholder="country=jp,!test" spellcheck="false";
            @if !query.state.is_empty() { input type="hidden" name="state" value=(query.state); }
            button type="submit" { "Find" }
        }
    }
}

/// The number of Sources by health, with links to them.
fn health_filter(query: &SourceQuery, counts: &[usize; 9]) -> Markup {
    let chosen = |name: &str| (query.state == name).then_some("true");
    html! {
        nav aria-label="Status" {
            ul.chips {
                li { a href=(query.with_state("").list_url()) aria-current=[chosen("")] { "all " (counts.iter().sum::<usize>()) } }
                @for (health, count) in SourceHealth::all().into_iter().zip(counts).filter(|(_, count)| **count > 0) {
                    li { a class=(health.severity()) href=(query.with_state(health.name()).list_url()) aria-current=[chosen(health.name())] {
                        (health.label()) " " (count)
                    } }
                }
            }
        }
    }
}

fn table(shown: &Page<Item>, now: Timestamp) -> Markup {
    if shown.items.is_empty() {
        return html! { p { "No matching Source." } };
    }
    let caption = format!("Sources by severity: {} on this page", shown.items.len());
    let columns =
        [Text("Source"), Text("Status"), Text("Last in sync"), Text("Last run"), Number("Open problems")];
    layout::table("Sources", &caption, &columns, shown.items.iter().map(|item| row(item, now)))
}

fn row(item: &Item, now: Timestamp) -> Markup {
    let id = &item.spec.id;
    let before = item.run.as_ref().map(|run| run.leaves()).unwrap_or_default();
    html! {
        th scope="row" {
            a href={ (HOME) "/sources/" (id) } { (layout::called(&item.spec)) }
            @if let Some(title) = source_query::title(&item.spec, item.run.as_deref()) { br; (title) }
            @if item.spec.name.is_some() { br; span.hint { (id) } }
            br; span.hint { (item.spec.entry) }
            @if !item.spec.labels.is_empty() { br; span.hint { (layout::labels(&item.spec)) } }
        }
        td { span class={ "state " (item.health.severity()) } { (item.health.label()) } }
        td { (format::ago_or(now, before.in_sync_as_of, "never")) }
        td { @match &item.run {
            Some(run) => {
                a href={ (HOME) "/sources/" (id) "/runs/" (run.spec.id) } { (run.state.name()) }
                " " (format::ago(now, run.finished_at.or(run.started_at).unwrap_or(run.spec.asked_at)))
            },
            None => "none",
        } }
        td.number { @match before.problems {
            Some(problems) if problems.open > 0 => {
                a href={ (HOME) "/sources/" (id) "/problems" } { (format::count(problems.open)) }
            },
            Some(_) => "0",
            None => "not counted yet",
        } }
    }
}
