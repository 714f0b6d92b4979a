//! Assigns Sources to this scheduler, as schedulers and Sources come and go.

use std::collections::BTreeMap;

use control::{Member, Role, WatchCache, assign};
use model::SourceId;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::context::SchedulerContext;
use crate::source_task::source_task;

/// Runs one source task for each Source of this scheduler's share, until `stop`. Then stops all of them, and waits for
/// that.
pub(crate) async fn look_after(
    context: SchedulerContext,
    mut members: WatchCache<Member>,
    stop: CancellationToken,
) {
    let mut sources = context.sources.clone();
    let mut tasks_by_source: BTreeMap<SourceId, CancellationToken> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    // Source tasks that were told to stop and still run.
    while !stop.is_cancelled() {
        let share = share(&context, &members);
        tasks_by_source.retain(|source, keep| {
            let stays = share.contains(source) && !keep.is_cancelled();
            if !stays {
                keep.cancel();
            }
            stays
        });
        for source in share {
            tasks_by_source.entry(source).or_insert_with_key(|source| {
                let keep = stop.child_token();
                let context = context.clone();
                let source = source.clone();
                let kept = keep.clone();
                // If a source task dies, this is noticed, and its Source gets a new one.
                let guard = keep.clone().drop_guard();
                tasks.spawn(async move {
                    let _missed = guard;
                    source_task(context, source, kept).await;
                });
                keep
            });
        }
        context.metrics.sources(tasks_by_source.len());
        tokio::select! {
            () = members.changed() => {}
            () = sources.changed() => {}
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "the source task of a Source died; another one takes its place");
                }
            }
            () = stop.cancelled() => {}
        }
    }
    while tasks.join_next().await.is_some() {}
}

/// This scheduler's share of the Sources, among the live schedulers.
fn share(context: &SchedulerContext, members: &WatchCache<Member>) -> Vec<SourceId> {
    let mut there = members.of(Role::Scheduler);
    if !there.contains(&context.me) {
        // Other schedulers may see this one late, and so may its own view.
        there.push(context.me.clone());
    }
    let all = context.sources.all();
    let ours = all.iter().filter(|source| assign(&there, &source.id) == Some(&context.me));
    ours.map(|source| source.id.clone()).collect()
}
