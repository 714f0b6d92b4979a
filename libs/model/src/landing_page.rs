//! Landing pages whose typed links (Signposting) are harvested: groups of resources, and no resources themselves. A
//! sitemap lists them, or records of a repository lead to them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Links, ResourceUri, RunId, SetId, Validators};

/// Records that may lead to one landing page. A page of more is that of a site or a collection, and not of a record.
pub const MOST_RECORDS_OF_A_PAGE: usize = 20;

/// How a set names its landing pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageList {
    /// The set is one page.
    Page,
    /// A sitemap lists the pages, with their links (Signmap) or without them.
    Sitemap,
}

/// A landing page, as it was read last. Keyed by the URI that its list gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRecord {
    /// The set that it belongs to.
    pub set: SetId,
    /// The sitemap that lists it, the page itself, or the list of the records that lead to it.
    pub document: String,
    /// The run that last met it in a list.
    pub run: RunId,
    /// The progress of that run with it.
    pub state: PageState,
    /// Its last modification, as the sitemap states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lastmod: Option<Timestamp>,
    /// Validators of the version that was read.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
    /// When it was read, or found unchanged; none if the sitemap gave all of its links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
    /// The links that count; none before they are known, or if there are too many to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Links>,
    /// What was tolerated to read them, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quirks: BTreeMap<String, u64>,
    /// The records of an OAI-PMH repository that lead to it: its files are linked from them. At most
    /// [`MOST_RECORDS_OF_A_PAGE`]; none of a page that a sitemap lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<ResourceUri>,
}

/// The progress of a run with a landing page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageState {
    /// To be requested.
    Queued,
    /// Unchanged by its sitemap: its known links are used, without a request.
    Known,
    /// Its links are planned.
    Done,
    /// It could not be read; a problem record has the reason.
    Failed,
}

impl PageRecord {
    /// A page that a run met for the first time.
    pub fn new(set: SetId, document: impl Into<String>, run: RunId) -> Self {
        Self {
            set,
            document: document.into(),
            run,
            state: PageState::Queued,
            lastmod: None,
            validators: Validators::default(),
            read_at: None,
            links: None,
            quirks: BTreeMap::new(),
            records: Vec::new(),
        }
    }

    /// Whether its links wait to be planned.
    pub fn is_waiting(&self) -> bool {
        matches!(self.state, PageState::Queued | PageState::Known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_written_without_what_is_not_known() {
        let id: RunId = "01J00000000000000000000000".parse().unwrap();
        let page = PageRecord::new(SetId::new("http://h/sitemap.xml"), "http://h/sitemap.xml", id);
        let text = serde_json::to_string(&page).unwrap();
        assert_eq!(
            text,
            r#"{"set":"http://h/sitemap.xml","document":"http://h/sitemap.xml","run":"01J00000000000000000000000","state":"queued"}"#
        );
        assert_eq!(serde_json::from_str::<PageRecord>(&text).unwrap(), page);
        assert!(page.is_waiting());
    }
}
