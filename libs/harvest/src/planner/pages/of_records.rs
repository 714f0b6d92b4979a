//! Landing pages of records of a repository (docs/adr/0084). A record that names no file leads to a page; the files that
//! the page names become links of the record, and are followed as its own are.
//!
//! A record and its queued page are one batch, and so are a page that was read, the links of its records and the plans
//! for its files. So no page is forgotten, and none is asked twice unless it was not settled.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::Batch;
use model::{
    Links, Listing, MOST_RECORDS_OF_A_PAGE, PageRecord, PageState, ProblemReason, ResourceRecord,
    ResourceUri, SetId, Subject,
};
use planning::follow::AfterChange;
use planning::pages::{self, RecordLinks};
use planning::{Decision, EntryContext, ListedEntry, Moment};
use resourcesync::{Link, Position};

use super::planned::context_of;
use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::RunContext;

/// Pages that are looked up at a time: the links of each may have a megabyte.
const LOOKED_UP: usize = 16;
/// The quirk of a page that too many records lead to.
const SHARED: &str = "shared-landing-page";

/// A live record that came, and its links.
pub(crate) struct LedRecord {
    pub(crate) uri: ResourceUri,
    /// The list that it came with, and the set of that list.
    pub(crate) document: Arc<str>,
    pub(crate) set: SetId,
    /// What it names itself.
    pub(crate) own: Option<Links>,
    /// The links that are stored of it.
    pub(crate) held: Option<Links>,
    /// Whether its metadata is what is stored.
    pub(crate) is_same: bool,
}

/// A stored record that leads to a page.
pub(super) type Leading = (ResourceUri, Box<ResourceRecord>);

impl Planner {
    /// The links of records, with those to files that are known from their landing pages. Queues the pages that have to
    /// be asked: those of records that are new or changed.
    pub(crate) async fn with_files_of_pages(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        records: Vec<LedRecord>,
    ) -> Result<Vec<Option<Links>>, HarvestError> {
        if ctx.options.follow.is_empty() {
            return Ok(records.into_iter().map(|record| record.own).collect());
        }
        self.reading.unasked.clear();
        let asks = ctx.options.follow.asks_landing_pages();
        let mut all = Vec::with_capacity(records.len());
        let mut open = Vec::new();
        for LedRecord { uri, document, set, own, held, is_same } in records {
            let mut links = RecordLinks::of(own.as_ref());
            if let Some(page) = links.landing_page() {
                links.of_page = RecordLinks::of(held.as_ref()).known_of(&page);
                let is_known = is_same && !links.of_page.is_empty();
                if asks && !is_known && ctx.options.filter.takes(uri.as_str()) {
                    open.push((all.len(), Led { document, set, page, uri, is_same }));
                }
            }
            all.push(links);
        }
        let mut met: HashMap<ResourceUri, PageRecord> = HashMap::new();
        for some in open.chunks(LOOKED_UP) {
            let unknown: Vec<ResourceUri> =
                some.iter().map(|(_, led)| led.page.clone()).filter(|page| !met.contains_key(page)).collect();
            let found = ctx.catalog().await?.pages_many(&unknown).await?;
            met.extend(unknown.into_iter().zip(found).filter_map(|(page, known)| Some((page, known?))));
            for (place, led) in some {
                let known = met.get(&led.page).cloned();
                if let Some(page) = self.lead(ctx, batch, led, known) {
                    if let Some(links) = page.links.as_ref().filter(|_| all[*place].of_page.is_empty()) {
                        all[*place].of_page = pages::of_page(&led.page, &links.to_vec()).0;
                    }
                    met.insert(led.page.clone(), page);
                }
            }
        }
        Ok(all.into_iter().map(RecordLinks::joined).collect())
    }

    /// Records that a record leads to a page, and queues the page if it has to be asked. Returns the record of the page;
    /// none if the page does not count for the record.
    fn lead(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        led: &Led,
        known: Option<PageRecord>,
    ) -> Option<PageRecord> {
        let Led { document, set, page: uri, uri: record, is_same } = led;
        if ctx.options.filter.leaves_out_as_foreign(uri.as_str()) {
            ctx.run.counters.foreign_left_out += 1;
            return None;
        }
        let run = ctx.run.id;
        let is_new = known.is_none();
        let mut page = known.unwrap_or_else(|| PageRecord::new(set.clone(), document.as_ref(), run));
        let is_led = page.records.contains(record);
        let is_of_this_run = page.run == run && !is_new;
        // Another record asked for it in this run, or it was asked for this version of the record.
        if is_led && (is_of_this_run || *is_same && page.state == PageState::Done) {
            self.reading.unasked.extend(page.is_waiting().then(|| record.clone()));
            return Some(page);
        }
        if !is_led {
            if page.records.len() >= MOST_RECORDS_OF_A_PAGE {
                ctx.run.counters.add_quirk(SHARED, 1);
                return None;
            }
            page.records.push(record.clone());
        }
        if !is_of_this_run {
            let (room, met) = self.reading.budget.take_links(&ctx.options.limits, 1);
            if let Some(met) = met
                && !std::mem::replace(&mut self.reading.has_met_links, true)
            {
                ctx.entry_problem(batch, format!("{document}#{record}"), met.reason(), &met.to_string());
            }
            if room == 0 {
                return None;
            }
            page = PageRecord {
                set: set.clone(),
                document: document.as_ref().to_owned(),
                run,
                state: PageState::Queued,
                ..page
            };
        }
        self.reading.has_pages = true;
        self.reading.unasked.extend(page.is_waiting().then(|| record.clone()));
        batch.put_page(uri, &page);
        Some(page)
    }

