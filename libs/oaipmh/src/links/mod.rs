use url::Url;

use crate::format::KnownFormat;
use crate::limits::Limits;
use crate::record::Metadata;

mod containers;
mod described;
mod dublin_core;
mod relation;
mod tree;

/// A link from a record to its content, or to a page about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentLink {
    /// The absolute URL as written. Before a DOI without scheme stands `https://doi.org/`.
    pub href: String,
    /// What is behind it, as far as the record says.
    pub role: LinkRole,
    /// The declared media type.
    pub media_type: Option<String>,
    /// The declared length in bytes.
    pub length: Option<u64>,
    /// The declared digests: the algorithm as in a `hash` attribute of ResourceSync, and the value as written.
    pub digests: Vec<(&'static str, String)>,
    /// When the file becomes open, as written (an embargo).
    pub open_from: Option<String>,
    /// The rule that gave the role, for `explain`.
    pub rule: &'static str,
    /// Whether it was a DOI without scheme ([`Quirk::BareDoi`](crate::Quirk::BareDoi)).
    pub bare_doi: bool,
}

/// What is behind a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkRole {
    /// A file of the content.
    File,
    /// A page for people; Signposting may lead on from it.
    LandingPage,
    /// A persistent identifier: it resolves to a landing page or a file.
    PersistentId,
    /// A small picture of the content.
    Thumbnail,
    /// Another thing: another version, a licence, extracted text.
    Related,
    /// The record does not say. The answer's media type decides; HTML is a landing page.
    Unknown,
}

/// The links of one record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// In the order of the record, each URL once: with the first role that is not
    /// [`Unknown`](LinkRole::Unknown).
    pub links: Vec<ContentLink>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// The format that was recognised; without one there are no links.
    pub format: Option<KnownFormat>,
}

/// The links of a record in any known format, at most `max`.
///
/// Only `http` and `https` URLs count, and DOIs. A suffix such as `.pdf` is no statement: it gives no role.
pub fn links(metadata: &Metadata, limits: &Limits, max: usize) -> Links {
    let Some(format) = KnownFormat::of_root(&metadata.namespace, &metadata.root) else {
        return Links::default();
    };
    let mut found = Found { links: Vec::new(), max, more: false };
    // A canonical document is well-formed; another one has no links.
    if let Ok(root) = tree::read(&metadata.document, limits) {
        match format {
            KnownFormat::OaiDc | KnownFormat::Qdc | KnownFormat::Etdms => {
                dublin_core::links(&root, &mut found);
            }
            KnownFormat::Mods => described::mods(&root, &mut found),
            KnownFormat::Marcxml => described::marcxml(&root, &mut found),
            KnownFormat::Lom => described::lom(&root, &mut found),
            KnownFormat::Datacite | KnownFormat::OaiDatacite => described::datacite(&root, &mut found),
            KnownFormat::Rioxx => described::rioxx(&root, &mut found),
            KnownFormat::Edm => described::edm(&root, &mut found),
            KnownFormat::OaiOpenaire => described::oai_openaire(&root, &mut found),
            KnownFormat::Jpcoar => described::jpcoar(&root, &mut found),
            KnownFormat::Mets => containers::mets(&root, &mut found),
            KnownFormat::Didl => containers::didl(&root, &mut found),
            KnownFormat::Ore => containers::ore(&root, &mut found),
            KnownFormat::Xoai => containers::xoai(&root, &mut found),
        }
    }
    Links { links: found.links, more: found.more, format: Some(format) }
}

/// The links so far.
struct Found {
    links: Vec<ContentLink>,
    max: usize,
    more: bool,
}

impl Found {
    /// Adds a link. A URL that is there already gets the new role only if it had none.
    fn add(&mut self, link: Option<ContentLink>) {
        let Some(link) = link else { return };
        if let Some(known) = self.links.iter_mut().find(|known| known.href == link.href) {
            if known.role == LinkRole::Unknown {
                *known = link;
            }
            return;
        }
        if self.links.len() >= self.max {
            self.more = true;
            return;
        }
        self.links.push(link);
    }
}

impl ContentLink {
    /// A link to what a text names: an `http` or `https` URL. `None` for all else.
    fn url(text: Option<&str>, role: LinkRole, rule: &'static str) -> Option<Self> {
        let href = text?.trim();
        let scheme = href.split_once("://").map(|(scheme, _)| scheme)?;
        if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") || Url::parse(href).is_err() {
            return None;
        }
        Some(Self {
            href: href.to_owned(),
            role,
            media_type: None,
            length: None,
            digests: Vec::new(),
            open_from: None,
            rule,
            bare_doi: false,
        })
    }

    /// As [`url`](Self::url), or a DOI with `doi:` or nothing before it.
    fn url_or_doi(text: Option<&str>, role: LinkRole, rule: &'static str) -> Option<Self> {
        let text = text?.trim();
        if let Some(link) = Self::url(Some(text), role, rule) {
            return Some(link);
        }
        let doi = bare_doi(text)?;
        let link = Self::url(Some(&format!("https://doi.org/{doi}")), LinkRole::PersistentId, rule)?;
        Some(Self { bare_doi: true, ..link })
    }

    fn media_type(mut self, media_type: Option<&str>) -> Self {
        self.media_type = media_type.map(str::to_owned);
        self
    }

    /// Declared type other than HTML: a file. HTML: a page.
    fn by_media_type(mut self) -> Self {
        if let Some(media_type) = &self.media_type {
            self.role = if is_html(media_type) { LinkRole::LandingPage } else { LinkRole::File };
        }
        self
    }
}

/// The DOI of a text such as `10.1000/182` or `doi:10.1000/182`.
fn bare_doi(text: &str) -> Option<&str> {
    let doi = text
        .get(..4)
        .filter(|start| start.eq_ignore_ascii_case("doi:"))
        .map_or(text, |start| text[start.len()..].trim_start());
    let (registrant, suffix) = doi.strip_prefix("10.")?.split_once('/')?;
    let is_registrant = registrant.len() >= 4
        && registrant
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    (is_registrant && !suffix.is_empty() && !suffix.contains(char::is_whitespace)).then_some(doi)
}

fn is_html(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(essence.as_str(), "text/html" | "application/xhtml+xml")
}

/// Whether a text is a media type, such as `application/pdf`.
fn is_media_type(text: &str) -> bool {
    const TOP: [&str; 9] =
        ["application", "audio", "font", "image", "message", "model", "multipart", "text", "video"];
    text.split_once('/').is_some_and(|(top, sub)| {
        TOP.contains(&top.to_ascii_lowercase().as_str())
            && !sub.is_empty()
            && !sub.contains(|c: char| c.is_whitespace() || c == '/')
    })
}

/// Whether a URL is one of a resolver of persistent identifiers.
fn is_resolver(href: &str) -> bool {
    let host = Url::parse(href).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    matches!(
        host.as_str(),
        "doi.org"
            | "dx.doi.org"
            | "www.doi.org"
            | "hdl.handle.net"
            | "n2t.net"
            | "nbn-resolving.org"
            | "nbn-resolving.de"
            | "purl.org"
            | "w3id.org"
    )
}

/// The name of a digest's algorithm in ResourceSync, from what formats write.
fn algorithm(text: &str) -> Option<&'static str> {
    match text.trim().to_ascii_lowercase().replace('-', "").as_str() {
        "md5" => Some("md5"),
        "sha1" => Some("sha-1"),
        "sha256" => Some("sha-256"),
        "sha384" => Some("sha-384"),
        "sha512" => Some("sha-512"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
