//! Expands names to IRIs, by the built-in contexts and the document's own. Nothing is fetched.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::terms::{AS, COAR_NOTIFY, LDP};

/// The longest IRI of a term, in bytes, and the most terms: a few short definitions could otherwise expand to
/// gigabytes.
const LONGEST: usize = 256;
const MOST_TERMS: usize = 64;

/// The meaning of names at some place of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Context {
    /// Terms and prefixes; none for one that was removed.
    terms: BTreeMap<String, Option<String>>,
    /// The prefix of names that are no terms.
    vocab: Option<String>,
}

impl Context {
    /// The context of Activity Streams 2, which is also the default of a document without one (AS2 core,
    /// 2.1).
    pub(crate) fn activity_streams() -> Self {
        let mut context = Self::default();
        context.add_activity_streams();
        context
    }

    /// The context below a `@context`.
    pub(crate) fn with(&self, said: &Value) -> Self {
        let mut context = self.clone();
        context.take(said);
        context
    }

    fn take(&mut self, said: &Value) {
        match said {
            Value::Null => *self = Self::default(),
            Value::String(iri) => self.take_known(iri),
            Value::Array(several) => several.iter().for_each(|one| self.take(one)),
            Value::Object(defined) => {
                if let Some(vocab) = defined.get("@vocab") {
                    self.vocab = vocab.as_str().and_then(|vocab| self.iri(vocab));
                }
                // A term may use another one that is defined after it.
                let before = self.clone();
                for term in defined.keys().filter(|term| !term.starts_with('@') && term.len() <= LONGEST) {
                    if self.terms.len() < MOST_TERMS || self.terms.contains_key(term) {
                        self.terms.insert(term.clone(), before.defined(defined, term));
                    }
                }
            }
            _ => {}
        }
    }

    /// The IRI of a term that is defined here.
    fn defined(&self, defined: &serde_json::Map<String, Value>, term: &str) -> Option<String> {
        let iri_of = |value: &Value| match value {
            Value::String(iri) => Some(iri.clone()),
            Value::Object(wider) => Some(wider.get("@id").map_or(Some(term), Value::as_str)?.to_owned()),
            _ => None,
        };
        let iri = iri_of(defined.get(term)?)?;
        if let Some((prefix, rest)) = iri.split_once(':')
            && !rest.starts_with("//")
            && let Some(prefix) = defined.get(prefix).and_then(iri_of).filter(|_| prefix != term)
        {
            return self.iri(&format!("{prefix}{rest}"));
        }
        self.iri(&iri)
    }

    fn iri(&self, name: &str) -> Option<String> {
        Some(self.expand(name).into_owned()).filter(|iri| iri.len() <= LONGEST)
    }

    fn add_activity_streams(&mut self) {
        self.vocab = Some(AS.to_owned());
        self.define("id", "@id");
        self.define("type", "@type");
        self.define("as", AS);
        self.define("ldp", LDP);
        self.define("inbox", &format!("{LDP}inbox"));
    }

    /// Adds a built-in context. Others are unknown, and their terms are ignored.
    fn take_known(&mut self, iri: &str) {
        let iri = iri.trim_end_matches(['#', '/']);
        let iri = iri.strip_prefix("https://").or_else(|| iri.strip_prefix("http://")).unwrap_or(iri);
        match iri.strip_suffix(".jsonld").unwrap_or(iri) {
            "www.w3.org/ns/activitystreams" => self.add_activity_streams(),
            "www.w3.org/ns/ldp" => {
                self.define("ldp", LDP);
                for term in ["inbox", "contains", "constrainedBy", "Container", "BasicContainer", "Resource"]
                {
                    self.define(term, &format!("{LDP}{term}"));
                }
            }
            "purl.org/coar/notify" | "coar-notify.net" => self.define("coar-notify", COAR_NOTIFY),
            _ => {}
        }
    }

    fn define(&mut self, term: &str, iri: &str) {
        self.terms.insert(term.to_owned(), Some(iri.to_owned()));
    }

