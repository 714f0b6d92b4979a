//! Assigns Sources to this scheduler, as schedulers and Sources come and go.

use std::collections::BTreeMap;

use control::{Member, Role, View, assign};
use model::SourceId;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Crew;
use super::steward::steward;

/// Runs one steward for each Source of this scheduler's share, until `stop`. Then stops all of them, and waits for
/// that.
pub(super) async fn look_after(crew: Crew, mut members: View<Member>, stop: CancellationToken) {
    let mut sources = crew.sources.clone();
    let mut stewards: BTreeMap<SourceId, CancellationToken> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    // Stewards that were told to stop and still run.
    while !stop.is_cancelled() {
        let share = share(&crew, &members);
        stewards.retain(|source, keep| {
            let stays = share.contains(source) && !keep.is_cancelled();
            if !stays {
                keep.cancel();
            }
            stays
        });
        for source in share {
            stewards.entry(source).or_insert_with_key(|source| {
                let keep = stop.child_token();
                let (crew, source, kept) = (crew.clone(), source.clone(), keep.clone());
                // If a steward dies, this is noticed, and its Source gets a new one.
                let guard = keep.clone().drop_guard();
                tasks.spawn(async move {
                    let _missed = guard;
                    steward(crew, source, kept).await;
                });
                keep
            });
        }
        crew.metrics.sources(stewards.len());
        tokio::select! {
            () = members.changed() => {}
            () = sources.changed() => {}
            Some(ended) = tasks.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "the steward of a Source died; another one takes its place");
                }
            }
            () = stop.cancelled() => {}
        }
    }
    while tasks.join_next().await.is_some() {}
}

/// This scheduler's share of the Sources, among the live schedulers.
fn share(crew: &Crew, members: &View<Member>) -> Vec<SourceId> {
    let mut there = members.of(Role::Scheduler);
    if !there.contains(&crew.me) {
        // Other schedulers may see this one late, and so may its own view.
        there.push(crew.me.clone());
    }
    let all = crew.sources.all();
    let ours = all.iter().filter(|source| assign(&there, &source.id) == Some(&crew.me));
    ours.map(|source| source.id.clone()).collect()
}
