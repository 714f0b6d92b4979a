//! Compares a random sample with the bytes that the Source serves now.

use std::num::NonZeroUsize;

use fixity::{Computed, Hasher};
use futures::TryStreamExt as _;
use model::ResourceUri;
use oaipmh::{Item, Options, Reader};
use serde::Serialize;
use verifier::scrub::{Reservoir, upper_bound};
use web::{Client, GetRequest, Response, WebError};

use super::outcome::Outcome;
use crate::crawl_delays;
use crate::exit::{Failed, usage};
use crate::http::{self, HttpArgs};
use crate::target::OpenHarvest;
use crate::terminal::note;

/// The result of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(super) struct Live {
    /// Requested resources.
    pub(super) asked: u64,
    /// The Source serves the stored bytes.
    pub(super) same: u64,
    /// It serves other bytes, or none.
    pub(super) different: u64,
    /// It could not be reached.
    pub(super) failed: u64,
    /// At most this share of all differs, with the confidence stated for the whole.
    pub(super) at_most: f64,
}

/// A sampled resource: the index of its Source, its URI, and its stored length and digests.
type Drawn = (usize, ResourceUri, Computed);

/// Compares this many resources of all Sources together.
pub(super) async fn compare(
    harvested: &OpenHarvest,
    count: NonZeroUsize,
    seed: u64,
    http: &HttpArgs,
    outcome: &Outcome,
) -> Result<Live, Failed> {
    let mut sample: Reservoir<Drawn> = Reservoir::new(count.get(), seed);
    for (n, (_, catalog)) in harvested.sources.iter().enumerate() {
        let mut resources = catalog.scan_resources(None, None).await?;
        while let Some((uri, record)) = resources.try_next().await? {
            if let Some(bitstream) = record.bitstream {
                sample.offer(|| (n, uri, bitstream.computed));
            }
        }
    }
    let mut drawn = sample.into_items();
    // One Source after the other, each with its own client.
    drawn.sort_by(|(a, x, _), (b, y, _)| (a, x.as_str()).cmp(&(b, y.as_str())));
    let mut live = Live::default();
    for of_one in drawn.chunk_by(|(a, ..), (b, ..)| a == b) {
        let Some(&(n, ..)) = of_one.first() else { continue };
        let entry: url::Url = harvested.sources[n].0.url.parse().map_err(usage)?;
        let client = http::client(http.config(&entry)?)?;
        let sets = harvested.sources[n].1.sets().await?;
        let holds_records = sets.iter().any(|(_, set)| set.oai.is_some());
        for (_, uri, computed) in of_one {
            live.asked += 1;
            match crawl_delays::print_during(&client, given(&client, uri, holds_records)).await {
                Ok(Some(now)) if (now.length(), now.sha256()) == (computed.length(), computed.sha256()) => {
                    live.same += 1;
                }
                Ok(now) => {
                    live.different += 1;
                    outcome.print_difference(uri, computed, now.as_ref())?;
                }
                Err(error) => {
                    live.failed += 1;
                    note!("{uri} could not be compared: {error}");
                }
            }
        }
    }
    live.at_most = upper_bound(live.asked - live.failed, live.different);
    Ok(live)
}

/// Length and digest of the bytes that the Source serves; none if it says that the resource is gone.
///
/// Of a record of an OAI-PMH repository it is the record in the answer that counts, in its canonical form.
async fn given(client: &Client, uri: &ResourceUri, is_record: bool) -> Result<Option<Computed>, WebError> {
    let mut response = match client.get_with_retries(GetRequest::new(uri.to_url())).await {
        Ok(response) => response,
        Err(error) if matches!(error.status(), Some(404 | 410)) => return Ok(None),
        Err(error) => return Err(error),
    };
    if is_record {
        return record(&mut response).await;
    }
    let mut hasher = Hasher::new([]);
    while let Some(chunk) = response.chunk().await? {
        hasher.update(&chunk);
    }
    Ok(Some(hasher.finish()))
}

/// Length and digest of the record in an answer; none if there is none.
async fn record(response: &mut Response) -> Result<Option<Computed>, WebError> {
    let mut reader = Reader::new(Options::default());
    let mut is_received = false;
    loop {
        match reader.next() {
            Ok(Some(Item::Record(record))) => {
                return Ok(record.metadata.map(|metadata| Computed::of(metadata.document.as_bytes())));
            }
            Ok(None) if !is_received => match response.chunk().await? {
                Some(chunk) => reader.feed(&chunk),
                None => {
                    is_received = true;
                    reader.end();
                }
            },
            Ok(_) | Err(_) => return Ok(None),
        }
    }
}
