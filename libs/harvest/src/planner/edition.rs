//! Whether the parts of a Resource List Index belong to the edition of the index that was read.
//!
//! A Source may republish its lists under the same names while they are read. Entries then move from one part to
//! another. Parts of two editions together may list less than either edition does.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use documents::{Opened, Part};
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{DocumentRecord, DocumentState, Evidence, ProblemReason};
use planning::Horizon;
use resourcesync::Capability;
use tokio::time::Instant;
use url::Url;
use web::WebError;

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::planner::document::unreadable;
use crate::run::RunContext;

/// Times of documents and of HTTP have whole seconds.
const SECOND: Duration = Duration::from_secs(1);

impl Planner {
    /// Rejects Resource List Indexes that were republished before all their parts were read. The entries of the parts
    /// are used all the same. The next run reads the parts again. Returns whether any was rejected: the Source may then
    /// have been asked again what it offers, and more may be queued.
    pub(crate) async fn judge_list_editions(&mut self, ctx: &mut RunContext) -> Result<bool, HarvestError> {
        let mut is_any_rejected = false;
        for uri in self.indexes_with_later_parts(ctx).await? {
            let Some(index) = ctx.catalog().await?.document(&uri).await? else { continue };
            // A snapshot may take a while to build. Only the index itself shows whether it was replaced.
            match self.is_as_read(ctx, &uri, &index).await {
                Ok(true) => {
                    self.reading.current_indexes.insert(uri);
                    continue;
                }
                Ok(false) => {
                    let why = "the Source published it anew while its parts were read, and one of them is later than \
                               the edition that was read: parts of two editions may leave resources out";
                    let failure =
                        unreadable(ProblemReason::ChangedAgain, why.to_owned(), Evidence::default());
                    self.fail_document(ctx, &uri, index, failure).await?;
                }
                Err(error) => self.fail_document_web(ctx, &uri, index, &error).await?,
            }
            is_any_rejected = true;
        }
        Ok(is_any_rejected)
    }

    /// The indexes of this run whose `at` is earlier than that of one of their parts, except those that were checked
    /// and are unchanged.
    async fn indexes_with_later_parts(&self, ctx: &mut RunContext) -> Result<BTreeSet<String>, HarvestError> {
        let mut moments = HashMap::new();
        let mut parts = Vec::new();
        let mut documents = ctx.catalog().await?.scan_documents().await?;
        while let Some((uri, record)) = documents.try_next().await? {
            let is_list = record.capability == Capability::ResourceList;
            if record.run != ctx.run.id || !is_list || record.state != DocumentState::Done {
                continue;
            }
            let Some(at) = record.at else { continue };
            parts.extend(record.parent.map(|index| (index, at)));
            moments.insert(uri, at);
        }
        let is_later =
            |(index, at): &(String, Timestamp)| moments.get(index).is_some_and(|earlier| at > earlier);
        let indexes = parts.into_iter().filter(is_later).map(|(index, _)| index);
        Ok(indexes.filter(|index| !self.reading.current_indexes.contains(index)).collect())
    }

    /// Whether a document is still the edition that was read, by its `at`. A document that is dated by the request
    /// says nothing about editions, and counts as the same.
    pub(crate) async fn is_as_read(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        known: &DocumentRecord,
    ) -> Result<bool, WebError> {
        // It was read, so it is a URL.
        let Ok(url) = Url::parse(uri) else { return Ok(true) };
        let mode = ctx.read_mode();
        let horizon = Horizon::at(ctx.clock.now());
        // What the run may still read of documents bounds this request too.
        let options = self.reading.budget.options(&ctx.options.limits, horizon.options(mode));
        let asked_at = Instant::now();
        let opened = documents::open(&ctx.client, &url, known.validators.clone(), options).await?;
        let mut stream = match opened {
            Opened::NotModified { requests, .. } => {
                ctx.run.counters.requests += u64::from(requests);
                return Ok(true);
            }
            Opened::Document(stream) => stream,
        };
        ctx.run.counters.requests += u64::from(stream.requests);
        let took = asked_at.elapsed();
        let first = stream.next().await;
        self.reading.budget.end_document(stream.bytes());
        let Some(Part::Header(header)) = first else { return Ok(false) };
        let at = header.at.and_then(|at| horizon.certain_instant(&at));
        Ok(at == known.at || is_dated_by_request(at, stream.sent_at, took))
    }
}

/// Whether a document is dated by the request that was answered at `sent_at`.
fn is_dated_by_request(at: Option<Timestamp>, sent_at: Option<Timestamp>, took: Duration) -> bool {
    let latest = at.and_then(|at| at.checked_add(took).ok()?.checked_add(SECOND).ok());
    latest.zip(sent_at).is_some_and(|(latest, sent_at)| latest > sent_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Option<Timestamp> {
        Some(Timestamp::from_second(seconds).unwrap())
    }

    #[test]
    fn a_document_of_the_second_of_its_request_is_dated_by_it() {
        let took = Duration::from_millis(200);
        assert!(is_dated_by_request(at(100), at(100), took));
        assert!(is_dated_by_request(at(100), at(101), took), "a second began meanwhile");
        assert!(!is_dated_by_request(at(99), at(101), took));
        assert!(is_dated_by_request(at(91), at(101), Duration::from_secs(10)));
        assert!(!is_dated_by_request(None, at(101), took));
        assert!(!is_dated_by_request(at(101), None, took), "a server without a clock says nothing");
    }
}
