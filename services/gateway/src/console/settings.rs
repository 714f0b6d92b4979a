//! The current spec of a Source.

use control::{SourceSpec, Times};
use maud::{Markup, html};

use super::chart::name;
use super::{HOME, format, layout};

/// The settings of a Source. Callers with the right to change them get a link to the form.
pub(super) fn section(spec: &SourceSpec, may_change: bool) -> Markup {
    html! {
        section aria-labelledby="settings" {
            h2 #settings { "Settings" }
            (list(spec))
            @if may_change { p { a href={ (HOME) "/sources/" (spec.id) "/settings" } { "Change settings" } } }
        }
    }
}

/// The settings without a heading.
pub(super) fn list(spec: &SourceSpec) -> Markup {
    let or = |text: Option<String>, without: &str| text.unwrap_or_else(|| without.to_owned());
    html! {
        dl {
            dt { "Name" } dd { (or(spec.name.as_ref().map(ToString::to_string), "none")) }
            dt { "Title" } dd { (or(spec.title.clone(), "none")) }
            dt { "Labels" } dd { (or(Some(layout::labels(spec)).filter(|labels| !labels.is_empty()), "none")) }
            dt { "Notes" } dd { (or(spec.notes.clone(), "none")) }
            dt { "Contact at the Source" } dd { (or(spec.source_contact.clone(), "none")) }
            dt { "Enabled" } dd { (if spec.enabled { "yes" } else { "no" }) }
            dt { "Schedule" } dd { (schedule(spec)) }
            dt { "Mode" } dd { (name(&spec.mode)) }
            dt { "Strategy" } dd { (spec.prefer.map_or("automatic", |prefer| match prefer { model::Prefer::List => "lists", model::Prefer::Dump => "dumps" })) }
            dt { "Absent resources" } dd { (absent(spec)) }
            dt { "Kept versions" } dd { (or(spec.keep_versions.map(|kept| kept.to_string()), "unchanged")) }
            dt { "Metadata prefix" } dd { (or(spec.metadata_prefix.clone(), "automatic")) }
            dt { "Sets" } dd { (or(Some(spec.sets.join(", ")).filter(|sets| !sets.is_empty()), "all")) }
            dt { "Encoding of what is not UTF-8" } dd { (or(spec.encoding.map(|encoding| encoding.to_string()), "none: such a record is a problem")) }
            dt { "Include" } dd { (or(spec.include.clone(), "all")) }
            dt { "Exclude" } dd { (or(spec.exclude.clone(), "none")) }
            dt { "Resources of other sites" } dd { (if spec.origins.is_any() { "accepted" } else { "left out" }) }
            dt { "Mirrors" } dd { (name(&spec.mirrors)) }
            dt { "Patches" } dd { (if spec.patches.is_verified() { "applied" } else { "not applied" }) }
            dt { "Conditions on entries" } dd { (or(Some(conditions(spec)).filter(|only| !only.is_empty()), "none")) }
            dt { "Links followed" } dd { (or(followed(spec), "none")) }
            dt { "Entries of plain sitemaps" } dd { (if spec.landing_pages { "landing pages" } else { "resources" }) }
            dt { "Deviations" } dd { (if spec.strict { "reject" } else { "tolerate" }) }
            dt { "Unexpected HTML" } dd { (if spec.accept_html { "accept" } else { "reject" }) }
            dt { "Concurrency" } dd { (spec.concurrency) " per origin" }
            dt { "Rate limit" } dd { (or(spec.requests_per_second.map(|rate| format!("{rate}/s")), "none")) }
            dt { "Largest resource" } dd { (or(spec.max_body_bytes.map(|bytes| format!("{bytes} bytes")), "default")) }
            dt { "robots.txt" } dd { (name(&spec.robots).replace('-', " ")) }
            dt { "Our contact" } dd { (or(spec.contact.clone(), "default")) }
            dt { "Credential" } dd { (or(spec.credential.as_ref().map(ToString::to_string), "none")) }
            dt { "Published for" } dd { (published(spec)) }
            dt { "Published sets by rule" } dd { (or(Some(parts(spec)).filter(|parts| !parts.is_empty()), "none")) }
            dt { "Published lists of the past" } dd { (archived(spec)) }
            dt { "Allowed networks" } dd { (or(networks(spec), "public addresses, and those of the configuration")) }
        }
    }
}

fn conditions(spec: &SourceSpec) -> String {
    spec.only.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The rules, relations and media types of links that are followed.
fn followed(spec: &SourceSpec) -> Option<String> {
    let relations: Vec<&str> = spec.follow_links.iter().map(model::FollowedRelation::as_str).collect();
    let types: Vec<String> = spec.follow_types.iter().map(ToString::to_string).collect();
    let types = if types.is_empty() { String::new() } else { format!(" of the types {}", types.join(", ")) };
    let most = spec.follow_max.map_or(String::new(), |most| format!(", at most {most} of an entry"));
    let plain = (!relations.is_empty()).then(|| format!("{}{types}{most}", relations.join(", ")));
    let rules = spec.follow_rules.iter().map(ToString::to_string);
    let all: Vec<String> = rules.chain(plain).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn networks(spec: &SourceSpec) -> Option<String> {
    (!spec.allow_networks.is_empty()).then(|| joined(&spec.allow_networks))
}

fn joined(networks: &[model::Network]) -> String {
    networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn published(spec: &SourceSpec) -> String {
    match spec.publish {
        model::Publish::Off => "no reader".to_owned(),
        model::Publish::Public => "all readers".to_owned(),
        model::Publish::Tokens => "readers with a token".to_owned(),
        model::Publish::Networks => format!("readers in {}", joined(&spec.publish_networks)),
    }
}

fn parts(spec: &SourceSpec) -> String {
    spec.publish_sets.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn archived(spec: &SourceSpec) -> String {
    match spec.publish_archive {
        None => "as the publisher is configured".to_owned(),
        Some(model::Archive::Off) => "do not stay".to_owned(),
        Some(model::Archive::All) => "stay".to_owned(),
        Some(time @ model::Archive::For(_)) => format!("stay for {time}"),
    }
}

fn schedule(spec: &SourceSpec) -> String {
    let scheduled = spec.schedule.as_ref().map(|schedule| match &schedule.times {
        Times::EverySeconds(seconds) => {
            format!("every {}", format::span(i64::try_from(*seconds).unwrap_or(i64::MAX)))
        }
        Times::Cron(expression) => format!("cron {expression}"),
    });
    let followed =
        spec.follow.map(|bounds| format!("follow, {}–{} s", bounds.min_seconds, bounds.max_seconds));
    let said: Vec<String> = scheduled.into_iter().chain(followed).collect();
    if said.is_empty() { "manual".to_owned() } else { said.join("; ") }
}

fn absent(spec: &SourceSpec) -> String {
    match spec.absent {
        model::Absent::Confirm => {
            format!("delete if confirmed, max {} %", spec.max_deletes_percent)
        }
        model::Absent::Delete => {
            format!("delete at once, max {} %", spec.max_deletes_percent)
        }
        model::Absent::Keep => "keep".to_owned(),
    }
}
