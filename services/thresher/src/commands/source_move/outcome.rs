//! What a move kept, and what it did not.

use futures::TryStreamExt;
use harvest::Report;
use indicatif::HumanBytes;
use jiff::Timestamp;
use model::SetId;
use serde::Serialize;
use store::{SourceMove, Store};

use crate::exit::Failed;
use crate::target;
use crate::terminal::note;

/// The result as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    source: String,
    url: String,
    to: String,
    to_url: String,
    at: Timestamp,
    /// Stored before the move, and the same in the new lists: no request was sent for them.
    adopted: Amount,
    /// Stored since the move.
    fetched: Amount,
    /// Only the former URL listed them. They stay.
    only_former: Amount,
    run: String,
    in_sync: bool,
    requests: u64,
    problems: u64,
}

/// Resources and their bytes.
#[derive(Debug, Default, Serialize)]
struct Amount {
    resources: u64,
    bytes: u64,
}

impl Outcome {
    /// Counts what the moved Source stores.
    pub(super) async fn of(store: &Store, moved: &SourceMove, report: &Report) -> Result<Self, Failed> {
        let catalog = target::read_catalog(store, &moved.to).await?;
        let sets: Vec<SetId> = catalog.sets().await?.into_iter().map(|(set, _)| set).collect();
        let mut outcome = Self {
            source: moved.source.to_string(),
            url: moved.url.clone(),
            to: moved.to.to_string(),
            to_url: moved.to_url.clone(),
            at: moved.at,
            adopted: Amount::default(),
            fetched: Amount::default(),
            only_former: Amount::default(),
            run: report.run.id.to_string(),
            in_sync: report.in_sync(),
            requests: report.run.counters.requests,
            problems: report.open_problems,
        };
        let mut resources = catalog.scan_resources(None, None).await?;
        while let Some((_, record)) = resources.try_next().await? {
            let Some(bitstream) = &record.bitstream else { continue };
            let is_listed = record.sets.iter().any(|set| sets.contains(set));
            let amount = if !is_listed {
                &mut outcome.only_former
            } else if bitstream.stored_at < moved.at {
                &mut outcome.adopted
            } else {
                &mut outcome.fetched
            };
            amount.resources += 1;
            amount.bytes += bitstream.computed.length();
        }
        drop(resources);
        catalog.close().await.ok();
        Ok(outcome)
    }

    /// Tells it to a person.
    pub(super) fn tell(&self, into: &str) {
        note!("Moved from {} to {}.", self.url, self.to_url);
        for (amount, what) in [
            (&self.adopted, "adopted without a request"),
            (&self.fetched, "stored since the move"),
            (&self.only_former, "kept, listed by the former URL only"),
        ] {
            note!("  {:>12}  {what}, {}", amount.resources, HumanBytes(amount.bytes));
        }
        note!("  `thresher source move {} --back --into {into}` takes it back", self.source);
    }
}
