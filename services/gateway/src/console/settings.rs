//! The current spec of a Source.

use control::{SourceSpec, Times};
use maud::{Markup, html};

use super::chart::name;
use super::{HOME, tell};

/// The settings of a Source. Callers with the right to change them get a link to the form.
pub(super) fn section(spec: &SourceSpec, may_change: bool) -> Markup {
    html! {
        section aria-labelledby="settings" {
            h2 #settings { "Settings" }
            (list(spec))
            @if may_change { p { a href={ (HOME) "/sources/" (spec.id) "/settings" } { "Change what is wanted" } } }
        }
    }
}

/// The settings without a heading.
pub(super) fn list(spec: &SourceSpec) -> Markup {
    let or = |text: Option<String>, without: &str| text.unwrap_or_else(|| without.to_owned());
    html! {
        dl {
            dt { "Harvested" } dd { (if spec.enabled { "yes" } else { "no: switched off" }) }
            dt { "When" } dd { (schedule(spec)) }
            dt { "How" } dd { (name(&spec.mode)) }
            dt { "Lists or dumps" } dd { (or(spec.prefer.as_ref().map(name), "whichever takes less time")) }
            dt { "What its lists do not name any more" } dd { (absent(spec)) }
            dt { "Kept versions" } dd { (or(spec.keep_versions.map(|kept| kept.to_string()), "unchanged")) }
            dt { "Only" } dd { (or(spec.include.clone(), "everything")) }
            dt { "Not" } dd { (or(spec.exclude.clone(), "nothing left out")) }
            dt { "Resources of other sites" } dd { (if spec.origins.is_any() { "are taken" } else { "are left out" }) }
            dt { "What breaks the specification" } dd { (if spec.strict { "is refused" } else { "is tolerated and counted" }) }
            dt { "HTML where another media type is listed" } dd { (if spec.accept_html { "is taken" } else { "is refused" }) }
            dt { "Requests open at an origin" } dd { (spec.concurrency) }
            dt { "Requests in a second" } dd { (or(spec.requests_per_second.map(|rate| rate.to_string()), "no limit of its own")) }
            dt { "Largest resource taken" } dd { (or(spec.max_body_bytes.map(|bytes| format!("{bytes} bytes")), "as configured")) }
            dt { "robots.txt" } dd { (name(&spec.robots)) }
            dt { "Contact" } dd { (or(spec.contact.clone(), "as configured")) }
            dt { "Credential" } dd { (or(spec.credential.as_ref().map(ToString::to_string), "none")) }
            dt { "Networks it may lead to" } dd { (or(networks(spec), "public addresses, and what the fleet allows")) }
        }
    }
}

fn networks(spec: &SourceSpec) -> Option<String> {
    let names: Vec<String> = spec.allow_networks.iter().map(ToString::to_string).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn schedule(spec: &SourceSpec) -> String {
    let scheduled = spec.schedule.as_ref().map(|schedule| match &schedule.times {
        Times::EverySeconds(seconds) => {
            format!("every {}", tell::span(i64::try_from(*seconds).unwrap_or(i64::MAX)))
        }
        Times::Cron(expression) => format!("cron {expression}"),
    });
    let followed = spec.continuous.map(|bounds| {
        format!("followed, looked at every {} to {} s", bounds.least_seconds, bounds.most_seconds)
    });
    let said: Vec<String> = scheduled.into_iter().chain(followed).collect();
    if said.is_empty() { "when somebody asks for it".to_owned() } else { said.join("; ") }
}

fn absent(spec: &SourceSpec) -> String {
    match spec.absent {
        model::Absent::Confirm => {
            format!(
                "is deleted when a second list confirms that, at most {} % in a run",
                spec.max_deletes_percent
            )
        }
        model::Absent::Delete => {
            format!("is deleted at once, at most {} % in a run", spec.max_deletes_percent)
        }
        model::Absent::Keep => "is kept".to_owned(),
    }
}
