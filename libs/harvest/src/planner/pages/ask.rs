//! Asks for one landing page, beside the owner of the Source: the owner plans its links as they come.

use discovery::{Landing, LinkSetMemory, PageAnswer, PageRequest, SeenPage, read_page, read_seen};
use model::{Links, PageRecord, PageState, ResourceUri, Validators};
use planning::pages::LINK_SET;
use url::Url;
use web::{Client, WebError};

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

/// Asks for a page, unless it is known, or discovery has just read it.
pub(super) async fn ask(
    client: Client,
    uri: ResourceUri,
    page: PageRecord,
    seen: Option<Box<SeenPage>>,
    memory: LinkSetMemory,
) -> (ResourceUri, PageRecord, Came) {
    if page.state == PageState::Known {
        return (uri, page, Came::Known);
    }
    if let Some(seen) = seen {
        let landing = Box::new(read_seen(&client, *seen, memory).await);
        return (uri, page, Came::Read(landing));
    }
    let link_sets = link_sets(&page);
    // A page may stay the same while its link set changes.
    let validators = if link_sets.is_empty() { page.validators.clone() } else { Validators::default() };
    let request = PageRequest { url: uri.to_url(), validators, link_sets };
    let came = match read_page(&client, request, memory).await {
        Ok(PageAnswer::Unchanged { requests }) => Came::Unchanged { requests },
        Ok(PageAnswer::Read(landing)) => Came::Read(landing),
        Err(error) => Came::Failed(Box::new(error)),
    };
    (uri, page, came)
}

/// The link sets of a page, as far as they are known.
fn link_sets(page: &PageRecord) -> Vec<(Url, Option<String>)> {
    let links = page.links.as_ref().map(Links::to_vec).unwrap_or_default();
    let sets = links.into_iter().filter(|link| link.rel == LINK_SET);
    sets.filter_map(|link| Some((Url::parse(&link.href).ok()?, link.media_type))).collect()
}
