//! Lays records that came by themselves beside what is stored of them, before they are settled.

use std::sync::Arc;

use catalog::Batch;
use fixity::Computed;
use model::{Links, PendingRecord, ResourceRecord, ResourceUri};

use super::Came;
use crate::error::HarvestError;
use crate::oai::{same_form, sample};
use crate::planner::Planner;
use crate::planner::pages::LedRecord;
use crate::run::RunContext;

/// Takes the stored form of metadata that is the same, notes records that changed under the same datestamp, and adds the
/// links to files of landing pages.
pub(super) async fn prepare(
    ctx: &mut RunContext,
    planner: &mut Planner,
    batch: &mut Batch,
    came: &mut [(ResourceUri, Box<PendingRecord>, Came)],
    records: &[Option<Box<ResourceRecord>>],
) -> Result<(), HarvestError> {
    let store = ctx.store.clone();
    let mut led = Vec::new();
    for ((uri, pending, one), record) in came.iter_mut().zip(records) {
        let Came::Live(came, document, links) = one else { continue };
        let stored = record.as_ref().and_then(|record| record.bitstream.as_ref());
        if let Some(stored) = stored.filter(|_| !pending.repair) {
            *document = same_form::as_stored(&store, std::mem::take(document), stored).await;
        }
        let sha256 = Computed::of(document.as_bytes()).sha256();
        let is_same = stored.is_some_and(|stored| stored.computed.sha256() == sha256);
        if let Some(record) = record.as_deref().filter(|_| stored.is_some() && !is_same && !pending.repair) {
            let datestamp = came.header.datestamp.as_ref();
            sample::note_changed(ctx, batch, &pending.listing.set, record, datestamp);
        }
        led.push(LedRecord {
            uri: uri.clone(),
            document: Arc::clone(&pending.listing.document),
            set: pending.listing.set.clone(),
            own: Links::of(links),
            held: record.as_ref().and_then(|record| record.listing.links.clone()),
            is_same,
        });
    }
    let mut joined = planner.with_files_of_pages(ctx, batch, led).await?.into_iter();
    for (_, _, one) in came {
        if let Came::Live(_, _, links) = one {
            *links = joined.next().flatten().as_ref().map(Links::to_vec).unwrap_or_default();
        }
    }
    Ok(())
}
