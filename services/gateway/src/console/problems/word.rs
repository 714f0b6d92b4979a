//! Operator actions on problems: the forms, their submission, and the queued actions.

use api::{Ignore, ProblemAction, ProblemGroup, ProblemSelector, Retry};
use axum::extract::{Path, State};
use axum::response::Redirect;
use axum::{Extension, Json};
use jiff::Timestamp;
use maud::{Markup, html};

use super::Params;
use crate::ask::Sent;
use crate::console::form::Fields;
use crate::console::{HOME, tell};
use crate::refusal::Refusal;
use crate::state::Gateway;
use crate::tokens::Caller;
use crate::words;

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
pub(super) fn said(waiting: &[ProblemAction], home: &str, operates: bool, now: Timestamp) -> Markup {
    html! {
        section aria-labelledby="said" {
            h2 #said { "Queued actions" }
            ul { @for word in waiting { li {
                strong { (word.action) } " "
                @for reason in &word.select.reasons { (reason) " " }
                @for kind in &word.select.kind { "(" (kind) ") " }
                @if let Some(prefix) = &word.select.prefix { "below " (prefix) " " }
                @for uri in &word.select.uris { code { (uri) } " " }
                @if let Some(note) = &word.note { "– " (note) " " }
                (tell::ago(now, word.requested_at))
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
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
    fields: Fields,
) -> Result<Redirect, Refusal> {
    let asked = Retry { select: meant(&fields)?, ignored: fields.has("ignored") };
    let (_, Json(_)) =
        words::retry(State(gateway), Extension(caller), Path(source.clone()), Sent(asked)).await?;
    Ok(heard(&source))
}

/// Queues an action to ignore problems, or to stop ignoring them.
pub(in crate::console) async fn ignore(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
    fields: Fields,
) -> Result<Redirect, Refusal> {
    let asked =
        Ignore { select: meant(&fields)?, note: fields.text("note"), unignore: fields.has("unignore") };
    let (_, Json(_)) =
        words::ignore(State(gateway), Extension(caller), Path(source.clone()), Sent(asked)).await?;
    Ok(heard(&source))
}

fn heard(source: &str) -> Redirect {
    Redirect::to(&format!("{HOME}/sources/{source}/problems?said=true"))
}

/// The problems that a form selects.
fn meant(fields: &Fields) -> Result<ProblemSelector, Refusal> {
    let reasons = fields.get("reason").map(str::parse).into_iter().collect::<Result<Vec<_>, _>>();
    Ok(ProblemSelector {
        uris: fields.text("uri").into_iter().collect(),
        prefix: fields.text("prefix"),
        reasons: reasons.map_err(|error| Refusal::bad_request(format!("{error}")))?,
        kind: fields.text("kind").into_iter().collect(),
        all: fields.has("all"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_means_what_its_fields_say() {
        let about =
            meant(&Fields::from([("reason", "timeout"), ("kind", "resource"), ("prefix", "https://e.org/")]))
                .unwrap();
        assert_eq!(
            (about.reasons.len(), about.kind, about.prefix.as_deref()),
            (1, vec!["resource".to_owned()], Some("https://e.org/"))
        );
        assert!(!about.all && about.uris.is_empty());
        assert!(meant(&Fields::from([("reason", "bored")])).is_err());
    }
}
