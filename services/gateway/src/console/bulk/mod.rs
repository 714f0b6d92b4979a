//! Actions on all Sources of a filtered list, each after a page that says how many there are.

pub(super) mod changes;
pub(super) mod runs;

use maud::{Markup, html};
use serde::Deserialize;

use super::form::Fields;
use super::layout::PageContext;
use super::source_health::SourceHealth;
use super::source_query::{self, SourceQuery};
use super::{format, live};
use crate::access::SourceFilter;
use crate::api_error::ApiError;
use crate::tokens::{Caller, Role};
use changes::Action;

/// Refused Sources that a result lists.
const REFUSALS: usize = 20;

/// The links to the actions that the caller may request, on the list of these Sources.
pub(super) fn links(context: &PageContext, query: &SourceQuery) -> Markup {
    let sources = query.url_query();
    html! {
        @if context.may(Role::Operate) {
            nav aria-label="Actions on these Sources" {
                ul.chips {
                    li { a href={ (runs::PATH) (sources) } { "Start runs" } }
                    @if context.may(Role::Admin) {
                        @for action in Action::ALL {
                            li { a href=(changes::url(action, query)) { (action.label()) } }
                        }
                    }
                }
            }
        }
    }
}

/// The Sources that an action is about.
struct Selection {
    query: SourceQuery,
    /// Their IDs.
    sources: Vec<String>,
}

impl Selection {
    /// The Sources that the caller sees and that match now.
    fn of(context: &PageContext, caller: &Caller, query: SourceQuery) -> Result<Self, ApiError> {
        let (selector, health, text) = (query.selector()?, query.health()?, query.text());
        let filter = SourceFilter::new(caller, selector.as_ref());
        let mut sources = Vec::new();
        live::for_each_source(&context.gateway, Some(caller), |spec, run, term| {
            let run = run.map(|run| &**run);
            let is_meant = filter.admits(spec)
                && source_query::contains(&text, spec, run)
                && health.is_none_or(|health| {
                    let status = run.map(|run| run.status(term));
                    SourceHealth::of(spec, run, status.as_ref(), context.now) == health
                });
            if is_meant {
                sources.push(spec.id.to_string());
            }
        });
        Ok(Self { query, sources })
    }

    /// The Sources that a form is about, and how many the operator saw.
    fn of_form(context: &PageContext, caller: &Caller, fields: &Fields) -> Result<(Self, usize), ApiError> {
        let text = |name| fields.text(name).unwrap_or_default();
        let query = SourceQuery { name: text("name"), selector: text("match"), state: text("state") };
        let seen = fields.get("count").and_then(|count| count.parse().ok()).unwrap_or(0);
        Ok((Self::of(context, caller, query)?, seen))
    }

    fn count(&self) -> usize {
        self.sources.len()
    }

    /// What the operator confirms: how many Sources there are, and which. `seen`: how many there were before.
    fn summary(&self, seen: Option<usize>) -> Markup {
        let SourceQuery { name, selector, .. } = &self.query;
        let health = SourceHealth::named(&self.query.state);
        let sources = format::counted(self.count() as u64, "Source matches", "Sources match");
        html! {
            @if let Some(seen) = seen {
                p.error role="alert" { "There are more Sources now than the " (seen) " that you saw. Check the number, and start again." }
            }
            p { (sources) "." }
            dl {
                dt { "Status" } dd { (health.map_or_else(|| "any".to_owned(), SourceHealth::label)) }
                dt { "Labels" } dd { (if selector.trim().is_empty() { "any" } else { selector.trim() }) }
                dt { "Name or address" } dd { (if name.trim().is_empty() { "any" } else { name.trim() }) }
            }
        }
    }

    /// The hidden fields with which the form selects the same Sources.
    fn hidden(&self) -> Markup {
        html! { (self.query.hidden()) input type="hidden" name="count" value=(self.count()); }
    }

    /// The way back to the list.
    fn back(&self) -> Markup {
        html! { p { a href=(self.query.list_url()) { "Back to the list" } } }
    }
}

/// The parameters of a page that selects Sources.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    name: String,
    #[serde(rename = "match")]
    selector: String,
    state: String,
    /// The action; none for runs.
    action: String,
}

impl Params {
    fn query(self) -> (SourceQuery, String) {
        let Self { name, selector, state, action } = self;
        (SourceQuery { name, selector, state }, action)
    }
}

/// The Sources that an action did not change.
#[derive(Default)]
struct Refusals {
    count: u64,
    first: Vec<(String, String)>,
}

impl Refusals {
    fn add(&mut self, source: String, why: String) {
        self.count += 1;
        if self.first.len() < REFUSALS {
            self.first.push((source, why));
        }
    }

    fn list(&self) -> Markup {
        html! {
            @if self.count > 0 {
                p { (format::counted(self.count, "Source was", "Sources were")) " refused. The first of them:" }
                ul { @for (source, why) in &self.first { li { (source) ": " (why) } } }
            }
        }
    }
}
