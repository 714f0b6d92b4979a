//! What a simulated site of landing pages has now.

use std::collections::{BTreeMap, HashMap};

use crate::pages::spec::{PageFault, PagesSpec};

/// A link of a page.
pub(super) struct PageLink {
    pub(super) rel: &'static str,
    pub(super) path: String,
    pub(super) media_type: Option<&'static str>,
}

/// The state of a site.
#[derive(Debug, Default)]
pub(super) struct World {
    /// Versions of files and pages by path, where they are not 0.
    versions: HashMap<String, u32>,
    /// Files that their pages link to no longer.
    dropped: Vec<String>,
    /// Pages that the sitemap lists no longer.
    pub(super) unlisted: Vec<u32>,
    /// Requests by path.
    pub(super) requests: BTreeMap<String, u64>,
}

impl World {
    pub(super) fn version(&self, path: &str) -> u32 {
        self.versions.get(path).copied().unwrap_or_default()
    }

    pub(super) fn update(&mut self, path: &str) {
        *self.versions.entry(path.to_owned()).or_default() += 1;
    }

    pub(super) fn drop_item(&mut self, path: String) {
        self.dropped.push(path);
    }

    /// The links of a page to its files and metadata.
    pub(super) fn links(&self, spec: &PagesSpec, page: u32) -> Vec<PageLink> {
        let items = (0..spec.items).map(|item| PageLink {
            rel: "item",
            path: item_path(page, item),
            media_type: Some(item_type(item)),
        });
        let metadata = PageLink {
            rel: "describedby",
            path: format!("/m/{page}.xml"),
            media_type: Some("application/xml"),
        };
        let mut links: Vec<PageLink> =
            items.filter(|link| !self.dropped.contains(&link.path)).chain([metadata]).collect();
        links.push(PageLink { rel: "cite-as", path: format!("/id/{page}"), media_type: None });
        if spec.fault == Some(PageFault::SeveralCiteAs) {
            links.push(PageLink { rel: "cite-as", path: format!("/other/{page}"), media_type: None });
        }
        links.push(PageLink { rel: "license", path: "/license".to_owned(), media_type: None });
        links
    }

    /// The bytes of a file or metadata record.
    pub(super) fn body(&self, path: &str) -> String {
        format!("{path}, version {}\n", self.version(path))
    }
}

/// The path of a file.
pub(super) fn item_path(page: u32, item: u32) -> String {
    let extension = if item == 0 { "pdf" } else { "csv" };
    format!("/f/{page}/{item}.{extension}")
}

fn item_type(item: u32) -> &'static str {
    if item == 0 { "application/pdf" } else { "text/csv" }
}

/// The numbers of a path such as `/f/1/0.pdf`.
pub(super) fn numbers(path: &str) -> Option<(u32, u32)> {
    let mut parts = path.strip_prefix("/f/")?.split(['/', '.']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
