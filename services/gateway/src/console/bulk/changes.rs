//! Pauses, resumes or labels all Sources of a list.

use api::{SourceDone, SourceResult};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use control::{LabelKey, LabelValue, Spec};
use futures::StreamExt as _;
use maud::{Markup, html};

use super::{Params, Refusals, Selection};
use crate::api_error::ApiError;
use crate::console::form::Fields;
use crate::console::layout::PageContext;
use crate::console::source_query::SourceQuery;
use crate::console::{SOURCES, format};
use crate::extract::{self, Query};
use crate::tokens::{Caller, Role};
use crate::{auth, batch};

/// The path of the page, and of its form: that of the API's batch of Sources.
pub(in crate::console) const PATH: &str = "/console/sources:batch";

/// What is done with Sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Pause,
    Resume,
    Label,
}

impl Action {
    pub(super) const ALL: [Self; 3] = [Self::Pause, Self::Resume, Self::Label];

    /// Its name in URLs and forms.
    fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Label => "label",
        }
    }

    /// The text of its link and its button.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Pause => "Pause",
            Self::Resume => "Resume",
            Self::Label => "Label",
        }
    }

    fn named(name: &str) -> Result<Self, ApiError> {
        let found = Self::ALL.into_iter().find(|action| action.name() == name);
        found.ok_or_else(|| {
            ApiError::bad_request(format!("{name:?} is no action; use pause, resume or label"))
        })
    }

    /// What it does, for the operator who confirms it.
    fn meaning(self) -> &'static str {
        match self {
            Self::Pause => "A paused Source has no scheduled runs. A run in progress goes on.",
            Self::Resume => "A Source that is resumed runs on its schedule again.",
            Self::Label => "Labels with these keys are replaced; others stay.",
        }
    }
}

/// A change of a spec.
#[derive(Debug, Default, PartialEq)]
struct Change {
    enabled: Option<bool>,
    set: Vec<(LabelKey, LabelValue)>,
    removed: Vec<LabelKey>,
}

impl Change {
    /// The change that a form describes.
    fn read(action: Action, fields: &Fields) -> Result<Self, ApiError> {
        let enabled = match action {
            Action::Pause => Some(false),
            Action::Resume => Some(true),
            Action::Label => None,
        };
        if enabled.is_some() {
            return Ok(Self { enabled, ..Self::default() });
        }
        let (mut set, mut removed) = (Vec::new(), Vec::new());
        for label in words(fields.get("set")) {
            let (key, value) = label.split_once('=').ok_or_else(|| {
                ApiError::bad_request(format!("{label:?} is no label; write key=value, such as country=jp"))
            })?;
            set.push((key.parse().map_err(bad)?, value.parse().map_err(bad)?));
        }
        for key in words(fields.get("remove")) {
            removed.push(key.parse().map_err(bad)?);
        }
        if set.is_empty() && removed.is_empty() {
            return Err(ApiError::bad_request("name a label to set, or a key to remove"));
        }
        Ok(Self { enabled, set, removed })
    }

    fn apply(&self, spec: &mut Spec) {
        spec.enabled = self.enabled.unwrap_or(spec.enabled);
        for key in &self.removed {
            spec.labels.remove(key);
        }
        spec.labels.extend(self.set.iter().cloned());
    }
}

fn bad(error: impl ToString) -> ApiError {
    ApiError::bad_request(error.to_string())
}

/// The words of a field, which blanks or commas separate.
fn words(field: Option<&str>) -> impl Iterator<Item = &str> {
    let is_between = |c: char| c.is_whitespace() || c == ',';
    field.unwrap_or_default().split(is_between).filter(|word| !word.is_empty())
}

/// The URL of the page for an action on these Sources.
pub(super) fn url(action: Action, query: &SourceQuery) -> String {
    let sources = query.url_query().replacen('?', "&", 1);
    format!("{PATH}?action={}{sources}", action.name())
}

/// Says how many Sources the form changes.
pub(in crate::console) async fn page(
    context: PageContext,
    caller: Caller,
    Query(params): Query<Params>,
) -> Result<Markup, ApiError> {
    auth::require_role(&caller, Role::Admin)?;
    let (query, action) = params.query();
    let action = Action::named(&action)?;
    let selection = Selection::of(&context, &caller, query)?;
    Ok(confirmation(&context, action, &selection, &Fields::default(), None))
}

