//! The page of a Source's report card, with the content of the API's report.

use std::collections::BTreeMap;

use ::report::{Finding, ProblemGroup, ReportCard};
use axum::Extension;
use axum::extract::{Path, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{self, Frame};
use super::patience::at_once;
use super::{HOME, tell};
use crate::ask::{self, Asked};
use crate::refusal::Refusal;
use crate::report;
use crate::state::Gateway;
use crate::tokens::Caller;

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    /// Whether the operator chose to wait for slow results.
    wait: bool,
}

/// The page.
pub(super) async fn page(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
    Asked(params): Asked<Params>,
) -> Result<Markup, Refusal> {
    let id = ask::source(&source)?;
    let gathering = {
        let gateway = gateway.clone();
        async move { report::card(&gateway, &id).await }
    };
    let card = at_once(params.wait, gathering).await.transpose()?;
    let home = format!("{HOME}/sources/{source}");
    let here = format!("{home}/report");
    let frame = Frame {
        title: "Report card",
        caller: Some(&caller),
        path: &[(home, source.as_str())],
        now: gateway.now(),
    };
    Ok(layout::page(
        &frame,
        html! {
            p { "For the operator of the Source." }
            @match &card {
                Some(card) => (told(card)),
                None => p {
                    "The catalog of this Source is large. Reading it takes a while. "
                    a href={ (here) "?wait=true" } { "Read it and wait" }
                },
            }
        },
    ))
}

fn told(card: &ReportCard) -> Markup {
    html! {
        section aria-labelledby="findings" {
            h2 #findings { "Findings" }
            @if card.findings.is_empty() { p { "No deviations from the specification." } }
            @else { (findings(&card.findings)) }
        }
        section aria-labelledby="coverage" {
            h2 #coverage { "Coverage" }
            dl.figures {
                dt { "Listed" } dd { (card.coverage.listed.map_or("no complete list".to_owned(), tell::count)) }
                dt { "Stored" } dd { (tell::count(card.coverage.held)) }
                dt { "Pending" } dd { (tell::count(card.coverage.pending)) }
                dt { "Problems" } dd { (tell::count(card.coverage.problems)) }
                dt { "Ignored" } dd { (tell::count(card.coverage.ignored)) }
                dt { "Absent" } dd { (tell::count(card.coverage.absent)) }
                @if card.coverage.foreign > 0 { dt { "Of other sites" } dd { (tell::count(card.coverage.foreign)) } }
                dt { "Deleted" } dd { (tell::count(card.coverage.deleted)) }
            }
        }
        section aria-labelledby="fixity" {
            h2 #fixity { "Fixity of the stored resources" }
            dl.figures {
                dt { "With a digest" } dd { (tell::count(card.fixity.digest)) }
                dt { "With a length only" } dd { (tell::count(card.fixity.length_only)) }
                dt { "With neither" } dd { (tell::count(card.fixity.nothing)) }
                dt { "With a last modification" } dd { (tell::count(card.fixity.lastmod)) }
                @for (name, times) in &card.fixity.algorithms { dt { (name) } dd { (tell::count(*times)) } }
            }
        }
        @if !card.problems.is_empty() { (problems(&card.problems)) }
        @if !card.quirks.is_empty() { (quirks(&card.quirks)) }
        section aria-labelledby="text" {
            h2 #text { "Text for mail" }
            details { summary { "Text" } pre tabindex="0" { (card.text()) } }
        }
    }
}

fn findings(findings: &[Finding]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Findings" {
            table {
                caption { "Findings by severity" }
                thead { tr {
                    th scope="col" { "Finding" }
                    th scope="col" { "Severity" }
                    th scope="col" { "Advice" }
                    th.number scope="col" { "Times" }
                } }
                tbody { @for finding in findings { tr {
                    th scope="row" { (finding.what) br; span.hint { (finding.finding) ": " (finding.section) } }
                    td { (finding.severity.as_str()) }
                    td { (finding.advice) @if let Some(place) = finding.first_place.as_ref().or(finding.documents.first()) {
                        br; span.hint { "first at " code { (place) } }
                    } }
                    td.number { (tell::count(finding.count)) }
                } } }
            }
        }
    }
}

fn problems(groups: &[ProblemGroup]) -> Markup {
    html! {
        section aria-labelledby="problems" {
            h2 #problems { "Problems" }
            ul { @for group in groups { li {
                (tell::count(group.count)) " × " strong { (group.reason) }
                @if let Some(first) = group.examples.first() { br; span.hint { (first.subject) ": " (first.message) } }
            } } }
        }
    }
}

fn quirks(counted: &BTreeMap<String, u64>) -> Markup {
    html! {
        section aria-labelledby="quirks" {
            h2 #quirks { "Quirks" }
            dl.figures { @for (name, times) in counted { dt { (name) } dd { (tell::count(*times)) } } }
        }
    }
}
