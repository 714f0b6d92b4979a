//! Changes the spec of a Source, or removes the Source.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use model::SourceId;

use super::form::Fields;
use super::layout::{PageContext, source_url};
use super::spec_inputs::SpecInputs;
use super::{SOURCES, spec_form};
use crate::api_error::ApiError;
use crate::auth;
use crate::extract::{JsonBody, Query, SourcePath};
use crate::sources::{self, DryRunParams};
use crate::state::Gateway;
use crate::tokens::{Caller, Role};

/// The form field with the revision of the Source that the operator read.
const REVISION: &str = "revision";

/// The form, filled with the current spec.
pub(super) async fn page(
    context: PageContext,
    caller: Caller,
    SourcePath(source): SourcePath,
) -> Result<Markup, ApiError> {
    auth::require_role(&caller, Role::Admin)?;
    let found = context.gateway.control.sources().get(&source).await?;
    let fields = spec_form::fields(&found.spec);
    Ok(form(&context, &source, &fields, &found.revision.to_string(), None))
}

/// Changes the spec, unless another operator changed it since the form was read.
pub(super) async fn submit(
    context: PageContext,
    caller: Caller,
    SourcePath(source): SourcePath,
    fields: Fields,
) -> Result<Response, ApiError> {
    let revision = fields.get(REVISION).unwrap_or_default();
    let headers = if_match(revision)?;
    let changed = match spec_form::read(&fields) {
        Ok(spec) => {
            let path = SourcePath(source.clone());
            let params = Query(DryRunParams { dry_run: false });
            sources::change(context.state(), caller.clone(), path, params, headers, JsonBody(spec)).await
        }
        Err(error) => Err(error),
    };
    Ok(match changed {
        Ok(_) => Redirect::to(&source_url(&source)).into_response(),
        Err(error) => {
            let page = form(&context, &source, &fields, revision, Some(&error));
            (StatusCode::UNPROCESSABLE_ENTITY, page).into_response()
        }
    })
}

/// Removes the Source from the fleet.
pub(super) async fn delete(
    gateway: State<Gateway>,
    caller: Caller,
    source: SourcePath,
    fields: Fields,
) -> Result<Redirect, ApiError> {
    let headers = if_match(fields.get(REVISION).unwrap_or_default())?;
    sources::delete(gateway, caller, source, headers).await?;
    Ok(Redirect::to(SOURCES))
}

/// The `If-Match` header that limits the API call to the revision that was read.
fn if_match(revision: &str) -> Result<HeaderMap, ApiError> {
    let tag = format!("\"{revision}\"").parse();
    let tag = tag.map_err(|_| ApiError::bad_request("the revision of the form cannot be read"))?;
    Ok(HeaderMap::from_iter([(header::IF_MATCH, tag)]))
}

fn form(
    context: &PageContext,
    source: &SourceId,
    fields: &Fields,
    revision: &str,
    error: Option<&ApiError>,
) -> Markup {
    let here = source_url(source);
    let inputs = SpecInputs { fields, error, is_new: false };
    let revision = html! { input type="hidden" name=(REVISION) value=(revision); };
    let content = html! {
        (inputs.error())
        form method="post" action={ (here) "/settings" } {
            (revision)
            (inputs.all())
            p { button type="submit" { "Save" } }
        }
        section aria-labelledby="no-more" {
            h2 #no-more { "Remove Source" }
            p { "Its stored resources stay and can be read; no further request goes to the Source. Cancel a current run first." }
            form method="post" action={ (here) "/delete" } {
                (revision)
                button.grave type="submit" { "Remove Source" }
            }
        }
    };
    context.source_page(source, "Change settings", content)
}
