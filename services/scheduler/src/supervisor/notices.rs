//! Listens for what hubs deliver to idle Sources that are subscribed to.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, BusError, Filter};
use model::SourceId;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::context::SchedulerContext;

/// How long a check for deliveries waits for one.
const LONGEST_LOOK: Duration = Duration::from_secs(30);
/// Wait after the bus could not be asked.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);
/// Sources with deliveries that wait for the supervisor.
const BUFFERED: usize = 64;

/// One task for each idle Source that is subscribed to.
pub(super) struct Notices {
    bus: Arc<dyn Bus>,
    listeners: HashMap<SourceId, AbortOnDropHandle<()>>,
    found: mpsc::Receiver<SourceId>,
    finds: mpsc::Sender<SourceId>,
}

impl Notices {
    pub(super) fn new(context: &SchedulerContext) -> Self {
        let (finds, found) = mpsc::channel(BUFFERED);
        Self { bus: Arc::clone(&context.bus), listeners: HashMap::new(), found, finds }
    }

    /// Listens for a Source; does not check before `held_back` is over.
    pub(super) fn listen(&mut self, source: &SourceId, held_back: Duration) {
        if self.listeners.contains_key(source) {
            return;
        }
        let listening = listen(Arc::clone(&self.bus), source.clone(), held_back, self.finds.clone());
        self.listeners.insert(source.clone(), AbortOnDropHandle::new(tokio::spawn(listening)));
    }

    /// Listens no more.
    pub(super) fn end(&mut self, source: &SourceId) {
        self.listeners.remove(source);
    }

    /// Waits for a Source for which something was delivered.
    pub(super) async fn next(&mut self) -> SourceId {
        match self.found.recv().await {
            Some(source) => source,
            // `finds` lives as long as this.
            None => std::future::pending().await,
        }
    }
}

/// Waits until a hub has delivered a notification. It stays in the queue: the run that it starts takes it.
async fn listen(bus: Arc<dyn Bus>, source: SourceId, held_back: Duration, finds: mpsc::Sender<SourceId>) {
    tokio::time::sleep(held_back).await;
    loop {
        match look(&*bus, &source).await {
            Ok(true) => break,
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(source.id = %source, %error, "what hubs deliver cannot be looked for");
                tokio::time::sleep(AFTER_TROUBLE).await;
            }
        }
    }
    // Without a receiver the supervisor has stopped.
    let _ = finds.send(source).await;
}

async fn look(bus: &dyn Bus, source: &SourceId) -> Result<bool, BusError> {
    let filter = Filter::Notices(source.clone());
    match bus.pull(&filter, 1, LONGEST_LOOK).await {
        Err(BusError::NotOpen { .. }) => {
            bus.open(harvest::notification_consumer(filter)).await?;
            Ok(false)
        }
        // Dropped without acknowledgement, it is delivered again at once.
        found => Ok(!found?.is_empty()),
    }
}
