//! A publication that is served: alone, or as a set of several.

use publish::{Publication, PublishError, Published};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::follow;
use crate::hub::Hub;
use crate::notify;
use crate::settings::Settings;
use crate::shared::{Held, Shared};

/// A publication that is served. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Set {
    pub(crate) shared: Shared,
    /// Its own hub, if it has one.
    pub(crate) hub: Option<Hub>,
}

/// Publishes once, and begins the tasks that follow what is stored and tell hubs. They end with `stop`.
///
/// # Errors
/// When the first publication fails.
pub(crate) async fn start(
    mut publication: Publication,
    held: Held,
    settings: &Settings,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(Set, Published), PublishError> {
    let others = publication.hubs.clone();
    let own = settings.hub.clone().map(|limits| (own_hub(&publication), limits));
    if let Some((url, _)) = &own {
        publication.hubs.insert(0, url.clone());
    }
    let shared = Shared::open(publication, held, settings).await?;
    let done = follow::publish(&shared).await?;
    let hub = match own {
        Some((url, limits)) => Some(Hub::open(&shared, &url, limits, stop.clone()).await?),
        None => None,
    };
    if let Some(hub) = hub.clone() {
        tasks.spawn(hub.run(shared.published()));
    }
    tasks.spawn(follow::follow(shared.clone(), settings.rescan, stop.clone()));
    for hub in others {
        tasks.spawn(notify::tell(shared.clone(), hub, shared.published(), stop.clone()));
    }
    Ok((Set { shared, hub }, done))
}

/// The URL of a publication's own hub.
fn own_hub(publication: &Publication) -> Url {
    let url = publication.base.url(publish::paths::HUB).parse();
    url.expect("a base is a URL, and the path needs no escape")
}
