//! Estimates that the operator requested: reads a Source's documents within its origins' limits, and reports the cost
//! of each strategy. It harvests nothing, and writes nothing of the Source.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use catalog::{CatalogError, CatalogReader};
use control::{
    AskedBy, Member, MemberId, Plan, PlanEstimate, PlanState, PlanUnread, PlanWay, Role, RunSpec, SourceSpec,
    Versioned, WatchCache,
};
use discovery::{Estimate, StrategyEstimate, estimate};
use futures::FutureExt as _;
use model::{RunId, RunMode};
use store::Key;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::context::SchedulerContext;
use crate::{run, run_options};

/// Estimates that one scheduler makes at a time.
const AT_A_TIME: usize = 2;
/// Maximum duration of an estimate.
const LONGEST: Duration = Duration::from_secs(600);
/// Wait after the control store could not be written.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);
/// Maximum strategies in an estimate, so that it fits its record.
const MOST_WAYS: usize = 50;
const MOST_UNREAD: usize = 20;
const MOST_FORMATS: usize = 50;
const LONGEST_WHY: usize = 2_000;

/// Makes the waiting estimates, until `stop`.
pub(crate) async fn make(
    context: SchedulerContext,
    mut plans: WatchCache<Plan>,
    mut members: WatchCache<Member>,
    stop: CancellationToken,
) {
    let mut making = JoinSet::new();
    while !stop.is_cancelled() {
        plans.mark_seen();
        members.mark_seen();
        let there = members.of(Role::Scheduler);
        let is_there = |member: &MemberId| *member == context.me || there.contains(member);
        let waiting = plans.all().into_iter().filter(|plan| plan.waits(is_there));
        let mut trouble = false;
        for plan in waiting.take(AT_A_TIME.saturating_sub(making.len())) {
            match context.control.plans().take(&plan, &context.me, context.clock.now()).await {
                Ok(Some(taken)) => {
                    making.spawn(make_one(context.clone(), taken));
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(plan.id = %plan.id, %error, "a plan cannot be taken now");
                    trouble = true;
                }
            }
        }
        tokio::select! {
            () = plans.changed() => {}
            () = members.changed() => {}
            Some(_) = making.join_next() => {}
            () = sleep(AFTER_TROUBLE), if trouble => {}
            () = stop.cancelled() => {}
        }
    }
    // Unfinished estimates pass to another scheduler as soon as this one is gone.
}

/// Makes an estimate, and records its result.
async fn make_one(context: SchedulerContext, plan: Versioned<Plan>) {
    tracing::info!(plan.id = %plan.id, source.entry = %plan.source.entry, "a plan is made");
    let made = AssertUnwindSafe(timeout(LONGEST, estimate_of(&context, &plan.source))).catch_unwind();
    let now = || context.clock.now();
    let failed = |why: String| PlanState::Failed { why: cut(why), at: now() };
    let state = match made.await {
        Ok(Ok(Ok(estimate))) => PlanState::Done { estimate: plan_estimate(estimate), at: now() },
        Ok(Ok(Err(error))) => failed(error.to_string()),
        Ok(Err(_)) => failed(format!(
            "its documents could not be read within {} minutes; `thresher plan` on a machine of your own takes its time",
            LONGEST.as_secs() / 60
        )),
        Err(_) => failed("it came upon a mistake in Thresher; the log of the scheduler says more".to_owned()),
    };
    while let Err(error) = context.control.plans().end(&plan, state.clone()).await {
        tracing::warn!(plan.id = %plan.id, %error, "how a plan ended cannot be told now");
        sleep(AFTER_TROUBLE).await;
    }
}

/// Estimates the cost of each strategy.
async fn estimate_of(context: &SchedulerContext, source: &SourceSpec) -> anyhow::Result<Estimate> {
    let now = context.clock.now();
    // A fictitious run, only to derive the options.
    let spec = RunSpec {
        id: RunId::fresh(),
        source: source.id.clone(),
        mode: RunMode::Auto,
        asked_by: AskedBy::Operator,
        asked_at: now,
        allow_deletes: false,
        repair: false,
        task: None,
    };
    let options = run::with_neighbours(context, source, run_options::options(source, &spec)?);
    let client = run::client(context, &options)?;
    let path = Key::Catalog(source.id.clone()).to_string();
    let opening = CatalogReader::open(context.store.object_store(), &path, context.catalogs.clone());
    let catalog = match Box::pin(opening).await {
        Ok(catalog) => Some(catalog),
        Err(CatalogError::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(Box::pin(estimate(&client, &source.entry, catalog.as_deref(), &options, now)).await?)
}

fn plan_estimate(estimate: Estimate) -> PlanEstimate {
    let millis = |time: Duration| time.as_millis().try_into().unwrap_or(u64::MAX);
    let way = |way: StrategyEstimate| PlanWay {
        set: way.set,
        capability: way.capability.to_string(),
        documents: way.documents,
        named: way.listed,
        held: way.stored,
        requests: way.cost.requests,
        bytes: way.cost.bytes,
        time_ms: way.time.map(millis),
        chosen: way.chosen,
    };
    let Estimate { strategies: ways, latency: wait, requests, unread, formats } = estimate;
    PlanEstimate {
        ways_left_out: ways.len().saturating_sub(MOST_WAYS) as u64,
        ways: ways.into_iter().take(MOST_WAYS).map(way).collect(),
        wait_ms: millis(wait),
        requests,
        unread_left_out: unread.len().saturating_sub(MOST_UNREAD) as u64,
        unread: unread
            .into_iter()
            .take(MOST_UNREAD)
            .map(|(uri, why)| PlanUnread { uri, why: cut(why) })
            .collect(),
        formats: formats.into_iter().take(MOST_FORMATS).map(cut).collect(),
    }
}

/// Truncates a text.
fn cut(text: String) -> String {
    match text.char_indices().nth(LONGEST_WHY) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use model::SetId;
    use resourcesync::Capability;

    use super::*;
    use planning::Cost;

    #[test]
    fn what_is_told_is_bounded_and_says_what_is_left_out() {
        let way = StrategyEstimate {
            set: SetId::new("https://example.org/"),
            capability: Capability::ResourceList,
            documents: 1,
            listed: 2,
            stored: 0,
            cost: Cost { requests: 2, bytes: None },
            time: Some(Duration::from_millis(1_500)),
            chosen: true,
        };
        let unread = ("https://example.org/list".to_owned(), "é".repeat(LONGEST_WHY + 1));
        let estimate = Estimate {
            strategies: vec![way; 60],
            latency: Duration::from_millis(7),
            requests: 3,
            unread: vec![unread; 21],
            formats: vec!["mets (files with digests)".to_owned(); 60],
        };
        let told = plan_estimate(estimate);
        assert_eq!(
            (told.ways.len(), told.ways_left_out, told.unread.len(), told.unread_left_out),
            (50, 10, 20, 1)
        );
        assert_eq!(
            (told.ways[0].time_ms, told.ways[0].capability.as_str(), told.wait_ms),
            (Some(1_500), "resourcelist", 7)
        );
        assert_eq!(told.formats.len(), 50);
        assert_eq!(told.unread[0].why.chars().count(), LONGEST_WHY + 1);
    }
}
