//! Problems of a Source in groups, each with its operator actions.

mod word;

use api::{Page, ProblemGroup, SourceProblem};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use self::word::{forms, said};
pub(super) use self::word::{ignore, retry};
use super::layout::{self, Frame, may};
use super::patience::at_once;
use super::{HOME, tell};
use crate::ask::Asked;
use crate::problems::{self, GroupParams, ProblemParams};
use crate::refusal::Refusal;
use crate::state::Gateway;
use crate::tokens::{Caller, Role};
use crate::words;

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
        format!("prefix={}&reason={reason}&kind={kind}&ignored={ignored}", tell::query(prefix))
    }
}

/// The page.
pub(super) async fn page(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
    Asked(params): Asked<Params>,
) -> Result<Markup, Refusal> {
    let text = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let asked = ProblemParams {
        prefix: text(&params.prefix),
        reason: text(&params.reason),
        kind: text(&params.kind),
        ignored: params.ignored,
        limit: Some(SHOWN),
        cursor: params.cursor.clone(),
    };
    let Json(found) = problems::list(State(gateway.clone()), Path(source.clone()), Asked(asked)).await?;
    let asked = GroupParams { prefix: text(&params.prefix), ignored: params.ignored };
    let counting = problems::groups(State(gateway.clone()), Path(source.clone()), Asked(asked));
    let groups = at_once(params.wait, counting).await.transpose()?.map(|Json(groups)| groups.items);
    let Json(Page { items: waiting, .. }) =
        words::waiting(State(gateway.clone()), Path(source.clone())).await?;
    let now = gateway.now();
    let home = format!("{HOME}/sources/{source}");
    let frame =
        Frame { title: "Problems", caller: Some(&caller), path: &[(home.clone(), source.as_str())], now };
    let here = format!("{home}/problems");
    let operates = may(&caller, Role::Operate);
    Ok(layout::page(
        &frame,
        html! {
            @if params.said { p.good role="status" { "Action queued. The owner of the Source applies it before the next run." } }
            @if !waiting.is_empty() { (said(&waiting, &home, operates, now)) }
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
        },
    ))
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
    html! {
        div.wide tabindex="0" role="region" aria-label="Problems by reason" {
            table {
                caption { "Problems by reason and kind" }
                thead { tr {
                    th scope="col" { "Reason" }
                    th scope="col" { "Kind" }
                    th.number scope="col" { "Count" }
                    th scope="col" { "First seen" }
                    th scope="col" { "Last seen" }
                    @if operates { th scope="col" { "Actions" } }
                } }
                tbody { @for group in groups { tr {
                    th scope="row" { a href={ (here) "?" (Params { reason: group.reason.to_string(), kind: group.kind.to_string(), ..params.clone() }.query()) } {
                        (group.reason)
                    } }
                    td { (group.kind) }
                    td.number { (tell::count(group.count)) }
                    td { (tell::ago(now, group.first_seen)) }
                    td { (tell::ago(now, group.last_seen)) }
                    @if operates { td { (forms(group, params, here)) } }
                } } }
            }
        }
    }
}

fn listed(items: &[SourceProblem], home: &str, now: Timestamp) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="All problems" {
            table {
                caption { "Problems: documents, then entries, messages, resources; " (items.len()) " on this page" }
                thead { tr {
                    th scope="col" { "Subject" }
                    th scope="col" { "Reason" }
                    th scope="col" { "Message" }
                    th.number scope="col" { "Attempts" }
                    th scope="col" { "Last seen" }
                } }
                tbody { @for problem in items { tr {
                    th.uri scope="row" {
                        @if problem.kind == "resource" {
                            a href={ (home) "/resources/history?uri=" (tell::query(&problem.uri)) } { (problem.uri) }
                        } @else { (problem.uri) br; span.hint { (problem.kind) } }
                    }
                    td { (problem.reason) }
                    td {
                        (problem.message)
                        @if let Some(ignored) = &problem.ignored { br; span.hint { "ignored: " (ignored.note) } }
                    }
                    td.number { (problem.attempts) }
                    td { (tell::ago(now, problem.last_seen)) }
                } } }
            }
        }
    }
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
