//! Follows the catalog, or the directory: publishes what has changed.

use std::sync::Arc;
use std::time::Duration;

use publish::files::{Scanned, Unheard};
use publish::{PublishError, Published, Seen, Takedown};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::news::News;
use crate::shared::{EVERY_FOR_HUBS, OpenRecords, Shared};
use crate::wait::{TIDY_EVERY, Wait};

/// How often the catalog is asked for changes.
const EVERY: Duration = Duration::from_secs(1);
/// The longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How many times as long as it took to tell changes there is no look: those that come fast are told together. A new
/// Resource List may take minutes; changes are told meanwhile, and soon after.
const REST_PER_TELLING: u32 = 4;
/// There is no look for as long as the last one took, up to this time: it may have made a Resource List, and changes
/// that come meanwhile share the next one.
const LONGEST_REST_FOR_ALL: Duration = Duration::from_secs(10);
/// When the first look is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    /// At once: what was published by an earlier process is served meanwhile.
    Now,
    /// After the usual pause: it was published a moment ago.
    Later,
}

/// What came of a look.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Found {
    /// The number of the next change of a catalog. A directory has no such number: only a scan tells.
    pub(crate) next_change: Option<u64>,
    /// The changes that were told.
    pub(crate) changes: u64,
    /// How long it took until they were told.
    pub(crate) until_told: Duration,
    /// How long all of it took.
    pub(crate) in_all: Duration,
}

impl Found {
    /// Nothing is new, after a look of this time.
    fn nothing(next_change: Option<u64>, took: Duration) -> Self {
        Self { next_change, changes: 0, until_told: took, in_all: took }
    }
}

/// How long there is no look after one that took so long until changes were told, and so long in all.
pub(crate) fn rest_after_look(until_told: Duration, in_all: Duration) -> Duration {
    until_told.saturating_mul(REST_PER_TELLING).max(in_all.min(LONGEST_REST_FOR_ALL))
}

/// Publishes what there is by now.
pub(crate) async fn publish(shared: &Shared) -> Result<Published, PublishError> {
    let mut see = |seen: Seen<'_>| match seen {
        Seen::Damaged(uri, error) => {
            tracing::warn!(resource = uri.as_str(), %error, "a resource is left out: its bytes cannot be taken");
        }
        Seen::Scanned(scanned) => {
            shared.metrics().scanned(scanned);
            tell_scan(scanned);
        }
        Seen::Part(resources) => tracing::info!(resources, "a part of the Resource List is complete"),
        Seen::Told(changes) => tracing::info!(changes, "changes are published"),
    };
    shared.publish(&mut see).await
}

/// Tells the operator of a scan of a directory.
fn tell_scan(scanned: &Scanned) {
    let Scanned { files, read, problems, looks, watched, unheard, .. } = scanned;
    let failures = problems.failures();
    match looks {
        None => tracing::info!(files, read, failures, watched, "the directory is scanned"),
        Some(looks) => {
            tracing::info!(files, looks, read, failures, "what changed in the directory is scanned")
        }
    }
    for (problem, count, first) in problems.iter().filter(|(problem, ..)| !problem.is_rule()) {
        let (name, first) = (problem.as_str(), first.first().map(String::as_str));
        tracing::warn!(problem = name, count, first, "files are not published: {problem}");
    }
    match unheard {
        None => {}
        Some(why @ Unheard::NoKernel) => tracing::info!("changes are not heard of: {why}"),
        Some(why) if why.is_passing() => {
            tracing::warn!("changes were not heard of, so the whole directory is scanned: {why}");
        }
        Some(why) => tracing::error!(
            "changes are not heard of, so the whole directory is scanned after each --rescan: {why}"
        ),
    }
}

/// Publishes each change, and what is withdrawn, until `stop`. A directory is scanned again after `rescan`, and when
/// changes are heard of.
pub(crate) async fn follow(
    shared: Shared,
    mut takedowns: Option<watch::Receiver<Takedown>>,
    first: First,
    rescan: Duration,
    stop: CancellationToken,
) {
    let mut published = None;
    let every = match shared.records() {
        OpenRecords::Harvest(harvest) if harvest.store().directory().is_some() && shared.has_hubs() => {
            EVERY_FOR_HUBS
        }
        OpenRecords::Harvest(_) => EVERY,
        OpenRecords::Files(_) => rescan,
    };
    let mut news = News::default();
    let mut wait = match first {
        First::Now => Wait::Pause(Duration::ZERO),
        First::Later => Wait::ForNews(Duration::ZERO),
    };
    let mut tidied = Instant::now();
    loop {
        // What is withdrawn is no change of the catalog, and waits for no scan of a directory.
        let is_withdrawn = tokio::select! {
            () = wait.over(&shared, every) => false,
            () = changed(&mut takedowns) => true,
            () = stop.cancelled() => return,
        };
        // Nor is damage that readers met.
        let is_damaged = shared.take_damage();
        let is_due = tidied.elapsed() >= TIDY_EVERY || is_withdrawn || is_damaged;
        if is_due {
            // The log of a harvest that was removed and began again has lower numbers.
            news = News::default();
        }
        // It may be dropped: the next process continues.
        let looked = tokio::select! {
            looked = look_for_news(&shared, &mut news, published.filter(|_| !is_due)) => looked,
            () = stop.cancelled() => return,
        };
        match looked {
            Ok(Found { next_change, until_told, in_all, .. }) => {
                if published != next_change || is_due {
                    tidied = Instant::now();
                }
                published = next_change;
                wait = Wait::ForNews(rest_after_look(until_told, in_all));
            }
            Err(error) => {
                published = None;
                let pause = (wait.least(every).max(every) * 2).min(LONGEST_PAUSE.max(every));
                wait = Wait::Pause(pause);
                tracing::error!(%error, pause_seconds = pause.as_secs(), "changes cannot be published now");
            }
        }
    }
}

/// Publishes if there may be other changes than `published`. Without news, a harvest costs one request to its store.
async fn look_for_news(
    shared: &Shared,
    news: &mut News,
    published: Option<u64>,
) -> Result<Found, PublishError> {
    let OpenRecords::Harvest(harvest) = shared.records() else { return look(shared, published).await };
    let begun = Instant::now();
    if !news.are_there(harvest).await.map_err(Arc::new)? && published.is_some() {
        return Ok(Found::nothing(published, begun.elapsed()));
    }
    let found = look(shared, published).await?;
    news.looked(harvest).await;
    Ok(found)
}

/// Waits until the list of what is withdrawn changes; for ever without one.
pub(crate) async fn changed(takedowns: &mut Option<watch::Receiver<Takedown>>) {
    if let Some(list) = takedowns
        && list.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Publishes if the catalog has other changes than `published`.
pub(crate) async fn look(shared: &Shared, published: Option<u64>) -> Result<Found, PublishError> {
    let begun = Instant::now();
    let next_change = match shared.records() {
        OpenRecords::Harvest(harvest) => Some(harvest.catalog().await?.next_change().await?),
        OpenRecords::Files(_) => None,
    };
    if published.is_some() && published == next_change {
        return Ok(Found::nothing(next_change, begun.elapsed()));
    }
    let opening = begun.elapsed();
    let done = publish(shared).await?;
    let until_told = opening + done.telling;
    Ok(Found { next_change, changes: done.changes, until_told, in_all: begun.elapsed() })
}
