//! What the metadata of a record names: files, pages, identifiers (docs/adr/0072). They are links of the record's
//! entry, beside those to the lists of its sets. Which of them are followed is decided where all links are.

use std::borrow::Borrow;

use model::Links;
use oaipmh::{Item, Limits, Metadata};
use resourcesync::{Link, relation};

/// Links to content that are kept of a record.
const MOST: usize = 300;
/// Bytes of them.
const MOST_BYTES: usize = 64 << 10;
/// Bytes of one target, as of a link in a document.
const LONGEST_TARGET: usize = 2 << 10;

/// An item of an answer, and what its metadata names.
pub(super) struct Received {
    pub(super) item: Item,
    pub(super) content: Content,
}

/// What the metadata of a record names.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// In the order of the record, encoded: many records wait for the owner of the Source.
    pub(super) links: Option<Links>,
    /// How many these are.
    pub(super) kept: usize,
    /// Whether there are more than are kept.
    pub(super) is_cut: bool,
    /// DOIs without a scheme among them.
    pub(super) bare_dois: u64,
}

impl Borrow<Item> for Received {
    fn borrow(&self) -> &Item {
        &self.item
    }
}

impl Received {
    pub(super) fn of(item: Item) -> Self {
        let metadata = match &item {
            Item::Record(record) => record.metadata.as_ref(),
            _ => None,
        };
        let content = metadata.map(Content::of).unwrap_or_default();
        Self { item, content }
    }
}

impl Content {
    /// Reads the links of a record in any known format. This is the one place where they come into being: links that
    /// other readings of a record or of its landing page give are added here.
    pub(super) fn of(metadata: &Metadata) -> Self {
        let found = oaipmh::links(metadata, &Limits::default(), MOST);
        let mut content = Self { is_cut: found.more, ..Self::default() };
        let mut links = Vec::with_capacity(found.links.len());
        let mut bytes = 0;
        for one in found.links {
            let link = one.to_link();
            bytes += link.size();
            if bytes > MOST_BYTES || link.href.len() > LONGEST_TARGET {
                content.is_cut = true;
                // Those behind a long one may fit.
                bytes -= link.size();
                continue;
            }
            content.bare_dois += u64::from(one.bare_doi);
            links.push(link);
        }
        content.kept = links.len();
        content.links = Links::of(&links);
        content
    }
}

/// The stored links of a record, parted: those to the lists of its sets, and those to its content.
pub(super) fn parted(links: Option<&Links>) -> (Vec<Link>, Vec<Link>) {
    let all = links.map(Links::to_vec).unwrap_or_default();
    all.into_iter().partition(|link| link.rel == relation::COLLECTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dc(urls: impl Iterator<Item = String>) -> Metadata {
        let all: String = urls.map(|url| format!("<dc:identifier>{url}</dc:identifier>")).collect();
        let document = format!(
            "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
             xmlns:dc=\"http://purl.org/dc/elements/1.1/\">{all}</oai_dc:dc>"
        );
        oaipmh::canonicalize(&document, &Limits::default()).unwrap()
    }

    #[test]
    fn links_beyond_a_number_or_a_size_are_left_out_and_told() {
        let few = Content::of(&dc(["https://e.org/handle/1".to_owned(), "10.1234/5".to_owned()].into_iter()));
        assert_eq!((few.kept, few.is_cut, few.bare_dois), (2, false, 1));
        let many = Content::of(&dc((0..400).map(|n| format!("https://e.org/{n}"))));
        assert_eq!((many.kept, many.is_cut), (MOST, true));
        let long = "x".repeat(3 << 10);
        let one =
            Content::of(&dc([format!("https://e.org/{long}"), "https://e.org/1".to_owned()].into_iter()));
        assert_eq!((one.kept, one.is_cut), (1, true));
        let wide = "x".repeat(1 << 10);
        let all = Content::of(&dc((0..200).map(|n| format!("https://e.org/{wide}/{n}"))));
        assert!(all.is_cut && all.kept < 64, "{}", all.kept);
    }

    #[test]
    fn links_to_sets_are_parted_from_those_to_content() {
        let all =
            [Link::new(relation::COLLECTION, "http://e.org/s"), Link::new(relation::ITEM, "http://e.org/f")];
        let (sets, content) = parted(Links::of(&all).as_ref());
        assert_eq!((sets, content), (vec![all[0].clone()], vec![all[1].clone()]));
        assert_eq!(parted(None), (Vec::new(), Vec::new()));
    }
}
