//! Operator actions on problems: the forms, their submission, and the queued actions.

use api::{Ignore, ProblemAction, ProblemGroup, ProblemSelector, Retry};
use axum::Json;
use axum::extract::State;
use axum::response::Redirect;
use jiff::Timestamp;
use maud::{Markup, html};
use model::SourceId;

use super::Params;
use crate::api_error::ApiError;
use crate::console::form::Fields;
use crate::console::{HOME, format};
use crate::extract::{JsonBody, SourcePath};
use crate::problem_actions;
use crate::state::Gateway;
use crate::tokens::Caller;

/// The forms with the actions on a group.
pub(super) fn forms(group: &ProblemGroup, params: &Params, here: &str) -> Markup {
    let which = format!("{} ({})", group.reason, group.kind);
    let note = format!("note-{}-{}", group.reason, group.kind);
    let hidden = html! {
        input type="hidden" name="reason" value=(group.reason);
        input type="hidden" name="kind" value=(group.kind);
        @if !params.prefix.is_empty() { input type="hidden" name="prefix" value=(params.prefix); }
    };
    html! {
        form.row method="post" action={ (here) "/retry" } {
            (hidden)
            @if params.ignored { input type="hidden" name="ignored" value="true"; }
            button type="submit" { "Retry" span.hidden { ": " (which) } }
        }
        form.row method="post" action={ (here) "/ignore" } {
            (hidden)
            @if params.ignored {
                input type="hidden" name="unignore" value="true";
                button.quiet type="submit" { "Stop ignoring" span.hidden { ": " (which) } }
            } @else {
                label for=(note) { "Reason to ignore" span.hidden { " " (which) } }
                input id=(note) name="note" required maxlength="500";
                button.quiet type="submit" { "Ignore" span.hidden { ": " (which) } }
            }
        }
    }
}

/// The queued actions, which the owner has not taken up yet.
pub(super) fn queued(actions: &[ProblemAction], home: &str, operates: bool, now: Timestamp) -> Markup {
    html! {
        section aria-labelledby="queued" {
            h2 #queued { "Queued actions" }
            ul { @for action in actions { li {
                strong { (action.action) } " "
                @for reason in &action.select.reasons { (reason) " " }
                @for kind in &action.select.kind { "(" (kind) ") " }
                @if let Some(prefix) = &action.select.prefix { "below " (prefix) " " }
                @for uri in &action.select.uris { code { (uri) } " " }
                @if let Some(note) = &action.note { "– " (note) " " }
                (format::ago(now, action.requested_at))
            } } }
            @if operates {
                form method="post" action={ (home) "/runs" } { button type="submit" { "Start run now" } }
            }
        }
    }
}

/// Queues a retry of problems.
pub(in crate::console) async fn retry(
    State(gateway): State<Gateway>,
    caller: Caller,
    SourcePath(source): SourcePath,
    fields: Fields,
) -> Result<Redirect, ApiError> {
    let asked = Retry { select: selected(&fields)?, ignored: fields.has("ignored") };
    let (_, Json(_)) =
        problem_actions::retry(State(gateway), caller, SourcePath(source.clone()), JsonBody(asked)).await?;
    Ok(to_problems(&source))
}

/// Queues an action to ignore problems, or to stop ignoring them.
pub(in crate::console) async fn ignore(
    State(gateway): State<Gateway>,
    caller: Caller,
    SourcePath(source): SourcePath,
    fields: Fields,
) -> Result<Redirect, ApiError> {
    let asked =
        Ignore { select: selected(&fields)?, note: fields.text("note"), unignore: fields.has("unignore") };
    let (_, Json(_)) =
        problem_actions::ignore(State(gateway), caller, SourcePath(source.clone()), JsonBody(asked)).await?;
    Ok(to_problems(&source))
}

fn to_problems(source: &SourceId) -> Redirect {
    Redirect::to(&format!("{HOME}/sources/{source}/problems?said=true"))
}

/// The problems that a form selects.
fn selected(fields: &Fields) -> Result<ProblemSelector, ApiError> {
    let reasons = fields.get("reason").map(str::parse).into_iter().collect::<Result<Vec<_>, _>>();
    Ok(ProblemSelector {
        uris: fields.text("uri").into_iter().collect(),
        prefix: fields.text("prefix"),
        reasons: reasons.map_err(|error| ApiError::bad_request(format!("{error}")))?,
        kind: fields.text("kind").into_iter().collect(),
        all: fields.has("all"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_means_what_its_fields_say() {
        let about = selected(&Fields::from([
            ("reason", "timeout"),
            ("kind", "resource"),
            ("prefix", "https://e.org/"),
        ]))
        .unwrap();
        assert_eq!(
            (about.reasons.len(), about.kind, about.prefix.as_deref()),
            (1, vec!["resource".to_owned()], Some("https://e.org/"))
        );
        assert!(!about.all && about.uris.is_empty());
        assert!(selected(&Fields::from([("reason", "bored")])).is_err());
    }
}
