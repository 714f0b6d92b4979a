//! The layout of all pages: navigation, signing out, and error pages.

use std::fmt::Display;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use control::{SourceName, SourceSpec, Spec};
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, html};
use model::SourceId;

use super::assets::{ICON, SCRIPT, STYLE};
use super::auth::SIGN_OUT;
use super::{HOME, RUNS, SOURCES, format};
use crate::api_error::ApiError;
use crate::state::Gateway;
use crate::tokens::{Caller, Role};

/// `htmx` must add no style and evaluate no text as a script, because the pages' policy forbids both.
const HTMX: &str =
    r#"{"includeIndicatorStyles":false,"allowEval":false,"selfRequestsOnly":true,"historyCacheSize":0}"#;

/// The context of a page: who requests it, and when.
pub(super) struct PageContext {
    pub(super) gateway: Gateway,
    /// The caller; none before signing in.
    pub(super) caller: Option<Caller>,
    pub(super) now: Timestamp,
}

impl FromRequestParts<Gateway> for PageContext {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, gateway).await?;
        Ok(Self::new(gateway, Some(caller)))
    }
}

impl PageContext {
    pub(super) fn new(gateway: &Gateway, caller: Option<Caller>) -> Self {
        Self { gateway: gateway.clone(), caller, now: gateway.now() }
    }

    /// The state, for calls of the API's functions.
    pub(super) fn state(&self) -> State<Gateway> {
        State(self.gateway.clone())
    }

    /// Whether the caller has the rights of this role.
    pub(super) fn may(&self, role: Role) -> bool {
        self.caller.as_ref().is_some_and(|caller| caller.role() >= role)
    }

    /// Renders a page.
    pub(super) fn page(&self, title: impl Display, content: Markup) -> Markup {
        self.page_below(&[], title, content)
    }

    /// What pages call a Source: its name, or else its ID.
    pub(super) fn called(&self, source: &SourceId) -> String {
        self.gateway
            .views
            .sources
            .get(source)
            .map_or_else(|| source.to_string(), |spec| called(&spec).to_owned())
    }

    /// Renders a page about a part of a Source.
    pub(super) fn source_page(&self, source: &SourceId, title: impl Display, content: Markup) -> Markup {
        self.page_below(&[(source_url(source), self.called(source).as_str())], title, content)
    }

    /// Renders a page with these parent pages, each with URL and name. The list of Sources is the root, and is not
    /// among them.
    pub(super) fn page_below(
        &self,
        parents: &[(String, &str)],
        title: impl Display,
        content: Markup,
    ) -> Markup {
        let title = title.to_string();
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    title { (title) " – Thresher" }
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="htmx-config" content=(HTMX);
                    link rel="icon" href=(ICON.url) type="image/svg+xml";
                    link rel="stylesheet" href=(STYLE.url);
                    script src=(SCRIPT.url) integrity=(SCRIPT.integrity) defer {}
                }
                body {
                    a.skip href="#main" { "Skip to the content" }
                    (self.header(&title))
                    main #main tabindex="-1" {
                        @if !parents.is_empty() {
                            nav aria-label="Where you are" {
                                ol.path {
                                    li { a href=(SOURCES) { "Sources" } }
                                    @for (url, name) in parents { li { a href=(url) { (name) } } }
                                }
                            }
                        }
                        h1 { (title) }
                        (content)
                    }
                    footer { p { "As of " (format::time(self.now)) ". Times are UTC." } }
                }
            }
        }
    }

    fn header(&self, title: &str) -> Markup {
        let current = |name: &str| (title == name).then_some("page");
        html! {
            header.top {
                p.brand { a href=(HOME) { "Thresher" } }
                @if let Some(caller) = &self.caller {
                    nav aria-label="Main" {
                        ul {
                            li { a href=(HOME) aria-current=[current("Fleet")] { "Fleet" } }
                            li { a href=(SOURCES) aria-current=[current("Sources")] { "Sources" } }
                            li { a href=(RUNS) aria-current=[current("Runs")] { "Runs" } }
                            @if self.may(Role::Admin) {
                                li { a href="/console/add" aria-current=[current("Add a Source")] { "Add a Source" } }
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

    /// Renders a page about an error.
    pub(super) fn error_page(&self, error: &ApiError) -> Markup {
        let content = html! {
            p { (error.detail()) }
            @if !error.errors().is_empty() {
                ul { @for error in error.errors() { li { code { (error.field) } ": " (error.detail) } } }
            }
            p { a href=(SOURCES) { "All Sources" } }
        };
        self.page(error.title(), content)
    }
}

/// What pages call a Source: its name, or else its ID.
pub(super) fn called(source: &SourceSpec) -> &str {
    source.name.as_ref().map_or(source.id.as_str(), SourceName::as_str)
}

/// The labels of a Source, such as `country=jp, tier=1`.
pub(super) fn labels(spec: &Spec) -> String {
    let labels: Vec<String> = spec.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    labels.join(", ")
}

/// The URL of the page of a Source.
pub(super) fn source_url(source: &SourceId) -> String {
    format!("{HOME}/sources/{source}")
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
