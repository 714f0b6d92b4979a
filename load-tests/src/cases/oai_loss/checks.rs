//! Checks that no record is lost, and none is doubled.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context as _;
use catalog::{CatalogConfig, CatalogReader};
use futures::TryStreamExt as _;
use model::{ChangeEvent, SourceId};
use oaipmh::{BaseUrl, Limits, canonicalize};
use simulated_source::SimulatedRepository;
use store::{Key, Store, StoreOptions};

use crate::check::{self, Check};
use crate::place::Place;
use crate::thresher::Thresher;

const PREFIX: &str = "oai_dc";

/// The harvest has each live record with the right bytes, and shows no other one as present.
pub(super) fn records(
    thresher: &Thresher,
    folder: &Path,
    repository: &SimulatedRepository,
) -> anyhow::Result<Vec<Check>> {
    let base = BaseUrl::new(repository.base_url().parse()?)?;
    let limits = Limits::default();
    let mut truth: HashMap<String, String> = HashMap::new();
    for record in repository.expected().into_iter().filter(|record| !record.deleted) {
        let element = repository.metadata(record.index, PREFIX).context("a record has no metadata")?;
        let document = canonicalize(&element, &limits)?.document;
        truth.insert(base.record_uri(&record.identifier, PREFIX), check::sha256(document.as_bytes()));
    }
    let (mut right, mut other, mut beyond) = (0, 0, 0);
    thresher.held(&Place::directory(&folder.join("into")), |held| {
        if held.state == "present" {
            match truth.get(&held.uri) {
                Some(sha256) if held.sha256.as_ref() == Some(sha256) => right += 1,
                Some(_) => other += 1,
                None => beyond += 1,
            }
        }
    })?;
    let all = truth.len() as u64;
    Ok(vec![
        Check::equal("records held with their bytes", all, right),
        Check::equal("records lost", 0, all.saturating_sub(right + other)),
        Check::equal("records held in another version", 0, other),
        Check::equal("records held that are deleted", 0, beyond),
    ])
}

/// The change log has no event twice: no record is created while it is there, and no version is stored over itself.
pub(super) async fn changes(folder: &Path, base: &str) -> anyhow::Result<Vec<Check>> {
    let into = folder.join("into").display().to_string();
    let store = Store::open(&into.parse()?, StoreOptions::default()).await?;
    let path = Key::Catalog(SourceId::of_entry(&base.parse()?)).to_string();
    let catalog = CatalogReader::open(store.object_store(), &path, CatalogConfig::default()).await?;
    let mut log = catalog.scan_changes(0).await?;
    let mut now: HashMap<String, Option<String>> = HashMap::new();
    let (mut events, mut doubled) = (0, 0);
    while let Some((_, entry)) = log.try_next().await? {
        events += 1;
        let before = now.get(entry.uri.as_str()).cloned().flatten();
        let after = match entry.event {
            ChangeEvent::Created { sha256 } => {
                doubled += u64::from(before.is_some());
                Some(sha256.to_string())
            }
            ChangeEvent::Updated { sha256, .. } => {
                let after = Some(sha256.to_string());
                doubled += u64::from(before == after);
                after
            }
            ChangeEvent::Deleted { .. } => {
                doubled += u64::from(now.contains_key(entry.uri.as_str()) && before.is_none());
                None
            }
            _ => before,
        };
        now.insert(entry.uri.to_string(), after);
    }
    drop(log);
    catalog.close().await?;
    Ok(vec![
        Check::holds("the change log has events", events > 0),
        Check::equal("events doubled in the change log", 0, doubled),
    ])
}
