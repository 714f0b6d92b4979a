//! Asks for one landing page, beside the owner of the Source: the owner plans its links as they come.

use discovery::{Landing, LinkSetMemory, PageAnswer, PageRequest, SeenPage, read_page, read_seen};
use model::{Links, PageRecord, PageState, ResourceUri, Validators};
use planning::pages::LINK_SET;
use url::Url;
use web::{Client, RequestPurpose, WebError};

use super::of_records::Leading;

/// What came of a page.
pub(super) enum Came {
    /// It was not asked for: its sitemap says that it did not change.
    Known,
    /// Its server says that it did not change.
    Unchanged {
        /// Requests made.
        requests: u64,
    },
    /// What it says.
    Read(Box<Landing>),
    /// Why it says nothing.
    Failed(Box<WebError>),
}

/// A page that waits.
pub(super) struct Waiting {
    pub(super) uri: ResourceUri,
    pub(super) page: PageRecord,
    /// The records of a repository that lead to it.
    pub(super) led: Vec<Leading>,
}

/// Asks for a page, unless it is known, or discovery has just read it.
pub(super) async fn ask(
    client: Client,
    waiting: Waiting,
    seen: Option<Box<SeenPage>>,
    memory: LinkSetMemory,
) -> (Waiting, Came) {
    let came = came(client, &waiting, seen, memory).await;
    (waiting, came)
}

async fn came(
    client: Client,
    Waiting { uri, page, .. }: &Waiting,
    seen: Option<Box<SeenPage>>,
    memory: LinkSetMemory,
) -> Came {
    if page.state == PageState::Known {
        return Came::Known;
    }
    if let Some(seen) = seen {
        return Came::Read(Box::new(read_seen(&client, *seen, memory).await));
    }
    let link_sets = link_sets(page);
    // A page may stay the same while its link set changes.
    let validators = if link_sets.is_empty() { page.validators.clone() } else { Validators::default() };
    // A sitemap invites to its pages. A record only names its own.
    let purpose = if page.records.is_empty() { RequestPurpose::Invited } else { RequestPurpose::Crawling };
    let request = PageRequest { url: uri.to_url(), validators, link_sets, purpose };
    match read_page(&client, request, memory).await {
        Ok(PageAnswer::Unchanged { requests }) => Came::Unchanged { requests },
        Ok(PageAnswer::Read(landing)) => Came::Read(landing),
        Err(error) => Came::Failed(Box::new(error)),
    }
}

/// The link sets of a page, as far as they are known.
fn link_sets(page: &PageRecord) -> Vec<(Url, Option<String>)> {
    let links = page.links.as_ref().map(Links::to_vec).unwrap_or_default();
    let sets = links.into_iter().filter(|link| link.rel == LINK_SET);
    sets.filter_map(|link| Some((Url::parse(&link.href).ok()?, link.media_type))).collect()
}
