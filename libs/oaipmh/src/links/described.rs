//! Formats that describe a thing and name its files and pages by their role.

use super::tree::Node;
use super::{ContentLink, Found, LinkRole, is_html, is_resolver};

pub(super) fn mods(root: &Node<'_>, found: &mut Found) {
    for url in root.named("location").flat_map(|location| location.named("url")) {
        let (role, rule) = match (url.get("access"), url.get("usage")) {
            (Some("preview"), _) => (LinkRole::Thumbnail, "mods: url with access preview"),
            (Some("raw object"), _) => (LinkRole::File, "mods: url with access raw object"),
            (Some("object in context"), _) => {
                (LinkRole::LandingPage, "mods: url with access object in context")
            }
            (_, Some("primary" | "primary display")) => {
                (LinkRole::LandingPage, "mods: url with usage primary")
            }
            _ => (LinkRole::Unknown, "mods: url without access"),
        };
        found.add(ContentLink::url(url.value(), role, rule));
    }
    for identifier in root.named("identifier") {
        let kind = identifier.get("type").map(str::to_ascii_lowercase);
        if matches!(kind.as_deref(), Some("doi" | "hdl" | "uri")) {
            found.add(page_or_id(identifier.value(), "mods: identifier"));
        }
    }
}

/// Field 856 leads to the thing, by its second indicator; 024 identifies it.
pub(super) fn marcxml(root: &Node<'_>, found: &mut Found) {
    for field in root.named("datafield") {
        let subfield = |code: &str| {
            let is_it = |part: &&Node<'_>| part.get("code") == Some(code);
            field.named("subfield").find(is_it).and_then(Node::value)
        };
        match field.get("tag") {
            Some("856") => {
                let (role, rule) = match field.get("ind2") {
                    Some("0") => (LinkRole::Unknown, "marcxml: 856 of the resource"),
                    Some("1") => (LinkRole::Unknown, "marcxml: 856 of a version of the resource"),
                    Some("2") => (LinkRole::Related, "marcxml: 856 of a related resource"),
                    _ => (LinkRole::Unknown, "marcxml: 856"),
                };
                let link = ContentLink::url(subfield("u"), role, rule);
                found.add(link.map(|link| {
                    let link = link.media_type(subfield("q").filter(|text| super::is_media_type(text)));
                    if link.role == LinkRole::Unknown { link.by_media_type() } else { link }
                }));
            }
            Some("024") => found.add(page_or_id(subfield("a"), "marcxml: 024")),
            _ => {}
        }
    }
}

pub(super) fn lom(root: &Node<'_>, found: &mut Found) {
    for technical in root.named("technical") {
        let media_type = technical.first("format").and_then(Node::value);
        for location in technical.named("location") {
            let link = ContentLink::url(location.value(), LinkRole::Unknown, "lom: location, by its format");
            found.add(link.map(|link| link.media_type(media_type).by_media_type()));
        }
    }
}

/// DataCite names no file: its DOI leads to a page, which may lead on.
pub(super) fn datacite(root: &Node<'_>, found: &mut Found) {
    let inner = root.first("payload").and_then(|payload| payload.first("resource")).unwrap_or(root);
    for identifier in inner.named("identifier") {
        let rule = "datacite: identifier";
        found.add(typed_identifier(identifier, rule));
    }
}

/// An element with `identifierType`. The type says that it is a DOI, so one without scheme is as it should be.
fn typed_identifier(identifier: &Node<'_>, rule: &'static str) -> Option<ContentLink> {
    let link = match identifier.get("identifierType").map(str::to_ascii_uppercase).as_deref() {
        Some("DOI") => ContentLink::url_or_doi(identifier.value(), LinkRole::PersistentId, rule)?,
        Some("HDL" | "HANDLE") => {
            let value = identifier.value()?;
            let url = if value.contains("://") {
                value.to_owned()
            } else {
                format!("https://hdl.handle.net/{}", value.trim_start_matches("hdl:"))
            };
            ContentLink::url(Some(&url), LinkRole::PersistentId, rule)?
        }
        _ => page_or_id(identifier.value(), rule)?,
    };
    Some(ContentLink { bare_doi: false, ..link })
}

