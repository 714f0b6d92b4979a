//! The rest of the card: sets, documents, coverage, fixity and problems.

use std::collections::BTreeMap;

use model::{bytes, count, counted};

use super::numbers::{share, times};
use super::page::Page;
use crate::card::{Coverage, Document, Fixity, ProblemGroup, ReportCard, Set};

/// The most documents in the text. The object has more of them.
const DOCUMENTS: usize = 20;

pub(super) fn sets(page: &mut Page, sets: &[Set]) {
    page.heading("Sets of resources");
    if sets.is_empty() {
        page.words(0, "None is known yet.");
    }
    for (at, set) in sets.iter().enumerate() {
        if at > 0 {
            page.blank();
        }
        page.whole(0, &set.set);
        for link in &set.capabilities {
            page.pair(&link.capability, &link.uri);
        }
        if let Some(at) = set.baseline_at {
            page.pair("snapshot of", &at.to_string());
        }
        if let Some(to) = set.synchronized_to {
            page.pair("synchronized to", &to.to_string());
        }
        if let Some(changes) = &set.changes {
            let end = if changes.open { ", and go on" } else { "" };
            page.pair("changes told", &format!("from {} to {}{end}", changes.from, changes.to));
            for gap in &changes.gaps {
                page.pair("gap", &format!("from {} to {}", gap.from, gap.until));
            }
            let more = changes.gap_count - changes.gaps.len() as u64;
            if more > 0 {
                page.words(2, &format!("and {} more", counted(more, "gap", "gaps")));
            }
        }
    }
}

pub(super) fn documents(page: &mut Page, card: &ReportCard) {
    page.heading("Documents");
    if card.documents.is_empty() {
        page.words(0, "None was read yet.");
    }
    for document in card.documents.iter().take(DOCUMENTS) {
        page.whole(0, &document.uri);
        page.hanging(2, 4, &described(document));
    }
    let more = card.documents.len().saturating_sub(DOCUMENTS) as u64 + card.documents_left_out;
    if more > 0 {
        page.words(0, &format!("and {} more", counted(more, "document", "documents")));
    }
}

pub(super) fn links(page: &mut Page, card: &ReportCard) {
    if card.document_links.is_empty() && card.links.is_empty() {
        return;
    }
    page.heading("Links");
    for link in card.document_links.iter().take(DOCUMENTS) {
        page.whole(0, &link.document);
        page.pair(&link.rel, &link.href);
    }
    let more = card.document_links.len().saturating_sub(DOCUMENTS) as u64;
    if more > 0 {
        page.words(0, &format!("and {} more", counted(more, "link", "links")));
    }
    for (relation, n) in &card.links {
        let unlisted = card.unlisted_targets.as_ref().and_then(|targets| targets.get(relation));
        let unlisted = unlisted.map(|n| format!("; {} in no list", counted(*n, "target is", "targets are")));
        let links = counted(*n, "link", "links");
        page.pair(relation, &format!("{links} of resources{}", unlisted.unwrap_or_default()));
    }
    if card.unlisted_targets.is_none() {
        page.words(0, "There are too many links to tell which of their targets no list names.");
    }
}

/// Collections that resources belong to.
pub(super) fn collections(page: &mut Page, card: &ReportCard) {
    if card.collections.is_empty() {
        return;
    }
    page.heading("Collections");
    for collection in &card.collections {
        page.pair(&collection.uri, &counted(collection.resources, "resource", "resources"));
    }
    if card.collections_left_out > 0 {
        let more = counted(card.collections_left_out, "collection", "collections");
        page.words(0, &format!("and {more} more"));
    }
}

/// Where bytes came from, if not from the resources' own origins.
pub(super) fn from_elsewhere(page: &mut Page, card: &ReportCard) {
    if card.from_elsewhere.is_empty() {
        return;
    }
    page.heading("Bytes from other origins");
    page.words(0, "Mirrors, and targets of redirects, gave the bytes of these stored resources.");
    for (origin, given) in &card.from_elsewhere {
        let resources = counted(given.resources, "resource", "resources");
        page.pair(origin, &format!("{resources}, {}", bytes(given.bytes)));
    }
}

