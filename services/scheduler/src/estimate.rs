//! What each way of bringing a Source in step would take, found out without changing anything: documents are read, and no resource
//! and no package is asked for.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use catalog::Lookups;
use jiff::Timestamp;
use model::{SetId, SetRecord, Validators};
use resourcesync::{Capability, Entry, Header, Item, Mode as ReadMode};
use serde::Serialize;
use tokio::time::Instant;
use url::Url;
use web::Client;

use crate::decide::{Decision, Known, decide};
use crate::discover::discover;
use crate::entries::baseline_for_changes;
use crate::entry::{Context, Horizon};
use crate::error::HarvestError;
use crate::options::HarvestOptions;
use crate::read::{self, Opened, Part};
use crate::ways;
use crate::weigh::{Cost, Pace, Waits, is_dump_cheaper};

/// The kinds of documents that bring a set in step, in the order in which they are shown.
const KINDS: [Capability; 4] =
    [Capability::ResourceList, Capability::ResourceDump, Capability::ChangeList, Capability::ChangeDump];

/// What each way would take.
#[derive(Debug, Clone, Serialize)]
pub struct Estimate {
    /// Every way that the Source offers.
    pub ways: Vec<WayEstimate>,
    /// How long the Source took to answer, on the mean.
    pub wait: Duration,
    /// Requests made to find that out.
    pub requests: u64,
    /// Documents that could not be read, and why: what they name is in none of the figures.
    pub unread: Vec<(String, String)>,
}

/// One way, and what it would take.
#[derive(Debug, Clone, Serialize)]
pub struct WayEstimate {
    /// The set of resources.
    pub set: SetId,
    /// What is read.
    pub capability: Capability,
    /// Documents read, parts of an index included.
    pub documents: u64,
    /// Resources named by lists, or packages named by dumps.
    pub named: u64,
    /// Those among them that are held, or settled, as far as declarations tell.
    pub held: u64,
    /// What is to be asked for beside the documents.
    #[serde(flatten)]
    pub cost: Cost,
    /// How long that would take; none where not all lengths are declared.
    pub time: Option<Duration>,
    /// Whether `sync` would go this way.
    pub chosen: bool,
}

/// Reads what a Source offers, and compares it with what is held.
///
/// # Errors
/// When the Source offers nothing that can be harvested, or the catalog fails.
pub async fn estimate(
    client: &Client,
    entry: &Url,
    catalog: Option<&Lookups>,
    options: &HarvestOptions,
    now: Timestamp,
) -> Result<Estimate, HarvestError> {
    let horizon = Horizon::at(now);
    let mode = if options.strict { ReadMode::Strict } else { ReadMode::Tolerant };
    let found = discover(client, entry, &horizon.options(mode)).await?;
    let mut known: Vec<(SetId, SetRecord)> = found.sets.clone();
    if let Some(catalog) = catalog {
        for (id, before) in catalog.sets().await? {
            if let Some((_, set)) = known.iter_mut().find(|(set, _)| *set == id) {
                let capabilities = std::mem::take(&mut set.capabilities);
                *set = SetRecord { capabilities, ..before };
            }
        }
    }
    let mut look = Look {
        client,
        catalog,
        options,
        horizon,
        mode,
        waits: Waits::default(),
        requests: found.requests,
        unread: Vec::new(),
    };
    look.unread.extend(found.failures.iter().map(|unread| (unread.url.clone(), unread.why.clone())));
    let mut estimates = Vec::new();
    for (id, set) in &known {
        for kind in KINDS {
            if set.documents(&kind).next().is_some() {
                estimates.push(look.way(id, set, kind).await?);
            }
        }
    }
    let chosen = ways::choose(known.iter().map(|(id, set)| (id, set)), options.mode, options.prefer, false);
    let pace = Pace { wait: look.waits.mean(), at_once: options.jobs_per_lane.get() };
    for way in &mut estimates {
        way.time = way.cost.duration(pace);
        way.chosen = chosen.as_ref().is_some_and(|ways| {
            ways.documents.iter().any(|(set, kind, _)| *set == way.set && *kind == way.capability)
        });
    }
    if options.prefer.is_none() {
        choose_dumps(&mut estimates, pace);
    }
    Ok(Estimate { ways: estimates, wait: pace.wait, requests: look.requests, unread: look.unread })
}

