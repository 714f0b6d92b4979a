//! Estimates the cost of each strategy for a Source, without changing anything. It reads documents, and requests no
//! resource and no package.

mod documents;
mod lists;

use std::time::Duration;

use catalog::Lookups;
use jiff::Timestamp;
use model::{OaiFormat, SetId, SetRecord};
use planning::{
    Cost, FEW_RESOURCES, HarvestOptions, Horizon, Latencies, Pace, ReadBudget, Selection, is_due,
    is_dump_cheaper, strategy,
};
use resourcesync::{Capability, Mode as ReadMode};
use serde::Serialize;
use url::Url;
use web::Client;

use self::documents::DocumentEstimator;
use crate::error::EstimateError;
use crate::source::discover_source;

/// Kinds of documents that can sync a set, in display order.
const KINDS: [Capability; 4] =
    [Capability::ResourceList, Capability::ResourceDump, Capability::ChangeList, Capability::ChangeDump];

/// Estimates of all strategies.
#[derive(Debug, Clone, Serialize)]
pub struct Estimate {
    /// Every strategy that the Source offers.
    pub strategies: Vec<StrategyEstimate>,
    /// Mean latency of the Source.
    pub latency: Duration,
    /// Requests made for the estimate.
    pub requests: u64,
    /// Documents that could not be read, and why. Their entries are not in the figures.
    pub unread: Vec<(String, String)>,
    /// The metadata formats of an OAI-PMH repository, and what their records name, for people; empty elsewhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<String>,
}

/// Estimate of one strategy.
#[derive(Debug, Clone, Serialize)]
pub struct StrategyEstimate {
    /// The set of resources.
    pub set: SetId,
    /// Kind of document.
    pub capability: Capability,
    /// Documents read, parts of an index included.
    pub documents: u64,
    /// Resources in lists, or packages in dumps.
    pub listed: u64,
    /// Those among them that are stored or settled, as far as declarations tell.
    pub stored: u64,
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
) -> Result<Estimate, EstimateError> {
    let horizon = Horizon::at(now);
    let mode = if options.strict { ReadMode::Strict } else { ReadMode::Tolerant };
    let read = horizon.options(mode);
    let (found, _) =
        discover_source(client, entry, &read, Vec::new(), &options.oai, options.landing_pages).await?;
    let mut known: Vec<(SetId, SetRecord)> = found.sets.clone();
    let mut selection = Selection::of(options, None);
    if let Some(catalog) = catalog {
        selection = Selection::of(options, catalog.last_run().await?.as_ref());
        for (id, before) in catalog.sets().await? {
            if let Some((_, set)) = known.iter_mut().find(|(set, _)| *set == id) {
                let capabilities = std::mem::take(&mut set.capabilities);
                *set = SetRecord { capabilities, pages: set.pages, ..before };
            }
        }
    }
    let mut estimator = DocumentEstimator {
        client,
        catalog,
        options,
        horizon,
        mode,
        latencies: Latencies::default(),
        requests: found.requests,
        unread: Vec::new(),
        budget: ReadBudget::default(),
    };
    estimator.unread.extend(found.failures.iter().map(|unread| (unread.url.clone(), unread.why.clone())));
    let mut estimates = Vec::new();
    for (id, set) in &known {
        if let Some(list) = &set.oai {
            let (lists, requests) = lists::lists(client, id, list).await?;
            estimates.extend(lists);
            estimator.requests += requests;
            continue;
        }
        if set.pages.is_some() {
            let why = "what it costs is known only when its landing pages are read";
            estimator.unread.push((id.to_string(), why.to_owned()));
            continue;
        }
        for kind in KINDS {
            if set.documents(&kind).next().is_some() {
                estimates.push(estimator.strategy(id, set, kind).await?);
            }
        }
    }
    let due = known.iter().filter(|(_, set)| is_due(set, options, now));
    let due = due.map(|(id, _)| id.clone()).collect();
    let sets = known.iter().map(|(id, set)| (id, set));
    let chosen = strategy::choose(sets, options.mode, options.prefer, &selection, &due);
    let pace = Pace { wait: estimator.latencies.mean(), at_once: options.jobs_per_origin.get() };
    for strategy in &mut estimates {
        strategy.time = strategy.cost.duration(pace);
        strategy.chosen = chosen.as_ref().is_some_and(|chosen| {
            chosen.documents.iter().any(|(set, kind, _)| *set == strategy.set && *kind == strategy.capability)
        });
    }
    if options.prefer.is_none() {
        choose_dumps(&mut estimates, pace);
    }
    Ok(Estimate {
        strategies: estimates,
        latency: pace.wait,
        requests: estimator.requests,
        unread: estimator.unread,
        formats: found.oai.iter().flat_map(|repository| &repository.formats).map(OaiFormat::told).collect(),
    })
}

/// Chooses the dump instead of the list if it brings the resources sooner.
fn choose_dumps(strategies: &mut [StrategyEstimate], pace: Pace) {
    let lists: Vec<(SetId, Cost, u64)> = strategies
        .iter()
        .filter(|strategy| strategy.chosen && strategy.capability == Capability::ResourceList)
        .map(|strategy| (strategy.set.clone(), strategy.cost, strategy.listed))
        .collect();
    for (set, list, listed) in lists {
        let share = list.requests as f64 / listed.max(1) as f64;
        for strategy in strategies
            .iter_mut()
            .filter(|strategy| strategy.set == set && strategy.capability == Capability::ResourceDump)
        {
            strategy.chosen = strategy.cost.requests > 0
                && list.requests >= FEW_RESOURCES
                && is_dump_cheaper(strategy.cost, list, share, pace);
        }
    }
}

impl StrategyEstimate {
    fn add(&mut self, is_stored: bool, length: Option<u64>) {
        if is_stored {
            self.stored += 1;
            return;
        }
        self.cost.requests += 1;
        self.cost.bytes = self.cost.bytes.zip(length).map(|(all, one)| all + one);
    }
}