    /// The IRI or keyword of a name; the name itself if it is unknown.
    pub(crate) fn expand<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if name.starts_with('@') {
            return name.into();
        }
        match self.terms.get(name) {
            Some(Some(iri)) => return iri.clone().into(),
            Some(None) => return name.into(),
            None => {}
        }
        match (name.split_once(':'), &self.vocab) {
            (Some((_, rest)), _) if rest.starts_with("//") => name.into(),
            (Some((prefix, rest)), _) => match self.terms.get(prefix) {
                Some(Some(iri)) => format!("{iri}{rest}").into(),
                _ => name.into(),
            },
            (None, Some(vocab)) => format!("{vocab}{name}").into(),
            (None, None) => name.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ANNOUNCE: &str = "https://www.w3.org/ns/activitystreams#Announce";

    fn expand(context: Value, name: &str) -> String {
        Context::default().with(&context).expand(name).into_owned()
    }

    #[test]
    fn terms_of_the_contexts_that_are_built_in_are_known_under_all_their_names() {
        for context in [
            json!("https://www.w3.org/ns/activitystreams"),
            json!("http://www.w3.org/ns/activitystreams#"),
            json!("https://www.w3.org/ns/activitystreams.jsonld"),
            json!(["https://coar-notify.net", "https://www.w3.org/ns/activitystreams"]),
            json!(["https://www.w3.org/ns/activitystreams", "https://purl.org/coar/notify", {"x": "urn:x:"}]),
        ] {
            assert_eq!(expand(context.clone(), "Announce"), ANNOUNCE);
            assert_eq!(expand(context.clone(), "as:Announce"), ANNOUNCE);
            assert_eq!(expand(context.clone(), "type"), "@type");
            assert_eq!(expand(context, "inbox"), "http://www.w3.org/ns/ldp#inbox");
        }
        assert_eq!(
            expand(json!("http://www.w3.org/ns/ldp"), "contains"),
            "http://www.w3.org/ns/ldp#contains"
        );
        let coar = expand(json!("https://coar-notify.net"), "coar-notify:ReviewAction");
        assert_eq!(coar, "http://purl.org/coar/notify_vocabulary/ReviewAction");
    }

    #[test]
    fn what_a_document_defines_itself_counts() {
        let own = json!({"a": "https://www.w3.org/ns/activitystreams#", "says": {"@id": "a:Announce", "@type": "@id"}, "kind": "@type"});
        assert_eq!(expand(own.clone(), "says"), ANNOUNCE);
        assert_eq!(expand(own.clone(), "a:Announce"), ANNOUNCE);
        assert_eq!(expand(own, "kind"), "@type");
        assert_eq!(expand(json!({"@vocab": AS}), "Announce"), ANNOUNCE);
        assert_eq!(expand(json!([AS_URL, {"Announce": null}]), "Announce"), "Announce");
    }

    const AS_URL: &str = "https://www.w3.org/ns/activitystreams";

    #[test]
    fn full_iris_need_no_context_and_of_unknown_contexts_nothing_is_guessed() {
        assert_eq!(expand(json!(null), ANNOUNCE), ANNOUNCE);
        assert_eq!(expand(json!("http://schema.org/"), "Announce"), "Announce");
        assert_eq!(expand(json!([AS_URL, null]), "Announce"), "Announce");
        assert_eq!(expand(json!(7), "Announce"), "Announce");
    }

    #[test]
    fn definitions_that_lead_to_each_other_come_to_an_end_and_do_not_grow() {
        let circle = json!({"a": "b:x", "b": "a:x"});
        expand(circle, "a:y");
        let mut context = Context::default();
        for _ in 0..100 {
            context =
                context.with(&json!({"@vocab": "x".repeat(1_000), "a": "a:aaaaaaaaaaaaaaaaaaaaaaaaaaaa"}));
        }
        assert!(context.expand("a").len() <= LONGEST);
        let many: serde_json::Map<_, _> = (0..500).map(|n| (format!("t{n}"), json!("urn:x"))).collect();
        assert_eq!(Context::default().with(&Value::Object(many)).terms.len(), MOST_TERMS);
    }
}
