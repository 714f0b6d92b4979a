//! Namespace declarations in force.

use std::borrow::Cow;

use crate::NAMESPACE;
use crate::quirk::Quirk;

pub(crate) const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";

/// Prefixes that are understood without a declaration, since their users forget it.
const WELL_KNOWN: [(&str, &str); 4] = [
    ("xsi", "http://www.w3.org/2001/XMLSchema-instance"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc/"),
    ("xlink", "http://www.w3.org/1999/xlink"),
];

/// Declarations in force at a time: each name is looked up among them.
pub(crate) const MAX_DECLARATIONS: usize = 512;
/// Bytes of a namespace: it is repeated wherever it must be declared anew.
pub(crate) const MAX_NAMESPACE_BYTES: usize = 1_024;

/// The declarations in force, innermost last. Documents have few, so a list is searched faster than a map.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope<'x> {
    bindings: Vec<Binding<'x>>,
}

#[derive(Clone, Debug)]
struct Binding<'x> {
    depth: usize,
    prefix: Cow<'x, str>,
    uri: Cow<'x, str>,
}

impl<'x> Scope<'x> {
    /// A scope for an element within this one.
    pub(crate) fn inner<'i>(&'i self) -> Scope<'i> {
        let borrow = |binding: &'i Binding<'x>| Binding {
            depth: 0,
            prefix: Cow::Borrowed(&*binding.prefix),
            uri: Cow::Borrowed(&*binding.uri),
        };
        let mut bindings = Vec::with_capacity(self.bindings.len() + 8);
        bindings.extend(self.bindings.iter().map(borrow));
        Scope { bindings }
    }

    /// The declarations of the outermost element within this scope, as owned texts.
    pub(crate) fn of_first_element(&self) -> Vec<(String, String)> {
        let own = self.bindings.iter().filter(|binding| binding.depth == 1);
        own.map(|binding| (binding.prefix.to_string(), binding.uri.to_string())).collect()
    }

    /// Adds a declaration of an element at this depth.
    pub(crate) fn declare(&mut self, depth: usize, prefix: Cow<'x, str>, uri: Cow<'x, str>) {
        self.bindings.push(Binding { depth, prefix, uri });
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.bindings.len()
    }

    /// Drops declarations deeper than `depth`.
    #[inline]
    pub(crate) fn leave(&mut self, depth: usize) {
        while self.bindings.last().is_some_and(|binding| binding.depth > depth) {
            self.bindings.pop();
        }
    }

    /// The namespace of a prefix, or of names without one (empty: none).
    #[inline]
    pub(crate) fn resolve(&self, prefix: &str) -> Option<Cow<'x, str>> {
        let found = self.bindings.iter().rev().find(|binding| *binding.prefix == *prefix);
        match found {
            Some(binding) => Some(binding.uri.clone()),
            None if prefix.is_empty() => Some(Cow::Borrowed("")),
            None if prefix == "xml" => Some(Cow::Borrowed(XML_NAMESPACE)),
            None => None,
        }
    }
}

/// The namespace of a well-known prefix.
pub(crate) fn well_known(prefix: &str) -> Option<&'static str> {
    WELL_KNOWN.iter().find(|(known, _)| *known == prefix).map(|(_, uri)| *uri)
}

/// Whether a namespace is that of OAI-PMH, and how oddly it is written.
pub(crate) fn is_oai(uri: &str) -> Option<Option<Quirk>> {
    if uri == NAMESPACE {
        return Some(None);
    }
    if uri.is_empty() {
        return Some(Some(Quirk::MissingOaiNamespace));
    }
    // Most other namespaces differ in their length.
    if uri.len() > NAMESPACE.len() + 8 {
        return None;
    }
    let lower = uri.trim().to_ascii_lowercase();
    let name = lower.split_once("://").map_or(lower.as_str(), |(_, rest)| rest).trim_end_matches('/');
    (name == "www.openarchives.org/oai/2.0" || name == "openarchives.org/oai/2.0")
        .then_some(Some(Quirk::OddOaiNamespace))
}

/// A qualified name as prefix and local name.
#[inline]
pub(crate) fn split(name: &str) -> (&str, &str) {
    name.split_once(':').unwrap_or(("", name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_of_oai_as_repositories_write_them() {
        for (uri, known) in [
            ("http://www.openarchives.org/OAI/2.0/", Some(None)),
            ("https://www.openarchives.org/OAI/2.0/", Some(Some(Quirk::OddOaiNamespace))),
            ("http://www.openarchives.org/OAI/2.0", Some(Some(Quirk::OddOaiNamespace))),
            ("", Some(Some(Quirk::MissingOaiNamespace))),
            ("http://www.openarchives.org/OAI/2.0/oai_dc/", None),
            ("http://www.openarchives.org/OAI/1.1/", None),
        ] {
            assert_eq!(is_oai(uri), known, "{uri}");
        }
    }

    #[test]
    fn inner_declarations_hide_outer_ones_until_their_element_ends() {
        let mut scope = Scope::default();
        scope.declare(1, "a".into(), "one".into());
        scope.declare(2, "a".into(), "two".into());
        assert_eq!(scope.resolve("a"), Some("two".into()));
        scope.leave(1);
        assert_eq!(scope.resolve("a"), Some("one".into()));
        assert_eq!((scope.resolve(""), scope.resolve("b")), (Some("".into()), None));
    }
}
