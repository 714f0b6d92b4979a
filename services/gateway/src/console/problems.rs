//! Problems of a Source in groups, each with its operator actions.

mod actions;

use api::{Page, ProblemGroup, SourceProblem};
use axum::Json;
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use self::actions::{forms, queued};
pub(super) use self::actions::{ignore, retry};
use super::deadline::within_deadline;
use super::format;
use super::layout::Column::{Number, Text};
use super::layout::{self, PageContext, source_url};
use crate::api_error::ApiError;
use crate::extract::{Query, SourcePath};
use crate::problem_actions;
use crate::problems::{self, GroupParams, ProblemParams};
use crate::tokens::Role;

/// Problems per page.
const SHOWN: u16 = 50;

/// Parameters of the page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    prefix: String,
    reason: String,
    kind: String,
    ignored: bool,
    cursor: Option<String>,
    /// Whether the operator chose to wait for slow results.
    wait: bool,
    /// Whether an action was just submitted.
    said: bool,
}

impl Params {
    /// The parameters as a query string.
    fn query(&self) -> String {
        let Self { prefix, reason, kind, ignored, .. } = self;
        format!("prefix={}&reason={reason}&kind={kind}&ignored={ignored}", format::query(prefix))
    }
}

/// The page.
pub(super) async fn page(
    context: PageContext,
    SourcePath(source): SourcePath,
    Query(params): Query<Params>,
) -> Result<Markup, ApiError> {
    let text = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let asked = ProblemParams {
        prefix: text(&params.prefix),
        reason: text(&params.reason),
        kind: text(&params.kind),
        ignored: params.ignored,
        limit: Some(SHOWN),
        cursor: params.cursor.clone(),
    };
    let Json(found) = problems::list(context.state(), SourcePath(source.clone()), Query(asked)).await?;
    let asked = GroupParams { prefix: text(&params.prefix), ignored: params.ignored };
    let counting = problems::groups(context.state(), SourcePath(source.clone()), Query(asked));
    let groups = within_deadline(params.wait, counting).await.transpose()?.map(|Json(groups)| groups.items);
    let Json(Page { items: actions, .. }) =
        problem_actions::waiting(context.state(), SourcePath(source.clone())).await?;
    let now = context.now;
    let home = source_url(&source);
    let here = format!("{home}/problems");
    let operates = context.may(Role::Operate);
    let content = html! {
        @if params.said { p.good role="status" { "Action queued. The owner of the Source applies it before the next run." } }
        @if !actions.is_empty() { (queued(&actions, &home, operates, now)) }
        (filter(&params, &here))
        section aria-labelledby="groups" {
            h2 #groups { (if params.ignored { "Ignored" } else { "Open" }) }
            @match &groups {
                Some(groups) if groups.is_empty() => p { "No problems." },
                Some(groups) => (grouped(groups, &params, &here, operates, now)),
                None => p {
                    "Counting the problems takes a while. "
                    a href={ (here) "?wait=true&" (params.query()) } { "Count them" }
                },
            }
        }
        @if !found.items.is_empty() {
            section aria-labelledby="each" {
                h2 #each { "All problems" }
                (listed(&found.items, &home, now))
            }
        }
        @if let Some(next) = &found.next {
            p { a rel="next" href={ (here) "?" (params.query()) "&cursor=" (next) } { "Next page" } }
        }
    };
    Ok(context.source_page(&source, "Problems", content))
}

fn filter(params: &Params, here: &str) -> Markup {
    html! {
        form.filter role="search" aria-label="Problems" method="get" action=(here) {
            label for="prefix" { "URIs that begin with" }
            input #prefix type="search" name="prefix" value=(params.prefix) spellcheck="false";
            input type="hidden" name="reason" value=(params.reason);
            input type="hidden" name="kind" value=(params.kind);
            input #ignored type="checkbox" name="ignored" value="true" checked[params.ignored];
            label for="ignored" { "ignored" }
            button type="submit" { "Find" }
            @if !params.reason.is_empty() {
                span { "Reason: " strong { (params.reason) } " " a href={ (here) "?ignored=" (params.ignored) } { "all reasons" } }
            }
        }
    }
}

fn grouped(groups: &[ProblemGroup], params: &Params, here: &str, operates: bool, now: Timestamp) -> Markup {
    let mut columns =
        vec![Text("Reason"), Text("Kind"), Number("Count"), Text("First seen"), Text("Last seen")];
    if operates {
        columns.push(Text("Actions"));
    }
    let row = |group: &ProblemGroup| {
        let same =
            Params { reason: group.reason.to_string(), kind: group.kind.to_string(), ..params.clone() };
        html! {
            th scope="row" { a href={ (here) "?" (same.query()) } { (group.reason) } }
            td { (group.kind) }
            td.number { (format::count(group.count)) }
            td { (format::ago(now, group.first_seen)) }
            td { (format::ago(now, group.last_seen)) }
            @if operates { td { (forms(group, params, here)) } }
        }
    };
    layout::table("Problems by reason", "Problems by reason and kind", &columns, groups.iter().map(row))
}

fn listed(items: &[SourceProblem], home: &str, now: Timestamp) -> Markup {
    let caption =
        format!("Problems: documents, then entries, messages, resources; {} on this page", items.len());
    let columns = [Text("Subject"), Text("Reason"), Text("Message"), Number("Attempts"), Text("Last seen")];
    let row = |problem: &SourceProblem| {
        html! {
            th.uri scope="row" {
                @if problem.kind == "resource" {
                    a href={ (home) "/resources/history?uri=" (format::query(&problem.uri)) } { (problem.uri) }
                } @else { (problem.uri) br; span.hint { (problem.kind) } }
            }
            td { (problem.reason) }
            td {
                (problem.message)
                @if let Some(ignored) = &problem.ignored { br; span.hint { "ignored: " (ignored.note) } }
            }
            td.number { (problem.attempts) }
            td { (format::ago(now, problem.last_seen)) }
        }
    };
    layout::table("All problems", &caption, &columns, items.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_page_keeps_what_is_looked_for() {
        let params = Params { prefix: "https://e.org/a b&c".to_owned(), ignored: true, ..Params::default() };
        assert_eq!(params.query(), "prefix=https%3A%2F%2Fe.org%2Fa+b%26c&reason=&kind=&ignored=true");
    }
}
