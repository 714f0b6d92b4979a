//! Discovery of a Source of any kind. A ResourceSync Source is found by its documents, an OAI-PMH repository by its
//! answer to Identify.

use documents::Prefetched;
use futures::future::BoxFuture;
use model::{KnownDocument, OaiOptions};
use oaipmh::Pasted;
use resourcesync::Options;
use url::Url;
use web::Client;

use crate::error::DiscoverError;
use crate::found::Discovery;
use crate::{discover, oai};

/// Finds the sets of resources that `entry` leads to, as [`rediscover`](crate::rediscover) does, and those of an
/// OAI-PMH repository. The repository is asked first if the URL or the options say that it is one, and otherwise last,
/// where no ResourceSync document was found. With `lists_pages`, the entries of plain sitemaps are landing pages.
///
/// # Errors
/// When the entry cannot be reached, or leads to nothing.
pub fn discover_source<'a>(
    client: &'a Client,
    entry: &'a Url,
    options: &'a Options,
    known: Vec<KnownDocument>,
    wanted: &'a OaiOptions,
    lists_pages: bool,
) -> BoxFuture<'a, Result<(Discovery, Option<Prefetched>), DiscoverError>> {
    Box::pin(find(client, entry, options, known, wanted, lists_pages))
}

async fn find(
    client: &Client,
    entry: &Url,
    options: &Options,
    known: Vec<KnownDocument>,
    wanted: &OaiOptions,
    lists_pages: bool,
) -> Result<(Discovery, Option<Prefetched>), DiscoverError> {
    let Ok(pasted) = Pasted::read(entry) else {
        return discover::find(client, entry, options, known, lists_pages).await;
    };
    let is_certain = pasted.verb.is_some() || !wanted.is_empty();
    if is_certain {
        return Ok((oai::discover(client, &pasted, wanted).await?, None));
    }
    let is_likely = may_be_base(entry);
    if is_likely && let Ok(found) = oai::discover(client, &pasted, wanted).await {
        return Ok((found, None));
    }
    let nothing = match discover::find(client, entry, options, known, lists_pages).await {
        Err(error @ DiscoverError::Nothing { has_documents: false, .. }) if !is_likely => error,
        found => return found,
    };
    match oai::discover(client, &pasted, wanted).await {
        Ok(found) => Ok((found, None)),
        Err(_) => Err(nothing),
    }
}

/// Whether a URL looks like a base URL of OAI-PMH: a part of its path begins with `oai`.
fn may_be_base(url: &Url) -> bool {
    let parts = url.path_segments().into_iter().flatten();
    parts.map(str::to_ascii_lowercase).any(|part| part.starts_with("oai") || part.ends_with("oai"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_oai_may_be_a_base_url() {
        for (url, expected) in [
            ("https://e.org/oai", true),
            ("https://e.org/server/oai/request", true),
            ("https://e.org/cgi/oai2", true),
            ("https://e.org/index.php/j/OAI", true),
            ("https://e.org/sitemap.xml", false),
            ("https://oai.e.org/", false),
        ] {
            assert_eq!(may_be_base(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
