//! A publication that is served: alone, or as a set of several.

use publish::{Publication, PublishError, Published, Takedown};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::follow::{self, First};
use crate::hub::{Front, Hub, Room};
use crate::hub_clients::HubClients;
use crate::notify::{self, Way};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::takedowns::Takedowns;
use crate::turns::Turns;

/// A publication that is served. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Set {
    pub(crate) shared: Shared,
    /// Its own hub, if it has one.
    pub(crate) hub: Option<Front>,
}

/// What the sets of one server have in common. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) settings: Settings,
    /// The turns of its publications.
    pub(crate) turns: Turns,
    /// What the own hubs of its sets share; none if they have none.
    pub(crate) room: Option<Room>,
    /// What the hubs of others are told by.
    pub(crate) hub_clients: HubClients,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Server {
    pub(crate) fn new(settings: Settings, stop: CancellationToken) -> Result<Self, PublishError> {
        let room = settings.hub.clone().map(Room::new).transpose()?;
        let turns = Turns::new(settings.turns, settings.turn_time);
        let (hub_clients, tasks) = (HubClients::default(), TaskTracker::new());
        Ok(Self { settings, turns, room, hub_clients, tasks, stop })
    }
}

/// A publication that is to be served. Nothing of it is read yet.
pub(crate) struct Opening {
    shared: Shared,
    server: Server,
    /// Its own hub, if it has one.
    own: Option<(Url, Room)>,
    /// The hubs of others.
    others: Vec<Url>,
    takedowns: Option<watch::Receiver<Takedown>>,
}

impl Opening {
    pub(crate) fn new(
        mut publication: Publication,
        open: impl FnOnce(Publication) -> Shared,
        server: &Server,
    ) -> Self {
        let others = publication.hubs.clone();
        let own = server.room.clone().map(|room| (own_hub(&publication), room));
        if let Some((url, _)) = &own {
            publication.hubs.insert(0, url.clone());
        }
        let shared = open(publication);
        // From here on each change of the list is seen, also one during the first publication.
        let takedowns = shared.takedowns().map(Takedowns::changes);
        Self { shared, server: server.clone(), own, others, takedowns }
    }

    /// Whether it was published before: then it can be served at once. False if that cannot be told now.
    pub(crate) async fn is_there(&self) -> bool {
        self.shared.is_published().await
    }

    /// Publishes what there is by now. It may be dropped, and called again.
    ///
    /// # Errors
    /// When the publication fails.
    pub(crate) async fn publish(&self) -> Result<Published, PublishError> {
        follow::publish(&self.shared).await
    }

    /// Begins the tasks that tell hubs. They end with the server. It is called once its documents are there, and again
    /// only if it failed.
    ///
    /// # Errors
    /// When its own hub cannot be opened.
    pub(crate) async fn serve(&self) -> Result<Set, PublishError> {
        let Server { settings, hub_clients, tasks, stop, .. } = &self.server;
        let shared = &self.shared;
        let hub = match &self.own {
            Some((url, room)) => {
                let _turn = room.opening().await;
                Some(Hub::open(shared, url, room.clone(), None, stop.clone()).await?)
            }
            None => None,
        };
        if let Some(hub) = hub.clone() {
            tasks.spawn(hub.run(shared.published()));
        }
        for hub in &self.others {
            let way = Way::of(hub, &settings.pinged);
            let (shared, clients, published) = (shared.clone(), hub_clients.clone(), shared.published());
            tasks.spawn(notify::tell(shared, hub.clone(), way, clients, published, stop.clone()));
        }
        Ok(Set { shared: shared.clone(), hub: hub.map(Front::Alone) })
    }

    /// Begins the task that follows what is stored. It ends with the server.
    pub(crate) fn follow(self, first: First) {
        let Self { shared, server: Server { settings, tasks, stop, .. }, takedowns, .. } = self;
        tasks.spawn(follow::follow(shared, takedowns, first, settings.rescan, stop));
    }
}

/// The URL of a publication's own hub.
fn own_hub(publication: &Publication) -> Url {
    let url = publication.base.url(publish::paths::HUB).parse();
    url.expect("a base is a URL, and the path needs no escape")
}
