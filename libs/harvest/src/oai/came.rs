//! Records as a page brings them, each once: which of two with one identifier counts, and what is odd about them.

use std::cmp::Ordering;
use std::collections::HashMap;

use catalog::Batch;
use fixity::Computed;
use jiff::Timestamp;
use model::{Links, PendingRecord, ProblemReason, ResourceRecord};
use oaipmh::{Item, Quirk, RecordHeader};
use resourcesync::{Change, Datetime};

use crate::oai::content::{Content as ContentLinks, Received};
use crate::oai::membership;
use crate::oai::reading::Reading;
use crate::run::RunContext;

/// A record as it came.
pub(super) struct Came {
    pub(super) loc: String,
    pub(super) datestamp: Option<Datetime>,
    /// Whether it came as deleted and as live, under one datestamp.
    pub(super) is_contradicted: bool,
    /// To the lists of its sets, and to its content.
    pub(super) links: Option<Links>,
    pub(super) content: Content,
}

/// What came of a record.
pub(super) enum Content {
    /// Its metadata, as a canonical document.
    Live(String),
    Deleted,
    /// Why it cannot be used.
    Bad(String),
}

/// The records, each once. A record without a usable header is a problem of the list.
pub(super) fn came(
    ctx: &mut RunContext,
    batch: &mut Batch,
    reading: &mut Reading,
    items: Vec<Received>,
) -> Vec<Came> {
    let mut all: Vec<Came> = Vec::with_capacity(items.len());
    let mut places: HashMap<String, usize> = HashMap::with_capacity(items.len());
    for Received { item, content: named } in items {
        let (header, content) = match item {
            Item::Record(record) => match record.metadata {
                Some(metadata) => (record.header, Content::Live(metadata.document)),
                None => (record.header, Content::Deleted),
            },
            Item::Bad(bad) => {
                note_bad(reading);
                let Some(header) = bad.header else {
                    let at = format!("{}#{}", reading.uri, number_of_bad(reading));
                    let message = format!("a record was left out: {}", bad.reason);
                    ctx.entry_problem(batch, at, ProblemReason::Malformed, &message);
                    continue;
                };
                (header, Content::Bad(bad.reason.to_string()))
            }
            Item::Header(_) | Item::Set(_) | Item::Format(_) => continue,
        };
        let RecordHeader { identifier, datestamp, sets, .. } = header;
        let loc = reading.base.record_uri(&identifier, &reading.list.prefix);
        let (mut links, has_all) = membership::links(&reading.base, &reading.list.prefix, &sets);
        if !has_all || named.is_cut {
            let name = resourcesync::Quirk::LinksTruncated.as_str();
            *reading.quirks.entry(name.to_owned()).or_default() += 1;
        }
        note_content(ctx, batch, reading, &loc, &named);
        links.extend(named.links.iter().flat_map(Links::to_vec));
        let links = Links::of(&links);
        let one = Came { loc: loc.clone(), datestamp, is_contradicted: false, links, content };
        match places.get(&loc) {
            None => {
                places.insert(loc, all.len());
                all.push(one);
            }
            Some(place) => {
                let before = &mut all[*place];
                let is_same_time = before.stamped() == one.stamped();
                if before.is_deleted() != one.is_deleted() {
                    reading.quirk(Quirk::DeletedAndLive);
                    before.is_contradicted |= is_same_time;
                }
                if before.is_replaced_by(&one) {
                    *before = Came { is_contradicted: is_same_time && before.is_contradicted, ..one };
                }
            }
        }
    }
    for one in &mut all {
        let before = reading.recent.get(&one.loc);
        if before
            .is_some_and(|(stamped, is_deleted)| *stamped == one.stamped() && *is_deleted != one.is_deleted())
            && !std::mem::replace(&mut one.is_contradicted, true)
        {
            *reading.quirks.entry(Quirk::DeletedAndLive.as_str().to_owned()).or_default() += 1;
        }
    }
    reading.recent = all.iter().map(|one| (one.loc.clone(), (one.stamped(), one.is_deleted()))).collect();
    all
}

/// Counts what is odd about the links of a record. Files that are not kept as links are a problem of the record, if
/// links are followed.
fn note_content(
    ctx: &mut RunContext,
    batch: &mut Batch,
    reading: &mut Reading,
    loc: &str,
    named: &ContentLinks,
) {
    if named.bare_dois > 0 {
        *reading.quirks.entry(Quirk::BareDoi.as_str().to_owned()).or_default() += named.bare_dois;
    }
    if named.is_cut && !ctx.options.follow.is_empty() {
        let message = format!(
            "the record names more than is kept of its links: the first {}. Files behind them are not followed; ask the \
             repository's operator for a format that lists files alone, such as mets",
            named.kept
        );
        let at = format!("{}#{loc}", reading.uri);
        ctx.entry_problem(batch, at, ProblemReason::LimitLinks, &message);
    }
}

/// Counts a record that cannot be used.
fn note_bad(reading: &mut Reading) {
    if let Some(progress) = &mut reading.list.progress.reading {
        progress.bad += 1;
        progress.doubtful = true;
    }
}

fn number_of_bad(reading: &Reading) -> u64 {
    reading.list.progress.reading.as_ref().map_or(0, |progress| progress.bad)
}

impl Came {
    /// Digest and length of its metadata, if it has any.
    pub(super) fn computed(&self) -> Option<Computed> {
        match &self.content {
            Content::Live(document) => Some(Computed::of(document.as_bytes())),
            Content::Deleted | Content::Bad(_) => None,
        }
    }

    pub(super) fn is_deleted(&self) -> bool {
        matches!(self.content, Content::Deleted)
    }

    /// The instant of its datestamp.
    fn stamped(&self) -> Option<Timestamp> {
        self.datestamp.as_ref().map(Datetime::instant)
    }

    /// Whether another record of the same identifier counts instead: it has the later datestamp, or the same one and
    /// is not deleted.
    fn is_replaced_by(&self, other: &Self) -> bool {
        match other.stamped().cmp(&self.stamped()) {
            Ordering::Greater => true,
            Ordering::Equal => self.is_deleted() || !other.is_deleted(),
            Ordering::Less => false,
        }
    }
}

/// What this run made of a record before it came once more.
pub(super) struct Earlier {
    /// The datestamp of the version that it stored.
    live: Option<Timestamp>,
    /// The datestamp of the deletion that it plans.
    deleted: Option<Timestamp>,
}

impl Earlier {
    /// The run began at that time.
    pub(super) fn of(
        record: Option<&ResourceRecord>,
        plan: Option<&PendingRecord>,
        began: Timestamp,
    ) -> Self {
        let live = record.filter(|record| record.is_present() && record.settled_at >= began);
        let deleted = plan.filter(|plan| plan.listing.change == Some(Change::Deleted));
        Self {
            live: live.and_then(|record| record.declaration.lastmod),
            deleted: deleted.and_then(|plan| plan.listing.as_of),
        }
    }

    /// Whether it says the contrary of a record that came.
    pub(super) fn contradicts(&self, came: &Came) -> bool {
        let other = if came.is_deleted() { self.live } else { self.deleted };
        other.is_some() && other == came.stamped()
    }
}
