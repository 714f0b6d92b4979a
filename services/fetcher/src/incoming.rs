//! A body that comes in one response, or in several if it breaks off. The first one describes it, and the others bring
//! bytes.

use fixity::Algorithm;
use model::{Failure, FetchItem};
use store::{Store, StoreError};
use url::Url;
use web::{ErrorKind, Range, Response, WebError};

use crate::FetcherConfig;
use crate::body::{Body, Receiving, ended_early};
use crate::package::version::{Known, is_no_such_range, is_same};

/// A body, as far as it came.
pub(crate) struct Incoming<'a> {
    receiving: Receiving<'a>,
    /// The response that began it, once it broke off. It describes the whole: a server leaves out of a part what it
    /// said before (RFC 9110, 15.3.7), and no part shows that a page came in place of the content.
    begun: Option<Response>,
    /// Length of the whole, if a response stated it.
    length: Option<u64>,
    /// Whether a declared digest judges the whole.
    is_judged: bool,
    /// How often the rest may still be requested.
    resumes: u32,
}

/// What a response brought.
#[expect(clippy::large_enum_variant, reason = "there is one for each response, and it is gone at once")]
pub(crate) enum Taken {
    /// All bytes are there. The response that describes them.
    Whole(Response),
    /// The body broke off. Why.
    Broken(Failure),
    /// It is no part of what came before: the whole must be requested.
    Unfit,
}

/// Why receiving ended before the end of a response.
enum Break {
    Web(WebError),
    Store(StoreError),
}

impl<'a> Incoming<'a> {
    /// Nothing of the body of `item` yet.
    pub(crate) fn new(store: &'a Store, config: &FetcherConfig, item: &FetchItem) -> Self {
        let digests = &item.declaration.digests;
        let algorithms = digests.iter().map(|digest| digest.algorithm()).collect::<Vec<Algorithm>>();
        let is_judged = !algorithms.is_empty();
        let receiving = Receiving::new(store, algorithms, config.pack_threshold_bytes);
        Self { receiving, begun: None, length: None, is_judged, resumes: config.max_resumes }
    }

    /// Receives a response: to the whole, or to the rest.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn take(&mut self, mut response: Response) -> Result<Taken, StoreError> {
        let is_part = response.status() == 206;
        if is_part && !self.fits(&response) {
            return Ok(Taken::Unfit);
        }
        let part = response.content_range().filter(|_| is_part);
        match part {
            Some(part) => self.length = self.length.or(part.total),
            None => {
                if self.receiving.len() > 0 {
                    // The server sends the whole, perhaps another version: earlier bytes do not belong to it.
                    self.receiving.restart().await?;
                }
                self.length = response.content_length();
            }
        }
        let received = receive(&mut response, &mut self.receiving).await;
        let begun = match self.begun.take() {
            Some(begun) if is_part => begun,
            _ => response,
        };
        let came = self.receiving.len();
        let failure = match received {
            Err(Break::Store(error)) => return Err(error),
            _ if part.is_some_and(|part| came > part.to) => return Ok(Taken::Unfit),
            Err(Break::Web(error)) => {
                // A body that is too large or too slow would be so again.
                if matches!(error.kind(), ErrorKind::TooLarge | ErrorKind::TooSlow) {
                    self.resumes = 0;
                }
                error.into_failure()
            }
            // A server may send less than the rest, as some do of each open range.
            Ok(()) => match self.length.filter(|length| came < *length) {
                Some(length) => ended_early(&begun, came, length),
                None => return Ok(Taken::Whole(begun)),
            },
        };
        self.begun = Some(begun);
        Ok(Taken::Broken(failure))
    }

    /// The range that is missing, and where to request it. None if it was requested often enough, or the server gave no
    /// validator strong enough to mean "the same bytes" (RFC 9110, 13.1.5).
    pub(crate) fn rest(&mut self) -> Option<(Range, Url)> {
        let begun = self.begun.as_ref().filter(|_| self.receiving.len() > 0)?;
        let if_range = begun.validators().etag.filter(|etag| !etag.starts_with("W/"))?;
        self.resumes = self.resumes.checked_sub(1)?;
        Some((Range::rest(self.receiving.len(), if_range), begun.final_url().clone()))
    }

    /// Whether a request for the rest failed only because of its range: the server has a shorter version now, or sends
    /// another part.
    pub(crate) fn lost_its_range(&self, error: &WebError) -> bool {
        self.begun.is_some() && is_no_such_range(error)
    }

    /// Goes back to the beginning, for a response to the whole. This happens once: no range follows.
    pub(crate) fn begin_anew(&mut self) {
        self.begun = None;
        self.resumes = 0;
    }

    /// Completes the body.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn finish(self) -> Result<Body, StoreError> {
        self.receiving.finish().await
    }

    /// Whether a part begins at the next byte, and is of the version received so far. `If-Range` should ensure that,
    /// but not every server obeys it. Without a length of the whole, nothing tells whether the part is all the rest.
    fn fits(&self, part: &Response) -> bool {
        let (Some(begun), Some(range)) = (&self.begun, part.content_range()) else { return false };
        let coding = part.content_encoding();
        let validators = begun.validators();
        let known = Known { validators: &validators, length: self.length, is_judged: self.is_judged };
        range.from == self.receiving.len()
            && self.length.or(range.total).is_some()
            && (coding.is_none() || coding == begun.content_encoding())
            && is_same(part, known)
    }
}

async fn receive(response: &mut Response, body: &mut Receiving<'_>) -> Result<(), Break> {
    while let Some(chunk) = response.chunk().await.map_err(Break::Web)? {
        body.append(chunk).await.map_err(Break::Store)?;
    }
    Ok(())
}
