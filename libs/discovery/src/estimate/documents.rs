//! Reads a Source's documents for an estimate: what they list, and how much of it is stored.

use std::collections::{HashSet, VecDeque};

use catalog::Lookups;
use documents::{DocumentStream, Part};
use model::{SetId, SetRecord};
use planning::{
    Cost, CurrentState, Decision, EntryContext, HarvestOptions, Horizon, Latencies, ReadBudget, decide,
    is_settled_version, strategy,
};
use resourcesync::{Capability, Entry, Header, Item, Mode as ReadMode};
use tokio::time::Instant;
use url::Url;
use web::Client;

use super::StrategyEstimate;
use crate::error::EstimateError;

/// Reader of a Source's documents for an estimate.
pub(crate) struct DocumentEstimator<'a> {
    pub(crate) client: &'a Client,
    pub(crate) catalog: Option<&'a Lookups>,
    pub(crate) options: &'a HarvestOptions,
    pub(crate) horizon: Horizon,
    pub(crate) mode: ReadMode,
    pub(crate) latencies: Latencies,
    pub(crate) requests: u64,
    pub(crate) unread: Vec<(String, String)>,
    pub(crate) budget: ReadBudget,
}

impl DocumentEstimator<'_> {
    /// Estimates a set's documents of one kind.
    pub(crate) async fn strategy(
        &mut self,
        id: &SetId,
        set: &SetRecord,
        kind: Capability,
    ) -> Result<StrategyEstimate, EstimateError> {
        let mut estimate = StrategyEstimate {
            set: id.clone(),
            capability: kind.clone(),
            documents: 0,
            listed: 0,
            stored: 0,
            cost: Cost { requests: 0, bytes: Some(0) },
            time: None,
            chosen: false,
        };
        // Each with the number of indexes above it.
        let mut queue: VecDeque<(u32, String)> =
            set.documents(&kind).map(|uri| (0, uri.to_owned())).collect();
        let mut seen: HashSet<String> = queue.iter().map(|(_, uri)| uri.clone()).collect();
        while let Some((above, uri)) = queue.pop_front() {
            match self.document(&uri, above, set, &mut estimate).await {
                Ok(parts) => {
                    let parts = parts.into_iter().filter(|part| seen.insert(part.clone()));
                    let before = queue.len();
                    queue.extend(parts.map(|part| (above + 1, part)));
                    self.budget.queue(queue.len() - before);
                }
                Err(DocumentFailure::Unread(why)) => self.unread.push((uri, why)),
                Err(DocumentFailure::Failed(error)) => return Err(error),
            }
        }
        Ok(estimate)
    }

    /// Reads one document; returns the documents that it leads to.
    async fn document(
        &mut self,
        uri: &str,
        above: u32,
        set: &SetRecord,
        estimate: &mut StrategyEstimate,
    ) -> Result<Vec<String>, DocumentFailure> {
        if let Some(met) = self.budget.begin_document(&self.options.limits) {
            return Err(DocumentFailure::Unread(met.to_string()));
        }
        let unread = |error: &dyn std::fmt::Display| DocumentFailure::Unread(error.to_string());
        let url = Url::parse(uri).map_err(|error| unread(&error))?;
        let asked_at = Instant::now();
        let options = self.budget.options(&self.options.limits, self.horizon.options(self.mode));
        let (requests, opened) = documents::open_anew(self.client, &url, options).await;
        self.latencies.add(asked_at.elapsed());
        self.requests += requests;
        let mut stream = opened.map_err(|error| unread(&error))?;
        estimate.documents += 1;
        let parts = self.parts(uri, above, set, estimate, &mut stream).await;
        self.budget.end_document(stream.bytes());
        parts
    }

    /// Reads a document to its end; returns the documents that it leads to.
    async fn parts(
        &mut self,
        uri: &str,
        above: u32,
        set: &SetRecord,
        estimate: &mut StrategyEstimate,
        stream: &mut DocumentStream,
    ) -> Result<Vec<String>, DocumentFailure> {
        let mut context = None;
        let mut is_index = false;
        let mut parts = Vec::new();
        while let Some(part) = stream.next().await {
            match part {
                Part::Header(header) => {
                    is_index = header.is_index();
                    context = Some(self.context(uri, estimate, &header));
                }
                Part::Items(mut items) => {
                    let Some(context) = &context else { continue };
                    let met = self.budget.take_entries(&self.options.limits, &mut items);
                    let (documents, others): (Vec<Item>, Vec<Item>) =
                        items.into_iter().partition(|item| is_index || context.is_part(item));
                    parts.extend(documents.into_iter().filter_map(|item| match item {
                        Item::Entry(entry) => Some(entry.loc),
                        Item::Bad(_) => None,
                    }));
                    self.count(estimate, set, context, others).await?;
                    let (_, met_by_parts) = self.budget.room_for(&self.options.limits, above, parts.len());
                    if let Some(met) = met_by_parts.or(met) {
                        return Err(DocumentFailure::Unread(met.to_string()));
                    }
                }
                Part::End(_) => return Ok(parts),
                Part::Broken(error, _) => {
                    return Err(DocumentFailure::Unread(error.message(&self.options.limits)));
                }
            }
        }
        Ok(parts)
    }

    fn context(&self, uri: &str, estimate: &StrategyEstimate, header: &Header) -> EntryContext {
        EntryContext {
            document: uri.into(),
            set: estimate.set.clone(),
            changes: estimate.capability.tells_changes(),
            at: header.at,
            completed: header.completed,
            interval: self.horizon.interval(header.from.as_ref(), header.until.as_ref()),
            kind: header.capability.clone(),
            horizon: self.horizon,
        }
    }

    async fn count(
        &self,
        estimate: &mut StrategyEstimate,
        set: &SetRecord,
        context: &EntryContext,
        items: Vec<Item>,
    ) -> Result<(), DocumentFailure> {
        let is_dump = matches!(estimate.capability, Capability::ResourceDump | Capability::ChangeDump);
        let mut entries = Vec::with_capacity(items.len());
        for item in items {
            let Item::Entry(entry) = item else { continue };
            if is_dump || context.is_package(&entry) {
                estimate.listed += 1;
                let is_settled = self.is_settled(&entry).await?;
                estimate.add(is_settled, entry.metadata.length);
            } else if self.options.filter.takes(&entry.loc) {
                let entry = context.read(*entry).ok();
                if entry.as_ref().is_none_or(|entry| self.options.filter.admits(entry)) {
                    estimate.listed += 1;
                    entries.extend(entry);
                }
            }
        }
        let uris: Vec<_> = entries.iter().map(|planned| planned.uri.clone()).collect();
        let records = match self.catalog {
            Some(catalog) => catalog.resources_many(&uris).await.map_err(EstimateError::from)?,
            None => vec![None; uris.len()],
        };
        for (planned, record) in entries.iter().zip(&records) {
            let known = CurrentState {
                record: record.as_ref(),
                pending: None,
                baseline_at: strategy::baseline_for_changes(set),
            };
            let decision = decide(&planned.declaration, &planned.listing, planned.moment, known);
            let is_asked_for = matches!(decision, Decision::Fetch | Decision::Ask);
            estimate.add(!is_asked_for, planned.declaration.length);
        }
        Ok(())
    }

    /// Whether this version of a package was settled before.
    async fn is_settled(&self, entry: &Entry) -> Result<bool, DocumentFailure> {
        let Some(catalog) = self.catalog else { return Ok(false) };
        let known = catalog.package(&entry.loc).await.map_err(EstimateError::from)?;
        Ok(known.is_some_and(|known| is_settled_version(&known, entry)))
    }
}

/// Why a document could not be read.
enum DocumentFailure {
    Unread(String),
    Failed(EstimateError),
}

impl From<EstimateError> for DocumentFailure {
    fn from(error: EstimateError) -> Self {
        Self::Failed(error)
    }
}
