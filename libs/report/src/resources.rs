//! Resources: how many of the listed ones are stored, and their declarations. One scan; it keeps only counts.

use std::collections::BTreeMap;

use catalog::Lookups;
use futures::TryStreamExt;
use model::{Declaration, HomeSite, Links, Origin, ResourceRecord, ResourceUri};

use crate::card::{Coverage, Fixity, Given};
use crate::collections::Collections;
use crate::error::ReportError;
use crate::finding::Findings;
use crate::rules::{self, Fact};
use crate::shown;
use crate::unlisted::Targets;

/// The most relations whose links are counted.
const RELATIONS: usize = 50;

/// The most origins that are counted.
const ORIGINS: usize = 50;

/// What one scan of the resources counts, beside the coverage.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) fixity: Fixity,
    /// Links by relation.
    pub(crate) links: BTreeMap<String, u64>,
    /// Resources by collection.
    pub(crate) collections: Collections,
    /// Resources whose bytes another origin gave, by that origin.
    pub(crate) from_elsewhere: BTreeMap<String, Given>,
    /// What links lead to.
    pub(crate) targets: Targets,
}

/// Counts all resources, their links by relation, their collections, and where their bytes came from. The counts of
/// problems and of listed entries in `coverage` stay unchanged.
pub(crate) async fn count(
    catalog: &Lookups,
    home: &HomeSite,
    coverage: &mut Coverage,
    findings: &mut Findings,
) -> Result<Counted, ReportError> {
    let mut counted = Counted::default();
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
        let links = record.listing.links.as_ref().map(Links::to_vec).unwrap_or_default();
        counted.targets.add(uri.as_str(), &links)?;
        counted.collections.count(&links);
        links.into_iter().for_each(|link| count_link(&mut counted.links, link.rel));
        count_elsewhere(&mut counted.from_elsewhere, &uri, &record);
        weigh(&record, &mut counted.fixity).into_iter().flatten().for_each(first_seen);
    }
    Ok(counted)
}

/// Counts a resource at the origin that gave its bytes, if that is not its own. Any number of origins may be named:
/// further ones are not counted.
fn count_elsewhere(given: &mut BTreeMap<String, Given>, uri: &ResourceUri, record: &ResourceRecord) {
    let Some(bitstream) = &record.bitstream else { return };
    let Some(url) = bitstream.final_url.as_deref().and_then(|url| url.parse().ok()) else { return };
    let (Ok(origin), Ok(own)) = (Origin::of(&url), uri.origin()) else { return };
    if origin == own || given.len() >= ORIGINS && !given.contains_key(origin.as_str()) {
        return;
    }
    let given = given.entry(origin.as_str().to_owned()).or_default();
    given.resources += 1;
    given.bytes += bitstream.computed.length();
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
