//! Adds a Source in two steps: the page first previews the spec and the plan of the first run.

use api::FieldError;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use control::SourceSpec;
use maud::{Markup, html};

use super::form::Fields;
use super::layout::{self, Frame};
use super::wanted_form::Form;
use super::{plan, runs, settings, tell, wanted};
use crate::ask::{Asked, Sent};
use crate::door;
use crate::refusal::Refusal;
use crate::sources::{self, TryParams};
use crate::state::Gateway;
use crate::tokens::{Caller, Role};

/// The empty form.
pub(super) async fn page(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
) -> Result<Markup, Refusal> {
    door::permit(&caller, Role::Admin)?;
    Ok(shown(&gateway, &caller, &Fields::default(), None, &[], None))
}

/// Shows the preview, or adds the Source.
pub(super) async fn submit(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    fields: Fields,
) -> Result<Response, Refusal> {
    let again = |refusal: &Refusal| {
        let page = shown(&gateway, &caller, &fields, Some(refusal.detail()), refusal.errors(), None);
        (StatusCode::UNPROCESSABLE_ENTITY, page).into_response()
    };
    let wanted = match wanted::read(&fields) {
        Ok(wanted) => wanted,
        Err(refusal) => return Ok(again(&refusal)),
    };
    let add = fields.has("add");
    let tried = TryParams { dry_run: !add };
    let (state, who) = (State(gateway.clone()), Extension(caller.clone()));
    let answer = match sources::create(state, who, Asked(tried), Sent(wanted.clone())).await {
        Ok(answer) => answer,
        Err(refusal) => return Ok(again(&refusal)),
    };
    if !add {
        let planned = plan::ask_for(&gateway, &caller, wanted.clone()).await;
        let would = would_be(&gateway, &SourceSpec::from(wanted), &planned);
        return Ok(shown(&gateway, &caller, &fields, None, &[], Some(would)).into_response());
    }
    if fields.has("run") {
        let id = SourceSpec::from(wanted).id;
        let first = Fields::from([("mode", "auto")]);
        return Ok(runs::submit(State(gateway), Extension(caller), Path(id.to_string()), first)
            .await?
            .into_response());
    }
    Ok(runs::to_page(&answer).into_response())
}

/// The preview: the spec, the plan, and the button that adds the Source.
fn would_be(gateway: &Gateway, spec: &SourceSpec, planned: &Markup) -> Markup {
    let due = spec.schedule.as_ref().and_then(|schedule| schedule.next_after(&spec.id, gateway.now()).ok());
    html! {
        section.would aria-labelledby="would" {
            h2 #would { "Preview" }
            p { "Nothing is stored yet. The Source ID will be " strong { (spec.id) } "." }
            @if let Some(due) = due { p { "First run " (tell::ago(gateway.now(), due)) "." } }
            (settings::list(spec))
            h3 { "Estimate" }
            (planned)
            p.box { input #run type="checkbox" name="run" checked; label for="run" { "start the first run now" } }
            p { button type="submit" name="add" value="yes" { "Add Source" } }
        }
    }
}

/// The form with its values, its errors and the preview.
fn shown(
    gateway: &Gateway,
    caller: &Caller,
    fields: &Fields,
    wrong: Option<&str>,
    errors: &[FieldError],
    would: Option<Markup>,
) -> Markup {
    let frame = Frame { title: "Add a Source", caller: Some(caller), path: &[], now: gateway.now() };
    let form = Form { fields, errors, is_new: true };
    layout::page(
        &frame,
        html! {
            (form.complaint(wrong))
            @if would.is_some() { p.good role="status" { "The settings are valid: " a href="#would" { "see the preview" } "." } }
            form method="post" action="/console/sources" {
                (form.all())
                // The first button, so that Enter in a field shows the preview and adds nothing.
                p { button type="submit" { "Preview" } }
                @if let Some(would) = would { (would) }
            }
        },
    )
}
