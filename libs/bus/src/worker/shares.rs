//! Limits how many messages of one Source a worker handles at a time.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use model::SourceId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::HandlerResult;
use crate::Message;

type GiveBack = Arc<dyn Fn(Message) -> BoxFuture<'static, HandlerResult> + Send + Sync>;

/// The limit of one Source's messages in work, so that slow Sources leave capacity to others. Cheap to clone; clones
/// share the limit.
#[derive(Clone)]
pub struct Shares {
    each: usize,
    patience: Duration,
    give_back: GiveBack,
    held: Arc<Mutex<HashMap<SourceId, Arc<Semaphore>>>>,
}

impl Shares {
    /// At most `each` messages of one Source are in work at a time. A message that has waited `patience` for its share
    /// goes to `give_back` instead of the handler. It takes a slot of its queue that other messages may need.
    pub fn new<G, F>(each: usize, patience: Duration, give_back: G) -> Self
    where
        G: Fn(Message) -> F + Send + Sync + 'static,
        F: Future<Output = HandlerResult> + Send + 'static,
    {
        let give_back: GiveBack = Arc::new(move |message| give_back(message).boxed());
        Self { each: each.clamp(1, Semaphore::MAX_PERMITS), patience, give_back, held: Arc::default() }
    }

    /// Acquires a part of the Source's share, held until it is dropped. None if none was free in time.
    pub(super) async fn take(&self, source: &SourceId) -> Option<OwnedSemaphorePermit> {
        let share = self.share(source);
        // The semaphore is never closed.
        tokio::time::timeout(self.patience, share.acquire_owned()).await.ok()?.ok()
    }

    /// Handles a message that got no share.
    pub(super) async fn give_back(&self, message: Message) -> HandlerResult {
        (self.give_back)(message).await
    }

    fn share(&self, source: &SourceId) -> Arc<Semaphore> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        // A share without other references is unused, because every acquired part and every waiting task holds one.
        held.retain(|other, share| other == source || Arc::strong_count(share) > 1);
        Arc::clone(held.entry(source.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.each))))
    }
}

impl fmt::Debug for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { each, patience, .. } = self;
        f.debug_struct("Shares").field("each", each).field("patience", patience).finish_non_exhaustive()
    }
}
