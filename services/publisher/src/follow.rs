//! Follows the catalog: publishes when it has changes.

use std::time::Duration;

use model::{Clock as _, SystemClock};
use publish::{PublishError, Published, Seen};
use tokio_util::sync::CancellationToken;

use crate::shared::Shared;

/// How often the catalog is asked for changes.
const EVERY: Duration = Duration::from_secs(1);
/// The longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// After a publication, how many times as long as it took there is none: changes that come fast are told together.
const REST: u32 = 4;
/// Without changes, how often old files are looked for that nothing names any more.
const TIDY_EVERY: Duration = Duration::from_secs(3_600);

/// Publishes what the catalog has by now.
pub(crate) async fn publish(shared: &Shared) -> Result<Published, PublishError> {
    let mut see = |seen: Seen<'_>| match seen {
        Seen::Damaged(uri, error) => {
            tracing::warn!(resource = uri.as_str(), %error, "a resource is left out: its bytes are damaged");
        }
        Seen::Part(resources) => tracing::info!(resources, "a part of the Resource List is complete"),
    };
    let catalog = shared.catalog().await;
    shared.publication().run(&catalog, SystemClock.now(), &mut see).await
}

/// Publishes each change, until `stop`.
pub(crate) async fn follow(shared: Shared, stop: CancellationToken) {
    let mut published = None;
    let mut pause = EVERY;
    let mut tidied = tokio::time::Instant::now();
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
        let begun = tokio::time::Instant::now();
        let is_due = tidied.elapsed() >= TIDY_EVERY;
        match look(&shared, published.filter(|_| !is_due)).await {
            Ok(next_change) => {
                if published != Some(next_change) || is_due {
                    tidied = tokio::time::Instant::now();
                }
                published = Some(next_change);
                pause = EVERY.max(begun.elapsed() * REST);
            }
            Err(error) => {
                pause = (pause * 2).min(LONGEST_PAUSE);
                tracing::error!(%error, pause_seconds = pause.as_secs(), "changes cannot be published now");
                if let Err(error) = shared.open_again().await {
                    tracing::error!(%error, "the catalog cannot be opened again");
                }
            }
        }
    }
}

/// Publishes if the catalog has other changes than `published`; returns the number of its next change.
async fn look(shared: &Shared, published: Option<u64>) -> Result<u64, PublishError> {
    let next_change = shared.catalog().await.next_change().await?;
    if published == Some(next_change) {
        return Ok(next_change);
    }
    let done = publish(shared).await?;
    if done.changes > 0 {
        tracing::info!(changes = done.changes, documents = done.documents, "changes are published");
    }
    Ok(next_change)
}
