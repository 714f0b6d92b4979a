//! The layout of all pages: navigation, signing out, and error pages.

use jiff::Timestamp;
use maud::{DOCTYPE, Markup, html};

use super::assets::{self, Asset};
use super::door::SIGN_OUT;
use super::{HOME, tell};
use crate::refusal::Refusal;
use crate::state::Gateway;
use crate::tokens::{Caller, Role};

/// `htmx` must add no style and evaluate no text as a script, because the pages' policy forbids both.
const HTMX: &str =
    r#"{"includeIndicatorStyles":false,"allowEval":false,"selfRequestsOnly":true,"historyCacheSize":0}"#;

/// The context of a page.
pub(super) struct Frame<'a> {
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
pub(super) fn page(frame: &Frame<'_>, content: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (frame.title) " – Thresher" }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="htmx-config" content=(HTMX);
                link rel="icon" href=(assets::place(Asset::Icon)) type="image/svg+xml";
                link rel="stylesheet" href=(assets::place(Asset::Style));
                script src=(assets::place(Asset::Htmx)) integrity=(assets::integrity(Asset::Htmx)) defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (header(frame))
                main #main tabindex="-1" {
                    @if !frame.path.is_empty() {
                        nav aria-label="Where you are" {
                            ol.path {
                                li { a href=(HOME) { "Sources" } }
                                @for (place, name) in frame.path { li { a href=(place) { (name) } } }
                            }
                        }
                    }
                    h1 { (frame.title) }
                    (content)
                }
                footer { p { "As of " (tell::time(frame.now)) ". Times are UTC." } }
            }
        }
    }
}

fn header(frame: &Frame<'_>) -> Markup {
    html! {
        header.top {
            p.brand { a href=(HOME) { "Thresher" } }
            @if let Some(caller) = frame.caller {
                nav aria-label="Main" {
                    ul {
                        li { a href=(HOME) aria-current=[(frame.title == "Sources").then_some("page")] { "Sources" } }
                        @if may(caller, Role::Admin) {
                            li { a href="/console/add" aria-current=[(frame.title == "Add a Source").then_some("page")] { "Add a Source" } }
                        }
                    }
                }
                form.out method="post" action=(SIGN_OUT) {
                    span { (caller.name()) " (" (caller.role().as_str()) ")" }
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

/// Renders a page about a refusal.
pub(super) fn refused(gateway: &Gateway, caller: Option<&Caller>, refusal: &Refusal) -> Markup {
    let frame = Frame { title: refusal.title(), caller, path: &[], now: gateway.now() };
    page(
        &frame,
        html! {
            p { (refusal.detail()) }
            @if !refusal.errors().is_empty() {
                ul { @for error in refusal.errors() { li { code { (error.field) } ": " (error.detail) } } }
            }
            p { a href=(HOME) { "All Sources" } }
        },
    )
}
