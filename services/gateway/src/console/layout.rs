//! The layout of all pages: navigation, signing out, and error pages.

use jiff::Timestamp;
use maud::{DOCTYPE, Markup, html};

use super::assets::{self, Asset};
use super::auth::SIGN_OUT;
use super::{HOME, format};
use crate::api_error::ApiError;
use crate::state::Gateway;
use crate::tokens::{Caller, Role};

/// `htmx` must add no style and evaluate no text as a script, because the pages' policy forbids both.
const HTMX: &str =
    r#"{"includeIndicatorStyles":false,"allowEval":false,"selfRequestsOnly":true,"historyCacheSize":0}"#;

/// The context of a page.
pub(super) struct PageContext<'a> {
    /// The heading.
    pub(super) title: &'a str,
    /// The caller; none before signing in.
    pub(super) caller: Option<&'a Caller>,
    /// The parent pages, each with path and name. The list of Sources is the root, and is not in the list.
    pub(super) path: &'a [(String, &'a str)],
    /// The current time.
    pub(super) now: Timestamp,
}

/// Renders a page.
pub(super) fn page(context: &PageContext<'_>, content: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (context.title) " – Thresher" }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="htmx-config" content=(HTMX);
                link rel="icon" href=(assets::place(Asset::Icon)) type="image/svg+xml";
                link rel="stylesheet" href=(assets::place(Asset::Style));
                script src=(assets::place(Asset::Htmx)) integrity=(assets::integrity(Asset::Htmx)) defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (header(context))
                main #main tabindex="-1" {
                    @if !context.path.is_empty() {
                        nav aria-label="Where you are" {
                            ol.path {
                                li { a href=(HOME) { "Sources" } }
                                @for (place, name) in context.path { li { a href=(place) { (name) } } }
                            }
                        }
                    }
                    h1 { (context.title) }
                    (content)
                }
                footer { p { "As of " (format::time(context.now)) ". Times are UTC." } }
            }
        }
    }
}

fn header(context: &PageContext<'_>) -> Markup {
    html! {
        header.top {
            p.brand { a href=(HOME) { "Thresher" } }
            @if let Some(caller) = context.caller {
                nav aria-label="Main" {
                    ul {
                        li { a href=(HOME) aria-current=[(context.title == "Sources").then_some("page")] { "Sources" } }
                        @if may(caller, Role::Admin) {
                            li { a href="/console/add" aria-current=[(context.title == "Add a Source").then_some("page")] { "Add a Source" } }
                        }
                    }
                }
                form.out method="post" action=(SIGN_OUT) {
                    span { (caller.name()) " (" (caller.role().to_string()) ")" }
                    button.quiet type="submit" { "Sign out" }
                }
            }
        }
    }
}

/// Whether the caller has the rights of this role.
pub(super) fn may(caller: &Caller, role: Role) -> bool {
    caller.role() >= role
}

/// Renders a page about an error.
pub(super) fn error_page(gateway: &Gateway, caller: Option<&Caller>, error: &ApiError) -> Markup {
    let context = PageContext { title: error.title(), caller, path: &[], now: gateway.now() };
    page(
        &context,
        html! {
            p { (error.detail()) }
            @if !error.errors().is_empty() {
                ul { @for error in error.errors() { li { code { (error.field) } ": " (error.detail) } } }
            }
            p { a href=(HOME) { "All Sources" } }
        },
    )
}

/// A column of a table.
pub(super) enum Column<'a> {
    /// Text, with this heading.
    Text(&'a str),
    /// Numbers, with this heading.
    Number(&'a str),
}

/// Renders a table, which scrolls sideways in a narrow window.
pub(super) fn table(
    name: &str,
    caption: &str,
    columns: &[Column<'_>],
    rows: impl Iterator<Item = Markup>,
) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label=(name) {
            table {
                caption { (caption) }
                thead { tr { @for column in columns {
                    @match column {
                        Column::Text(heading) => th scope="col" { (heading) },
                        Column::Number(heading) => th.number scope="col" { (heading) },
                    }
                } } }
                tbody { @for row in rows { tr { (row) } } }
            }
        }
    }
}
