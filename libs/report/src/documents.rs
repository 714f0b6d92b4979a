//! Documents: those in use, their quirks, and the time that they cover.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use catalog::{CatalogError, Lookups};
use futures::TryStreamExt;
use model::{DiscoveryReport, DocumentRecord, DocumentState, Links, RunId, SetId, VisitedDocument};
use resourcesync::{Capability, Force, Root};

use crate::card::{ChangeCoverage, Document, DocumentLink};
use crate::finding::Findings;
use crate::intervals::{self, Told};
use crate::rules::{self, Fact};
use crate::shown;

/// The most documents in the card. Further ones are only counted.
const SHOWN: usize = 1_000;

/// The most links of documents in the card.
const LINKS: usize = 100;

/// Results over all documents.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    pub(crate) shown: Vec<Document>,
    pub(crate) left_out: u64,
    pub(crate) quirks: BTreeMap<String, u64>,
    /// Entries of the Resource Lists; none when none was read completely.
    pub(crate) listed: Option<u64>,
    told: HashMap<SetId, Vec<Told>>,
}

/// The last run that requested documents of a kind, by set.
type Asked = HashMap<(SetId, Capability), RunId>;

/// Reads the records of all documents in use: those that discovery saw, and those that the last run which requested
/// their kind read. Documents that the Source does not name any more are not part of the report.
pub(crate) async fn look(
    catalog: &Lookups,
    look: Option<&DiscoveryReport>,
    findings: &mut Findings,
) -> Result<Documents, CatalogError> {
    let seen: BTreeSet<&str> =
        look.into_iter().flat_map(|look| &look.documents).map(|seen| seen.url.as_str()).collect();
    let mut asked = Asked::new();
    let mut known = BTreeSet::new();
    let mut records = catalog.scan_documents().await?;
    while let Some((uri, record)) = records.try_next().await? {
        let last = asked.entry((record.set.clone(), record.capability.clone())).or_insert(record.run);
        *last = record.run.max(*last);
        if seen.contains(uri.as_str()) {
            known.insert(uri);
        }
    }
    let mut documents = Documents::default();
    for seen in look.into_iter().flat_map(|look| &look.documents) {
        documents.link(seen, findings);
        if !known.contains(&seen.url) {
            let document = seen_only(seen);
            documents.add(document, &seen.url, findings);
        }
    }
    let mut records = catalog.scan_documents().await?;
    while let Some((uri, record)) = records.try_next().await? {
        if in_use(&record, &asked) {
            documents.tell(&record);
            documents.add(read(&uri, &record), &uri, findings);
        }
    }
    Ok(documents)
}

/// Links of the documents that discovery saw, without those to other documents.
pub(crate) fn links(look: Option<&DiscoveryReport>) -> Vec<DocumentLink> {
    let seen = look.into_iter().flat_map(|look| &look.documents);
    let links = seen.flat_map(|seen| {
        let links = seen.links.as_ref().map(Links::to_vec).unwrap_or_default();
        links.into_iter().map(|link| DocumentLink {
            document: shown::uri(&seen.url),
            rel: link.rel,
            href: shown::uri(&link.href),
        })
    });
    links.take(LINKS).collect()
}

/// A closed change document that was read completely is not requested again, though the Source still names it.
fn in_use(record: &DocumentRecord, asked: &Asked) -> bool {
    let is_last = asked.get(&(record.set.clone(), record.capability.clone())) == Some(&record.run);
    let is_settled = record.until.is_some() && record.state == DocumentState::Done;
    is_last || is_settled
}

impl Documents {
    /// The time that the change documents of a set cover.
    pub(crate) fn changes(&mut self, set: &SetId, findings: &mut Findings) -> Option<ChangeCoverage> {
        let coverage = intervals::coverage(self.told.remove(set)?)?;
        if let Some(gap) = coverage.gaps.first() {
            findings
                .add(rules::GAP_BETWEEN_CHANGES, coverage.gap_count)
                .at_with(|| format!("from {} until {}", gap.from, gap.until));
        }
        Some(coverage)
    }

    fn add(&mut self, document: Document, uri: &str, findings: &mut Findings) {
        let place = shown::uri(uri);
        for (name, times) in &document.quirks {
            *self.quirks.entry(name.clone()).or_default() += times;
            // An unknown name comes from another version, and so its meaning is unknown too.
            if let Some(quirk) = quirks::named(name)
                && let Some(rule) = quirk.rule.filter(|rule| rule.force < Force::Allowed)
            {
                let fact = Fact { name: quirk.name, what: quirk.meaning, rule };
                findings.add(fact, *times).in_document(&place);
            }
        }
        if document.validators == Some(false) {
            findings.add(rules::NO_VALIDATORS, 1).in_document(&place);
        }
        if self.shown.len() < SHOWN {
            self.shown.push(document);
        } else {
            self.left_out += 1;
        }
    }

    /// Every document but the topmost must link to its parent.
    fn link(&self, seen: &VisitedDocument, findings: &mut Findings) {
        let is_below = seen.capability.as_ref().is_some_and(|kind| *kind != Capability::Description);
        if is_below && !seen.has_up {
            findings.add(rules::NO_UP_LINK, 1).in_document(&shown::uri(&seen.url));
        }
    }

    fn tell(&mut self, record: &DocumentRecord) {
        let is_list = record.root == Some(Root::UrlSet) && record.state == DocumentState::Done;
        if is_list && record.capability == Capability::ResourceList {
            *self.listed.get_or_insert_default() += record.entries;
        }
        if is_list
            && record.capability.tells_changes()
            && let Some(from) = record.from
        {
            let told = Told { from, until: record.until, latest: record.latest_change };
            self.told.entry(record.set.clone()).or_default().push(told);
        }
    }
}

fn seen_only(seen: &VisitedDocument) -> Document {
    Document {
        uri: shown::uri(&seen.url),
        set: None,
        kind: seen.capability.as_ref().map_or("sitemap", Capability::as_str).to_owned(),
        index: Some(seen.root == Root::SitemapIndex),
        state: "seen",
        entries: seen.entries,
        bad: 0,
        at: None,
        from: None,
        until: None,
        closed: None,
        validators: Some(seen.has_validators),
        doubtful: false,
        quirks: seen.quirks.clone(),
    }
}

fn read(uri: &str, record: &DocumentRecord) -> Document {
    let is_done = record.state == DocumentState::Done;
    // The validators of a document with an unreadable entry are not stored, so that it is read again.
    let validators = (is_done && record.bad == 0).then(|| !record.validators.is_empty());
    Document {
        uri: shown::uri(uri),
        set: Some(shown::uri(record.set.as_str())),
        kind: record.capability.as_str().to_owned(),
        index: record.root.map(|root| root == Root::SitemapIndex),
        state: match record.state {
            DocumentState::Queued => "queued",
            DocumentState::Reading { .. } => "reading",
            DocumentState::Done => "done",
            DocumentState::Failed => "failed",
        },
        entries: is_done.then_some(record.entries),
        bad: record.bad,
        at: record.at,
        from: record.from,
        until: record.until,
        closed: (is_done && record.capability.tells_changes()).then_some(record.until.is_some()),
        validators,
        doubtful: record.doubtful,
        quirks: record.quirks.clone(),
    }
}
