//! Resources: how many of the listed ones are stored, and their declarations. One scan; it keeps only counts.

use std::collections::BTreeMap;

use catalog::{CatalogError, Lookups};
use futures::TryStreamExt;
use model::{Declaration, HomeSite, Links, ResourceRecord};

use crate::card::{Coverage, Fixity};
use crate::finding::Findings;
use crate::rules::{self, Fact};
use crate::shown;

/// The most relations whose links are counted.
const RELATIONS: usize = 50;

/// Counts all resources, and their links by relation. The counts of problems and of listed entries in `coverage` stay
/// unchanged.
pub(crate) async fn count(
    catalog: &Lookups,
    home: &HomeSite,
    coverage: &mut Coverage,
    findings: &mut Findings,
) -> Result<(Fixity, BTreeMap<String, u64>), CatalogError> {
    let mut fixity = Fixity::default();
    let mut links = BTreeMap::new();
    coverage.pending = catalog.count_pending().await?;
    let mut resources = catalog.scan_resources(None, None).await?;
    while let Some((uri, record)) = resources.try_next().await? {
        if !record.is_present() {
            coverage.deleted += 1;
            continue;
        }
        coverage.held += 1;
        coverage.absent += u64::from(record.absent.is_some());
        coverage.foreign += u64::from(home.is_foreign(uri.as_str()));
        let first_seen = |fact: Fact| {
            findings.add(fact, 1).at_with(|| shown::uri(uri.as_str()));
        };
        record.listing.links.iter().flat_map(Links::to_vec).for_each(|link| count_link(&mut links, link.rel));
        weigh(&record, &mut fixity).into_iter().flatten().for_each(first_seen);
    }
    Ok((fixity, links))
}

/// Counts a link by its relation. A Source may invent any number of relations: further ones are not counted.
fn count_link(links: &mut BTreeMap<String, u64>, relation: String) {
    let is_full = links.len() >= RELATIONS;
    match links.get_mut(&relation) {
        Some(count) => *count += 1,
        None if is_full => {}
        None => drop(links.insert(relation, 1)),
    }
}

/// Counts the declarations of a resource, and returns the missing ones.
fn weigh(record: &ResourceRecord, fixity: &mut Fixity) -> [Option<Fact>; 3] {
    let Declaration { digests, unjudged, length, lastmod, .. } = &record.declaration;
    fixity.resources += 1;
    match (digests.is_empty(), length) {
        (false, _) => fixity.digest += 1,
        (true, Some(_)) => fixity.length_only += 1,
        (true, None) => fixity.nothing += 1,
    }
    for digest in digests {
        *fixity.algorithms.entry(digest.algorithm().as_str()).or_default() += 1;
    }
    fixity.unjudged += u64::from(!unjudged.is_empty());
    fixity.lastmod += u64::from(lastmod.is_some());
    [
        digests.is_empty().then_some(rules::NO_DIGEST),
        (!unjudged.is_empty()).then_some(rules::UNJUDGED_DIGEST),
        lastmod.is_none().then_some(rules::NO_LASTMOD),
    ]
}
