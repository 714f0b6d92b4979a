//! The time from each change until the store has its result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use catalog::{CatalogConfig, CatalogReader};
use data_encoding::HEXLOWER;
use model::{ResourceRecord, ResourceUri, SourceId};
use simulated_source::{ChangeKind, SimulatedSource};
use testkit::servers::S3Fixture;
use tokio::time::Instant;

use super::telling::Made;

/// The longest time until all changes are stored, after the last one.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often the catalog is read.
const LOOK: Duration = Duration::from_millis(200);

/// The lag of each change in milliseconds, once all of them are stored; one that is not stored after a minute
/// is an error.
pub(super) async fn lags(
    source: &SimulatedSource,
    id: &SourceId,
    s3: &S3Fixture,
    changes: &[Made],
) -> anyhow::Result<Vec<f64>> {
    let path = format!("harvest/catalogs/{id}");
    let truth: BTreeMap<String, String> = source.expected().map(|each| (each.uri, each.sha256)).collect();
    let end = Instant::now() + PATIENCE;
    loop {
        // Opened anew, so that recent writes are not missed.
        let catalog = CatalogReader::open(Arc::new(s3.store()?), &path, CatalogConfig::default()).await?;
        let mut lags = Vec::with_capacity(changes.len());
        for made in changes {
            let uri = source.resource_uri(made.change.index);
            let known = catalog.resource(&uri.parse::<ResourceUri>()?).await?;
            let wanted = truth.get(&uri).filter(|_| made.change.kind != ChangeKind::Deleted);
            if let Some(record) = known.filter(|record| is(record, wanted)) {
                lags.push(record.settled_at.duration_since(made.at).as_secs_f64() * 1e3);
            }
        }
        catalog.close().await?;
        match changes.len() - lags.len() {
            0 => return Ok(lags),
            missing if Instant::now() > end => bail!("{missing} of {} changes are not held", changes.len()),
            _ => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Whether the record has the result of the change: bytes with this digest, or none.
fn is(record: &ResourceRecord, wanted: Option<&String>) -> bool {
    let held = record.bitstream.as_ref().filter(|_| record.deleted.is_none());
    held.map(|held| HEXLOWER.encode(held.computed.sha256().as_bytes())).as_ref() == wanted
}
