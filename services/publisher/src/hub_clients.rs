//! What all publications of a server tell the hubs of others by: a client for each hub, and a few turns at it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::Origin;
use tokio::sync::Semaphore;
use url::Url;
use web::{AddressPolicy, Client, WebConfig, WebError};

/// Publications that tell one hub at the same time: each has some thousand entries in memory.
pub(crate) const AT_ONE_HUB: usize = 4;

/// The hubs of others. The operator names them, so they are few. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct HubClients(Arc<Mutex<HashMap<Url, Arc<HubClient>>>>);

/// What one hub is told by.
pub(crate) struct HubClient {
    pub(crate) client: Client,
    /// Held while changes are read and sent.
    pub(crate) turns: Semaphore,
}

impl HubClients {
    /// What a hub is told by, whichever publication does.
    ///
    /// # Errors
    /// When no request can be made from here.
    pub(crate) fn of(&self, hub: &Url) -> Result<Arc<HubClient>, WebError> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(hub) {
            return Ok(Arc::clone(known));
        }
        let addresses = AddressPolicy::public_unless(hub);
        let config = WebConfig {
            addresses,
            entry: Origin::of(hub).ok(),
            per_origin: AT_ONE_HUB,
            ..WebConfig::default()
        };
        let (client, turns) = (Client::new(config)?, Semaphore::new(AT_ONE_HUB));
        let new = Arc::new(HubClient { client, turns });
        all.insert(hub.clone(), Arc::clone(&new));
        Ok(new)
    }
}
