//! The sets that records name. The catalog has no index of them, so they are collected along the change log.

use std::collections::BTreeSet;
use std::pin::pin;

use futures::TryStreamExt as _;
use model::ResourceUri;
use oaipmh::{RecordHeader, SetItem};

use super::record::{is_change, specs};
use super::records::OaiRecords;
use crate::PublishError;

/// Entries of the change log whose records are looked up together.
const TOGETHER: usize = 1_000;
/// The most sets that are remembered.
const MOST: usize = 100_000;

/// The sets that records were seen to name, and how far the change log was read for them.
#[derive(Debug, Default)]
pub struct SeenSets {
    specs: BTreeSet<String>,
    read_to: u64,
}

impl OaiRecords {
    /// Reads on in the change log for sets, at most so many entries. Returns whether it was read to its end.
    ///
    /// # Errors
    /// When the catalog fails.
    pub async fn see_sets(&self, seen: &mut SeenSets, entries: usize) -> Result<bool, PublishError> {
        let catalog = self.held.catalog();
        if catalog.next_change().await? < seen.read_to {
            // The catalog was made anew.
            *seen = SeenSets::default();
        }
        let log = catalog.scan_changes(seen.read_to).await?.map_err(PublishError::from);
        let mut log = pin!(log.try_chunks(TOGETHER));
        let mut read = 0;
        while let Some(chunk) = log.try_next().await.map_err(|error| error.1)? {
            let changed =
                chunk.iter().filter(|(_, entry)| is_change(&entry.event)).map(|(_, entry)| &entry.uri);
            let uris: BTreeSet<&ResourceUri> =
                changed.filter(|uri| self.base.record_of(uri.as_str()).is_some()).collect();
            let uris: Vec<ResourceUri> = uris.into_iter().cloned().collect();
            for record in catalog.resources_many(&uris).await?.into_iter().flatten() {
                seen.note(specs(&self.base, &record));
            }
            if let Some((last, _)) = chunk.last() {
                seen.read_to = last + 1;
            }
            read += chunk.len();
            if read >= entries {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The sets: those that records were seen to name with their ancestors, those that the repository lists on one
    /// page, and those that are harvested.
    pub fn sets(&self, seen: &SeenSets) -> Vec<SetItem> {
        let mut sets = self.known_sets.clone();
        let unknown =
            seen.specs.iter().filter(|spec| !self.known_sets.iter().any(|known| known.spec == **spec));
        sets.extend(unknown.map(|spec| SetItem { spec: spec.clone(), name: spec.clone() }));
        sets
    }
}

impl SeenSets {
    fn note(&mut self, sets: Vec<String>) {
        let header =
            RecordHeader { identifier: String::new(), datestamp: None, sets, status: Default::default() };
        for spec in header.all_sets() {
            if self.specs.len() < MOST && !self.specs.contains(spec) {
                self.specs.insert(spec.to_owned());
            }
        }
    }
}
