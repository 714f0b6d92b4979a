//! What a landing page says of a work, from all places where it may say it (Signposting): its link sets, its `Link`
//! headers, the head of its HTML.
//!
//! ```
//! use links::landing::{Place, Union};
//!
//! let page = "https://e.org/w".parse()?;
//! let mut union = Union::new(page);
//! let header = links::header::read(["</w.pdf>; rel=item"], &links::Limits::HEADER);
//! union.add(Place::Header, &"https://e.org/w".parse()?, &header);
//! assert_eq!(union.of_page("item").next().unwrap().target.as_str(), "https://e.org/w.pdf");
//! # Ok::<_, url::ParseError>(())
//! ```

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;
use url::Url;

use crate::link::Links;

/// Maximum links of one page. More are left out, and counted.
pub const MOST_LINKS: usize = 100_000;
/// Maximum bytes of the links of one page, with a copy of both ends for each. More are left out likewise.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// The same for its headers and its HTML.
const MOST_BYTES_OF_PAGE: usize = 4 * 1024 * 1024;
/// Maximum relations of one link. More are left out likewise.
const MOST_RELATIONS: usize = 32;

/// Where a link was written. Attributes of an earlier place win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// In a link set.
    LinkSet,
    /// In a `Link` header.
    Header,
    /// In the head of the HTML.
    Head,
}

/// A link with resolved ends, from all places that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedLink {
    /// What the link is about.
    pub context: Url,
    /// One relation: a registered name in lower case, or a URI as written.
    pub rel: String,
    /// Where it leads.
    pub target: Url,
    /// Its attributes.
    pub attributes: Vec<(String, String)>,
    /// Where it was written.
    pub places: BTreeSet<Place>,
}

/// Something wrong or missing, although all could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The page has several persistent identifiers (`cite-as`), and a work has one.
    SeveralCiteAs,
    /// The header has only a part of the items that a link set has: many servers cut it.
    HeaderIncomplete,
    /// An item or a metadata record without a media type.
    NoType,
    /// No metadata record.
    NoDescribedby,
}

impl Finding {
    /// All findings.
    pub const ALL: [Self; 4] =
        [Self::SeveralCiteAs, Self::HeaderIncomplete, Self::NoType, Self::NoDescribedby];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SeveralCiteAs => "several-cite-as",
            Self::HeaderIncomplete => "header-incomplete",
            Self::NoType => "no-type",
            Self::NoDescribedby => "no-describedby",
        }
    }
}

/// The links of one page.
#[derive(Debug, Clone)]
pub struct Union {
    page: Url,
    /// Other URLs of the page.
    also: Vec<Url>,
    links: Vec<TypedLink>,
    known: HashMap<(Url, String, Url), usize>,
    bytes: usize,
    left_out: u64,
}

/// Whether these relations are those of a landing page: it has files, or a link set, or is cited and described.
pub fn is_landing<'a>(relations: impl Iterator<Item = &'a str>) -> bool {
    let [mut is_cited, mut is_described] = [false, false];
    for rel in relations {
        if rel.eq_ignore_ascii_case("item") || rel.eq_ignore_ascii_case("linkset") {
            return true;
        }
        is_cited |= rel.eq_ignore_ascii_case("cite-as");
        is_described |= rel.eq_ignore_ascii_case("describedby");
    }
    is_cited && is_described
}

impl TypedLink {
    /// The first value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The bytes of its texts.
    fn size(&self) -> usize {
        let attributes: usize = self.attributes.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.context.as_str().len() + self.rel.len() + self.target.as_str().len() + attributes
    }
}

impl Union {
    /// An empty union for the page at this URL.
    pub fn new(page: Url) -> Self {
        Self { page, also: Vec::new(), links: Vec::new(), known: HashMap::new(), bytes: 0, left_out: 0 }
    }

    /// The same page is also known by this URL, such as the one that redirects to it. Links about it are about the page.
    #[must_use]
    pub fn also(mut self, url: Url) -> Self {
        self.also.push(url);
        self
    }

