//! What all hubs of a server share: the client that calls subscribers, and what bounds them together.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use publish::{PublishError, Requester};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use web::Client;

use super::client;
use super::places::Places;
use super::verify::Verifications;
use crate::hub_limits::HubLimits;

/// Payloads that are made at the same time of earlier changes: each has a thousand entries in memory.
const CATCHING_UP: usize = 16;

/// Hubs that make payloads of new changes at the same time: each has some thousand entries in memory.
const PRODUCING: usize = 4;

/// Payloads of earlier changes that are in memory until they are delivered. One origin has a few of them at most ([`Places`]).
const BODIES: usize = 64;

/// Requests that waited and are verified at the same time, of all hubs: those of strangers, and as many of subscribers.
/// Each may take a connection for a minute.
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
    renewals: Verifications,
    verifying: Semaphore,
    renewing: Semaphore,
    places: Places,
    bodies: Semaphore,
    catching_up: Semaphore,
    producing: Semaphore,
    opening: Semaphore,
    trials: Arc<Semaphore>,
    payload_bytes: Arc<AtomicUsize>,
}

impl Room {
    /// # Errors
    /// When no subscriber can be called from here.
    pub(crate) fn new(limits: HubLimits) -> Result<Self, PublishError> {
        Ok(Self(Arc::new(Parts {
            client: client::client(&limits)?,
            trials: Arc::new(Semaphore::new(limits.without_subscribers)),
            limits,
            verifications: Verifications::default(),
            renewals: Verifications::default(),
            verifying: Semaphore::new(VERIFYING),
            renewing: Semaphore::new(VERIFYING),
            places: Places::default(),
            bodies: Semaphore::new(BODIES),
            catching_up: Semaphore::new(CATCHING_UP),
            producing: Semaphore::new(PRODUCING),
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

    /// Requests that are taken, for callbacks that are not known: each is verified at once, or put where it waits.
    pub(super) fn verifications(&self) -> &Verifications {
        &self.0.verifications
    }

    /// The same for callbacks of subscribers. Strangers, who may let each request wait, take no place of theirs.
    pub(super) fn renewals(&self) -> &Verifications {
        &self.0.renewals
    }

    /// Turns to verify requests that waited. Those of subscribers have turns of their own.
    pub(super) fn verifying(&self, from: Requester) -> &Semaphore {
        match from {
            Requester::Stranger => &self.0.verifying,
            Requester::Subscriber => &self.0.renewing,
        }
    }

    /// Places at the origins of subscribers.
    pub(super) fn places(&self) -> &Places {
        &self.0.places
    }

    /// Room for payloads of earlier changes.
    pub(super) fn bodies(&self) -> &Semaphore {
        &self.0.bodies
    }

    /// Turns to make payloads of earlier changes.
    pub(super) fn catching_up(&self) -> &Semaphore {
        &self.0.catching_up
    }

    /// Turns to make payloads of new changes.
    pub(super) fn producing(&self) -> &Semaphore {
        &self.0.producing
    }

    /// A turn to open a hub.
    pub(crate) async fn opening(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.0.opening.acquire().await.ok()
    }

    /// A place for a hub that requests open before it has a subscriber. None while all are taken.
    pub(crate) fn trial_now(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.trials).try_acquire_owned().ok()
    }

    /// Waits for such a place.
    pub(crate) async fn trial(&self) -> Option<OwnedSemaphorePermit> {
        // It is never closed.
        Arc::clone(&self.0.trials).acquire_owned().await.ok()
    }

    /// Whether there is such a place now.
    pub(super) fn has_trials(&self) -> bool {
        self.0.trials.available_permits() > 0
    }

    /// The bytes of all payloads in memory.
    pub(super) fn payload_bytes(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.0.payload_bytes)
    }
}
