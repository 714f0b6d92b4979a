//! Which Sources a page is about: by status, labels, and text.

use control::{Run, Selector, SelectorError, SourceSpec};
use maud::{Markup, html};
use serde::Deserialize;

use super::source_health::SourceHealth;
use super::{SOURCES, format};
use crate::api_error::ApiError;

/// The parameters of a page about some Sources. Empty ones select all.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct SourceQuery {
    /// Only Sources with this text in their name, title, ID or entry URL.
    pub(super) name: String,
    /// Only Sources whose labels match this selector.
    #[serde(rename = "match")]
    pub(super) selector: String,
    /// Only Sources with this health.
    pub(super) state: String,
}

impl SourceQuery {
    /// The selector that the operator has entered.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn selector(&self) -> Result<Option<Selector>, ApiError> {
        let text = Some(self.selector.trim()).filter(|text| !text.is_empty());
        let bad = |error: SelectorError| ApiError::bad_request(error.to_string());
        text.map(|text| text.parse().map_err(bad)).transpose()
    }

    /// The health of the Sources; none for all.
    ///
    /// # Errors
    /// When there is no such health.
    pub(super) fn health(&self) -> Result<Option<SourceHealth>, ApiError> {
        let unknown = || ApiError::bad_request(format!("{:?} is no status of a Source", self.state));
        let named = Some(self.state.as_str()).filter(|state| !state.is_empty());
        named.map(|state| SourceHealth::named(state).ok_or_else(unknown)).transpose()
    }

    /// The text that a Source contains, in lower case.
    pub(super) fn text(&self) -> String {
        self.name.trim().to_lowercase()
    }

    /// The same with another health.
    pub(super) fn with_state(&self, state: &str) -> Self {
        Self { state: state.to_owned(), ..self.clone() }
    }

    /// The query of a URL, with its `?`; empty for all Sources.
    pub(super) fn url_query(&self) -> String {
        let given = self.given().map(|(name, value)| format!("{name}={}", format::query(value)));
        let given: Vec<_> = given.collect();
        if given.is_empty() { String::new() } else { format!("?{}", given.join("&")) }
    }

    /// The URL of the list of these Sources.
    pub(super) fn list_url(&self) -> String {
        format!("{SOURCES}{}", self.url_query())
    }

    /// The parameters as hidden fields of a form.
    pub(super) fn hidden(&self) -> Markup {
        html! { @for (name, value) in self.given() { input type="hidden" name=(name) value=(value); } }
    }

    fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [("name", self.name.trim()), ("match", self.selector.trim()), ("state", &self.state)];
        all.into_iter().filter(|(_, value)| !value.is_empty())
    }
}

/// The title of a Source: the one that an operator has set, or else the proposed one.
pub(super) fn title<'a>(spec: &'a SourceSpec, run: Option<&'a Run>) -> Option<&'a str> {
    spec.title.as_deref().or_else(|| run?.proposed_title())
}

/// Whether the name, title, ID or entry URL of a Source contains this text, which is in lower case.
pub(super) fn contains(text: &str, spec: &SourceSpec, run: Option<&Run>) -> bool {
    let has = |part: &str| part.to_lowercase().contains(text);
    text.is_empty()
        || spec.name.as_ref().is_some_and(|name| has(name.as_str()))
        || title(spec, run).is_some_and(has)
        || has(spec.id.as_str())
        || has(spec.entry.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_given_is_in_urls_and_forms() {
        let all = SourceQuery::default();
        assert_eq!((all.list_url().as_str(), all.hidden().into_string().as_str()), ("/console/sources", ""));
        let some = SourceQuery { selector: " a=b,!c ".to_owned(), ..all.with_state("failed") };
        assert_eq!(some.list_url(), "/console/sources?match=a%3Db%2C%21c&state=failed");
        assert!(some.hidden().into_string().contains("name=\"match\" value=\"a=b,!c\""));
        assert!(some.health().unwrap() == Some(SourceHealth::Failed) && some.selector().unwrap().is_some());
        assert!(some.with_state("none").health().is_err());
        assert!(SourceQuery { selector: "=".to_owned(), ..all }.selector().is_err());
    }
}
