//! A Source is added in two steps: what would be stored is shown before it is.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use control::SourceSpec;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::form::Fields;
use super::layout::{self, Frame, may};
use super::{runs, settings, tell};
use crate::ask::{Asked, Sent};
use crate::refusal::Refusal;
use crate::sources::{self, TryParams};
use crate::state::Gateway;
use crate::tokens::{Caller, Role};
use api::FieldError;
use api::Wanted;

/// The form, empty.
pub(super) async fn page(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
) -> Result<Markup, Refusal> {
    if !may(&caller, Role::Admin) {
        return Err(Refusal::forbidden(format!(
            "the token {} may not do that: it needs the role {}",
            caller.name(),
            Role::Admin.as_str()
        )));
    }
    Ok(shown(&gateway, &caller, &Fields::default(), None, &[], None))
}

/// Shows what would be stored, or adds it.
pub(super) async fn submit(
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    fields: Fields,
) -> Result<Response, Refusal> {
    let again = |refusal: &Refusal| {
        let page = shown(&gateway, &caller, &fields, Some(refusal.detail()), refusal.errors(), None);
        (StatusCode::UNPROCESSABLE_ENTITY, page).into_response()
    };
    let wanted = match wanted(&fields) {
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
        let spec = SourceSpec::from(wanted);
        return Ok(
            shown(&gateway, &caller, &fields, None, &[], Some(would_be(&gateway, &spec))).into_response()
        );
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

/// What the form asks for, in the API's own words: so the same is refused, with the same reasons.
fn wanted(fields: &Fields) -> Result<Wanted, Refusal> {
    let mut asked = Map::new();
    for name in ["entry", "mode", "prefer", "absent", "include", "exclude", "robots", "contact", "credential"]
    {
        if let Some(text) = fields.get(name) {
            asked.insert(name.to_owned(), text.into());
        }
    }
    for name in ["max_deletes_percent", "history", "concurrency", "requests_per_second"] {
        if let Some(number) = number(fields, name)? {
            asked.insert(name.to_owned(), number.into());
        }
    }
    asked.insert("strict".to_owned(), fields.has("strict").into());
    if let Some(schedule) = schedule(fields)? {
        asked.insert("schedule".to_owned(), schedule);
    }
    if fields.get("when") == Some("follow") {
        let bounds = control::PollBounds::default();
        asked.insert(
            "continuous".to_owned(),
            json!({"least_seconds": bounds.least_seconds, "most_seconds": bounds.most_seconds}),
        );
    }
    if !asked.contains_key("entry") {
        return Err(Refusal::invalid("the way in is missing").fields([("entry", "it is needed".to_owned())]));
    }
    serde_json::from_value(Value::Object(asked)).map_err(|error| Refusal::invalid(error.to_string()))
}

fn number(fields: &Fields, name: &str) -> Result<Option<u64>, Refusal> {
    let read = |text: &str| {
        text.parse().map_err(|_| {
            Refusal::invalid("a number cannot be read").fields([(name, format!("{text:?} is no number"))])
        })
    };
    fields.get(name).map(read).transpose()
}

fn schedule(fields: &Fields) -> Result<Option<Value>, Refusal> {
    Ok(match fields.get("when") {
        Some("every") => {
            let hours = number(fields, "every_hours")?.ok_or_else(|| {
                Refusal::invalid("the hours are missing").fields([("every_hours", "it is needed".to_owned())])
            })?;
            Some(json!({"times": {"every_seconds": hours.saturating_mul(3_600)}}))
        }
        Some("cron") => Some(json!({"times": {"cron": fields.get("cron").unwrap_or_default()}})),
        _ => None,
    })
}

/// What would be added, and the button that does it.
fn would_be(gateway: &Gateway, spec: &SourceSpec) -> Markup {
    let due = spec.schedule.as_ref().and_then(|schedule| schedule.next_after(&spec.id, gateway.now()).ok());
    html! {
        section.would aria-labelledby="would" {
            h2 #would { "This would be added" }
            p { "Nothing is stored yet. The Source would be called " strong { (spec.id) } "." }
            @if let Some(due) = due { p { "It would be due " (tell::ago(gateway.now(), due)) " for the first time." } }
            (settings::list(spec))
            p.box { input #run type="checkbox" name="run" checked; label for="run" { "ask for its first run at once" } }
            p { button type="submit" name="add" value="yes" { "Add it" } }
        }
    }
}

/// The form with what stands in it, what is wrong with it, and what would come of it.
fn shown(
    gateway: &Gateway,
    caller: &Caller,
    fields: &Fields,
    wrong: Option<&str>,
    errors: &[FieldError],
    would: Option<Markup>,
) -> Markup {
    let frame = Frame { title: "Add a Source", caller: Some(caller), path: &[], now: gateway.now() };
    let (form, is_shown) = (Form { fields, errors }, would.is_some());
    layout::page(
        &frame,
        html! {
            @if let Some(wrong) = wrong {
                div.error role="alert" {
                    p { (wrong) }
                    @if !errors.is_empty() { ul { @for error in errors { li { a href={ "#" (error.field) } { (error.field) } ": " (error.detail) } } } }
                }
            }
            @if is_shown { p.good role="status" { "It can be added like that: " a href="#would" { "look at it" } "." } }
            form method="post" action="/console/sources" {
                (form.input("entry", "url", "The way in", "A site, a Source Description, a Capability List, or a list itself.", true))
                fieldset {
                    legend { "When it is harvested" }
                    @let when = fields.get("when").unwrap_or("asked");
                    @for (value, words) in [("asked", "when somebody asks for it"), ("every", "at an interval"), ("cron", "by a cron expression, in UTC"), ("follow", "it is followed: the sooner, the more changes there are")] {
                        p.box { input id={ "when-" (value) } type="radio" name="when" value=(value) checked[when == value]; label for={ "when-" (value) } { (words) } }
                    }
                    (form.input("every_hours", "number", "Hours between runs", "", false))
                    (form.input("cron", "text", "Cron expression", "Minute, hour, day of month, month, day of week.", false))
                }
                fieldset {
                    legend { "How it is harvested" }
                    (form.choice("mode", "Each run", &[("auto", "as what is known of it decides"), ("incremental", "what changed since"), ("baseline", "the whole list")]))
                    (form.choice("prefer", "Lists or dumps", &[("", "whichever takes less time"), ("list", "lists"), ("dump", "dumps")]))
                    (form.choice("absent", "What its lists do not name any more", &[("confirm", "is deleted when a second list confirms that"), ("delete", "is deleted at once"), ("keep", "is kept")]))
                    (form.input("max_deletes_percent", "number", "The most deletions for absence in a run, in percent of what is held", "10 where nothing is said.", false))
                    (form.input("history", "number", "Earlier versions kept of each resource", "", false))
                    (form.input("include", "text", "Only resources whose URI matches", "A regular expression.", false))
                    (form.input("exclude", "text", "Not resources whose URI matches", "A regular expression.", false))
                    p.box { input #strict type="checkbox" name="strict" checked[fields.has("strict")]; label for="strict" { "refuse what breaks the specification, instead of tolerating and counting it" } }
                }
                fieldset {
                    legend { "How it is asked" }
                    (form.input("concurrency", "number", "Requests open at one origin", "4 where nothing is said.", false))
                    (form.input("requests_per_second", "number", "Requests in a second to one origin", "", false))
                    (form.choice("robots", "robots.txt", &[("invited", "its crawl-delay is kept"), ("crawling", "it is obeyed everywhere"), ("ignore", "it is not asked for")]))
                    (form.input("contact", "text", "Whom the Source's operator can turn to", "A mail address or a URL.", false))
                    (form.input("credential", "text", "Name of the credential to send", "The name that stands in the configuration; never the secret itself.", false))
                }
                // First, so that Enter in a field shows, and adds nothing.
                p { button type="submit" { "Show what would be added" } }
                @if let Some(would) = would { (would) }
            }
        },
    )
}

/// The fields of the form.
struct Form<'a> {
    fields: &'a Fields,
    errors: &'a [FieldError],
}

impl Form<'_> {
    fn input(&self, name: &str, kind: &str, label: &str, hint: &str, required: bool) -> Markup {
        let wrong = self.errors.iter().find(|error| error.field == name);
        let hint_id = format!("{name}-hint");
        let is_described = wrong.is_some() || !hint.is_empty();
        html! {
            p.field {
                label for=(name) { (label) }
                input id=(name) type=(kind) name=(name) value=[self.fields.get(name)] required[required] min=[(kind == "number").then_some("0")]
                    aria-invalid=[wrong.map(|_| "true")] aria-describedby=[is_described.then_some(&hint_id)];
                @if is_described {
                    span.hint id=(hint_id) { (hint) @if let Some(wrong) = wrong { " " strong { (wrong.detail) } } }
                }
            }
        }
    }

    fn choice(&self, name: &str, label: &str, choices: &[(&str, &str)]) -> Markup {
        let chosen = self.fields.get(name).unwrap_or_default();
        html! {
            p.field {
                label for=(name) { (label) }
                select id=(name) name=(name) {
                    @for (value, words) in choices { option value=(value) selected[chosen == *value] { (words) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_asks_for_what_the_api_understands() {
        let fields = Fields::from([
            ("entry", "https://example.org/"),
            ("when", "every"),
            ("every_hours", "6"),
            ("absent", "keep"),
            ("history", "2"),
            ("strict", "on"),
        ]);
        let spec = SourceSpec::from(wanted(&fields).unwrap());
        spec.check().unwrap();
        assert_eq!(spec.schedule, Some(control::Schedule::every(6 * 3_600)));
        assert_eq!((spec.absent, spec.history, spec.strict), (control::Absent::Keep, Some(2), true));
        let plain = SourceSpec::from(wanted(&Fields::from([("entry", "https://example.org/")])).unwrap());
        assert_eq!(plain, SourceSpec::new("https://example.org/".parse().unwrap()));
        let followed =
            wanted(&Fields::from([("entry", "https://example.org/"), ("when", "follow")])).unwrap();
        SourceSpec::from(followed).check().unwrap();
    }

    #[test]
    fn what_cannot_be_read_is_told_of_its_field() {
        for (name, value) in [("history", "many"), ("every_hours", "x")] {
            let fields = Fields::from([("entry", "https://example.org/"), ("when", "every"), (name, value)]);
            let refused = wanted(&fields).unwrap_err();
            assert_eq!(refused.errors()[0].field, name);
        }
        assert_eq!(wanted(&Fields::default()).unwrap_err().errors()[0].field, "entry");
        assert!(wanted(&Fields::from([("entry", "no url")])).is_err());
    }
}
