//! One resource: its request and result.

use std::borrow::Cow;

use jiff::Timestamp;
use model::{FetchItem, FetchedResult, Validators};
use store::{Store, StoreError};
use url::Url;
use web::{Client, GetRequest, Response};

use crate::FetcherConfig;
use crate::body::Body;
use crate::incoming::{Incoming, Taken};
use crate::manner::Manner;
use crate::{modified, page};

/// Characters of a media type that a request names (RFC 6838, 4.2).
const LONGEST_TYPE: usize = 255;

/// Result of a request.
pub(crate) struct Got {
    /// Requests made, redirects included.
    pub(crate) requests: u64,
    /// The body, or the result without one.
    pub(crate) result: Result<Fresh<Body>, FetchedResult>,
}

/// A complete body, and the server's metadata.
pub(crate) struct Fresh<B> {
    pub(crate) body: B,
    pub(crate) media_type: Option<String>,
    pub(crate) encoding: Option<String>,
    pub(crate) validators: Validators,
    pub(crate) modified: Option<Timestamp>,
    pub(crate) final_url: Option<String>,
}

/// Fetches one resource. An interrupted body is resumed where it stopped if the server says that it is still the
/// same, and restarted otherwise. `now` is the time by which the server's times are checked. `first` is its response, if
/// that came already.
///
/// # Errors
/// Only the store's: everything that the Source does is a result.
pub(crate) async fn fetch(
    client: &Client,
    store: &Store,
    config: &FetcherConfig,
    item: &FetchItem,
    manner: Manner,
    now: Timestamp,
    first: Option<Response>,
) -> Result<Got, StoreError> {
    let mut incoming = Incoming::new(store, config, item);
    let mut requests = 0;
    let url = item.from.as_ref().unwrap_or(&item.uri).to_url();
    let largest = Some(config.max_body_bytes);
    let apart = manner.is_apart;
    let whole = || GetRequest { validators: item.held.clone(), largest, apart, ..ask(item, url.clone()) };
    let mut answer = match first {
        Some(response) => Ok(response),
        None => client.get(whole()).await,
    };
    loop {
        let taken = match answer {
            Ok(response) => {
                requests += u64::from(response.requests());
                if response.status() == 304 {
                    return Ok(Got { requests, result: Err(FetchedResult::NotModified) });
                }
                incoming.take(response).await?
            }
            Err(error) => {
                requests += u64::from(error.requests());
                if !incoming.lost_its_range(&error) {
                    return Ok(Got { requests, result: Err(FetchedResult::Failed(error.into_failure())) });
                }
                Taken::Unfit
            }
        };
        answer = match taken {
            Taken::Whole(response) => {
                let body = incoming.finish().await?;
                if let Some(failure) =
                    page::in_the_place_of(item, &response, body.computed(), manner.accepts_html, client)
                {
                    return Ok(Got { requests, result: Err(FetchedResult::Failed(failure)) });
                }
                // A mirror's validators and times say nothing about the resource's own URI.
                let is_mirror = item.from.is_some();
                let validators = if is_mirror { Validators::default() } else { response.validators() };
                let is_elsewhere = is_mirror || *response.final_url() != url;
                let final_url = is_elsewhere.then(|| secrets::redacted(response.final_url()));
                let fresh = Fresh {
                    media_type: response.media_type(),
                    encoding: response.content_encoding(),
                    modified: modified::believed(&validators, now),
                    validators,
                    final_url,
                    body,
                };
                return Ok(Got { requests, result: Ok(fresh) });
            }
            Taken::Broken(failure) => {
                let Some((range, at)) = incoming.rest() else {
                    return Ok(Got { requests, result: Err(FetchedResult::Failed(failure)) });
                };
                client.get(GetRequest { range: Some(range), largest, apart, ..ask(item, at) }).await
            }
            Taken::Unfit => {
                tracing::debug!(uri = %item.uri, "another version came for the rest of a body; it is begun anew");
                incoming.begin_anew();
                client.get(whole()).await
            }
        };
    }
}

/// The request for a resource; its body is judged when its digest is known.
pub(crate) fn ask(item: &FetchItem, url: Url) -> GetRequest {
    let encoding = item.declaration.encoding.clone();
    let accept = item.declaration.media_type.as_deref().and_then(accepted).map(Cow::Owned);
    GetRequest { judges_walls: true, encoding, accept, ..GetRequest::new(url) }
}

/// The `Accept` of a declared media type: a server with several forms of a resource gives the one whose digest is
/// declared. Any other form is taken too, and judged. None of a text that is no media type.
fn accepted(media_type: &str) -> Option<String> {
    let bare = media_type.split(';').next().unwrap_or_default().trim();
    let is_token = |part: &str| {
        let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
        !part.is_empty() && part.bytes().all(is_of_token)
    };
    let (kind, sub) = bare.split_once('/')?;
    (is_token(kind) && is_token(sub) && bare.len() <= LONGEST_TYPE).then(|| format!("{bare}, */*;q=0.1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declared_type_is_accepted_first_and_no_other_text_is_sent() {
        let pdf = Some("application/pdf, */*;q=0.1".to_owned());
        assert_eq!(accepted("application/pdf"), pdf);
        assert_eq!(accepted(" application/pdf ; version=1.7"), pdf);
        for odd in ["", "pdf", "text/*", "a/b/c", "text/html, text/plain", "text/ht\nml", "/", "a/"] {
            assert_eq!(accepted(odd), None, "{odd:?}");
        }
        assert_eq!(accepted(&format!("a/{}", "b".repeat(300))), None);
    }
}
