//! Estimates the cost of each strategy for a Source, without changing anything. It reads documents, and requests no
//! resource and no package.

mod look;

use std::time::Duration;

use catalog::Lookups;
use jiff::Timestamp;
use model::{SetId, SetRecord};
use resourcesync::{Capability, Mode as ReadMode};
use serde::Serialize;
use url::Url;
use web::Client;

use crate::discover::discover;
use crate::entry::Horizon;
use crate::error::HarvestError;
use crate::limits::Spent;
use crate::options::HarvestOptions;
use crate::weigh::{Cost, Pace, Waits, is_dump_cheaper};
use crate::{again, ways};
use look::Look;

/// Kinds of documents that can sync a set, in display order.
const KINDS: [Capability; 4] =
    [Capability::ResourceList, Capability::ResourceDump, Capability::ChangeList, Capability::ChangeDump];

/// Estimates of all strategies.
#[derive(Debug, Clone, Serialize)]
pub struct Estimate {
    /// Every strategy that the Source offers.
    pub ways: Vec<WayEstimate>,
    /// Mean latency of the Source.
    pub wait: Duration,
    /// Requests made for the estimate.
    pub requests: u64,
    /// Documents that could not be read, and why. Their entries are not in the figures.
    pub unread: Vec<(String, String)>,
}

/// Estimate of one strategy.
#[derive(Debug, Clone, Serialize)]
pub struct WayEstimate {
    /// The set of resources.
    pub set: SetId,
    /// Kind of document.
    pub capability: Capability,
    /// Documents read, parts of an index included.
    pub documents: u64,
    /// Resources in lists, or packages in dumps.
    pub named: u64,
    /// Those among them that are stored or settled, as far as declarations tell.
    pub held: u64,
    /// Cost of the requests beside the documents.
    #[serde(flatten)]
    pub cost: Cost,
    /// Estimated duration; none if a length is not declared.
    pub time: Option<Duration>,
    /// Whether `sync` would choose this strategy.
    pub chosen: bool,
}

/// Reads what a Source offers, and compares it with the catalog.
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
        spent: Spent::default(),
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
    let due = known.iter().filter(|(_, set)| again::is_due(set, options, now));
    let due = due.map(|(id, _)| id.clone()).collect();
    let sets = known.iter().map(|(id, set)| (id, set));
    let chosen = ways::choose(sets, options.mode, options.prefer, false, &due);
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

/// Chooses the dump instead of the list if it brings the resources sooner.
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
