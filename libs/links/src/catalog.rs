//! The catalog of a host's interfaces at `/.well-known/api-catalog` (RFC 9727), as FAIRiCat uses it.

use std::collections::HashMap;

use serde::Serialize;
use url::Url;

use crate::link::{Link, Links};

/// Where the catalog is, below the root of a host.
pub const WELL_KNOWN: &str = "/.well-known/api-catalog";

/// An interface of the catalog: what its documentation, description and metadata are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its URL.
    pub url: Url,
    /// Its kind, by its `service-doc`.
    pub kind: Kind,
    /// Its links: `service-doc`, `service-desc`, `service-meta`.
    pub links: Vec<Link>,
}

/// The kind of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// ResourceSync.
    ResourceSync,
    /// OAI-PMH.
    OaiPmh,
    /// A sitemap of landing pages with typed links (Signmap).
    Signmap,
    /// A plain sitemap.
    Sitemap,
    /// Landing pages with typed links; the URL is one example of them.
    Signposting,
    /// Linked Data Notifications.
    Notifications,
    /// Anything else.
    Other,
}

impl Kind {
    /// Its name for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ResourceSync => "ResourceSync",
            Self::OaiPmh => "OAI-PMH",
            Self::Signmap => "Signmap",
            Self::Sitemap => "sitemap",
            Self::Signposting => "Signposting",
            Self::Notifications => "Linked Data Notifications",
            Self::Other => "other",
        }
    }
}

/// The interfaces of a catalog that was read from `base`, in its order. An interface that documents itself in several
/// ways is of the kind of its first `service-doc` that is known.
pub fn interfaces(catalog: &Links, base: &Url) -> Vec<Interface> {
    let mut found: Vec<Interface> = Vec::new();
    let mut places: HashMap<Url, usize> = HashMap::new();
    for link in &catalog.links {
        let is_of_service = ["service-doc", "service-desc", "service-meta"].iter().any(|rel| link.is(rel));
        let Some(url) = link.context_at(base).filter(|_| is_of_service) else { continue };
        let place = *places.entry(url).or_insert_with_key(|url| {
            found.push(Interface { url: url.clone(), kind: Kind::Other, links: Vec::new() });
            found.len() - 1
        });
        let interface = &mut found[place];
        if interface.kind == Kind::Other && link.is("service-doc") {
            interface.kind = kind(&link.target);
        }
        interface.links.push(link.clone());
    }
    found
}

/// The kind of interface that a document describes.
fn kind(documentation: &str) -> Kind {
    let Ok(url) = Url::parse(documentation) else { return Kind::Other };
    let host = url.host_str().unwrap_or_default().trim_start_matches("www.").to_ascii_lowercase();
    let path = url.path().to_ascii_lowercase();
    match host.as_str() {
        "openarchives.org" if path.starts_with("/rs") => Kind::ResourceSync,
        "openarchives.org" if path.starts_with("/oai") || path.starts_with("/pmh") => Kind::OaiPmh,
        "sitemaps.org" => Kind::Sitemap,
        "signposting.org" if path.starts_with("/signmap") => Kind::Signmap,
        "signposting.org" => Kind::Signposting,
        "w3.org" if path.starts_with("/tr/ldn") => Kind::Notifications,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::linkset::{self, Format};

    #[test]
    fn interfaces_are_known_by_their_documentation() {
        let body = r#"{"linkset": [
            {"anchor": "http://s.test/oai", "service-doc": [{"href": "http://www.openarchives.org/OAI/openarchivesprotocol.html", "type": "text/html"}],
             "service-meta": [{"href": "http://s.test/oai?verb=Identify", "type": "text/xml"}]},
            {"anchor": "/signmap.xml", "service-doc": [{"href": "https://signposting.org/Signmap/", "type": "text/html"}]},
            {"anchor": "http://s.test/sitemap.xml", "service-doc": [{"href": "https://www.sitemaps.org/protocol.html"}]},
            {"anchor": "http://s.test/w/1", "service-doc": [{"href": "https://signposting.org/FAIR/"}]},
            {"anchor": "http://s.test/.well-known/resourcesync", "service-doc": [{"href": "http://www.openarchives.org/rs/1.1/resourcesync"}]},
            {"anchor": "http://s.test/inbox", "service-doc": [{"href": "https://www.w3.org/TR/ldn/"}]},
            {"anchor": "http://s.test/api", "service-desc": [{"href": "/openapi.json"}], "item": [{"href": "/x"}]},
            {"anchor": "http://s.test/x", "item": [{"href": "/x"}]}]}"#;
        let set = linkset::read(body.as_bytes(), Format::Json, &Limits::BODY).unwrap();
        let base: Url = "http://s.test/.well-known/api-catalog".parse().unwrap();
        let found = interfaces(&set, &base);
        let kinds: Vec<_> = found.iter().map(|one| (one.url.path(), one.kind, one.links.len())).collect();
        assert_eq!(
            kinds,
            [
                ("/oai", Kind::OaiPmh, 2),
                ("/signmap.xml", Kind::Signmap, 1),
                ("/sitemap.xml", Kind::Sitemap, 1),
                ("/w/1", Kind::Signposting, 1),
                ("/.well-known/resourcesync", Kind::ResourceSync, 1),
                ("/inbox", Kind::Notifications, 1),
                ("/api", Kind::Other, 1),
            ]
        );
    }
}
