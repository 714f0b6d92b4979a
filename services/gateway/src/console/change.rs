//! Changes the spec of a Source, or removes the Source.

use api::{FieldError, Spec};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use super::form::Fields;
use super::layout::{self, Frame};
use super::wanted_form::Form;
use super::{HOME, wanted};
use crate::ask::{self, Asked, Sent};
use crate::door;
use crate::refusal::Refusal;
use crate::sources::{self, TryParams};
use crate::state::Gateway;
use crate::tokens::{Caller, Role};

/// The form field with the revision of the Source that the operator read.
const READ: &str = "revision";

/// The form, filled with the current spec.
pub(super) async fn page(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
) -> Result<Markup, Refusal> {
    door::permit(&caller, Role::Admin)?;
    let found = gateway.control().sources().get(&ask::source(&source)?).await?;
    let fields = wanted::fields(&Spec::from(&*found));
    let read = found.revision.to_string();
    Ok(shown(&gateway, &caller, &source, &Written { fields: &fields, read: &read, wrong: None, errors: &[] }))
}

/// Changes the spec, unless another operator changed it since the form was read.
pub(super) async fn submit(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
    fields: Fields,
) -> Result<Response, Refusal> {
    let read = fields.get(READ).unwrap_or_default();
    let again = |refusal: &Refusal| {
        let (wrong, errors) = (Some(refusal.detail()), refusal.errors());
        let page = shown(&gateway, &caller, &source, &Written { fields: &fields, read, wrong, errors });
        (StatusCode::UNPROCESSABLE_ENTITY, page).into_response()
    };
    let (state, who, at) = (State(gateway.clone()), Extension(caller.clone()), Path(source.clone()));
    let really = Asked(TryParams { dry_run: false });
    let changed = match wanted::read(&fields) {
        Ok(wanted) => sources::change(state, who, at, really, if_read(read)?, Sent(wanted)).await,
        Err(refusal) => Err(refusal),
    };
    Ok(match changed {
        Ok(_) => Redirect::to(&format!("{HOME}/sources/{source}")).into_response(),
        Err(refusal) => again(&refusal),
    })
}

/// Removes the Source from the fleet.
pub(super) async fn delete(
    gateway: State<Gateway>,
    caller: Extension<Caller>,
    source: Path<String>,
    fields: Fields,
) -> Result<Redirect, Refusal> {
    let read = if_read(fields.get(READ).unwrap_or_default())?;
    sources::delete(gateway, caller, source, read).await?;
    Ok(Redirect::to(HOME))
}

/// The `If-Match` header that limits the API call to the revision that was read.
fn if_read(revision: &str) -> Result<HeaderMap, Refusal> {
    let tag = format!("\"{revision}\"").parse();
    let tag = tag.map_err(|_| Refusal::bad_request("the revision of the form cannot be read"))?;
    Ok(HeaderMap::from_iter([(header::IF_MATCH, tag)]))
}

/// A form to show.
struct Written<'a> {
    fields: &'a Fields,
    /// The revision of the Source that was read.
    read: &'a str,
    wrong: Option<&'a str>,
    errors: &'a [FieldError],
}

fn shown(gateway: &Gateway, caller: &Caller, source: &str, written: &Written<'_>) -> Markup {
    let here = format!("{HOME}/sources/{source}");
    let path = [(here.clone(), source)];
    let frame = Frame { title: "Change settings", caller: Some(caller), path: &path, now: gateway.now() };
    let form = Form { fields: written.fields, errors: written.errors, is_new: false };
    let read = || html! { input type="hidden" name=(READ) value=(written.read); };
    layout::page(
        &frame,
        html! {
            (form.complaint(written.wrong))
            form method="post" action={ (here) "/settings" } {
                (read())
                (form.all())
                p { button type="submit" { "Save" } }
            }
            section aria-labelledby="no-more" {
                h2 #no-more { "Remove Source" }
                p { "Its stored resources stay and can be read; no further request goes to the Source. Cancel a current run first." }
                form method="post" action={ (here) "/delete" } {
                    (read())
                    button.grave type="submit" { "Remove Source" }
                }
            }
        },
    )
}
