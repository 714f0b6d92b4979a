//! Adds a Source in two steps: the page first previews the spec and the plan of the first run.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use control::SourceSpec;
use jiff::Timestamp;
use maud::{Markup, html};

use super::form::Fields;
use super::layout::PageContext;
use super::spec_inputs::SpecInputs;
use super::{format, plan, runs, settings, spec_form};
use crate::api_error::ApiError;
use crate::auth;
use crate::extract::{JsonBody, Query, SourcePath};
use crate::sources::{self, DryRunParams};
use crate::tokens::{Caller, Role};

/// The empty form.
pub(super) async fn page(context: PageContext, caller: Caller) -> Result<Markup, ApiError> {
    auth::require_role(&caller, Role::Admin)?;
    Ok(form(&context, &Fields::default(), None, None))
}

/// Shows the preview, or adds the Source.
pub(super) async fn submit(
    context: PageContext,
    caller: Caller,
    fields: Fields,
) -> Result<Response, ApiError> {
    let adds = fields.has("add");
    let dry_run = Query(DryRunParams { dry_run: !adds });
    let created = match spec_form::read(&fields) {
        Ok(spec) => {
            let body = JsonBody(spec.clone());
            let answer = sources::create(context.state(), caller.clone(), dry_run, body).await;
            answer.map(|answer| (spec, answer))
        }
        Err(error) => Err(error),
    };
    let (spec, answer) = match created {
        Ok(created) => created,
        Err(error) => {
            let page = form(&context, &fields, Some(&error), None);
            return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
        }
    };
    if !adds {
        let estimate = plan::request(&context.gateway, &caller, spec.clone()).await;
        let preview = preview(context.now, &SourceSpec::from(spec), &estimate);
        return Ok(form(&context, &fields, None, Some(preview)).into_response());
    }
    if fields.has("run") {
        let source = SourcePath(SourceSpec::from(spec).id);
        let first = Fields::from([("mode", "auto")]);
        return Ok(runs::submit(context.state(), caller, source, first).await?.into_response());
    }
    Ok(runs::to_page(&answer).into_response())
}

/// The preview: the spec, the plan, and the button that adds the Source.
fn preview(now: Timestamp, spec: &SourceSpec, estimate: &Markup) -> Markup {
    let due = spec.schedule.as_ref().and_then(|schedule| schedule.next_after(&spec.id, now).ok());
    html! {
        section.would aria-labelledby="preview" {
            h2 #preview { "Preview" }
            p { "Nothing is stored yet. The Source ID will be " strong { (spec.id) } "." }
            @if let Some(due) = due { p { "First run " (format::ago(now, due)) "." } }
            (settings::list(spec))
            h3 { "Estimate" }
            (estimate)
            p.box { input #run type="checkbox" name="run" checked; label for="run" { "start the first run now" } }
            p { button type="submit" name="add" value="yes" { "Add Source" } }
        }
    }
}

/// The form with its values, its errors and the preview.
fn form(context: &PageContext, fields: &Fields, error: Option<&ApiError>, preview: Option<Markup>) -> Markup {
    let inputs = SpecInputs { fields, error, is_new: true };
    let content = html! {
        (inputs.error())
        @if preview.is_some() { p.good role="status" { "The settings are valid: " a href="#preview" { "see the preview" } "." } }
        form method="post" action="/console/sources" {
            (inputs.all())
            // The first button, so that Enter in a field shows the preview and adds nothing.
            p { button type="submit" { "Preview" } }
            @if let Some(preview) = preview { (preview) }
        }
    };
    context.page("Add a Source", content)
}
