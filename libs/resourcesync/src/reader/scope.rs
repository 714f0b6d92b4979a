use quick_xml::events::BytesStart;

use super::notes::Notes;
use super::reference::unescape;
use crate::quirk::Quirk;
use crate::{RESOURCESYNC_NAMESPACE, SITEMAP_NAMESPACE};

/// A namespace, as far as the reader distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Namespace {
    /// None is declared, and the name has no prefix.
    None,
    Sitemap,
    ResourceSync,
    Foreign,
}

/// The names that a ResourceSync document can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    UrlSet,
    SitemapIndex,
    Url,
    Sitemap,
    Loc,
    LastMod,
    ChangeFreq,
    Priority,
    Md,
    Ln,
    Other,
}

/// The namespace declarations in force.
///
/// A document has two or three, on its root element, so searching a short list from its end is faster than
/// any map.
pub(super) struct Scope {
    bindings: Vec<Binding>,
    /// The namespace of names without prefix, which most names are.
    default: Namespace,
}

struct Binding {
    depth: usize,
    prefix: Box<str>,
    namespace: Namespace,
}

impl Scope {
    pub(super) fn new() -> Self {
        Self { bindings: Vec::new(), default: Namespace::None }
    }

    /// Records a start tag's declarations and returns the meaning of its name.
    #[inline]
    pub(super) fn enter(
        &mut self,
        start: &BytesStart<'_>,
        depth: usize,
        max_attributes: usize,
        notes: &mut Notes,
    ) -> Name {
        if start.attributes_raw().contains("xmlns") {
            self.declare_all(start, depth, max_attributes, notes);
        }
        let qualified = start.name().into_inner();
        let (prefix, local) = qualified.split_once(':').unwrap_or(("", qualified));
        match self.resolve(prefix, notes) {
            Namespace::Sitemap | Namespace::None => Name::sitemap(local),
            Namespace::ResourceSync => Name::resourcesync(local),
            Namespace::Foreign => Name::Other,
        }
    }

    /// Whether names without prefix are in no namespace.
    pub(super) fn has_no_default(&self) -> bool {
        self.default == Namespace::None
    }

    /// Whether names without prefix may be those of Sitemaps.
    pub(super) fn takes_plain_names(&self) -> bool {
        matches!(self.default, Namespace::Sitemap | Namespace::None)
    }

    /// Whether `rs` is declared as the prefix of ResourceSync.
    pub(super) fn declares_rs(&self) -> bool {
        self.find("rs") == Some(Namespace::ResourceSync)
    }

    fn declare_all(&mut self, start: &BytesStart<'_>, depth: usize, max: usize, notes: &mut Notes) {
        // Errors in attributes are reported where their values are read.
        for attribute in start.attributes().with_checks(false).take(max).flatten() {
            let prefix = match attribute.key.into_inner() {
                "xmlns" => "",
                name => match name.strip_prefix("xmlns:") {
                    Some(prefix) => prefix,
                    None => continue,
                },
            };
            if let Ok(uri) = unescape(&attribute.value, notes) {
                self.declare(depth, prefix, &uri, notes);
            }
        }
    }

    fn declare(&mut self, depth: usize, prefix: &str, uri: &str, notes: &mut Notes) {
        let (namespace, quirk) = classify(uri);
        if let Some(quirk) = quirk {
            notes.add(quirk);
        }
        self.bindings.push(Binding { depth, prefix: prefix.into(), namespace });
        self.default = self.find("").unwrap_or(Namespace::None);
    }

    /// Drops declarations deeper than `depth`.
    #[inline]
    pub(super) fn leave(&mut self, depth: usize) {
        while self.bindings.last().is_some_and(|binding| binding.depth > depth) {
            self.bindings.pop();
            self.default = self.find("").unwrap_or(Namespace::None);
        }
    }

    fn find(&self, prefix: &str) -> Option<Namespace> {
        self.bindings.iter().rev().find(|binding| *binding.prefix == *prefix).map(|binding| binding.namespace)
    }

    #[inline]
    fn resolve(&self, prefix: &str, notes: &mut Notes) -> Namespace {
        if prefix.is_empty() {
            return self.default;
        }
        match self.find(prefix) {
            Some(namespace) => namespace,
            None if prefix == "rs" => {
                notes.add(Quirk::UndeclaredPrefix);
                Namespace::ResourceSync
            }
            None => Namespace::Foreign,
        }
    }
}

impl Name {
    fn sitemap(local: &str) -> Self {
        match local {
            "url" => Self::Url,
            "loc" => Self::Loc,
            "lastmod" => Self::LastMod,
            "sitemap" => Self::Sitemap,
            "changefreq" => Self::ChangeFreq,
            "priority" => Self::Priority,
            "urlset" => Self::UrlSet,
            "sitemapindex" => Self::SitemapIndex,
            _ => Self::Other,
        }
    }

    fn resourcesync(local: &str) -> Self {
        match local {
            "md" => Self::Md,
            "ln" => Self::Ln,
            _ => Self::Other,
        }
    }
}

fn classify(uri: &str) -> (Namespace, Option<Quirk>) {
    match uri.trim() {
        SITEMAP_NAMESPACE => (Namespace::Sitemap, None),
        RESOURCESYNC_NAMESPACE => (Namespace::ResourceSync, None),
        "" => (Namespace::None, None),
        other => {
            let other = other.to_ascii_lowercase();
            let name = other.split_once("://").map_or(other.as_str(), |(_, rest)| rest).trim_end_matches('/');
            let name = name.strip_prefix("www.").unwrap_or(name);
            if name == "openarchives.org/rs/terms" {
                (Namespace::ResourceSync, Some(Quirk::OddResourceSyncNamespace))
            } else if name.contains("/schemas/sitemap/") || name.ends_with("/schemas/sitemap") {
                (Namespace::Sitemap, Some(Quirk::OddSitemapNamespace))
            } else {
                (Namespace::Foreign, None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_as_sources_write_them() {
        for (uri, namespace, quirk) in [
            ("http://www.sitemaps.org/schemas/sitemap/0.9", Namespace::Sitemap, None),
            (
                "https://www.sitemaps.org/schemas/sitemap/0.9",
                Namespace::Sitemap,
                Some(Quirk::OddSitemapNamespace),
            ),
            (
                "http://www.google.com/schemas/sitemap/0.84",
                Namespace::Sitemap,
                Some(Quirk::OddSitemapNamespace),
            ),
            ("http://www.google.com/schemas/sitemap-image/1.1", Namespace::Foreign, None),
            ("http://www.openarchives.org/rs/terms/", Namespace::ResourceSync, None),
            (
                "http://www.openarchives.org/rs/terms",
                Namespace::ResourceSync,
                Some(Quirk::OddResourceSyncNamespace),
            ),
        ] {
            assert_eq!(classify(uri), (namespace, quirk), "{uri}");
        }
    }
}
