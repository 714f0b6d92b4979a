//! The resources of a Source, by URI prefix.

use api::{Page, Resource, ResourceState};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{self, Frame};
use super::{HOME, tell};
use crate::ask::Asked;
use crate::refusal::Refusal;
use crate::resources::{self, ListParams};
use crate::state::Gateway;
use crate::tokens::Caller;

/// Resources per page.
const SHOWN: u16 = 50;

/// Parameters of the page.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Params {
    prefix: String,
    cursor: Option<String>,
}

/// The page.
pub(super) async fn page(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
    Asked(params): Asked<Params>,
) -> Result<Markup, Refusal> {
    let prefix = params.prefix.trim().to_owned();
    let asked = ListParams { prefix: Some(prefix.clone()), limit: Some(SHOWN), cursor: params.cursor };
    let Json(found) = resources::list(State(gateway.clone()), Path(source.clone()), Asked(asked)).await?;
    let now = gateway.now();
    let home = format!("{HOME}/sources/{source}");
    let here = format!("{home}/resources");
    let frame = Frame { title: "Resources", caller: Some(&caller), path: &[(home, source.as_str())], now };
    Ok(layout::page(
        &frame,
        html! {
            form.filter role="search" aria-label="Resources" method="get" action=(here) {
                label for="prefix" { "URIs that begin with" }
                input #prefix type="search" name="prefix" value=(prefix) spellcheck="false";
                button type="submit" { "Find" }
            }
            form.filter aria-label="One resource" method="get" action={ (here) "/history" } {
                label for="uri" { "History of the URI" }
                input #uri type="search" name="uri" required spellcheck="false";
                button type="submit" { "Explain" }
            }
            (table(&found, &here, now))
            @if let Some(next) = &found.next {
                p { a rel="next" href={ (here) "?prefix=" (tell::query(&prefix)) "&cursor=" (next) } { "Next page" } }
            }
        },
    ))
}

fn table(found: &Page<Resource>, here: &str, now: Timestamp) -> Markup {
    html! {
        @if found.items.is_empty() { p { "No matching resource." } } @else {
            div.wide tabindex="0" role="region" aria-label="Resources" {
                table {
                    caption { "Resources in the order of their URIs: " (found.items.len()) " on this page" }
                    thead { tr {
                        th scope="col" { "URI" }
                        th scope="col" { "State" }
                        th.number scope="col" { "Length" }
                        th scope="col" { "Type" }
                        th scope="col" { "Stored" }
                    } }
                    tbody { @for resource in &found.items { tr {
                        th.uri scope="row" { a href={ (here) "/history?uri=" (tell::query(&resource.uri)) } { (resource.uri) } }
                        td { (state(resource.state)) }
                        td.number { @if let Some(length) = resource.length { (tell::bytes(length)) } }
                        td { @if let Some(kind) = &resource.media_type { (kind) } }
                        td { @if let Some(at) = resource.stored_at { (tell::ago(now, at)) } }
                    } } }
                }
            }
        }
    }
}

/// The state of a resource.
pub(super) fn state(resource: ResourceState) -> Markup {
    let (gravity, words) = match resource {
        ResourceState::Present => ("good", "stored"),
        ResourceState::Deleted => ("open", "deleted"),
        ResourceState::Pending => ("open", "pending"),
        ResourceState::Problem => ("bad", "problem"),
    };
    html! { span class={ "state " (gravity) } { (words) } }
}
