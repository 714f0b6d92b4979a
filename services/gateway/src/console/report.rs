//! The page of a Source's report card, with the content of the API's report.

use std::collections::BTreeMap;

use ::report::{Finding, ProblemGroup, ReportCard};
use maud::{Markup, html};
use resourcesync::relation;
use serde::Deserialize;

use super::deadline::within_deadline;
use super::format;
use super::layout::Column::{Number, Text};
use super::layout::{self, PageContext, source_url};
use crate::api_error::ApiError;
use crate::extract::{Query, SourcePath};
use crate::report;

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    /// Whether the operator chose to wait for slow results.
    wait: bool,
}

/// The page.
pub(super) async fn page(
    context: PageContext,
    SourcePath(source): SourcePath,
    Query(params): Query<Params>,
) -> Result<Markup, ApiError> {
    let gathering = {
        let gateway = context.gateway.clone();
        let source = source.clone();
        async move { report::card(&gateway, &source).await }
    };
    let card = within_deadline(params.wait, gathering).await.transpose()?;
    let here = format!("{}/report", source_url(&source));
    let content = html! {
        p { "For the operator of the Source." }
        @match &card {
            Some(card) => (card_sections(card, &format!("{}/resources", source_url(&source)))),
            None => p {
                "The catalog of this Source is large. Reading it takes a while. "
                a href={ (here) "?wait=true" } { "Read it and wait" }
            },
        }
    };
    Ok(context.source_page(&source, "Report card", content))
}

/// `resources`: the page of the resources.
fn card_sections(card: &ReportCard, resources: &str) -> Markup {
    html! {
        section aria-labelledby="findings" {
            h2 #findings { "Findings" }
            @if card.findings.is_empty() { p { "No deviations from the specification." } }
            @else { (findings(&card.findings)) }
        }
        section aria-labelledby="coverage" {
            h2 #coverage { "Coverage" }
            dl.figures {
                dt { "Listed" } dd { (card.coverage.listed.map_or("no complete list".to_owned(), format::count)) }
                dt { "Stored" } dd { (format::count(card.coverage.held)) }
                dt { "Pending" } dd { (format::count(card.coverage.pending)) }
                dt { "Problems" } dd { (format::count(card.coverage.problems)) }
                dt { "Ignored" } dd { (format::count(card.coverage.ignored)) }
                dt { "Absent" } dd { (format::count(card.coverage.absent)) }
                @if card.coverage.foreign > 0 { dt { "Of other sites" } dd { (format::count(card.coverage.foreign)) } }
                dt { "Deleted" } dd { (format::count(card.coverage.deleted)) }
            }
        }
        section aria-labelledby="fixity" {
            h2 #fixity { "Fixity of the stored resources" }
            dl.figures {
                dt { "With a digest" } dd { (format::count(card.fixity.digest)) }
                dt { "With a length only" } dd { (format::count(card.fixity.length_only)) }
                dt { "With neither" } dd { (format::count(card.fixity.nothing)) }
                dt { "With a last modification" } dd { (format::count(card.fixity.lastmod)) }
                @for (name, times) in &card.fixity.algorithms { dt { (name) } dd { (format::count(*times)) } }
            }
        }
        @if !card.problems.is_empty() { (problems(&card.problems)) }
        @if !card.quirks.is_empty() { (quirks(&card.quirks)) }
        @if !card.document_links.is_empty() || !card.links.is_empty() { (links(card)) }
        @if !card.collections.is_empty() { (collections(card, resources)) }
        section aria-labelledby="text" {
            h2 #text { "Text for mail" }
            details { summary { "Text" } pre tabindex="0" { (card.text()) } }
        }
    }
}

fn findings(findings: &[Finding]) -> Markup {
    let columns = [Text("Finding"), Text("Severity"), Text("Advice"), Number("Times")];
    let row = |finding: &Finding| {
        html! {
            th scope="row" { (finding.what) br; span.hint { (finding.finding) ": " (finding.section) } }
            td { (finding.severity.as_str()) }
            td { (finding.advice) @if let Some(place) = finding.first_place.as_ref().or(finding.documents.first()) {
                br; span.hint { "first at " code { (place) } }
            } }
            td.number { (format::count(finding.count)) }
        }
    };
    layout::table("Findings", "Findings by severity", &columns, findings.iter().map(row))
}

fn problems(groups: &[ProblemGroup]) -> Markup {
    html! {
        section aria-labelledby="problems" {
            h2 #problems { "Problems" }
            ul { @for group in groups { li {
                (format::count(group.count)) " × " strong { (group.reason) }
                @if let Some(first) = group.examples.first() { br; span.hint { (first.subject) ": " (first.message) } }
            } } }
        }
    }
}

fn links(card: &ReportCard) -> Markup {
    html! {
        section aria-labelledby="links" {
            h2 #links { "Links" }
            dl {
                @for link in &card.document_links { dt { (link.rel) } dd { code { (link.href) } br; span.hint { "of " (link.document) } } }
            }
            dl.figures { @for (relation, n) in &card.links { dt { (relation) } dd {
                (format::count(*n))
                @if let Some(n) = card.unlisted_targets.as_ref().and_then(|targets| targets.get(relation)) {
                    br; span.hint { (format::count(*n)) " of their targets in no list" }
                }
            } } }
            @if card.unlisted_targets.is_none() {
                p { "There are too many links to tell which of their targets no list names." }
            }
        }
    }
}

/// Each collection leads to its resources.
fn collections(card: &ReportCard, resources: &str) -> Markup {
    html! {
        section aria-labelledby="collections" {
            h2 #collections { "Collections" }
            dl.figures { @for collection in &card.collections {
                @let link = format!("{}={}", relation::COLLECTION, collection.uri);
                dt { a href={ (resources) "?link=" (format::query(&link)) } { (collection.uri) } }
                dd { (format::count(collection.resources)) }
            } }
            @if card.collections_left_out > 0 {
                p { "And " (format::count(card.collections_left_out)) " more with fewer resources." }
            }
        }
    }
}

fn quirks(counted: &BTreeMap<String, u64>) -> Markup {
    html! {
        section aria-labelledby="quirks" {
            h2 #quirks { "Quirks" }
            dl.figures { @for (name, times) in counted { dt { (name) } dd { (format::count(*times)) } } }
        }
    }
}
