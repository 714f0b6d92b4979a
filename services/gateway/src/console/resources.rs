//! The resources of a Source, by URI prefix.

use api::{Page, Resource, ResourceState};
use axum::Json;
use jiff::Timestamp;
use maud::{Markup, html};
use model::WantedLink;
use serde::Deserialize;

use super::format;
use super::layout::Column::{Number, Text};
use super::layout::{self, PageContext, source_url};
use crate::api_error::ApiError;
use crate::extract::{Query, SourcePath};
use crate::resources::{self, ResourceParams};

/// Resources per page.
const SHOWN: u16 = 50;

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    prefix: String,
    /// The link that resources must have: a relation, or a relation and its target.
    link: String,
    cursor: Option<String>,
}

/// The page.
pub(super) async fn page(
    context: PageContext,
    SourcePath(source): SourcePath,
    Query(params): Query<Params>,
) -> Result<Markup, ApiError> {
    let prefix = params.prefix.trim().to_owned();
    let link = params.link.trim().to_owned();
    let wanted: Option<WantedLink> = if link.is_empty() {
        None
    } else {
        let refused = |error: model::OnlyError| ApiError::bad_request(error.to_string());
        Some(link.parse().map_err(refused)?)
    };
    let list = ResourceParams {
        prefix: Some(prefix.clone()),
        link_rel: wanted.as_ref().map(|wanted| wanted.rel().to_owned()),
        link_href: wanted.as_ref().and_then(WantedLink::href).map(str::to_owned),
        limit: Some(SHOWN),
        cursor: params.cursor,
    };
    let Json(found) = resources::list(context.state(), SourcePath(source.clone()), Query(list)).await?;
    let here = format!("{}/resources", source_url(&source));
    let content = html! {
        form.filter role="search" aria-label="Resources" method="get" action=(here) {
            label for="prefix" { "URIs that begin with" }
            input #prefix type="search" name="prefix" value=(prefix) spellcheck="false";
            label for="link" { "With the link" }
            input #link type="search" name="link" value=(link) placeholder="collection=URI" spellcheck="false";
            button type="submit" { "Find" }
        }
        form.filter aria-label="One resource" method="get" action={ (here) "/history" } {
            label for="uri" { "History of the URI" }
            input #uri type="search" name="uri" required spellcheck="false";
            button type="submit" { "Explain" }
        }
        (table(&found, &here, context.now))
        @if let Some(next) = &found.next {
            p { a rel="next" href={
                (here) "?prefix=" (format::query(&prefix)) "&link=" (format::query(&link)) "&cursor=" (next)
            } { "Next page" } }
        }
    };
    Ok(context.source_page(&source, "Resources", content))
}

fn table(found: &Page<Resource>, here: &str, now: Timestamp) -> Markup {
    if found.items.is_empty() {
        return html! { p { "No matching resource." } };
    }
    let caption = format!("Resources in the order of their URIs: {} on this page", found.items.len());
    let columns = [Text("URI"), Text("State"), Number("Length"), Text("Type"), Text("Stored")];
    let row = |resource: &Resource| {
        html! {
            th.uri scope="row" { a href={ (here) "/history?uri=" (format::query(&resource.uri)) } { (resource.uri) } }
            td { (state(resource.state)) }
            td.number { @if let Some(length) = resource.length { (format::bytes(length)) } }
            td { @if let Some(kind) = &resource.media_type { (kind) } }
            td { @if let Some(at) = resource.stored_at { (format::ago(now, at)) } }
        }
    };
    layout::table("Resources", &caption, &columns, found.items.iter().map(row))
}

/// The state of a resource.
pub(super) fn state(resource: ResourceState) -> Markup {
    let (severity, words) = match resource {
        ResourceState::Present => ("good", "stored"),
        ResourceState::Deleted => ("open", "deleted"),
        ResourceState::Pending => ("open", "pending"),
        ResourceState::Problem => ("bad", "problem"),
    };
    html! { span class={ "state " (severity) } { (words) } }
}