    /// Adds links that were read in a place. `base` is the URL of that place: of the page, of the link set, or the
    /// `<base>` of the HTML, against which targets are resolved. In a page, a link without an anchor is about the page.
    /// Returns whether there was room for all.
    pub fn add(&mut self, place: Place, base: &Url, links: &Links) -> bool {
        let mut had_room = true;
        let most_bytes = if place == Place::LinkSet { MOST_BYTES } else { MOST_BYTES_OF_PAGE };
        for link in &links.links {
            let own = if place == Place::LinkSet { base } else { &self.page };
            let ends = link.context_at(own).zip(link.target_at(base));
            let Some((context, target)) = ends else {
                self.left_out += 1;
                continue;
            };
            let context = if self.also.contains(&context) { self.page.clone() } else { context };
            let rest = link.relations().skip(MOST_RELATIONS).count() as u64;
            self.left_out += rest;
            had_room &= rest == 0;
            for rel in link.relations().take(MOST_RELATIONS) {
                let rel = if rel.contains(':') { rel.to_owned() } else { rel.to_ascii_lowercase() };
                let found = TypedLink {
                    context: context.clone(),
                    rel,
                    target: target.clone(),
                    attributes: link.attributes.clone(),
                    places: BTreeSet::from([place]),
                };
                if !self.merge(found, place, most_bytes) {
                    self.left_out += 1;
                    had_room = false;
                }
            }
        }
        had_room
    }

    /// Adds a link, or its attributes to the same link from another place. Returns whether there was room.
    fn merge(&mut self, found: TypedLink, place: Place, most_bytes: usize) -> bool {
        let key = (found.context.clone(), found.rel.clone(), found.target.clone());
        let Some(known) = self.known.get(&key).map(|&at| &mut self.links[at]) else {
            let bytes = self.bytes + found.size();
            if self.links.len() >= MOST_LINKS || bytes > most_bytes {
                return false;
            }
            self.bytes = bytes;
            self.known.insert(key, self.links.len());
            self.links.push(found);
            return true;
        };
        if self.bytes + found.size() > most_bytes {
            known.places.insert(place);
            return false;
        }
        self.bytes -= known.size();
        let is_better = known.places.first().is_some_and(|best| place < *best);
        let before = std::mem::take(&mut known.attributes);
        let (mut first, second) =
            if is_better { (found.attributes, before) } else { (before, found.attributes) };
        let names: HashSet<String> = first.iter().map(|(name, _)| name.clone()).collect();
        first.extend(second.into_iter().filter(|(name, _)| !names.contains(name)));
        first.truncate(crate::MOST_ATTRIBUTES);
        known.attributes = first;
        known.places.insert(place);
        self.bytes += known.size();
        true
    }

    /// The URL of the page.
    pub fn page(&self) -> &Url {
        &self.page
    }

    /// All links, in the order in which they were found.
    pub fn links(&self) -> &[TypedLink] {
        &self.links
    }

    /// Links that were left out: beyond the limit, or with ends that are no URLs.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The links of the page itself with this relation.
    pub fn of_page<'a>(&'a self, rel: &'a str) -> impl Iterator<Item = &'a TypedLink> {
        self.links.iter().filter(move |link| link.rel == rel && link.context == self.page)
    }

    /// The links that count: those about the page, and about what it links to. Others may be anything.
    pub fn counting(&self) -> impl Iterator<Item = &TypedLink> {
        let of_page = self.links.iter().filter(|link| link.context == self.page);
        let named: HashSet<&Url> = of_page.map(|link| &link.target).chain([&self.page]).collect();
        self.links.iter().filter(move |link| named.contains(&link.context))
    }

    /// The link sets of the page: URL and declared media type. Where one is offered in JSON, those in other forms are
    /// left out, because they say the same.
    pub fn link_sets(&self) -> Vec<(Url, Option<String>)> {
        let sets: Vec<_> = self.of_page("linkset").collect();
        let is_json = |link: &TypedLink| link.attribute("type").is_some_and(|kind| kind.contains("json"));
        let has_json = sets.iter().any(|link| is_json(link));
        let sets = sets.into_iter().filter(|link| !has_json || is_json(link));
        sets.map(|link| (link.target.clone(), link.attribute("type").map(str::to_owned))).collect()
    }

