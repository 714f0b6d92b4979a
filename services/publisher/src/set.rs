//! A publication that is served: alone, or as a set of several.

use publish::{Publication, PublishError, Published};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::follow;
use crate::hub::{Front, Hub, Room};
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
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Server {
    pub(crate) fn new(settings: Settings, stop: CancellationToken) -> Result<Self, PublishError> {
        let room = settings.hub.clone().map(Room::new).transpose()?;
        let turns = Turns::new(settings.turns, settings.turn_time);
        Ok(Self { settings, turns, room, tasks: TaskTracker::new(), stop })
    }
}

/// Publishes once, and begins the tasks that follow what is stored and tell hubs. They end with `stop`. It may be
/// dropped, and called again.
///
/// # Errors
/// When the first publication fails.
pub(crate) async fn start(
    mut publication: Publication,
    open: impl FnOnce(Publication) -> Shared,
    server: &Server,
) -> Result<(Set, Published), PublishError> {
    let others = publication.hubs.clone();
    let Server { settings, room, tasks, stop, .. } = server;
    let own = room.clone().map(|room| (own_hub(&publication), room));
    if let Some((url, _)) = &own {
        publication.hubs.insert(0, url.clone());
    }
    let shared = open(publication);
    // From here on each change of the list is seen, also one during the first publication.
    let takedowns = shared.takedowns().map(Takedowns::changes);
    let done = follow::publish(&shared).await?;
    let hub = match own {
        Some((url, room)) => Some(Hub::open(&shared, &url, room, None, stop.clone()).await?),
        None => None,
    };
    if let Some(hub) = hub.clone() {
        tasks.spawn(hub.run(shared.published()));
    }
    tasks.spawn(follow::follow(shared.clone(), takedowns, settings.rescan, stop.clone()));
    for hub in others {
        let way = Way::of(&hub, &settings.pinged);
        tasks.spawn(notify::tell(shared.clone(), hub, way, shared.published(), stop.clone()));
    }
    Ok((Set { shared, hub: hub.map(Front::Alone) }, done))
}

/// The URL of a publication's own hub.
fn own_hub(publication: &Publication) -> Url {
    let url = publication.base.url(publish::paths::HUB).parse();
    url.expect("a base is a URL, and the path needs no escape")
}
