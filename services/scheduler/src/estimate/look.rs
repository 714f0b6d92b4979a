//! Reads a Source's documents for an estimate: what they list, and how much of it is stored.

use std::collections::{HashSet, VecDeque};

use catalog::Lookups;
use model::{SetId, SetRecord, Validators};
use resourcesync::{Capability, Entry, Header, Item, Mode as ReadMode};
use tokio::time::Instant;
use url::Url;
use web::Client;

use super::WayEstimate;
use crate::decide::{Decision, Known, decide};
use crate::entries::baseline_for_changes;
use crate::entry::{Context, Horizon};
use crate::error::HarvestError;
use crate::limits::Spent;
use crate::options::HarvestOptions;
use crate::read::{self, DocumentStream, Opened, Part};
use crate::weigh::{Cost, Waits};

/// Reader of a Source's documents for an estimate.
pub(super) struct Look<'a> {
    pub(super) client: &'a Client,
    pub(super) catalog: Option<&'a Lookups>,
    pub(super) options: &'a HarvestOptions,
    pub(super) horizon: Horizon,
    pub(super) mode: ReadMode,
    pub(super) waits: Waits,
    pub(super) requests: u64,
    pub(super) unread: Vec<(String, String)>,
    pub(super) spent: Spent,
}

impl Look<'_> {
    /// Estimates a set's documents of one kind.
    pub(super) async fn way(
        &mut self,
        id: &SetId,
        set: &SetRecord,
        kind: Capability,
    ) -> Result<WayEstimate, HarvestError> {
        let mut way = WayEstimate {
            set: id.clone(),
            capability: kind.clone(),
            documents: 0,
            named: 0,
            held: 0,
            cost: Cost { requests: 0, bytes: Some(0) },
            time: None,
            chosen: false,
        };
        // Each with the number of indexes above it.
        let mut queue: VecDeque<(u32, String)> =
            set.documents(&kind).map(|uri| (0, uri.to_owned())).collect();
        let mut seen: HashSet<String> = queue.iter().map(|(_, uri)| uri.clone()).collect();
        while let Some((above, uri)) = queue.pop_front() {
            match self.document(&uri, above, set, &mut way).await {
                Ok(parts) => {
                    let parts = parts.into_iter().filter(|part| seen.insert(part.clone()));
                    let before = queue.len();
                    queue.extend(parts.map(|part| (above + 1, part)));
                    self.spent.queue(queue.len() - before);
                }
                Err(LookError::Unread(why)) => self.unread.push((uri, why)),
                Err(LookError::Harvest(error)) => return Err(error),
            }
        }
        Ok(way)
    }

    /// Reads one document; returns the documents that it leads to.
    async fn document(
        &mut self,
        uri: &str,
        above: u32,
        set: &SetRecord,
        way: &mut WayEstimate,
    ) -> Result<Vec<String>, LookError> {
        if let Some(met) = self.spent.begin_document(&self.options.limits) {
            return Err(LookError::Unread(met.to_string()));
        }
        let unread = |error: &dyn std::fmt::Display| LookError::Unread(error.to_string());
        let url = Url::parse(uri).map_err(|error| unread(&error))?;
        let asked_at = Instant::now();
        let options = self.spent.options(&self.options.limits, self.horizon.options(self.mode));
        let opened = read::open(self.client, &url, Validators::default(), options).await;
        self.waits.add(asked_at.elapsed());
        let mut stream = match opened {
            Ok(Opened::Document(stream)) => stream,
            Ok(Opened::NotModified { .. }) => {
                return Err(LookError::Unread("the server sent nothing".to_owned()));
            }
            Err(error) => {
                self.requests += u64::from(error.requests());
                return Err(unread(&error));
            }
        };
        self.requests += u64::from(stream.requests);
        way.documents += 1;
        let parts = self.parts(uri, above, set, way, &mut stream).await;
        self.spent.end_document(stream.bytes());
        parts
    }

    /// Reads a document to its end; returns the documents that it leads to.
    async fn parts(
        &mut self,
        uri: &str,
        above: u32,
        set: &SetRecord,
        way: &mut WayEstimate,
        stream: &mut DocumentStream,
    ) -> Result<Vec<String>, LookError> {
        let (mut context, mut is_index, mut parts) = (None, false, Vec::new());
        while let Some(part) = stream.next().await {
            match part {
                Part::Header(header) => {
                    is_index = header.is_index();
                    context = Some(self.context(uri, way, &header));
                }
                Part::Items(mut items) => {
                    let Some(context) = &context else { continue };
                    let met = self.spent.take_entries(&self.options.limits, &mut items);
                    let (documents, others): (Vec<Item>, Vec<Item>) =
                        items.into_iter().partition(|item| is_index || context.is_part(item));
                    parts.extend(documents.into_iter().filter_map(|item| match item {
                        Item::Entry(entry) => Some(entry.loc),
                        Item::Bad(_) => None,
                    }));
                    self.count(way, set, context, others).await?;
                    let (_, met_by_parts) = self.spent.room_for(&self.options.limits, above, parts.len());
                    if let Some(met) = met_by_parts.or(met) {
                        return Err(LookError::Unread(met.to_string()));
                    }
                }
                Part::End(_) => return Ok(parts),
                Part::Broken(error, _) => return Err(LookError::Unread(error.to_string())),
            }
        }
        Ok(parts)
    }

    fn context(&self, uri: &str, way: &WayEstimate, header: &Header) -> Context {
        Context {
            document: uri.into(),
            set: way.set.clone(),
            changes: way.capability.tells_changes(),
            at: header.at,
            completed: header.completed,
            interval: self.horizon.interval(header.from.as_ref(), header.until.as_ref()),
            kind: header.capability.clone(),
            horizon: self.horizon,
        }
    }

    async fn count(
        &self,
        way: &mut WayEstimate,
        set: &SetRecord,
        context: &Context,
        items: Vec<Item>,
    ) -> Result<(), LookError> {
        let is_dump = matches!(way.capability, Capability::ResourceDump | Capability::ChangeDump);
        let mut entries = Vec::with_capacity(items.len());
        for item in items {
            let Item::Entry(entry) = item else { continue };
            if is_dump || context.is_package(&entry) {
                way.named += 1;
                let is_settled = self.is_settled(&entry).await?;
                way.add(is_settled, entry.metadata.length);
            } else if self.options.filter.takes(&entry.loc) {
                way.named += 1;
                entries.extend(context.read(*entry).ok());
            }
        }
        let uris: Vec<_> = entries.iter().map(|planned| planned.uri.clone()).collect();
        let records = match self.catalog {
            Some(catalog) => catalog.resources_many(&uris).await.map_err(HarvestError::from)?,
            None => vec![None; uris.len()],
        };
        for (planned, record) in entries.iter().zip(&records) {
            let known =
                Known { record: record.as_ref(), pending: None, baseline_at: baseline_for_changes(set) };
            let decision = decide(&planned.declaration, &planned.listing, planned.moment, known);
            let is_asked_for = matches!(decision, Decision::Fetch | Decision::Ask);
            way.add(!is_asked_for, planned.declaration.length);
        }
        Ok(())
    }

    /// Whether this version of a package was settled before.
    async fn is_settled(&self, entry: &Entry) -> Result<bool, LookError> {
        let Some(catalog) = self.catalog else { return Ok(false) };
        let known = catalog.package(&entry.loc).await.map_err(HarvestError::from)?;
        Ok(known.is_some_and(|known| crate::packages::is_settled(&known, entry)))
    }
}

/// Why a document could not be read.
enum LookError {
    Unread(String),
    Harvest(HarvestError),
}

impl From<HarvestError> for LookError {
    fn from(error: HarvestError) -> Self {
        Self::Harvest(error)
    }
}