    /// What is wrong or missing.
    pub fn findings(&self) -> BTreeSet<Finding> {
        let mut found = BTreeSet::new();
        if self.of_page("cite-as").count() > 1 {
            found.insert(Finding::SeveralCiteAs);
        }
        let items_in = |place| self.of_page("item").filter(|link| link.places.contains(&place)).count();
        let in_header = items_in(Place::Header);
        if in_header > 0 && items_in(Place::LinkSet) > in_header {
            found.insert(Finding::HeaderIncomplete);
        }
        let mut typed = self.of_page("item").chain(self.of_page("describedby"));
        if typed.any(|link| link.attribute("type").is_none_or(str::is_empty)) {
            found.insert(Finding::NoType);
        }
        if self.of_page("item").next().is_some() && self.of_page("describedby").next().is_none() {
            found.insert(Finding::NoDescribedby);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linkset::{self, Format};
    use crate::{Limits, header, html};

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn set(union: &mut Union, body: &str) {
        let links = linkset::read(body.as_bytes(), Format::Json, &Limits::BODY).unwrap();
        union.add(Place::LinkSet, &url("http://s.test/ls"), &links);
    }

    fn targets<'a>(links: impl Iterator<Item = &'a TypedLink>) -> Vec<&'a str> {
        links.map(|link| link.target.path()).collect()
    }

    /// SIG-7, T2: a header that is cut is never complete beside a link set.
    #[test]
    fn a_link_set_completes_a_header_that_was_cut() {
        let page = url("http://s.test/w");
        let mut union = Union::new(page.clone());
        let items: Vec<_> =
            (0..500).map(|n| format!("{{\"href\": \"/f{n}\", \"type\": \"text/csv\"}}")).collect();
        let cut: Vec<_> = (0..5).map(|n| format!("</f{n}>; rel=item")).collect();
        union.add(Place::Header, &page, &header::read([cut.join(", ").as_str()], &Limits::HEADER));
        set(
            &mut union,
            &format!(
                "{{\"linkset\": [{{\"anchor\": \"http://s.test/w\", \"item\": [{}]}}]}}",
                items.join(",")
            ),
        );
        assert_eq!(union.of_page("item").count(), 500);
        assert!(union.findings().contains(&Finding::HeaderIncomplete));
        assert!(!union.findings().contains(&Finding::NoType));
    }

    /// SIG-5: one link from three places, and the attributes of the best of them.
    #[test]
    fn places_are_joined_and_the_link_set_wins() {
        let page = url("http://s.test/w");
        let mut union = Union::new(page.clone());
        let head = html::scan(
            "<base href=http://s.test/x/><link rel='Item' href=../f.pdf type=text/html title=head lang=de>",
        );
        union.add(Place::Head, &url("http://s.test/x/"), &head.links);
        let links = header::read(
            ["<f.pdf>; rel=\"item http://e.org/R\"; title=header; type=text/xml"],
            &Limits::HEADER,
        );
        union.add(Place::Header, &page, &links);
        set(
            &mut union,
            r#"{"linkset": [{"anchor": "/w", "item": [{"href": "f.pdf", "type": "application/pdf"}]}]}"#,
        );
        let [item] = union.of_page("item").collect::<Vec<_>>()[..] else { panic!("{union:?}") };
        assert_eq!(item.places, BTreeSet::from([Place::LinkSet, Place::Header, Place::Head]));
        let attribute = |name| item.attribute(name);
        assert_eq!(
            [attribute("type"), attribute("title"), attribute("lang")],
            [Some("application/pdf"), Some("header"), Some("de")]
        );
        assert_eq!(union.of_page("http://e.org/R").count(), 1);
    }

