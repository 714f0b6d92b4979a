//! What all hubs of a server share: the client that calls subscribers, and what bounds them together.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use publish::PublishError;
use tokio::sync::{Semaphore, SemaphorePermit};
use web::Client;

use super::client;
use super::verify::Verifications;
use crate::hub_limits::HubLimits;

/// Subscribers that are behind and get earlier changes at the same time: each has some thousand entries in memory.
const CATCHING_UP: usize = 16;

/// Requests that waited and are verified at the same time, of all hubs: each may take a connection for a minute.
const VERIFYING: usize = 256;

/// Hubs that are opened at the same time: a server that starts looks at each of its publications.
const OPENING: usize = 16;

/// What all hubs of a server share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Room(Arc<Parts>);

struct Parts {
    client: Client,
    limits: HubLimits,
    verifications: Verifications,
    verifying: Semaphore,
    catching_up: Semaphore,
    opening: Semaphore,
    payload_bytes: Arc<AtomicUsize>,
}

impl Room {
    /// # Errors
    /// When no subscriber can be called from here.
    pub(crate) fn new(limits: HubLimits) -> Result<Self, PublishError> {
        Ok(Self(Arc::new(Parts {
            client: client::client(&limits)?,
            limits,
            verifications: Verifications::default(),
            verifying: Semaphore::new(VERIFYING),
            catching_up: Semaphore::new(CATCHING_UP),
            opening: Semaphore::new(OPENING),
            payload_bytes: Arc::default(),
        })))
    }

    /// The client that calls subscribers.
    pub(super) fn client(&self) -> &Client {
        &self.0.client
    }

    /// Limits of each hub.
    pub(super) fn limits(&self) -> &HubLimits {
        &self.0.limits
    }

    /// Requests that are taken: each is verified at once, or put where it waits.
    pub(super) fn verifications(&self) -> &Verifications {
        &self.0.verifications
    }

    /// Turns to verify requests that waited.
    pub(super) fn verifying(&self) -> &Semaphore {
        &self.0.verifying
    }

    /// Turns of subscribers that are behind.
    pub(super) fn catching_up(&self) -> &Semaphore {
        &self.0.catching_up
    }

    /// A turn to open a hub.
    pub(crate) async fn opening(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.0.opening.acquire().await.ok()
    }

    /// The bytes of all payloads in memory.
    pub(super) fn payload_bytes(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.0.payload_bytes)
    }
}
