//! Resources that links lead to and no list names, although they should be listed too (ResourceSync 1.1, section 14.5).

use std::collections::BTreeMap;

use catalog::{Lookups, ResourceSummary};
use futures::TryStreamExt;
use resourcesync::{Link, relation};

use crate::claims::{Claim, ClaimSorter, SpoolError, claims_of};
use crate::error::ReportError;
use crate::finding::Findings;
use crate::{rules, shown};

/// The most links whose targets are compared with the lists: about a gigabyte of temporary files.
const MOST: u64 = 10_000_000;
/// The most bytes of these targets. A Source may have longer URIs than usual.
const MOST_BYTES: u64 = 2 << 30;

/// The targets of links, sorted on the disk.
pub(crate) struct Targets {
    sorter: ClaimSorter,
    links: u64,
    bytes: u64,
    most: u64,
    most_bytes: u64,
}

impl Default for Targets {
    fn default() -> Self {
        Self { sorter: ClaimSorter::new(), links: 0, bytes: 0, most: MOST, most_bytes: MOST_BYTES }
    }
}

impl Targets {
    fn are_too_many(&self) -> bool {
        self.links > self.most || self.bytes > self.most_bytes
    }

    /// Adds what the links of a resource lead to. A collection need not be a resource, so it is left out.
    pub(crate) fn add(&mut self, by: &str, links: &[Link]) -> Result<(), SpoolError> {
        for claim in claims_of(by, links).filter(|claim| claim.rel != relation::COLLECTION) {
            self.links += 1;
            self.bytes += claim.about.len() as u64;
            if !self.are_too_many() {
                // Each target counts once, however many link to it.
                self.sorter.add(Claim { by: String::new(), ..claim })?;
            }
        }
        Ok(())
    }

    /// Counts those that no list names, by the relation of the links; none if there are too many links to tell.
    pub(crate) async fn count(
        self,
        catalog: &Lookups,
        findings: &mut Findings,
    ) -> Result<Option<BTreeMap<String, u64>>, ReportError> {
        let mut unlisted = BTreeMap::new();
        if self.links == 0 {
            return Ok(Some(unlisted));
        }
        if self.are_too_many() {
            return Ok(None);
        }
        let mut targets = self.sorter.sorted()?;
        let mut resources = catalog.scan_known(None, None).await?;
        let mut resource = resources.try_next().await?;
        while let Some(target) = targets.next()? {
            while let Some(before) = &resource
                && before.uri.as_str() < target.about.as_str()
            {
                resource = resources.try_next().await?;
            }
            let found = resource.as_ref().filter(|found| found.uri.as_str() == target.about);
            if !found.is_some_and(is_listed) {
                findings.add(rules::UNLISTED_TARGET, 1).at_with(|| shown::uri(&target.about));
                *unlisted.entry(target.rel).or_default() += 1;
            }
        }
        Ok(Some(unlisted))
    }
}

/// Whether a list names it: that of its stored version, or the entry of its pending work or of its problem.
fn is_listed(resource: &ResourceSummary) -> bool {
    let ResourceSummary { record, pending, problem, .. } = resource;
    let stored = record.as_ref().filter(|record| record.is_present() && record.absent.is_none());
    let entries = [
        stored.map(|record| &record.listing),
        pending.as_ref().map(|pending| &pending.listing),
        problem.as_ref().and_then(|problem| problem.listing.as_ref()),
    ];
    entries.into_iter().flatten().any(|listing| listing.linked.is_none())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use catalog::{Catalog, CatalogConfig};

    #[tokio::test]
    async fn more_links_than_can_be_sorted_are_not_counted() {
        let store = Arc::new(object_store::memory::InMemory::new());
        let catalog = Catalog::open(store, "catalogs/one", CatalogConfig::default()).await.unwrap();
        let links = [Link::new("item", "http://h/1"), Link::new("item", "http://h/2")];
        let both = Some(BTreeMap::from([("item".to_owned(), 2)]));
        for (most, most_bytes, expected) in [(2, 20, both), (1, 20, None), (2, 19, None)] {
            let mut targets = Targets { most, most_bytes, ..Targets::default() };
            targets.add("http://h/", &links).unwrap();
            let counted = targets.count(&catalog, &mut Findings::default()).await.unwrap();
            assert_eq!(counted, expected, "{most} links, {most_bytes} bytes");
        }
        catalog.close().await.unwrap();
    }
}