/// Where the list would be read, the dump may bring what it names.
fn choose_dumps(ways: &mut [WayEstimate], pace: Pace) {
    let lists: Vec<(SetId, Cost, u64)> = ways
        .iter()
        .filter(|way| way.chosen && way.capability == Capability::ResourceList)
        .map(|way| (way.set.clone(), way.cost, way.named))
        .collect();
    for (set, list, named) in lists {
        let share = list.requests as f64 / named.max(1) as f64;
        for way in ways.iter_mut().filter(|way| way.set == set && way.capability == Capability::ResourceDump)
        {
            way.chosen = way.cost.requests > 0
                && list.requests >= crate::packages::FEW
                && is_dump_cheaper(way.cost, list, share, pace);
        }
    }
}

/// A look at a Source's documents.
struct Look<'a> {
    client: &'a Client,
    catalog: Option<&'a Lookups>,
    options: &'a HarvestOptions,
    horizon: Horizon,
    mode: ReadMode,
    waits: Waits,
    requests: u64,
    unread: Vec<(String, String)>,
}

impl Look<'_> {
    async fn way(
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
        let mut queue: VecDeque<String> = set.documents(&kind).map(str::to_owned).collect();
        let mut seen: HashSet<String> = queue.iter().cloned().collect();
        while let Some(uri) = queue.pop_front() {
            match self.document(&uri, set, &mut way).await {
                Ok(parts) => queue.extend(parts.into_iter().filter(|part| seen.insert(part.clone()))),
                Err(LookError::Unread(why)) => self.unread.push((uri, why)),
                Err(LookError::Harvest(error)) => return Err(error),
            }
        }
        Ok(way)
    }

    /// Reads one document; gives those that it leads to.
    async fn document(
        &mut self,
        uri: &str,
        set: &SetRecord,
        way: &mut WayEstimate,
    ) -> Result<Vec<String>, LookError> {
        let unread = |error: &dyn std::fmt::Display| LookError::Unread(error.to_string());
        let url = Url::parse(uri).map_err(|error| unread(&error))?;
        let asked_at = Instant::now();
        let opened =
            read::open(self.client, &url, Validators::default(), self.horizon.options(self.mode)).await;
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
        let (mut context, mut is_index, mut parts) = (None, false, Vec::new());
        while let Some(part) = stream.next().await {
            match part {
                Part::Header(header) => {
                    is_index = header.is_index();
                    context = Some(self.context(uri, way, &header));
                }
                Part::Items(items) => {
                    let Some(context) = &context else { continue };
                    let (documents, others): (Vec<Item>, Vec<Item>) =
                        items.into_iter().partition(|item| is_index || context.is_part(item));
                    parts.extend(documents.into_iter().filter_map(|item| match item {
                        Item::Entry(entry) => Some(entry.loc),
                        Item::Bad(_) => None,
                    }));
                    self.count(way, set, context, others).await?;
                }
                Part::End(_) => return Ok(parts),
                Part::Broken(error, _) => return Err(unread(&error)),
            }
        }
        Ok(parts)
    }

    fn context(&self, uri: &str, way: &WayEstimate, header: &Header) -> Context {
        Context {
            document: uri.to_owned(),
            set: way.set.clone(),
            changes: way.capability.tells_changes(),
            at: header.at,
            completed: header.completed,
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

    /// Whether this very version of a package was settled before.
    async fn is_settled(&self, entry: &Entry) -> Result<bool, LookError> {
        let Some(catalog) = self.catalog else { return Ok(false) };
        let known = catalog.package(&entry.loc).await.map_err(HarvestError::from)?;
        Ok(known.is_some_and(|known| crate::packages::is_settled(&known, entry)))
    }
}

impl WayEstimate {
    fn add(&mut self, is_held: bool, length: Option<u64>) {
        if is_held {
            self.held += 1;
            return;
        }
        self.cost.requests += 1;
        self.cost.bytes = self.cost.bytes.zip(length).map(|(all, one)| all + one);
    }
}

/// Why a document says nothing.
enum LookError {
    Unread(String),
    Harvest(HarvestError),
}

impl From<HarvestError> for LookError {
    fn from(error: HarvestError) -> Self {
        Self::Harvest(error)
    }
}
