//! Gathers the card from the catalog alone. No request goes to the Source.

use catalog::Lookups;
use model::{CapabilityLink, DiscoveryReport, HomeSite, RunRecord, SetId, SetRecord, SourceId};
use resourcesync::Capability;

use crate::card::{self, Coverage, FORMAT, LastRun, Looked, Protocol, ReportCard, Source};
use crate::documents::{self, Documents};
use crate::error::ReportError;
use crate::finding::Findings;
use crate::{problems, resources, rules, shown};

/// Gathers the report card of the Source `id` with the entry URL `url`.
///
/// It scans the whole catalog once, twice where resources have links, and its documents twice. Its memory does not grow
/// with the number of resources or problems. A run may go on meanwhile: each scan shows the catalog as it was when that
/// scan began, so counts may be some moments apart.
///
/// # Errors
/// [`ReportError`].
pub async fn gather(id: &SourceId, url: &str, catalog: &Lookups) -> Result<ReportCard, ReportError> {
    let mut findings = Findings::default();
    let look = catalog.look().await?;
    if let Some(look) = &look {
        add_remarks(look, &mut findings);
    }
    let mut documents = documents::look(catalog, look.as_ref(), &mut findings).await?;
    let sets = catalog.sets().await?;
    let sets = sets.iter().map(|(id, set)| set_card(id, set, &mut documents, &mut findings)).collect();
    let mut coverage = Coverage { listed: documents.listed, ..Coverage::default() };
    let grouped = problems::group(catalog, &mut coverage, &mut findings).await?;
    let counted = resources::count(catalog, &HomeSite::of_text(url), &mut coverage, &mut findings).await?;
    let unlisted_targets = counted.targets.count(catalog, &mut findings).await?;
    Ok(ReportCard {
        format: FORMAT,
        source: Source {
            id: id.as_str().to_owned(),
            url: shown::uri(url),
            protocol: protocol(look.as_ref()),
        },
        looked_at: Looked {
            discovered_at: look.as_ref().map(|look| look.at),
            run: catalog.last_run().await?.map(last_run),
        },
        sets,
        documents: documents.shown,
        documents_left_out: documents.left_out,
        findings: findings.into_sorted(),
        quirks: documents.quirks,
        document_links: documents::links(look.as_ref()),
        links: counted.links,
        unlisted_targets,
        collections: counted.collections.largest(),
        collections_left_out: counted.collections.left_out(),
        from_elsewhere: counted.from_elsewhere,
        copies: Vec::new(),
        coverage,
        fixity: counted.fixity,
        problems: grouped.open,
        ignored: grouped.ignored,
        to_let_in: grouped.to_let_in,
    })
}

fn protocol(look: Option<&DiscoveryReport>) -> Protocol {
    if look.is_some_and(|look| look.oai.is_some()) { Protocol::OaiPmh } else { Protocol::ResourceSync }
}

fn add_remarks(look: &DiscoveryReport, findings: &mut Findings) {
    for remark in &look.remarks {
        if let Some(fact) = rules::remark(&remark.hint) {
            findings.add(fact, 1).in_document(&shown::uri(&remark.url));
        }
    }
    if let Some(place) = &look.well_known_missing {
        let is_description =
            |kind: &Option<Capability>| kind.as_ref().is_some_and(|kind| *kind == Capability::Description);
        let has_description = look.documents.iter().any(|seen| is_description(&seen.capability));
        findings.add(rules::no_well_known(has_description), 1).at_with(|| shown::uri(place));
    }
}

fn set_card(id: &SetId, set: &SetRecord, documents: &mut Documents, findings: &mut Findings) -> card::Set {
    let capability = |link: &CapabilityLink| card::Capability {
        capability: link.capability.as_str().to_owned(),
        uri: shown::uri(&link.uri),
    };
    card::Set {
        set: shown::uri(id.as_str()),
        capabilities: set.capabilities.iter().map(capability).collect(),
        baseline_at: set.baseline_at,
        synchronized_to: set.synchronized_to,
        changes: documents.changes(id, findings),
    }
}

fn last_run(run: RunRecord) -> LastRun {
    LastRun { mode: run.mode, phase: run.phase, began_at: run.started_at, ended_at: run.finished_at }
}
