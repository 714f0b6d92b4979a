//! The properties of a simulated site of landing pages, set before it starts.

use std::time::Duration;

/// What the sitemap says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PageSitemap {
    /// There is none.
    None,
    /// The URLs of the pages.
    #[default]
    Plain,
    /// The pages with their links, beside `loc` (Signmap).
    Signmap,
    /// The same, inside of `loc`, as the text of Signmap has it.
    SignmapInLoc,
}

/// A fault that servers of landing pages have. All pages have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageFault {
    /// The page answers 502, as behind a proxy that takes no long header.
    HeaderTooLong,
    /// The header has only the first item.
    HeaderCut,
    /// The link set is inside of `status` and `data`.
    Wrapped,
    /// The link set has members beside `linkset`.
    ExtraMembers,
    /// The link set is of the type `application/json+ld`, and other types are refused with 406.
    NotAcceptable,
    /// The link set is of the type `application/json+linkset`.
    OddMediaType,
    /// The link set is of the type `application/json`.
    PlainJson,
    /// A comma too many in the link set.
    StrayComma,
    /// The title of the first item has quotes that are not escaped.
    NestedQuotes,
    /// The first item is not in angle brackets.
    NoAngleBrackets,
    /// The relation `describedby` is written `describedBy`.
    RelationCase,
    /// The page has two persistent identifiers.
    SeveralCiteAs,
    /// The first item is an HTML page, though its link says PDF.
    FalseType,
    /// The first item is gone.
    DeadItem,
}

impl PageFault {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::HeaderTooLong,
        Self::HeaderCut,
        Self::Wrapped,
        Self::ExtraMembers,
        Self::NotAcceptable,
        Self::OddMediaType,
        Self::PlainJson,
        Self::StrayComma,
        Self::NestedQuotes,
        Self::NoAngleBrackets,
        Self::RelationCase,
        Self::SeveralCiteAs,
        Self::FalseType,
        Self::DeadItem,
    ];
}

/// The spec of a simulated site of landing pages.
#[derive(Debug, Clone)]
pub struct PagesSpec {
    /// Landing pages.
    pub pages: u32,
    /// Files of each page: the first is a PDF, the others are CSV. Each page has one metadata record besides.
    pub items: u32,
    /// Whether the host has a catalog of its interfaces (FAIRiCat), which names the sitemap.
    pub catalog: bool,
    /// Whether `robots.txt` names the sitemap.
    pub robots: bool,
    /// What the sitemap says.
    pub sitemap: PageSitemap,
    /// Whether the sitemap states when pages changed.
    pub lastmod: bool,
    /// Whether pages have an `ETag`.
    pub etag: bool,
    /// Whether pages have their links in a `Link` header.
    pub header: bool,
    /// Whether pages have their links in their HTML.
    pub head: bool,
    /// Whether pages name a link set.
    pub link_set: bool,
    /// A fault of all pages.
    pub fault: Option<PageFault>,
    /// The delay of the answers of pages.
    pub latency: Option<Duration>,
}

impl Default for PagesSpec {
    /// Three pages with two files, whose links are in headers; a plain sitemap with `lastmod` that nothing names.
    fn default() -> Self {
        Self {
            pages: 3,
            items: 2,
            catalog: false,
            robots: false,
            sitemap: PageSitemap::Plain,
            lastmod: true,
            etag: true,
            header: true,
            head: false,
            link_set: false,
            fault: None,
            latency: None,
        }
    }
}
