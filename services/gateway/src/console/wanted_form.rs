//! The form for the spec of a Source, new or existing.

use api::FieldError;
use maud::{Markup, html};

use super::form::Fields;

/// The values of the form, and their errors.
pub(super) struct Form<'a> {
    /// The values.
    pub(super) fields: &'a Fields,
    /// Errors of single fields.
    pub(super) errors: &'a [FieldError],
    /// Whether the entry URL can be edited. The Source ID is derived from it.
    pub(super) is_new: bool,
}

impl Form<'_> {
    /// The error messages, with links to the fields. Empty if there are none.
    pub(super) fn complaint(&self, wrong: Option<&str>) -> Markup {
        html! {
            @if let Some(wrong) = wrong {
                div.error role="alert" {
                    p { (wrong) }
                    @if !self.errors.is_empty() {
                        ul { @for error in self.errors { li { a href={ "#" (error.field) } { (error.field) } ": " (error.detail) } } }
                    }
                }
            }
        }
    }

    /// All fields.
    pub(super) fn all(&self) -> Markup {
        html! {
            (self.input("entry", "url", "The way in", "A site, a Source Description, a Capability List, or a list itself."))
            (self.when())
            (self.how())
            (self.asked())
        }
    }

    fn when(&self) -> Markup {
        let when = self.fields.get("when").unwrap_or("asked");
        html! {
            fieldset #schedule {
                legend { "When it is harvested" }
                @for (value, words) in [("asked", "when somebody asks for it"), ("every", "at an interval"), ("cron", "by a cron expression, in UTC")] {
                    p.box { input id={ "when-" (value) } type="radio" name="when" value=(value) checked[when == value]; label for={ "when-" (value) } { (words) } }
                }
                (self.input("every", "text", "Time between runs", "Such as 6h or 90m."))
                (self.input("cron", "text", "Cron expression", "Minute, hour, day of month, month, day of week."))
                (self.input("jitter_seconds", "number", "Seconds by which it may be later", "So that not all Sources are due at once; where nothing is said, a part of the interval."))
                div #continuous {
                    (self.tick("follow", "it is followed between runs: looked at the sooner, the more changes there are"))
                    (self.input("min_seconds", "number", "Looked at no sooner than after, in seconds", ""))
                    (self.input("max_seconds", "number", "Looked at no later than after, in seconds", ""))
                }
                (self.tick("on_hold", "it is not harvested for now"))
            }
        }
    }

    fn how(&self) -> Markup {
        html! {
            fieldset {
                legend { "How it is harvested" }
                (self.choice("mode", "Each run", &[("auto", "as what is known of it decides"), ("incremental", "what changed since"), ("baseline", "the whole list")]))
                (self.choice("prefer", "Lists or dumps", &[("", "whichever takes less time"), ("list", "lists"), ("dump", "dumps")]))
                (self.choice("absent", "What its lists do not name any more", &[("confirm", "is deleted when a second list confirms that"), ("delete", "is deleted at once"), ("keep", "is kept")]))
                (self.input("max_deletes_percent", "number", "The most deletions for absence in a run, in percent of what is held", "10 where nothing is said."))
                (self.input("keep_versions", "number", "Kept versions of each resource", ""))
                (self.input("include", "text", "Only resources whose URI matches", "A regular expression."))
                (self.input("exclude", "text", "Not resources whose URI matches", "A regular expression."))
                (self.choice("origins", "Resources of other sites", &[("any", "are taken"), ("same", "are left out: only those of the way in's domain are taken")]))
                (self.tick("strict", "refuse what breaks the specification, instead of tolerating and counting it"))
                (self.tick("accept_html", "take HTML also where another media type is listed or held"))
            }
        }
    }

    fn asked(&self) -> Markup {
        html! {
            fieldset {
                legend { "How it is asked" }
                (self.input("concurrency", "number", "Requests open at one origin", "4 where nothing is said."))
                (self.input("requests_per_second", "number", "Requests in a second to one origin", ""))
                (self.input("max_body_bytes", "number", "The largest resource taken, in bytes", "As the fetchers are configured where nothing is said."))
                (self.choice("robots", "robots.txt", &[("links-only", "Disallow binds followed links only"), ("obey", "Disallow binds every URL"), ("ignore", "not requested")]))
                (self.input("contact", "text", "Whom the Source's operator can turn to", "A mail address or a URL."))
                (self.input("credential", "text", "Name of the credential to send", "The name that stands in the configuration; never the secret itself."))
                (self.input("allow_networks", "text", "Networks of yours that it may lead to", "Such as 10.1.0.0/16, with spaces between them. Public addresses need no leave."))
                (self.input("notify", "text", "Who is told of changes", "URLs of pages that have inboxes for Linked Data Notifications, with spaces between them."))
                (self.input("inbox", "url", "Where notifications about it are read", "An inbox of others for Linked Data Notifications, or a page that tells of one."))
            }
        }
    }

    fn input(&self, name: &str, kind: &str, label: &str, hint: &str) -> Markup {
        let wrong = self.errors.iter().find(|error| error.field == name);
        let hint_id = format!("{name}-hint");
        let is_described = wrong.is_some() || !hint.is_empty();
        let is_entry = name == "entry";
        html! {
            p.field {
                label for=(name) { (label) }
                input id=(name) type=(kind) name=(name) value=[self.fields.get(name)] required[is_entry] readonly[is_entry && !self.is_new]
                    min=[(kind == "number").then_some("0")] aria-invalid=[wrong.map(|_| "true")] aria-describedby=[is_described.then_some(&hint_id)];
                @if is_described {
                    span.hint id=(hint_id) { (hint) @if let Some(wrong) = wrong { " " strong { (wrong.detail) } } }
                }
            }
        }
    }

    fn tick(&self, name: &str, words: &str) -> Markup {
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
