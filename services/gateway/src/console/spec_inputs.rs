//! The form for the spec of a Source, new or existing.

use api::FieldError;
use maud::{Markup, html};

use super::form::Fields;
use crate::api_error::ApiError;

/// The inputs of the form.
pub(super) struct SpecInputs<'a> {
    /// The values.
    pub(super) fields: &'a Fields,
    /// Why the values were refused.
    pub(super) error: Option<&'a ApiError>,
    /// Whether the entry URL can be edited. The Source ID is derived from it.
    pub(super) is_new: bool,
}

impl SpecInputs<'_> {
    /// The error message, with links to the fields. Empty if there is none.
    pub(super) fn error(&self) -> Markup {
        html! {
            @if let Some(error) = self.error {
                div.error role="alert" {
                    p { (error.detail()) }
                    @if !error.errors().is_empty() {
                        ul { @for field in error.errors() { li { a href={ "#" (field.field) } { (field.field) } ": " (field.detail) } } }
                    }
                }
            }
        }
    }

    fn error_of(&self, name: &str) -> Option<&FieldError> {
        self.error?.errors().iter().find(|error| error.field == name)
    }

    /// All fields.
    pub(super) fn all(&self) -> Markup {
        html! {
            (self.input("entry", "url", "Entry URL", "A site, a Source Description, a Capability List, or a list itself."))
            (self.description())
            (self.schedule())
            (self.runs())
            (self.requests())
            (self.publication())
        }
    }

    fn description(&self) -> Markup {
        html! {
            fieldset {
                legend { "Description" }
                (self.input("name", "text", "Name", "Unique in the fleet: 1 to 64 of a-z, 0-9, -, _ and . It can change; the Source ID stays."))
                (self.input("title", "text", "Title", ""))
                (self.input("labels", "text", "Labels", "Such as country=jp tier=1, with spaces between them."))
                (self.input("notes", "text", "Notes", ""))
                (self.input("source_contact", "text", "Contact at the Source", "Whom to ask there. No request contains it."))
            }
        }
    }

    fn schedule(&self) -> Markup {
        let when = self.fields.get("when").unwrap_or("asked");
        html! {
            fieldset #schedule {
                legend { "Schedule" }
                @for (value, words) in [("asked", "manual"), ("every", "at an interval"), ("cron", "by a cron expression, in UTC")] {
                    p.box { input id={ "when-" (value) } type="radio" name="when" value=(value) checked[when == value]; label for={ "when-" (value) } { (words) } }
                }
                (self.input("every", "text", "Interval", "Such as 6h or 90m."))
                (self.input("cron", "text", "Cron expression", "Minute, hour, day of month, month, day of week."))
                (self.input("jitter_seconds", "number", "Jitter, in seconds", "Spreads the runs of many Sources. Default: a part of the interval."))
                div #follow-bounds {
                    (self.check_box("follow", "follow: poll for changes between runs, more often while the Source changes"))
                    (self.input("min_seconds", "number", "Shortest pause between polls, in seconds", ""))
                    (self.input("max_seconds", "number", "Longest pause between polls, in seconds", ""))
                }
                (self.check_box("on_hold", "disabled"))
            }
        }
    }

    fn runs(&self) -> Markup {
        html! {
            fieldset {
                legend { "Runs" }
                (self.choice("mode", "Mode", &[("auto", "automatic"), ("incremental", "changes"), ("baseline", "full")]))
                (self.choice("prefer", "Strategy", &[("", "automatic"), ("list", "lists"), ("dump", "dumps")]))
                (self.choice("absent", "Absent resources", &[("confirm", "delete if a second list confirms it"), ("delete", "delete at once"), ("keep", "keep")]))
                (self.input("max_deletes_percent", "number", "Deletions of absent resources in one run, in percent of the stored ones", "Default: 10."))
                (self.input("keep_versions", "number", "Kept versions", ""))
                (self.input("metadata_prefix", "text", "Metadata prefix", "Of an OAI-PMH repository. Default: the richest format that is known."))
                (self.input("sets", "text", "Sets", "Of an OAI-PMH repository, with spaces between them. Default: all records."))
                (self.input("encoding", "text", "Encoding", "Of records of an OAI-PMH repository that say UTF-8 and are not, such as windows-1252. Default: such a record is a problem."))
                (self.input("include", "text", "Include", "A regular expression."))
                (self.input("exclude", "text", "Exclude", "A regular expression."))
                (self.choice("origins", "Resources of other sites", &[("any", "accept"), ("same", "leave out: accept the domain of the entry URL only")]))
                (self.choice("mirrors", "Mirrors that entries name", &[("fallback", "when the resource's own URI fails"), ("prefer", "before the resource's own URI"), ("spread", "in turns with the resource's own URI"), ("off", "never")]))
                (self.choice("patches", "Patches that changes name", &[("verified", "apply: the digest of the result is judged"), ("off", "do not apply")]))
                (self.input("only", "text", "Conditions on entries", "Such as type=application/pdf or collection=https://example.org/c, with spaces between them."))
                (self.input("follow_links", "text", "Links to follow", "Relations, such as item or describedby, with spaces between them; content for the files of OAI-PMH records, landing-page for those of their landing pages too. What they lead to is harvested too."))
                (self.input("follow_types", "text", "Media types of links to follow", "Such as application/pdf, with spaces between them. Default: all."))
                (self.input("follow_max", "number", "Links of one entry that are followed", "Default: 20."))
                (self.input("follow_rules", "text", "Rules of links to follow", "Such as rel=alternate,type=application/pdf,host=files.example.org,max=5,instead, with spaces between them. With instead, the resource that has the link is not fetched."))
                (self.check_box("strict", "reject deviations from the specification, instead of tolerating them"))
                (self.check_box("landing_pages", "take the entries of plain sitemaps for landing pages (Signposting)"))
                (self.check_box("accept_html", "accept HTML where another media type is listed or stored"))
            }
        }
    }

    fn requests(&self) -> Markup {
        html! {
            fieldset {
                legend { "Request limits" }
                (self.input("concurrency", "number", "Concurrency: open requests per origin", "Default: 4."))
                (self.input("requests_per_second", "number", "Rate limit: requests per second and origin", ""))
                (self.input("max_body_bytes", "number", "Largest resource, in bytes", "Default: the configuration of the fetchers."))
                (self.choice("robots", "robots.txt", &[("links-only", "Disallow binds followed links only"), ("obey", "Disallow binds every URL"), ("ignore", "not requested")]))
                (self.input("contact", "text", "Contact for the Source's operator", "A mail address or a URL."))
                (self.input("credential", "text", "Credential", "Its name in the configuration; never the secret itself."))
                (self.input("allow_networks", "text", "Allowed networks", "Such as 10.1.0.0/16, with spaces between them. Public addresses are always allowed."))
                (self.input("notify", "text", "Inboxes to notify of changes", "URLs of pages that have inboxes for Linked Data Notifications, with spaces between them."))
                (self.input("inbox", "url", "Inbox to poll", "An inbox of others for Linked Data Notifications, or a page that advertises one."))
            }
        }
    }

    fn publication(&self) -> Markup {
        html! {
            fieldset {
                legend { "Publication" }
                (self.choice("publish", "Publish what is stored, for", &[("off", "no reader: it is not published"), ("public", "all readers"), ("tokens", "readers with a token"), ("networks", "readers in these networks")]))
                (self.input("publish_networks", "text", "Networks of readers", "Such as 10.2.0.0/16, with spaces between them."))
                (self.input("publish_sets", "text", "Sets by rule", "Such as theses=/theses/ pdf=[.]pdf$: names, and regular expressions of URIs, with spaces between them. Each set has lists of its own."))
                (self.input("publish_archive", "text", "Lists of the past stay for", "Such as 1y or 90days; or all, or off. Default: the configuration of the publisher."))
            }
        }
    }

    fn input(&self, name: &str, kind: &str, label: &str, hint: &str) -> Markup {
        let error = self.error_of(name);
        let hint_id = format!("{name}-hint");
        let is_described = error.is_some() || !hint.is_empty();
        let is_entry = name == "entry";
        html! {
            p.field {
                label for=(name) { (label) }
                input id=(name) type=(kind) name=(name) value=[self.fields.get(name)] required[is_entry] readonly[is_entry && !self.is_new]
                    min=[(kind == "number").then_some("0")] aria-invalid=[error.map(|_| "true")] aria-describedby=[is_described.then_some(&hint_id)];
                @if is_described {
                    span.hint id=(hint_id) { (hint) @if let Some(error) = error { " " strong { (error.detail) } } }
                }
            }
        }
    }

    fn check_box(&self, name: &str, words: &str) -> Markup {
        html! { p.box { input id=(name) type="checkbox" name=(name) checked[self.fields.has(name)]; label for=(name) { (words) } } }
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
