//! Resources: how many of the listed ones are stored, and their declarations. One scan; it keeps only counts.

use catalog::{CatalogError, Lookups};
use futures::TryStreamExt;
use model::{Declaration, HomeSite, ResourceRecord};

use crate::card::{Coverage, Fixity};
use crate::finding::Findings;
use crate::rules::{self, Fact};
use crate::shown;

/// Counts all resources. The counts of problems and of listed entries in `coverage` stay unchanged.
pub(crate) async fn count(
    catalog: &Lookups,
    home: &HomeSite,
    coverage: &mut Coverage,
    findings: &mut Findings,
) -> Result<Fixity, CatalogError> {
    let mut fixity = Fixity::default();
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
        weigh(&record, &mut fixity).into_iter().flatten().for_each(first_seen);
    }
    Ok(fixity)
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
