//! The landing page of an OAI-PMH record, and what came of it.

use catalog::CatalogReader;
use jiff::Timestamp;
use model::{Links, PageState, ResourceRecord, ResourceUri, Subject, counted};
use planning::pages::RecordLinks;
use serde::Serialize;

use crate::exit::Failed;

/// A landing page that was asked for the files of a record.
#[derive(Debug, Serialize)]
pub(super) struct LandingPage {
    url: ResourceUri,
    state: PageState,
    /// When it was read, or found unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_at: Option<Timestamp>,
    /// Files that it names, as far as they are kept as links of the record.
    files: usize,
    /// What was odd about it, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    quirks: Vec<String>,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The landing page of a record; none if none was asked for it.
pub(super) async fn of(
    catalog: &CatalogReader,
    uri: &ResourceUri,
    record: Option<&ResourceRecord>,
) -> Result<Option<LandingPage>, Failed> {
    let links: Option<&Links> = record.and_then(|record| record.listing.links.as_ref());
    let links = RecordLinks::of(links);
    let Some(url) = links.landing_page() else { return Ok(None) };
    let Some(page) = catalog.page(&url).await?.filter(|page| page.records.contains(uri)) else {
        return Ok(None);
    };
    let problem = catalog.problem(&Subject::Document(url.to_string())).await?;
    Ok(Some(LandingPage {
        state: page.state,
        read_at: page.read_at,
        files: links.known_of(&url).len(),
        quirks: page.quirks.into_keys().collect(),
        problem: problem.map(|problem| problem.message),
        url,
    }))
}

impl LandingPage {
    /// Lines for people.
    pub(super) fn lines(&self) -> Vec<String> {
        let files = counted(self.files as u64, "file", "files");
        let at = self.read_at.map_or(String::new(), |at| format!(", read {at}"));
        let mut lines = vec![match self.state {
            PageState::Queued | PageState::Known => format!("{}: waits to be asked for its files", self.url),
            PageState::Done => format!("{}: names {files}{at}", self.url),
            PageState::Failed => format!("{}: not read; {files} known of it", self.url),
        }];
        lines.extend(self.problem.clone());
        if !self.quirks.is_empty() {
            lines.push(format!("quirks: {}", self.quirks.join(", ")));
        }
        lines
    }
}