    #[test]
    fn only_the_page_and_what_it_names_count() {
        let page = url("http://s.test/w");
        let mut union = Union::new(page.clone());
        let links = header::read(
            [
                "</f>; rel=item, </m>; rel=describedby; anchor=\"/f\", </x>; rel=item; anchor=\"/other\", <http://[>; rel=item",
            ],
            &Limits::HEADER,
        );
        union.add(Place::Header, &page, &links);
        assert_eq!(targets(union.counting()), ["/f", "/m"]);
        assert_eq!((union.links().len(), union.left_out()), (3, 1));
    }

    #[test]
    fn findings_name_what_is_wrong() {
        let page = url("http://s.test/w");
        let found = |text: &str| {
            let mut union = Union::new(page.clone());
            union.add(Place::Header, &page, &header::read([text], &Limits::HEADER));
            union.findings().into_iter().collect::<Vec<_>>()
        };
        assert_eq!(found("</1>; rel=cite-as, </2>; rel=cite-as"), [Finding::SeveralCiteAs]);
        assert_eq!(found("</f>; rel=item"), [Finding::NoType, Finding::NoDescribedby]);
        assert_eq!(found("</f>; rel=item; type=a/b, </m>; rel=describedby; type=c/d, </1>; rel=cite-as"), []);
    }

    #[test]
    fn a_landing_page_is_known_by_its_relations() {
        for (relations, expected) in [
            (vec!["stylesheet", "Item"], true),
            (vec!["linkset"], true),
            (vec!["cite-as", "describedby"], true),
            (vec!["describedby"], false),
            (vec!["cite-as", "license"], false),
            (vec![], false),
        ] {
            assert_eq!(is_landing(relations.iter().copied()), expected, "{relations:?}");
        }
    }

    #[test]
    fn links_about_another_url_of_the_page_are_about_it() {
        let old = url("http://s.test/old");
        let mut union = Union::new(url("http://s.test/w")).also(old.clone());
        set(&mut union, r#"{"linkset": [{"anchor": "http://s.test/old", "item": [{"href": "/f"}]}]}"#);
        assert_eq!(targets(union.of_page("item")), ["/f"]);
    }

    /// A few bytes of input may stand for many of output: relations, anchors and bases are copied to each link.
    #[test]
    fn links_take_bounded_memory_however_short_their_text_is() {
        let page = url("http://s.test/w");
        let (rel, long) = ("a ".repeat(2_000), "x".repeat(8_000));
        let mut union = Union::new(page.clone());
        let many = format!("</f>; rel=\"{rel}\"; title=\"{long}\"");
        let had_room = union.add(Place::Header, &page, &header::read([many.as_str()], &Limits::HEADER));
        assert_eq!((union.links().len(), union.left_out(), had_room), (1, 1_968, false));

        let mut union = Union::new(page.clone());
        let base = url(&format!("http://s.test/{long}/"));
        let items: Vec<_> = (0..5_000).map(|n| format!("<{n}>; rel=item")).collect();
        let links = header::read([items.join(", ").as_str()], &Limits::HEADER);
        assert!(!union.add(Place::Head, &base, &links));
        let bytes: usize = union.links().iter().map(TypedLink::size).sum();
        assert!(bytes <= MOST_BYTES_OF_PAGE && union.links().len() > 400);
        assert!(!union.add(Place::LinkSet, &base, &links));
        assert_eq!(union.bytes, union.links().iter().map(TypedLink::size).sum::<usize>());
        assert!(union.bytes <= MOST_BYTES && union.links().len() > 2_000);
    }

    #[test]
    fn of_a_link_set_in_two_forms_json_is_read() {
        let page = url("http://s.test/w");
        let mut union = Union::new(page.clone());
        let text = "</t>; rel=linkset; type=\"application/linkset\", </j>; rel=linkset; type=\"application/linkset+json\"";
        union.add(Place::Header, &page, &header::read([text], &Limits::HEADER));
        assert_eq!(
            union.link_sets(),
            [(url("http://s.test/j"), Some("application/linkset+json".to_owned()))]
        );
    }
}
