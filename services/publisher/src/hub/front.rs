//! What requests to a hub reach: the hub itself, or, where several processes serve the publication, a place at which
//! they wait for the process that has it open.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use control::{ControlError, HubHints};
use fixity::Sha256;
use model::{Clock as _, SystemClock};
use publish::{Admission, PublishError, Requester, WaitingRequest};
use tokio::sync::watch;
use ulid::Ulid;
use url::Url;
use websub::{Channel, SubscriptionRequest};

use super::Hub;
use super::room::Room;
use crate::shared::Shared;

/// Requests of strangers that wait at a publication, those of one host, and as many of subscribers. Further ones are
/// refused meanwhile.
pub(super) const MOST_WAITING: usize = 256;
const MOST_WAITING_PER_HOST: usize = 32;

/// What requests to a hub reach. Cheap to clone.
#[derive(Clone)]
pub(crate) enum Front {
    /// The hub: this process alone serves the publication.
    Alone(Hub),
    /// Several processes serve it.
    Fleet(FleetFront),
}

/// What requests to a hub reach that one of several processes has open. Cheap to clone.
#[derive(Clone)]
pub(crate) struct FleetFront(Arc<Parts>);

struct Parts {
    shared: Shared,
    channel: Channel,
    room: Room,
    hints: HubHints,
    /// The hub, while this process has it open.
    open: RwLock<Option<Hub>>,
    /// Whether this process is to open it, when it is needed.
    is_mine: AtomicBool,
    /// Changes when requests may wait.
    calls: watch::Sender<()>,
}

/// Why a request cannot wait.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotLeft {
    /// Many wait.
    #[error("many requests to this hub wait; try again in a minute")]
    Full,
    /// Many hubs are open for requests alone.
    #[error("{0} hubs without subscribers are open, as many as this server opens; try again in a minute")]
    ManyHubs(usize),
    #[error(transparent)]
    Publication(#[from] PublishError),
    #[error(transparent)]
    Hint(#[from] ControlError),
}

impl Front {
    /// The topic of the hub, and its URL.
    pub(super) fn channel(&self) -> &Channel {
        match self {
            Self::Alone(hub) => &hub.0.channel,
            Self::Fleet(front) => &front.0.channel,
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        match self {
            Self::Alone(hub) => &hub.0.shared,
            Self::Fleet(front) => &front.0.shared,
        }
    }

    pub(super) fn room(&self) -> &Room {
        match self {
            Self::Alone(hub) => &hub.0.room,
            Self::Fleet(front) => &front.0.room,
        }
    }

    /// The hub, if this process has it open.
    pub(super) fn hub(&self) -> Option<Hub> {
        match self {
            Self::Alone(hub) => Some(hub.clone()),
            Self::Fleet(front) => front.hub(),
        }
    }

    /// Who sends a request for this callback: the hub knows its subscribers. Where another process has it open, the
    /// file of a subscriber is looked for.
    pub(super) async fn requester(&self, callback: &Url) -> Result<Requester, PublishError> {
        let is_known = match self.hub() {
            Some(hub) => hub.knows(callback),
            None => self.shared().publication().is_subscriber(callback).await?,
        };
        Ok(if is_known { Requester::Subscriber } else { Requester::Stranger })
    }
}

impl FleetFront {
    /// `url` is that of the hub.
    pub(crate) fn new(shared: Shared, url: &Url, room: Room, hints: HubHints) -> Self {
        let channel = crate::notify::channel(&shared, url);
        let (open, calls) = (RwLock::new(None), watch::Sender::new(()));
        let is_mine = AtomicBool::new(false);
        Self(Arc::new(Parts { shared, channel, room, hints, open, is_mine, calls }))
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0.shared
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0.channel.hub
    }

    pub(crate) fn room(&self) -> &Room {
        &self.0.room
    }

    /// Notes the hub that this process has open, or that it has none.
    pub(crate) fn set_open(&self, hub: Option<Hub>) {
        *self.0.open.write().unwrap_or_else(PoisonError::into_inner) = hub;
    }

    /// Notes whether this process is to open the hub, when it is needed.
    pub(crate) fn set_mine(&self, is_mine: bool) {
        self.0.is_mine.store(is_mine, Ordering::Relaxed);
    }

    /// Whether a request can open the hub now, as far as this process knows. It does not if too many others without
    /// subscribers are open.
    fn can_open(&self) -> bool {
        self.hub().is_some() || !self.0.is_mine.load(Ordering::Relaxed) || self.0.room.has_trials()
    }

    fn hub(&self) -> Option<Hub> {
        self.0.open.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Requests may wait.
    pub(crate) fn call(&self) {
        self.0.calls.send_replace(());
    }

    /// Changes when requests may wait.
    pub(crate) fn calls(&self) -> watch::Receiver<()> {
        self.0.calls.subscribe()
    }

    /// Leaves a request to the process that has the hub, with what its sender was admitted by. It is at the place of
    /// the publication when this returns.
    pub(super) async fn leave(
        &self,
        from: Requester,
        request: &SubscriptionRequest,
        admission: Admission,
    ) -> Result<(), NotLeft> {
        let Parts { shared, hints, .. } = &*self.0;
        // A hub with subscribers is opened in any case.
        if from == Requester::Stranger && !self.can_open() {
            return Err(NotLeft::ManyHubs(self.0.room.limits().without_subscribers));
        }
        let publication = shared.publication();
        let host = host_mark(&request.callback);
        let waiting = publication.waiting_requests(Some(from), MOST_WAITING).await?;
        let same = waiting.iter().filter(|name| name.ends_with(&host)).count();
        if waiting.len() >= MOST_WAITING || same >= MOST_WAITING_PER_HOST {
            return Err(NotLeft::Full);
        }
        let left = WaitingRequest { form: request.to_form(), admission };
        let callback = mark(request.callback.as_str());
        let name = format!("{}-{callback}-{host}", Ulid::new());
        publication.put_waiting_request(from, &name, &left).await?;
        Ok(hints.give(&publication.source.source, SystemClock.now()).await?)
    }
}

/// What the name of a request ends with, by the host of its callback.
fn host_mark(callback: &Url) -> String {
    mark(callback.host_str().unwrap_or_default())
}

fn mark(text: &str) -> String {
    Sha256::of(text.as_bytes()).to_string().chars().take(12).collect()
}