/// A landing page, or a persistent identifier where a resolver answers.
fn page_or_id(text: Option<&str>, rule: &'static str) -> Option<ContentLink> {
    let mut link = ContentLink::url_or_doi(text, LinkRole::LandingPage, rule)?;
    if is_resolver(&link.href) {
        link.role = LinkRole::PersistentId;
    }
    Some(link)
}

pub(super) fn rioxx(root: &Node<'_>, found: &mut Found) {
    for relation in root.named("relation") {
        let (role, rule) = match relation.get("rel") {
            Some("item") => (LinkRole::File, "rioxx: relation item"),
            Some("cite-as") => (LinkRole::PersistentId, "rioxx: relation cite-as"),
            _ => (LinkRole::Related, "rioxx: another relation"),
        };
        let href = relation.value().or(relation.get("href"));
        let Some(mut link) = ContentLink::url(href, role, rule) else { continue };
        link = link.media_type(relation.get("type"));
        link.open_from = relation.get("resource_exposed_date").map(str::to_owned);
        if link.role == LinkRole::File && link.media_type.as_deref().is_some_and(is_html) {
            link.role = LinkRole::LandingPage;
        }
        found.add(Some(link));
    }
    for identifier in root.named("identifier") {
        // In version 2 it is the file itself.
        let (role, rule) = if root.namespace.contains("/v2.") {
            (LinkRole::Unknown, "rioxx 2: identifier")
        } else {
            (LinkRole::LandingPage, "rioxx: identifier")
        };
        found.add(ContentLink::url(identifier.value(), role, rule));
    }
}

pub(super) fn edm(root: &Node<'_>, found: &mut Found) {
    for aggregation in root.all("Aggregation") {
        for child in &aggregation.children {
            let (role, rule) = match child.name {
                "isShownBy" => (LinkRole::File, "edm: isShownBy"),
                "hasView" => (LinkRole::File, "edm: hasView"),
                "isShownAt" => (LinkRole::LandingPage, "edm: isShownAt"),
                "object" => (LinkRole::Thumbnail, "edm: object"),
                _ => continue,
            };
            found.add(ContentLink::url(child.get("resource"), role, rule));
        }
    }
}

pub(super) fn oai_openaire(root: &Node<'_>, found: &mut Found) {
    for file in root.named("file") {
        let link = ContentLink::url(file.value(), LinkRole::File, "oai_openaire: file");
        found.add(link.map(|link| {
            let mut link = link.media_type(file.get("mimeType"));
            if link.media_type.as_deref().is_some_and(is_html) {
                link.role = LinkRole::LandingPage;
                link.rule = "oai_openaire: file that is a page";
            }
            link
        }));
    }
    for identifier in root.named("identifier") {
        found.add(typed_identifier(identifier, "oai_openaire: identifier"));
    }
}

pub(super) fn jpcoar(root: &Node<'_>, found: &mut Found) {
    for file in root.named("file") {
        let media_type = file.first("mimeType").and_then(Node::value);
        // The extent is prose, such as 3MB, unless it is a plain number.
        let length = file.named("extent").filter_map(Node::value).find_map(|extent| extent.parse().ok());
        for uri in file.named("URI") {
            let (role, rule) = match uri.get("objectType") {
                Some("fulltext" | "dataset" | "software") | None => (LinkRole::File, "jpcoar: file"),
                Some("thumbnail") => (LinkRole::Thumbnail, "jpcoar: thumbnail"),
                Some(_) => (LinkRole::Related, "jpcoar: file of another type"),
            };
            let link = ContentLink::url(uri.value(), role, rule);
            found.add(link.map(|link| ContentLink { length, ..link.media_type(media_type) }));
        }
    }
    for identifier in root.named("identifier") {
        found.add(typed_identifier(identifier, "jpcoar: identifier"));
    }
}
