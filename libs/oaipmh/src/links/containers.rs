//! Formats that list files as such: METS, DIDL, ORE in Atom, and DSpace's own.

use super::tree::Node;
use super::{ContentLink, Found, LinkRole, algorithm, is_html, is_resolver};

const AGGREGATES: &str = "http://www.openarchives.org/ore/terms/aggregates";

/// `fileSec/fileGrp/file/FLocat`: the group's USE says what the files are.
pub(super) fn mets(root: &Node<'_>, found: &mut Found) {
    let Some(section) = root.first("fileSec") else { return };
    let mut left: Vec<(&Node<'_>, Option<&str>)> =
        section.named("fileGrp").map(|group| (group, group.get("USE"))).collect();
    left.reverse();
    while let Some((group, usage)) = left.pop() {
        for file in group.named("file") {
            for location in file.named("FLocat") {
                let (role, rule) = mets_role(file.get("USE").or(usage));
                let link = ContentLink::url(location.get("href"), role, rule);
                found.add(link.map(|link| with_fixity(link, file)));
            }
        }
        let inner: Vec<_> = group.named("fileGrp").map(|inner| (inner, inner.get("USE").or(usage))).collect();
        left.extend(inner.into_iter().rev());
    }
}

fn mets_role(usage: Option<&str>) -> (LinkRole, &'static str) {
    match usage.map(str::to_ascii_uppercase).as_deref() {
        Some("ORIGINAL" | "CONTENT") => (LinkRole::File, "mets: fileGrp with USE ORIGINAL"),
        Some("THUMBNAIL" | "PREVIEW" | "BRANDED_PREVIEW") => {
            (LinkRole::Thumbnail, "mets: fileGrp of previews")
        }
        Some("TEXT" | "LICENSE" | "CC-LICENSE" | "METADATA" | "ORE" | "SWORD") => {
            (LinkRole::Related, "mets: fileGrp of text, licences or metadata")
        }
        _ => (LinkRole::Unknown, "mets: fileGrp of another USE"),
    }
}

fn with_fixity(mut link: ContentLink, file: &Node<'_>) -> ContentLink {
    link = link.media_type(file.get("MIMETYPE"));
    link.length = file.get("SIZE").and_then(|size| size.parse().ok());
    let digest = file.get("CHECKSUM").zip(file.get("CHECKSUMTYPE").and_then(algorithm));
    link.digests.extend(digest.map(|(value, algorithm)| (algorithm, value.to_owned())));
    link
}

/// `Resource` of `Component`s. An inner `Item` may say in its descriptor what it is.
pub(super) fn didl(root: &Node<'_>, found: &mut Found) {
    let mut left: Vec<(&Node<'_>, Option<&str>)> = vec![(root, None)];
    while let Some((node, kind)) = left.pop() {
        if node.name == "Resource" {
            let (role, rule) = match kind {
                Some("objectFile") => (LinkRole::File, "didl: item of type objectFile"),
                Some("humanStartPage") => (LinkRole::LandingPage, "didl: item of type humanStartPage"),
                Some(_) => (LinkRole::Related, "didl: item of another type"),
                None => (LinkRole::Unknown, "didl: Resource with mimeType"),
            };
            if let Some(link) = ContentLink::url(node.get("ref"), role, rule) {
                let link = link.media_type(node.get("mimeType"));
                found.add(Some(if kind.is_none() { link.by_media_type() } else { link }));
            }
            continue;
        }
        let kind = if node.name == "Item" { item_kind(node).or(kind) } else { kind };
        left.extend(node.children.iter().rev().map(|child| (child, kind)));
    }
}

/// The last part of the type that an item's own descriptors give it.
fn item_kind<'n>(item: &'n Node<'_>) -> Option<&'n str> {
    let statements = item.named("Descriptor").flat_map(|descriptor| descriptor.named("Statement"));
    statements
        .flat_map(|statement| &statement.children)
        .find_map(|kind| match kind.name {
            "ObjectType" => kind.value(),
            "type" => kind.get("resource").or(kind.value()),
            _ => None,
        })
        .and_then(|kind| kind.rsplit('/').next())
}

/// The links of an Atom entry.
pub(super) fn ore(root: &Node<'_>, found: &mut Found) {
    for link in root.named("link") {
        let (role, rule) = match link.get("rel") {
            Some(AGGREGATES) => (LinkRole::File, "ore: link with rel aggregates"),
            Some("alternate") | None => (LinkRole::LandingPage, "ore: link with rel alternate"),
            _ => continue,
        };
        let made = ContentLink::url(link.get("href"), role, rule);
        found.add(made.map(|made| {
            let mut made = made.media_type(link.get("type"));
            made.length = link.get("length").and_then(|length| length.parse().ok());
            if made.role == LinkRole::File && made.media_type.as_deref().is_some_and(is_html) {
                made.role = LinkRole::LandingPage;
                made.rule = "ore: aggregated page";
            }
            made
        }));
    }
}

/// Bundles of bitstreams, each a list of named fields; then the item's own identifiers.
pub(super) fn xoai(root: &Node<'_>, found: &mut Found) {
    let bundles = elements(root, "bundles").flat_map(|bundles| elements(bundles, "bundle"));
    for bundle in bundles {
        let (role, rule) = match field(bundle, "name") {
            Some("ORIGINAL") => (LinkRole::File, "xoai: bundle ORIGINAL"),
            Some("THUMBNAIL" | "BRANDED_PREVIEW") => (LinkRole::Thumbnail, "xoai: bundle of previews"),
            _ => (LinkRole::Related, "xoai: another bundle"),
        };
        let bitstreams = elements(bundle, "bitstreams").flat_map(|group| elements(group, "bitstream"));
        for bitstream in bitstreams {
            let Some(mut link) = ContentLink::url(field(bitstream, "url"), role, rule) else { continue };
            link = link.media_type(field(bitstream, "format"));
            link.length = field(bitstream, "size").and_then(|size| size.parse().ok());
            let algorithm = field(bitstream, "checksumAlgorithm").and_then(algorithm);
            let digest = field(bitstream, "checksum").zip(algorithm);
            link.digests.extend(digest.map(|(value, algorithm)| (algorithm, value.to_owned())));
            found.add(Some(link));
        }
    }
    let uris = elements(root, "dc").flat_map(|dc| elements(dc, "identifier"));
    for uri in uris.flat_map(|identifier| elements(identifier, "uri")) {
        for value in uri.all("field") {
            let link = ContentLink::url(value.value(), LinkRole::LandingPage, "xoai: dc.identifier.uri");
            found.add(link.map(|mut link| {
                if is_resolver(&link.href) {
                    link.role = LinkRole::PersistentId;
                }
                link
            }));
        }
    }
}

/// The `element`s of this name directly within another.
fn elements<'n, 'x>(node: &'n Node<'x>, name: &'static str) -> impl Iterator<Item = &'n Node<'x>> {
    node.named("element").filter(move |element| element.get("name") == Some(name))
}

fn field<'n>(node: &'n Node<'_>, name: &str) -> Option<&'n str> {
    node.named("field").find(|field| field.get("name") == Some(name))?.value()
}