    /// Takes a page that waits, or that failed in an earlier run: which of its records still lead to it. None if the page
    /// is not to be asked.
    pub(super) async fn still_led(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        uri: &ResourceUri,
        page: &mut PageRecord,
    ) -> Result<Option<Vec<Leading>>, HarvestError> {
        let is_left = page.state == PageState::Failed && page.run != ctx.run.id;
        if !page.is_waiting() && !is_left {
            return Ok(None);
        }
        let problem = Subject::Document(uri.as_str().to_owned());
        if !ctx.options.follow.asks_landing_pages() {
            // The operator asks no pages any more. Lists are read anew if that changes again.
            batch.delete_problem(&problem);
            return Ok(None);
        }
        let records = ctx.catalog().await?.resources_many(&page.records).await?;
        let all = page.records.iter().cloned().zip(records);
        let leads = |record: &ResourceRecord| {
            record.is_present()
                && RecordLinks::of(record.listing.links.as_ref()).landing_page().as_ref() == Some(uri)
        };
        let led: Vec<Leading> = all
            .filter_map(|(uri, record)| Some((uri, Box::new(record.filter(|record| leads(record))?))))
            .collect();
        if led.is_empty() {
            batch.delete_page(uri);
            batch.delete_problem(&problem);
            return Ok(None);
        }
        page.records = led.iter().map(|(uri, _)| uri.clone()).collect();
        (page.run, page.state) = (ctx.run.id, PageState::Queued);
        Ok(Some(led))
    }

    /// Makes the files of a page links of its records, and plans them. If the page could not be read whole, what was
    /// known of it stays.
    pub(super) async fn take_for_records(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        uri: &ResourceUri,
        page: &PageRecord,
        (links, is_whole): (&[Link], bool),
        led: Vec<Leading>,
    ) -> Result<(), HarvestError> {
        self.reading.unasked.clear();
        let (files, is_cut) = pages::of_page(uri, links);
        let context = EntryContext { changes: true, ..context_of(ctx, page) };
        let (mut linked, mut after) = (Vec::new(), AfterChange::default());
        for (record_uri, record) in led {
            let mut parted = RecordLinks::of(record.listing.links.as_ref());
            let before = std::mem::replace(&mut parted.of_page, files.clone());
            if !is_whole {
                let is_new = |link: &Link| !files.iter().any(|file| file.href == link.href);
                parted.of_page.extend(before.into_iter().filter(is_new));
            }
            let listing = Listing { links: parted.joined(), ..record.listing.clone() };
            let entry = ListedEntry {
                uri: record_uri.clone(),
                declaration: record.declaration.clone(),
                listing: listing.clone(),
                moment: Moment::default(),
            };
            if is_cut {
                let why = format!(
                    "its landing page {uri} names more files than are kept of a record: the first {}",
                    files.len()
                );
                ctx.entry_problem(
                    batch,
                    format!("{}#{record_uri}", context.document),
                    ProblemReason::LimitLinks,
                    &why,
                );
            }
            linked.extend(self.follow(ctx, batch, &context, &entry, Position::default()).entries);
            let rules = &ctx.options.follow;
            after.extend(rules.after_change(&ctx.options.filter, &entry, Decision::Unchanged, Some(&record)));
            if listing.links != record.listing.links {
                batch.put_resource(&record_uri, &ResourceRecord { listing, ..*record });
            }
        }
        let named: Vec<ResourceUri> = linked.iter().map(|entry| entry.uri.clone()).collect();
        for target in named {
            self.reconciler.note_name(ctx, &context.document, &context.set, &target);
        }
        self.plan_linked(ctx, batch, linked, after).await
    }
}

/// A record, and the page that it leads to.
struct Led {
    document: Arc<str>,
    set: SetId,
    page: ResourceUri,
    uri: ResourceUri,
    is_same: bool,
}
