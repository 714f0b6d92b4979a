//! What the next look for changes waits for.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::shared::{OpenRecords, Shared};

/// Without changes, how often old files are looked for that nothing names any more.
pub(crate) const TIDY_EVERY: Duration = Duration::from_secs(3_600);

/// What the next look waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wait {
    /// News. It is not looked for them before this time has passed.
    ForNews(Duration),
    /// The end of a pause.
    Pause(Duration),
}

impl Wait {
    /// The time that passes in any case, if it is looked after each `every`.
    pub(crate) fn least(self, every: Duration) -> Duration {
        match self {
            Self::ForNews(rest) => rest.max(every),
            Self::Pause(pause) => pause,
        }
    }

    /// Waits until it is over. Changes of a directory are heard of.
    pub(crate) async fn over(self, shared: &Shared, every: Duration) {
        match (self, shared.records()) {
            (Self::ForNews(rest), OpenRecords::Files(files)) => {
                // A look is due in any case after some time, since it also removes old files.
                let _ = timeout(TIDY_EVERY.max(rest), files.due(rest, every)).await;
            }
            (wait, _) => sleep(wait.least(every)).await,
        }
    }
}