/// What other Sources brought from the same origins.
pub(super) fn copies(page: &mut Page, card: &ReportCard) {
    if card.copies.is_empty() {
        return;
    }
    page.heading("Copies of the same origins");
    page.words(0, "Other Sources brought these resources too, from the same first Source (via).");
    for copies in &card.copies {
        let same = counted(copies.same, "resource", "resources");
        page.pair(
            &copies.source,
            &format!("{same} with the same bytes, {} with other bytes", copies.different),
        );
    }
}

fn described(document: &Document) -> String {
    let index = if document.index == Some(true) { " index" } else { "" };
    let mut parts = vec![format!("{}{index}", document.kind)];
    parts.extend(document.entries.map(|n| counted(n, "entry", "entries")));
    if document.bad > 0 {
        parts.push(format!("{} of them cannot be read", count(document.bad)));
    }
    parts.extend(document.at.map(|time| format!("at {time}")));
    parts.extend(document.from.map(|time| format!("from {time}")));
    parts.extend(document.until.map(|time| format!("until {time}")));
    parts.extend(document.closed.map(|closed| if closed { "closed" } else { "open" }.to_owned()));
    parts.extend(document.validators.map(|any| if any { "validators" } else { "no validators" }.to_owned()));
    match document.state {
        "failed" => parts.push("not read to its end".to_owned()),
        "queued" | "reading" => parts.push("still to be read".to_owned()),
        _ => {}
    }
    if document.doubtful {
        parts.push("doubtful: nothing is concluded from what it does not name".to_owned());
    }
    parts.join(", ")
}

pub(super) fn coverage(page: &mut Page, coverage: &Coverage) {
    page.heading("Coverage");
    let listed = coverage.listed.map_or("no Resource List was read whole".to_owned(), count);
    page.pair("listed", &listed);
    page.pair("held", &count(coverage.held));
    page.pair("pending", &count(coverage.pending));
    page.pair("problems", &count(coverage.problems));
    if coverage.ignored > 0 {
        page.pair("left as they are", &count(coverage.ignored));
    }
    page.pair("not listed any more", &count(coverage.absent));
    if coverage.foreign > 0 {
        page.pair("of other sites", &count(coverage.foreign));
    }
    page.pair("deleted", &count(coverage.deleted));
}

pub(super) fn fixity(page: &mut Page, fixity: &Fixity) {
    page.heading("Fixity: what is declared of the resources held");
    let of_all = |part| share(part, fixity.resources);
    page.pair("digest", &of_all(fixity.digest));
    page.pair("length only", &of_all(fixity.length_only));
    page.pair("neither", &of_all(fixity.nothing));
    page.pair("lastmod", &of_all(fixity.lastmod));
    for (algorithm, n) in &fixity.algorithms {
        page.pair(algorithm, &of_all(*n));
    }
}

pub(super) fn tolerated(page: &mut Page, quirks: &BTreeMap<String, u64>) {
    page.heading("Tolerated while reading");
    if quirks.is_empty() {
        page.words(0, "Nothing.");
    }
    for (name, n) in quirks {
        page.whole(2, &format!("{name:32}{}", times(*n)));
    }
}

pub(super) fn problems(page: &mut Page, open: &[ProblemGroup], ignored: &[ProblemGroup]) {
    page.heading("Problems");
    if open.is_empty() {
        page.words(0, "None.");
    }
    groups(page, open);
    if !ignored.is_empty() {
        page.heading("Known problems, about which nothing is to be done");
        groups(page, ignored);
    }
}

fn groups(page: &mut Page, groups: &[ProblemGroup]) {
    for (at, group) in groups.iter().enumerate() {
        if at > 0 {
            page.blank();
        }
        let more = group.count - group.examples.len() as u64;
        let shown = if more > 0 { format!(", {} shown", group.examples.len()) } else { String::new() };
        page.words(0, &format!("{}: {}{shown}", group.reason, counted(group.count, "problem", "problems")));
        for problem in &group.examples {
            page.whole(2, problem.subject.uri());
            page.words(4, &problem.message);
            let seen = if problem.first_seen == problem.last_seen {
                format!("seen {}", problem.last_seen)
            } else {
                format!("first seen {}, last seen {}", problem.first_seen, problem.last_seen)
            };
            page.words(4, &seen);
        }
    }
}
