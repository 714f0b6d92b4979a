//! A poll: asks whether the documents of the last run are unchanged. It opens no catalog.

use std::time::Duration;

use documents::BodyDigest;
use fixity::Sha256;
use futures::future::BoxFuture;
use model::{Disposition, PollBasis, PollDocument, Validators};
use url::Url;
use web::{Client, GetRequest, Response, WebError};

/// The longest time to receive a body. A slower one is left to a run.
const BODY_TIME: Duration = Duration::from_secs(60);

/// The result of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollOutcome {
    /// All documents are unchanged, so a run would find nothing to do.
    Unchanged {
        /// Requests made, with that for a robots.txt.
        requests: u64,
    },
    /// A document changed, or its answer is in doubt. A run finds out, and records what it finds.
    News {
        /// Requests made, redirects and that for a robots.txt included.
        requests: u64,
    },
}

/// Requests the documents of `basis`, one after the other, each once. It stops at the first one that is not certainly
/// unchanged. The client keeps all rules of a run's requests: permits, rates, cooldowns, robots.txt, addresses.
///
/// # Errors
/// When the Source cannot be reached now. The poll is then repeated later; the error may say when.
pub fn poll<'a>(client: &'a Client, basis: &'a PollBasis) -> BoxFuture<'a, Result<PollOutcome, WebError>> {
    // Boxed here, so that it is compiled in this crate, and not once more in each of its users.
    Box::pin(poll_all(client, basis))
}

async fn poll_all(client: &Client, basis: &PollBasis) -> Result<PollOutcome, WebError> {
    let mut requests = 0;
    for document in &basis.documents {
        let Ok(url) = Url::parse(&document.uri) else { return Ok(PollOutcome::News { requests }) };
        // One attempt, without the retries of a run: the caller waits, and polls again.
        let response = match client.get(request(url, document.validators.clone())).await {
            Ok(response) => response,
            Err(error) if is_unreachable(&error) => return Err(error),
            Err(error) => {
                return Ok(PollOutcome::News { requests: requests + u64::from(error.requests()) });
            }
        };
        requests += u64::from(response.requests());
        if !is_unchanged(response, document).await {
            return Ok(PollOutcome::News { requests });
        }
    }
    Ok(PollOutcome::Unchanged { requests })
}

/// The request that a run makes for a document, with the bounds of a poll.
fn request(url: Url, validators: Validators) -> GetRequest {
    GetRequest {
        validators,
        // A redirect is news. Another origin is not even asked.
        within_origin: true,
        largest: Some(BodyDigest::LONGEST),
        ..GetRequest::new(url)
    }
}

/// Whether the Source did not answer, and may do so later.
fn is_unreachable(error: &WebError) -> bool {
    !error.is_answer() && matches!(error.disposition(), Disposition::Retry { .. })
}

/// Whether a response proves that the document is the version that was read.
async fn is_unchanged(response: Response, document: &PollDocument) -> bool {
    if !response.redirects().is_empty() {
        return false;
    }
    match response.status() {
        304 => true,
        200 if document.digest.is_some() => {
            let digest = tokio::time::timeout(BODY_TIME, digest_of(response)).await;
            digest.is_ok_and(|digest| digest == document.digest)
        }
        _ => false,
    }
}

/// The digest of a body; none of one that breaks off, or is longer than any with a digest.
async fn digest_of(mut response: Response) -> Option<Sha256> {
    let mut digest = BodyDigest::default();
    while let Some(piece) = response.chunk().await.ok()? {
        digest.add(&piece);
    }
    digest.finish()
}

#[cfg(test)]
mod tests;