/// Changes the Sources. If there are more than the operator has seen, it asks again.
pub(in crate::console) async fn submit(
    context: PageContext,
    caller: Caller,
    fields: Fields,
) -> Result<Response, ApiError> {
    let gateway = &context.gateway;
    let action = Action::named(fields.get("action").unwrap_or_default())?;
    let change = Change::read(action, &fields)?;
    let (selection, seen) = Selection::of_form(&context, &caller, &fields)?;
    if selection.count() > seen {
        let page = confirmation(&context, action, &selection, &fields, Some(seen));
        return Ok((StatusCode::CONFLICT, page).into_response());
    }
    let _permit = extract::batch_permit(gateway)?;
    let back = selection.back();
    let results = batch::change_sources(gateway, &caller, selection.sources, |spec| change.apply(spec));
    let mut results = std::pin::pin!(results);
    let (mut changed, mut unchanged, mut refusals) = (0_u64, 0_u64, Refusals::default());
    while let Some(SourceResult { source, done, problem, .. }) = results.next().await {
        match (done, problem) {
            (_, Some(problem)) => refusals.add(source, problem.detail),
            (SourceDone::Unchanged, None) => unchanged += 1,
            (_, None) => changed += 1,
        }
    }
    tracing::info!(
        action = action.name(),
        changed,
        unchanged,
        refused = refusals.count,
        token = caller.name(),
        "Sources are changed"
    );
    let content = html! {
        p.good role="status" { (format::counted(changed, "Source was", "Sources were")) " changed." }
        @if unchanged > 0 { p { (format::counted(unchanged, "Source was", "Sources were")) " so already." } }
        (refusals.list())
        (back)
        p { a href=(SOURCES) { "All Sources" } }
    };
    Ok(context.page("Sources changed", content).into_response())
}

fn confirmation(
    context: &PageContext,
    action: Action,
    selection: &Selection,
    fields: &Fields,
    seen: Option<usize>,
) -> Markup {
    let count = selection.count() as u64;
    let content = html! {
        (selection.summary(seen))
        p { (action.meaning()) }
        @if count > 0 {
            form method="post" action=(PATH) {
                (selection.hidden())
                input type="hidden" name="action" value=(action.name());
                @if action == Action::Label {
                    p {
                        label for="set" { "Labels to set" }
                        input #set type="text" name="set" value=[fields.get("set")] placeholder="country=jp tier=1" spellcheck="false";
                    }
                    p {
                        label for="remove" { "Keys of labels to remove" }
                        input #remove type="text" name="remove" value=[fields.get("remove")] placeholder="test" spellcheck="false";
                    }
                }
                button type="submit" { (action.label()) " " (format::counted(count, "Source", "Sources")) }
            }
        }
        (selection.back())
    };
    let title = match action {
        Action::Pause => "Pause Sources",
        Action::Resume => "Resume Sources",
        Action::Label => "Label Sources",
    };
    context.page(title, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &str, remove: &str) -> Result<Change, String> {
        let fields = Fields::from([("set", set), ("remove", remove)]);
        Change::read(Action::Label, &fields).map_err(|error| error.at("/").detail)
    }

    #[test]
    fn labels_are_set_and_removed_and_others_stay() {
        let mut spec = Spec::new("https://example.org/".parse().unwrap());
        read("country=jp, tier=1", "").unwrap().apply(&mut spec);
        read("tier=2\tempty=", "country other").unwrap().apply(&mut spec);
        let labels: Vec<_> = spec.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(labels, ["empty=", "tier=2"]);
        assert!(spec.enabled);
        Change::read(Action::Pause, &Fields::default()).unwrap().apply(&mut spec);
        assert!(!spec.enabled && spec.labels.len() == 2);
    }

    #[test]
    fn what_is_no_label_is_refused_with_what_to_write() {
        assert!(read("country", "").unwrap_err().contains("key=value"));
        assert!(read("a b=c/d", "").unwrap_err().contains("key=value"));
        assert!(read("b=c/d", "").unwrap_err().contains("value of a label"));
        assert!(read("", "/").unwrap_err().contains("key of a label"));
        assert!(read("", "").unwrap_err().contains("name a label"));
    }
}
