//! Landing pages of records (docs/adr/0084): which page a record leads to, and the files that the page names. These are
//! links of the record, with the page as an attribute. Pure.

use model::{Links, Listing, ResourceUri};
use resourcesync::{Link, relation};

use crate::entry::ListedEntry;

/// The attribute of a link that its record does not have: the landing page that names its target.
const PAGE: &str = "landing-page";
/// Links to files that are kept of a page.
const MOST: usize = 300;
/// Bytes of them.
const MOST_BYTES: usize = 64 * 1024;
/// Bytes of one target.
const LONGEST_TARGET: usize = 2 * 1024;

/// The links of a record, parted.
#[derive(Debug, Default)]
pub struct RecordLinks {
    /// What the record itself names.
    pub own: Vec<Link>,
    /// Files that its landing page names.
    pub of_page: Vec<Link>,
}

impl RecordLinks {
    /// Parts the links of a record.
    pub fn of(links: Option<&Links>) -> Self {
        let all = links.map(Links::to_vec).unwrap_or_default();
        let (of_page, own) = all.into_iter().partition(|link| link.other.contains_key(PAGE));
        Self { own, of_page }
    }

    /// The landing page that may name the files of the record: none if it names a file itself.
    pub fn landing_page(&self) -> Option<ResourceUri> {
        landing_page(&self.own)
    }

    /// The files that are known from this page.
    pub fn known_of(&self, page: &ResourceUri) -> Vec<Link> {
        let is_of = |link: &&Link| link.other.get(PAGE).is_some_and(|named| named == page.as_str());
        self.of_page.iter().filter(is_of).cloned().collect()
    }

    /// All links, in the form in which they are stored.
    pub fn joined(self) -> Option<Links> {
        Links::of(&[self.own, self.of_page].concat())
    }
}

/// The landing page of a record that names no file: the first page that it describes, or else its persistent
/// identifier. Only what can be requested counts.
pub fn landing_page(own: &[Link]) -> Option<ResourceUri> {
    if own.iter().any(|link| link.rel == relation::ITEM) {
        return None;
    }
    let first = |rel: &str| own.iter().filter(|link| link.rel == rel).find_map(target);
    first(relation::DESCRIBES).or_else(|| first(relation::CITE_AS))
}

/// The entry of a record without the files that its landing page named.
pub fn without_page(entry: &ListedEntry) -> ListedEntry {
    let own = RecordLinks { of_page: Vec::new(), ..RecordLinks::of(entry.listing.links.as_ref()) };
    let listing = Listing { links: own.joined(), ..entry.listing.clone() };
    ListedEntry { listing, ..entry.clone() }
}

/// What a link leads to, if that can be requested. A fragment is a part of it.
fn target(link: &Link) -> Option<ResourceUri> {
    let uri: ResourceUri = link.href.split('#').next()?.parse().ok()?;
    uri.origin().is_ok().then_some(uri)
}

/// The files that a landing page names, as links of its records, and whether there are more than are kept. A page is no
/// file of itself.
pub fn of_page(page: &ResourceUri, links: &[Link]) -> (Vec<Link>, bool) {
    let (mut kept, mut bytes, mut is_cut) = (Vec::<Link>::new(), 0, false);
    for link in links.iter().filter(|link| link.rel == relation::ITEM && link.href != page.as_str()) {
        let mut link = link.clone();
        link.other.insert(PAGE.to_owned(), page.as_str().to_owned());
        let size = link.size();
        if kept.len() >= MOST || bytes + size > MOST_BYTES || link.href.len() > LONGEST_TARGET {
            is_cut = true;
        } else if !kept.iter().any(|known| known.href == link.href) {
            bytes += size;
            kept.push(link);
        }
    }
    (kept, is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE_URL: &str = "https://e.org/item/1";

    fn link(rel: &str, href: &str) -> Link {
        Link::new(rel, href)
    }

    fn page() -> ResourceUri {
        PAGE_URL.parse().unwrap()
    }

    #[test]
    fn a_record_leads_to_the_page_that_it_describes_or_to_its_identifier() {
        let doi = link(relation::CITE_AS, "https://doi.org/10.1/x");
        let of = |links: &[Link]| landing_page(links).map(|uri| uri.to_string());
        assert_eq!(of(&[doi.clone(), link("describes", PAGE_URL)]).as_deref(), Some(PAGE_URL));
        assert_eq!(of(std::slice::from_ref(&doi)).as_deref(), Some("https://doi.org/10.1/x"));
        let odd = [link("describes", "urn:isbn:1"), link("describes", "/x"), doi.clone()];
        assert_eq!(
            of(&odd).as_deref(),
            Some("https://doi.org/10.1/x"),
            "what cannot be requested is no page"
        );
        assert_eq!(of(&[link("describes", &format!("{PAGE_URL}#files"))]).as_deref(), Some(PAGE_URL));
        assert_eq!(of(&[link("describes", PAGE_URL), link("item", "https://e.org/f")]), None);
        assert_eq!(of(&[link("related", PAGE_URL), link("preview", PAGE_URL)]), None);
    }

    #[test]
    fn files_of_a_page_are_marked_and_parted_from_what_the_record_names() {
        let named = [
            link("item", "https://e.org/f"),
            link("item", PAGE_URL),
            link("describedby", "https://e.org/m"),
            link("item", "https://e.org/f"),
        ];
        let (files, is_cut) = of_page(&page(), &named);
        assert_eq!((files.len(), is_cut), (1, false));
        let all = RecordLinks { own: vec![link("describes", PAGE_URL)], of_page: files.clone() }.joined();
        let parted = RecordLinks::of(all.as_ref());
        assert_eq!((parted.own.len(), &parted.of_page), (1, &files));
        assert_eq!(parted.landing_page(), Some(page()), "files of a page are not those of the record");
        assert_eq!(parted.known_of(&page()), files);
        assert!(parted.known_of(&"https://e.org/item/2".parse().unwrap()).is_empty());
        assert_eq!(parted.joined(), all);
    }

    #[test]
    fn a_page_with_ten_thousand_files_gives_as_many_as_are_kept_of_a_record() {
        let many: Vec<Link> = (0..10_000).map(|n| link("item", &format!("https://e.org/{n}"))).collect();
        let (files, is_cut) = of_page(&page(), &many);
        assert!(is_cut && files.len() == MOST, "{}", files.len());
        let long = format!("https://e.org/{}", "x".repeat(3_000));
        assert_eq!(of_page(&page(), &[link("item", &long)]), (Vec::new(), true));
        let wide: Vec<Link> =
            (0..100).map(|n| link("item", &format!("https://e.org/{}{n}", "x".repeat(1_000)))).collect();
        let (files, is_cut) = of_page(&page(), &wide);
        assert!(is_cut && files.iter().map(Link::size).sum::<usize>() <= MOST_BYTES);
    }
}
